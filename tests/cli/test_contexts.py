"""What stands in a ``with`` keeps everything if the block ends well, and what it had before if it does not."""

import importlib
import inspect
import pkgutil
import signal

import numpy as np
import pytest
from test_bank import keyed

import gossamer
from gossamer import SILKRegressor, store
from gossamer._locks import CallLock
from gossamer.bank import ModelBank
from gossamer.cli.run import Interrupts
from gossamer.cli.video import Writer
from gossamer.demo import Progress
from gossamer.kernels import Gaussian
from gossamer.serve.fair_lock import FairLock
from gossamer.streams import open_stream


class StopError(Exception):
    """What ends a block that does not end well."""


def managers():
    """Every class of the package that can stand in a ``with``."""
    found = set()
    for module in pkgutil.walk_packages(gossamer.__path__, "gossamer."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # a face whose extra is not installed
            continue
        for _, kind in inspect.getmembers(loaded, inspect.isclass):
            if "__enter__" in vars(kind) and kind.__module__.startswith("gossamer"):
                found.add(kind)
    return {kind.__name__ for kind in found}


def bank(folder, fails):
    """Models and offset of the block, or those of the last commit."""
    path, X = folder / "bank.sqlite", np.arange(40.0).reshape(20, 2)
    for options in ({}, {"memory": 1}):
        path.unlink(missing_ok=True)
        bank = ModelBank(SILKRegressor(Gaussian(0.5)), path=path, **options)
        bank.learn(keyed(20), X, X[:, 0], offset=20)
        bank.commit()
        bank.close()
        try:
            with ModelBank(SILKRegressor(Gaussian(0.5)), path=path, **options) as bank:
                bank.learn([*keyed(20), "new"], [*X, X[0]], [*X[:, 0], 1.0], offset=40)
                whole = {key: bank.dump(key) for key in bank}
                if fails:
                    raise StopError
        except StopError:
            assert fails
        with ModelBank(SILKRegressor(Gaussian(0.5)), path=path, **options) as bank:
            assert bank.offset == (20 if fails else 40)
            assert ("new" in bank) is not fails
            assert ({key: bank.dump(key) for key in bank} == whole) is not fails
    with ModelBank(SILKRegressor(Gaussian(0.5)), memory=1) as bank:  # in a file that goes away
        bank.learn(keyed(20), X, X[:, 0])


def stream(folder, fails):
    """A stream is only read: the file is closed, and as it was."""
    path = folder / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    try:
        with open_stream(path, target="b") as rows:
            assert len(next(rows).X)
            if fails:
                raise StopError
    except StopError:
        pass
    assert path.read_text() == "a,b\n" + "1,2\n" * 100
    with open_stream(path, target="b") as rows:
        assert sum(len(chunk.X) for chunk in rows) == 100


def writer(folder, fails):
    """All images that were written are there, also after a failure: they are of no use half."""
    cv2 = pytest.importorskip("cv2")
    image = np.zeros((32, 32, 3), np.uint8)
    for name in ("masks", "video.avi"):
        try:
            with Writer(cv2, str(folder / name), 25.0) as out:
                for _ in range(5):
                    out.write(image)
                if fails:
                    raise StopError
        except StopError:
            pass
    assert len(list((folder / "masks").iterdir())) == 5
    video = cv2.VideoCapture(str(folder / "video.avi"))
    assert sum(1 for _ in iter(lambda: video.read()[0], False)) == 5


def interrupts(folder, fails):
    """The signals are those of before."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) != before[0]
            if fails:
                raise StopError
    except StopError:
        pass
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def progress(folder, fails):
    """It only shows something."""
    try:
        with Progress(3) as shown:
            shown.show(1)
            if fails:
                raise StopError
    except StopError:
        assert fails


def lock(kind):
    """It is free after the block, however that ends."""

    def check(folder, fails):
        held = kind()
        for _ in range(2):
            try:
                with held:
                    if fails:
                        raise StopError
            except StopError:
                assert fails

    return check


def background(folder, fails):
    """The server has stopped, and what it acknowledged is there for the next one; the client has closed."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("msgspec")
    from gossamer.serve import Background, Limits

    recipe = {"task": "regression", "learner": "SILKRegressor", "columns": ["a"]}
    try:
        with Background(folder, limits=Limits(rows=100)) as server, server.client() as client:
            client.create("m", **recipe)
            client.learn("m", [[1.0], [2.0]], [1.0, 2.0])
            if fails:
                raise StopError
    except StopError:
        assert fails
    assert not server.thread.is_alive()
    with Background(folder) as server, server.client() as client:
        assert client.predict("m", [[1.0]])["learned"] == 2


CASES = {"CallLock": lock(CallLock), "FairLock": lock(FairLock), "Background": background, "Client": background,
         "ModelBank": bank, "Stream": stream, "Writer": writer, "Interrupts": interrupts,
         "Progress": progress}  # fmt: skip


def test_all_are_here():
    """A new one needs a case, and a decision."""
    assert managers() == set(CASES)


@pytest.mark.parametrize("fails", [False, True], ids=["ends well", "fails"])
@pytest.mark.parametrize("name", CASES)
def test_blocks(name, fails, tmp_path):
    CASES[name](tmp_path, fails)


def test_a_full_disk(tmp_path):
    """A commit, a snapshot or a save that does not fit names its file, and what was there stays."""
    path, X = tmp_path / "bank.sqlite", np.random.default_rng(0).normal(size=(4000, 2))
    for memory in (None, 20_000):
        path.unlink(missing_ok=True)
        bank = ModelBank(SILKRegressor(Gaussian(0.5)), path=path, memory=memory)
        bank.learn([0], X[:1], X[:1, 0], offset=1)
        bank.commit()
        file = bank._shelf._file
        file.execute(f"PRAGMA max_page_count = {file.execute('PRAGMA page_count').fetchone()[0] + 3}")

        def fill(bank):
            for rows in np.split(np.arange(4000), 4):
                bank.learn(rows, X[rows], X[rows, 0], offset=2)
            bank.commit()

        with pytest.raises(OSError, match=r"No space left.*bank\.sqlite"):
            fill(bank)
        if memory is None:  # everything is in memory: once there is room, it goes on
            file.execute("PRAGMA max_page_count = 1000000")
            bank.commit()
            bank.close()
            with ModelBank(SILKRegressor(Gaussian(0.5)), path=path) as bank:
                assert len(bank) == 4000
            continue
        bank.close()
        with ModelBank(SILKRegressor(Gaussian(0.5)), path=path) as bank:
            assert (len(bank), bank.offset) == (1, 1)
    small = ModelBank(SILKRegressor(Gaussian(0.5)))
    small.learn([0], X[:1], X[:1, 0])
    for act in (small.snapshot, small.model(0).save):
        with pytest.raises(OSError, match="missing") as caught:
            act(tmp_path / "missing" / "file")
        assert "file" in str(caught.value)


def test_a_snapshot_beside_others(tmp_path, monkeypatch):
    """A snapshot does not write where somebody could wait for it, and leaves nothing behind."""
    bank = ModelBank(SILKRegressor(Gaussian(0.5)))
    bank.learn([0], [[1.0]], [1.0])
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "snapshot.tmp").symlink_to(victim)
    bank.snapshot(tmp_path / "snapshot")
    assert victim.read_text() == "precious"
    assert {found.name for found in tmp_path.iterdir()} == {"victim", "snapshot.tmp", "snapshot"}
    with ModelBank.restore(tmp_path / "snapshot") as again:
        assert len(again) == 1
    names = set()
    monkeypatch.setattr("gossamer.bank.shelf.open_file", lambda path: names.add(path) or 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            bank.snapshot(tmp_path / "other")
    assert len(names) == 2
    assert {found.name for found in tmp_path.iterdir()} == {"victim", "snapshot.tmp", "snapshot"}


def test_a_save_without_room(tmp_path, monkeypatch):
    """The error of a full disk names the file that was to be saved."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device.*model\.gsm"):
        store.save({"a": 1}, tmp_path / "model.gsm")
