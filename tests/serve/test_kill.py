"""Kill -9 under load, a few times (`make kill-serve`: 200 times), and what the command line does besides serving."""

import asyncio
import signal
import sqlite3

import kill_serve
import load
import pytest

from gossamer import SILKClassifier
from gossamer.cli import main
from gossamer.serve import Client
from gossamer.serve.tokens import Tokens


@pytest.fixture(scope="module")
def forks():
    """Servers that start at once."""
    with load.Forks() as found:
        yield found


@pytest.mark.parametrize("mixed", [False, True])
def test_kill_under_load(mixed, forks, tmp_path):
    """Nothing acknowledged is lost, nothing is learned twice, and the model has the bytes of an uninterrupted run."""
    found = asyncio.run(kill_serve.campaign(tmp_path / "data", 3, 7, forks, mixed))
    assert found["blocks"] > 3


def test_the_command_line(forks, tmp_path, capsys):
    """A model from a file, a backup while it is served, a check, and an orderly end."""
    model = SILKClassifier(budget=16).partial_fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
    model.save(tmp_path / "first.gsm")
    port, folder = load.free_port(), tmp_path / "data"
    process = forks.start(folder, port, tmp_path / "first.gsm")
    with Client(f"http://127.0.0.1:{port}") as client:
        assert [model["learned"] for model in client.models()["models"]] == [2]  # ready: the file is imported
        client.learn("first", [[0.5, 0.5]], ["a"])
        assert client.describe("first")["learned"] == 3
        assert main(["serve", "backup", str(tmp_path / "copy.db"), "--data", str(folder)]) == 0
        assert main(["serve", "check", "--data", str(folder)]) == 1  # it is in use
    load.stop(process, signal.SIGTERM)
    capsys.readouterr()
    assert main(["serve", "check", "--data", str(folder)]) == 0
    assert "all as they were written" in capsys.readouterr().out
    restored = tmp_path / "restored"
    restored.mkdir()
    (tmp_path / "copy.db").rename(restored / "gossamer.db")
    process = forks.start(restored, port)
    with Client(f"http://127.0.0.1:{port}") as client:
        assert client.describe("first")["learned"] == 3
    load.stop(process, signal.SIGKILL)
    with sqlite3.connect(restored / "gossamer.db") as connection:
        connection.execute("UPDATE journal SET payload = x'00' WHERE seq = 2")
    connection.close()
    assert main(["serve", "check", "--data", str(restored)]) == 1
    assert "entry 2" in capsys.readouterr().err


def test_tokens_of_the_command_line(tmp_path, capsys):
    """A token is printed once, listed by name, and revoked."""
    data = ["--data", str(tmp_path)]
    assert main(["serve", "token", "sensors", "--scopes", "predict,learn", *data]) == 0
    token = capsys.readouterr().out.strip()
    assert Tokens(tmp_path).scopes(f"Bearer {token}") == {"predict", "learn"}
    assert main(["serve", "token", *data]) == 0
    assert capsys.readouterr().out == "sensors: predict, learn\n"
    assert main(["serve", "token", "sensors", *data]) != 0
    assert main(["serve", "token", "other", "--scopes", "everything", *data]) != 0
    assert main(["serve", "token", "sensors", "--revoke", *data]) == 0
    assert Tokens(tmp_path).scopes("Bearer anything") == {"predict", "learn", "admin"}


@pytest.mark.parametrize("bad", [["nothing.gsm"], ["--limit", "rows"], ["--limit", "spam=1"], ["backup"], ["check"],
                                 ["--host", "0.0.0.0"], ["--limit", "rows=0"]])  # fmt: skip
def test_bad_options_are_told(bad, tmp_path, capsys):
    """One line, and nothing is served."""
    assert main(["serve", *bad, "--data", str(tmp_path / "data")]) in (1, 2)
    assert len(capsys.readouterr().err.splitlines()) == 1
