"""Rows with texts, gaps and dates: the model of the same rows in process, through crashes, retries and every form.

The file is long because it holds every law of the server once more, for rows that an encoder reads.
"""

import asyncio
import io
import itertools
import json
import sqlite3

import numpy as np
import pytest
from hubs import crash, running
from mixed_rows import COLUMNS, body, learn_here, mixed_stream
from test_api import send

from gossamer import RowEncoder, from_bytes, load, pipeline, store
from gossamer.cli import main
from gossamer.serve import AsyncClient, Background, Limits, ServerError, mixed
from gossamer.serve.changes import Labels, Work
from gossamer.serve.files import read_model
from gossamer.serve.journal import Journal
from gossamer.serve.limits import LONGEST_CELL, MOST_FEATURES
from gossamer.serve.mixed import Mixed
from gossamer.serve.problems import ConflictError, ReadOnlyError
from gossamer.serve.recipes import Recipe, learners, make_model
from gossamer.serve.rows import Block, Request, decode_block, encode_block, read_rows

LEARNERS = sorted(learners())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a model of mixed rows."""
    with Background(tmp_path_factory.mktemp("data"), limits=Limits(rows=1000)) as server:
        rows, y = mixed_stream("classification", 200)
        server.client().learn("shop", rows, y, learner="NewtonClassifier", target="late")
        yield server


def block(rows, y, first, last, **more):
    """Rows as the API reads them for a model of these columns; the first ones decide what they become."""
    given = Request(rows=rows[first:last], y=None if y is None else y[first:last])
    made = read_rows(given, COLUMNS, None, None, 10**6, encoded=True)
    made.columns = COLUMNS if first == 0 else None
    for name, value in more.items():
        setattr(made, name, value)
    return made


def parts_of(served):
    """The bytes of the encoder and the model."""
    return store.dumps(served.encoder), store.dumps(served.model)


@pytest.mark.parametrize("name", LEARNERS)
def test_any_cut_and_crash_gives_the_model_of_the_library(name, tmp_path):
    """Cut anywhere, killed and replayed: the bytes are those of an encoder and a learner in this process."""
    task = learners()[name].task
    rows, y = mixed_stream(task, 150)
    rng = np.random.default_rng(LEARNERS.index(name))
    cuts = [20, *sorted(rng.choice(np.arange(21, len(rows)), size=9, replace=False).tolist())]
    calls = [(rows[a:b], None if y is None else y[a:b]) for a, b in itertools.pairwise([0, *cuts, len(rows)])]
    wanted = learn_here({"learner": name}, task, calls)
    folder, parts = tmp_path / "0", [0, cuts[2], cuts[6], len(rows)]
    for number, (first, last) in enumerate(itertools.pairwise(parts)):
        with running(folder, snapshot_rows=60) as hub:
            if number == 0:
                hub.call(Work("create", "m", Recipe(learner=name)))
            ends = [*[cut for cut in cuts if first < cut < last], last]
            hub.call(*[Work("learn", "m", block(rows, y, a, b), rows=b - a)
                       for a, b in zip([first, *ends[:-1]], ends, strict=True)])  # fmt: skip
            state = hub.models["m"].dump()
            folder = crash(hub, tmp_path / str(number + 1))
    with running(folder) as hub:
        assert hub.models["m"].dump() == state
        assert hub.models["m"].export() == wanted
        assert from_bytes(wanted).to_bytes() == wanted


def test_the_plan_is_replayed_and_not_found_again(tmp_path, monkeypatch):
    """What the first rows decided stands in the journal: a later way to look at rows does not change a model."""
    rows, y = mixed_stream("classification", 60)
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        hub.call(Work("learn", "m", block(rows, y, 0, 30), rows=30))
        hub.call(Work("learn", "m", block(rows, y, 30, 60), rows=30))
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
    monkeypatch.setattr("gossamer.rows.encoder.find_plan", lambda *_: pytest.fail("the plan was found again"))
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state


def test_a_request_of_mixed_rows_is_learned_once(tmp_path):
    """Also the first one, which decides the columns: at once, in one group, after a crash and after a trim."""
    rows, y = mixed_stream("regression", 60)

    def again(request, last=30):
        return Work("learn", "m", block(rows, y, 0, last, shown=True, columns=None), request, last)

    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        answer = hub.call(Work("learn", "m", block(rows, y, 0, 30, shown=True), "r1", 30))
        assert len(answer["predictions"]) == 30
        assert hub.call(again("r1")) == {**answer, "repeated": True}
        assert hub.call(again("r2"), again("r2"))["repeated"]
        with pytest.raises(ConflictError):
            hub.call(again("r1", 20))
        crash(hub, tmp_path / "b")
    for _ in range(2):
        with running(tmp_path / "b", snapshots=1) as hub:
            assert hub.call(again("r1")) == {**answer, "repeated": True}
            assert hub.models["m"].rows == 60


def test_late_labels_of_mixed_rows(tmp_path):
    """Rows wait through a crash, and are learned in the order of their labels as if they had come then."""
    rows, y = mixed_stream("regression", 100)
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe(learner="NewtonRegressor")))
        hub.call(Work("learn", "m", block(rows, y, 0, 50), rows=50))
        ids = [f"id{i}" for i in range(50)]
        asked = hub.call(Work("ask", "m", block(rows, None, 50, 100, ids=ids), rows=50))
        assert asked["predictions"] == hub.models["m"].predict(block(rows, None, 50, 100), {})["predictions"]
        crash(hub, tmp_path / "b")
        waiting = hub.models["m"].dump()
    order = np.random.default_rng(0).permutation(50).tolist()
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == waiting
        answer = hub.call(Work("labels", "m", Labels([ids[i] for i in order], [y[50 + i] for i in order])))
        assert answer["predictions"] == [asked["predictions"][i] for i in order]
        late, state = parts_of(hub.models["m"]), hub.models["m"].dump()
        crash(hub, tmp_path / "c")
    with running(tmp_path / "c") as hub:
        assert hub.models["m"].dump() == state
    with running(tmp_path / "d") as hub:
        hub.call(Work("create", "m", Recipe(learner="NewtonRegressor")))
        hub.call(Work("learn", "m", block(rows, y, 0, 50), rows=50))
        for i in order:
            hub.call(Work("learn", "m", block(rows, y, 50 + i, 51 + i), rows=1))
        assert parts_of(hub.models["m"]) == late


def test_rollbacks_and_files_of_mixed_rows_are_replayed(tmp_path):
    """A version has the encoder too, and so has a file: the same bytes now and after a crash."""
    rows, y = mixed_stream("regression", 90)
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe(learner="NewtonRegressor")))
        hub.call(Work("learn", "m", block(rows, y, 0, 30), rows=30))
        version = hub.call(Work("version", "m", "good"))["version"]
        model = hub.models["m"].export()
        hub.call(Work("learn", "m", block(rows, y, 30, 60), rows=30))
        hub.call(Work("rollback", "m", version))
        assert hub.models["m"].export() == model
        recipe, data = read_model(model)
        hub.call(Work("create", "copy", recipe), Work("import", "copy", (recipe, data)))
        for name in ("m", "copy"):
            hub.call(Work("learn", name, block(rows, y, 60, 90), rows=30))
        assert hub.models["m"].export() == hub.models["copy"].export()
        states = [served.dump() for served in hub.models.values()]
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert [served.dump() for served in hub.models.values()] == states


def test_an_encoder_does_not_learn_what_its_model_refuses(tmp_path):
    """Numbers that overflow in a kernel: neither learns the entry, alone or in a group, now or in a replay."""
    rows, y = mixed_stream("regression", 600)
    rows[520]["size"] = 1e99
    params = {"kernel": "polynomial:degree=5", "budget": 16}
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe(learner="SILKRegressor", params=params, scale=False)))
        hub.call(Work("learn", "m", block(rows, y, 0, 100), rows=100))
        before = parts_of(hub.models["m"])
        with pytest.raises(ValueError, match="must be"):
            hub.call(Work("learn", "m", block(rows, y, 500, 600), rows=100))
        assert parts_of(hub.models["m"]) == before
        works = [Work("learn", "m", block(rows, y, a, a + 100), rows=100) for a in (100, 500, 200)]
        with pytest.raises(ValueError, match="must be"):
            hub.call(*works)
        assert [isinstance(work.result, dict) for work in works] == [True, False, True]
        state, model = hub.models["m"].dump(), parts_of(hub.models["m"])
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state
    with running(tmp_path / "c") as hub:
        hub.call(Work("create", "m", Recipe(learner="SILKRegressor", params=params, scale=False)))
        hub.call(*[Work("learn", "m", block(rows, y, a, a + 100), rows=100) for a in (0, 100, 200)])
        assert parts_of(hub.models["m"]) == model


def test_a_model_per_key_of_mixed_rows(server):
    """One encoder for all keys, then the library's bank: the predictions and models of both in this process."""
    client, (rows, y) = server.client(), mixed_stream("regression", 120)
    keys = [f"k{i % 5}" for i in range(120)]
    recipe = {"task": "regression", "key": "sensor"}
    client.create("keyed", **recipe)
    shown = client.predict_learn("keyed", rows[:60], y[:60], keys=keys[:60])["predictions"]
    within = [{**row, "sensor": key} for row, key in zip(rows[60:], keys[60:], strict=True)]
    shown += client.predict_learn("keyed", within, y[60:])["predictions"]
    encoder = RowEncoder().settle(rows[:60])
    bank = make_model(Recipe(**recipe), "regression", 0, encoder)
    made = [bank.learn(keys[part], encoder.learn_transform(rows[part]), np.array(y[part]))
            for part in (slice(0, 60), slice(60, 120))]  # fmt: skip
    assert shown == np.concatenate(made).tolist()
    Z = encoder.transform(rows[:9])
    assert client.predict("keyed", rows[:9], keys=keys[:9])["predictions"] == bank.predict(keys[:9], Z).tolist()
    served = server.server.app.hub.models["keyed"]
    again = type(served).load(1, served.dump())
    assert again.dump() == served.dump()
    assert client.describe("keyed")["keys"] == 5


def test_mixed_rows_come_in_every_form(server):
    """Dicts, lists, columns, NDJSON and Arrow learn the same model, with kinds found out or said."""
    arrow = pytest.importorskip("pyarrow")
    client, (rows, y) = server.client(), mixed_stream("classification", 60)
    rows = [{name: row.get(name) for name in COLUMNS if name != "code"} for row in rows]
    names = list(rows[0])
    within = [{**row, "label": label} for row, label in zip(rows, y, strict=True)]
    columns = {name: [row[name] for row in rows] for name in names}
    sink = io.BytesIO()
    table = arrow.table({**columns, "label": y})
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    bodies = {
        "dicts": (body(rows, y), "application/json"),
        "lists": (body([list(row.values()) for row in rows], y), "application/json"),
        "gaps left out": (body([{k: v for k, v in row.items() if v is not None} for row in rows], y), ""),
        "within": (body(within), "application/json"),
        "columns": (json.dumps({"columns": columns, "y": y}).encode(), "application/json"),
        "ndjson": ("".join(json.dumps(row) + "\n" for row in within).encode(), "application/x-ndjson"),
        "arrow": (sink.getvalue(), "application/vnd.apache.arrow.stream"),
    }
    found = {}
    for said in (None, {"shop": "category:places=4,hashed=2", "note": "text:16", "when": "timestamp"}):
        for name, (data, kind) in bodies.items():
            client.create("form", target="label", columns=names, **({} if said is None else {"kinds": said}))
            status, _, answer = send(server, "POST", "/v1/models/form/learn", data, {"content-type": kind})
            assert status == 200, answer
            assert json.loads(answer.splitlines()[0])["learned"] == 60
            found[name] = client.export("form")
            assert (client.describe("form")["kinds"]["note"] == "text") == (said is not None)
            client.delete("form")
        assert len(set(found.values())) == 1
        recipe = {} if said is None else {"kinds": said}
        assert found["dicts"] == learn_here(recipe, "classification", [(rows, y)])


def test_numbers_stay_numbers_and_the_first_rows_decide(server):
    """Rows of numbers are learned without an encoder unless it is asked for; then texts and gaps are refused."""
    client = server.client()
    client.learn("plain", [{"a": 1.0, "b": True}, {"a": 2, "b": False}], [1.5, 2.5])
    assert client.describe("plain")["kinds"] is None
    with pytest.raises(ServerError, match="encoder"):
        client.learn("plain", [{"a": "x", "b": 1}], [1.5])
    client.create("asked", encoder={"timezone": "Europe/Rome"})
    client.learn("asked", [{"a": 1.0, "b": True}, {"a": 2, "b": False}], [1.5, 2.5])
    assert client.learn("asked", [{"a": "x"}], [1.5])["learned"] == 3
    told = {one["column"]: one for one in client.describe("asked")["encoding"]}
    assert (told["a"]["strays"], told["b"]["missing"]) == (1, 1)
    with pytest.raises(ServerError, match="422"):
        client.learn("nothing", [{"a": None, "b": 1.0}, {}], [1.0, 2.0])
    assert "nothing" not in {model["name"] for model in client.models()["models"]}


BAD = {
    "an unknown column": [{"size": 1.0, "spam": 1}],
    "none of the columns": [{}],
    "a long text": [{"shop": "x" * (LONGEST_CELL + 1)}],
    "a large number": [{"size": 1e200}],
    "an infinite number": b'{"rows": [{"size": 1e999}], "y": ["up"]}',
    "NaN": b'{"rows": [{"size": NaN}], "y": ["up"]}',
    "half a character": b'{"rows": [{"shop": "\\ud800"}], "y": ["up"]}',
    "too few values": [[1.0, "shop 1"]],
    "an object within": [{"size": {"a": 1}}],
    "a list within": [{"size": [1]}],
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("verb", ["predict", "learn", "predict_learn"])
def test_bad_mixed_rows_change_nothing(case, verb, server):
    """They are refused with a sentence, before anything is journalled, alone and behind good ones."""
    before, seq = server.client().export("shop"), server.server.app.hub.journal.seq
    given = BAD[case]
    bodies = [given]
    if not isinstance(given, bytes):
        parts = given, [{"size": 1.0}, *given]
        bodies = [body(part, None if verb == "predict" else ["up"] * len(part)) for part in parts]
    for data in bodies:
        status, _, answer = send(server, "POST", f"/v1/models/shop/{verb}", data)
        assert status in (400, 422), answer
        assert json.loads(answer)["error"]["message"]
    assert server.client().export("shop") == before
    assert server.server.app.hub.journal.seq == seq


@pytest.mark.parametrize("recipe", [{"kinds": {"a": "spam"}}, {"encoder": {"spam": 1}}, {"encoder": {"missing": "x"}},
    {"encoder": {"timezone": "/etc/passwd"}}, {"kinds": {"a": "text:100000"}}, {"encoder": {"places": 10**6}},
    {"kinds": {"y": "category"}, "target": "y"}, {"kinds": {"z": "category"}, "columns": ["a"]},
    {"kinds": {"a": "cyclic:x"}}, {"encoder": {"sparse": True}}])  # fmt: skip
def test_bad_encoders_are_refused(recipe, server):
    """What a recipe says of columns is checked when the model is created."""
    with pytest.raises(ServerError, match="422"):
        server.client().create("bad", **recipe)


def test_wide_rows_and_gaps_are_refused_where_asked(server):
    """Rows of too many features, and gaps for a model that wants none, are refused before they are journalled."""
    client = server.client()
    wide = {f"c{i}": "x" for i in range(MOST_FEATURES // 80 + 1)}
    with pytest.raises(ServerError, match="features"):
        client.learn("wide", [wide, wide], ["a", "b"])
    client.create("strict", encoder={"missing": "error"}, columns=["size", "shop"])
    client.learn("strict", [{"size": 1.0, "shop": "a"}, {"size": 2.0, "shop": "b"}], [1.5, 2.5])
    seq = server.server.app.hub.journal.seq
    for row in ({"size": None, "shop": "a"}, {"shop": "a"}, {"size": "soon", "shop": "a"}):
        for verb in ("learn", "predict"):
            with pytest.raises(ServerError, match="422"):
                client._rows(verb, "strict", {"rows": [row], "y": [1.0] if verb == "learn" else None})
    assert server.server.app.hub.journal.seq == seq


#: A block of numbers as every journal before has it.
OLD = bytes.fromhex("9802c420000000000000f03f000000000000004000000000000008400000000000001040"
                    "92a26e6fa3796573c0c0c092a161a162c2")  # fmt: skip


def test_old_blocks_are_read():
    """The bytes of blocks of numbers are as they were."""
    made = decode_block(OLD)
    assert isinstance(made, Block)
    assert (made.X.tolist(), made.y, made.columns) == ([[1.0, 2.0], [3.0, 4.0]], ["no", "yes"], ["a", "b"])
    assert encode_block(made) == OLD


def test_forged_blocks_raise_cleanly():
    """Whatever the bytes are, they are a block that fits together, or a ValueError."""
    rows, y = mixed_stream("classification", 20)
    made = block(rows, y, 0, 20, weights=[1.0] * 20)
    mixed.settle(RowEncoder(), made, COLUMNS)
    data, rng = encode_block(made), np.random.default_rng(0)
    assert decode_block(data) == made
    good = 0
    for _ in range(3000):
        forged = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(2, len(forged)))
            how = rng.integers(3)
            if how == 0:
                forged[at] = rng.integers(256)
            elif how == 1:
                del forged[at : at + int(rng.integers(1, 9))]
            else:
                forged[at:at] = rng.bytes(int(rng.integers(1, 9)))
        try:
            found = decode_block(bytes(forged))
        except ValueError:
            continue
        good += 1
        assert isinstance(found, Mixed)
        if found.width == len(COLUMNS):
            assert len(RowEncoder().fit_transform(found.rows(COLUMNS))) == found.count
    assert good > 100  # texts and numbers may be others
    for bad in (b"", mixed.MARK, mixed.MARK + b"\x02" + data[2:], data[:-1], data + b"x", b"\x80\x04K\x01."):
        with pytest.raises(ValueError, match="block"):
            decode_block(bad)


def test_a_forged_entry_stops_a_replay_before_it(tmp_path):
    """An entry with a good checksum and no rows: all before it is served, read-only, and the reason names it."""
    rows, y = mixed_stream("classification", 80)
    with running(tmp_path / "a") as hub:
        for name in ("m", "other"):
            hub.call(Work("create", name, Recipe(learner="SILKClassifier", params={"budget": 8})))
        for first in range(0, 80, 20):
            for name in ("m", "other"):
                hub.call(Work("learn", name, block(rows, y, first, first + 20), rows=20))
        crash(hub, tmp_path / "b")
    journal = Journal(tmp_path / "b")
    entry = next(entry for entry in journal.entries(6) if entry.seq == 7)
    forged = entry._replace(payload=mixed.MARK + b"\x01" + b"\x90")
    journal.close()
    with sqlite3.connect(tmp_path / "b" / "gossamer.db") as connection:
        change = "UPDATE journal SET payload = ?, checksum = ? WHERE seq = 7"
        connection.execute(change, (forged.payload, forged.checksum()))
    connection.close()
    with running(tmp_path / "b") as hub:
        assert hub.state == "read-only"
        assert "entry 7" in hub.reason
        assert hub.models["m"].rows == 40
        assert len(hub.models["m"].predict(block(rows, None, 0, 5), {})["predictions"]) == 5
        with pytest.raises(ReadOnlyError):
            hub.call(Work("learn", "m", block(rows, y, 40, 60), rows=20))


def test_files_of_the_shell_with_texts_are_served(server, tmp_path):
    """A model of ``gossamer run --save`` over a messy file goes on in a server, row for row as in the library."""
    client, (rows, y) = server.client(), mixed_stream("classification", 150)
    lines = [",".join(["late", *COLUMNS])]
    for row, label in zip(rows, y, strict=True):
        cells = ["" if row.get(name) is None else str(row[name]) for name in COLUMNS]
        lines.append(",".join([label, *(f'"{cell}"' if "," in cell else cell for cell in cells)]))
    (tmp_path / "rows.csv").write_text("\n".join(lines), encoding="utf-8")
    saved = tmp_path / "messy.gsm"
    assert main(["run", str(tmp_path / "rows.csv"), "--target", "late", "--save", str(saved), "--quiet"]) == 0
    assert client.upload("messy", saved.read_bytes())["learned"] == 150
    model = load(saved)["model"]
    rows = [{name: row.get(name) for name in COLUMNS} for row in rows]
    assert client.predict("messy", rows[:40])["predictions"] == model.predict(rows[:40]).tolist()
    within = [{**row, "late": label} for row, label in zip(rows[:40], y, strict=False)]
    assert client.learn("messy", within)["learned"] == 190
    model.partial_fit(rows[:40], np.array(y[:40]))
    assert client.export("messy") == model.to_bytes()
    mine = pipeline(RowEncoder(), learners()["SILKRegressor"]("gaussian", budget=8))
    with pytest.raises(ServerError, match="learned"):
        client.upload("fresh", mine.to_bytes())
    mine.partial_fit(rows, np.arange(150.0))
    client.upload("mine", mine.to_bytes())
    assert client.predict("mine", rows[:7])["predictions"] == mine.predict(rows[:7]).tolist()
    assert client.export("mine") == mine.to_bytes()


def test_clients_send_frames_with_gaps_and_dates(server):
    """A frame with NaN, NaT and timestamps, dates in dicts, numbers of NumPy: by both clients."""
    pandas = pytest.importorskip("pandas")
    client = server.client()
    frame = pandas.DataFrame({
        "size": [1.5, np.nan, 3.0], "shop": ["Rome", None, "Oslo"],
        "when": pandas.to_datetime(["2024-02-29T06:00", None, "2024-03-01T18:30"]),
    })  # fmt: skip
    client.learn("frames", frame, np.array([1.0, 2.5, 3.0]))
    assert client.describe("frames")["kinds"] == {"size": "number", "shop": "category", "when": "timestamp"}

    async def ask():
        async with AsyncClient(server.address) as other:
            row = {"size": np.float32(2), "shop": None, "when": frame["when"][0].to_pydatetime().date()}
            await other.learn("frames", [row], [np.int64(2)])
            return await other.predict("frames", frame)

    shown = asyncio.run(ask())
    assert shown["learned"] == 4
    assert shown["predictions"] == client.predict("frames", frame)["predictions"]
    with pytest.raises(TypeError, match="numbers, texts"):
        client.learn("frames", [{"size": object()}], [1.0])


def test_arrow_with_texts_is_checked(server):
    """Offsets that lead astray, texts that are no UTF-8, lists and long texts are refused; times are times."""
    arrow = pytest.importorskip("pyarrow")
    kind = {"content-type": "application/vnd.apache.arrow.stream"}

    def stored(table):
        sink = io.BytesIO()
        with arrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    times = arrow.array([0, 10**15, None], arrow.timestamp("us", "UTC"))
    good = arrow.table({"size": [1.0, None, 2.0], "shop": ["shop 1", None, "x"], "when": times})
    path = "/v1/models/shop/predict"
    assert send(server, "POST", path, stored(good), kind)[0] == 200
    bad = [
        {"size": [[1.0]]},
        {"shop": ["x" * (LONGEST_CELL + 1)]},
        {"size": [np.inf]},
        {"spam": [1.0]},
        {"shop": [b"x"]},
    ]
    for columns in bad:
        assert send(server, "POST", path, stored(arrow.table(columns)), kind)[0] == 422
    rng, data = np.random.default_rng(0), stored(good)
    for _ in range(300):
        forged = bytearray(data)
        forged[int(rng.integers(0, len(data)))] = int(rng.integers(256))
        assert send(server, "POST", path, bytes(forged), kind)[0] in (200, 422)
