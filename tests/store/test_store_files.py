"""A file that is not what was saved is refused, whatever is in it; and a file is saved whole or not at all.

The file is long because the ways to forge a file share the functions that take it apart and seal it again.
"""

import contextlib
import copy
import hashlib
import json
import os
import struct
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import assert_same, stream

import gossamer
from gossamer import Learner, SILKClassifier, SILKRegressor, store
from gossamer.budgets import Oldest, Smallest, Unlimited
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Multiclass, Softmax, Squared
from gossamer.rules import SVMD, Adatron, Gradient, Implicit
from gossamer.store import files, nodes

WORDS = np.array(["no", "yes"] * 30)
WHOLE = SILKClassifier(Gaussian(0.5), budget=10).fit(stream(Hinge(), 60, seed=1)[0], WORDS).to_bytes()


def learned(*parts, **options):
    learner = Learner(Gaussian(0.5), *parts, **options)
    learner.learn(*stream(learner.loss, 60, seed=2))
    return learner.to_bytes()


LEARNERS = {
    "SILK": learned(Hinge(nu=0.3), Implicit(C=0.5), Smallest(5), average=True, track_norm=True),
    "softmax": learned(Softmax(4), Gradient(0.4, 0.1), Oldest(6)),
    "classes that come": learned(Multiclass(), Gradient(0.4, 0.1), Unlimited()),
    "Adatron": learned(Hinge(), Adatron(0.5), backend="numpy"),
    "SVMD": learned(Hinge(), SVMD(), Oldest(6), backend="numpy"),
}


def split(raw):
    """The header and the arrays of a file."""
    length = struct.unpack("<I", raw[12:16])[0]
    return json.loads(raw[24 : 24 + length]), raw[24 + length + 32 : -32]


def forged(header, arrays=b""):
    """A file with any header and arrays, and good checksums."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = files.MAGIC + struct.pack("<IIQ", 1, len(text), 24 + len(text) + 32 + len(arrays) + 32) + text
    start += hashlib.sha256(start).digest() + arrays
    return start + hashlib.sha256(start).digest()


def with_value(value, *arrays):
    table = [{"name": "a", "dtype": dtype, "shape": shape} for dtype, shape in arrays]
    return {"gossamer": "0", "value": value, "arrays": table}


def refused(raw):
    with pytest.raises(ValueError, match="must be") as caught:
        store.loads(raw)
    return str(caught.value)


@given(st.integers(0, len(WHOLE) - 1))
def test_truncated(length):
    refused(WHOLE[:length])


@given(st.integers(0, 8 * len(WHOLE) - 1))
def test_bit_flips(bit):
    """One bit, anywhere."""
    raw = bytearray(WHOLE)
    raw[bit // 8] ^= 1 << bit % 8
    refused(bytes(raw))


@given(st.integers(0, len(WHOLE)), st.binary(min_size=1, max_size=80))
def test_insertions(at, more):
    refused(WHOLE[:at] + more + WHOLE[at:])


@given(st.binary(max_size=200))
def test_noise(raw):
    refused(raw)
    refused(files.MAGIC + raw)


def test_errors_say_what_and_where(tmp_path):
    """One sentence with the name of the file."""
    path = tmp_path / "m.gsm"
    for raw, words in [
        (b"", "what Gossamer has saved"),
        (b"x,y\n1,2\n", "what Gossamer has saved"),
        (WHOLE[:9], "whole"),
        (WHOLE[:-1], f"whole ({len(WHOLE)} bytes)"),
        (WHOLE + b"\0", f"whole ({len(WHOLE)} bytes)"),
        (WHOLE[:8] + b"\2\0\0\0" + WHOLE[12:], "version up to 1"),
        (WHOLE[:40] + b"~" + WHOLE[41:], "header that does not match its checksum"),
        (WHOLE[:-40] + b"~" + WHOLE[-39:], "arrays that do not match their checksum"),
        (WHOLE.replace(b"\r\n", b"\n"), "what Gossamer has saved"),
    ]:
        path.write_bytes(raw)
        for read in (gossamer.load, store.inspect):
            if read is store.inspect and "arrays that" in words:
                continue  # it does not read them
            with pytest.raises(ValueError, match=r"must be") as caught:
                read(path)
            assert words in str(caught.value)
            assert "m.gsm" in str(caught.value)
            assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="those of a SILKRegressor"):
        SILKRegressor.from_bytes(WHOLE)
    with pytest.raises(ValueError, match="must be bytes"):
        store.loads("text")
    with pytest.raises(FileNotFoundError):
        gossamer.load(tmp_path / "none.gsm")
    with pytest.raises(ValueError, match="the name of a file"):
        gossamer.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for act in (gossamer.load, store.inspect, store.loads(WHOLE).save):
        with pytest.raises(ValueError, match="the name of a file"):
            act(tmp_path / "pipe")


def nested(depth, start=b"[", end=b"]"):
    return b'{"gossamer":"0","arrays":[],"value":' + start * depth + b"1" + end * depth + b"}"


def object_node(name, parameters=None, **more):
    return {"type": "object", "class": name, "parameters": parameters or {}, **more}


HOSTILE = {
    "not JSON": b"{",
    "not UTF-8": b'{"gossamer":"\xff","arrays":[],"value":1}',
    "not a dict": b"[]",
    "no value": {"gossamer": "0", "arrays": []},
    "NaN": b'{"gossamer":"0","arrays":[],"value":NaN}',
    "an integer without end": b'{"gossamer":"0","arrays":[],"value":' + b"9" * 100_000 + b"}",
    "deep lists": nested(200_000),
    "rather deep lists": nested(150),
    "deep objects": nested(5_000, b'{"type":"tuple","items":[', b"]}"),
    "a huge array": with_value(1, ("<f8", [2**61])),
    "an overflowing array": with_value(1, ("<f8", [2**32, 2**32, 2**32])),
    "a wide array without entries": with_value({"type": "array", "index": 0}, ("<f8", [0, 2**40])),
    "a negative array": with_value(1, ("<f8", [-1])),
    "a shape of floats": with_value(1, ("<f8", [1.0])),
    "a shape of booleans": with_value(1, ("<f8", [True])),
    "a shape of text": with_value(1, ("<f8", "1")),
    "many extents": with_value(1, ("<f8", [1] * 40)),
    "objects as dtype": with_value(1, ("|O", [1])),
    "a structured dtype": with_value(1, ([["a", "<f8"]], [1])),
    "a dtype with a title": with_value(1, ("<f8,<i4", [1])),
    "wide text": with_value(1, ("<U99999999", [1])),
    "arrays that are none": {"gossamer": "0", "value": 1, "arrays": 5},
    "array entries that are none": {"gossamer": "0", "value": 1, "arrays": [5]},
    "an index out of range": with_value({"type": "array", "index": 0}),
    "a negative index": with_value({"type": "array", "index": -1}),
    "one array twice": with_value([{"type": "array", "index": 0}] * 2, ("<f8", [0])),
    "an unknown type": with_value({"type": "code", "value": "1"}),
    "a method as type": with_value({"type": "value"}),
    "no type": with_value({"a": 1}),
    "an unknown class": with_value(object_node("os.system", {"command": "true"})),
    "a base class": with_value(object_node("Kernel")),
    "a private class": with_value(object_node("_Pair")),
    "a class by its module": with_value(object_node("kernels.Gaussian")),
    "a class that is no text": with_value(object_node(["Gaussian"])),
    "an unknown parameter": with_value(object_node("Gaussian", {"gama": 1.0})),
    "a bad parameter": with_value(object_node("Gaussian", {"gamma": -1.0})),
    "a parameter of another type": with_value(object_node("Gaussian", {"gamma": [1.0]})),
    "a missing parameter": with_value(object_node("Scaled", {})),
    "a function by name": with_value(object_node("Custom", {"function": "print"})),
    "a part that has learned": with_value(object_node("Gaussian", {}, learned={"gamma": 1})),
    "a method as learned": with_value(object_node("SILKClassifier", {}, learned={"predict": 1})),
    "a property as learned": with_value(object_node("SILKClassifier", {}, learned={"norm_": 1})),
    "a parameter as learned": with_value(object_node("SILKClassifier", {}, learned={"kernel": 1})),
    "magic as learned": with_value(object_node("SILKClassifier", {}, learned={"__class__": 1})),
    "a learner that is none": with_value(object_node("SILKRegressor", {}, learned={"learner_": 1})),
    "equal keys": with_value({"type": "dict", "items": [[1, 2], [1, 3]]}),
    "a list as key": with_value({"type": "dict", "items": [[[1], 2]]}),
    "items that are no pairs": with_value({"type": "dict", "items": [1, 2]}),
    "a number out of range": with_value({"type": "scalar", "dtype": "|i1", "value": 300}),
    "a number that is text": with_value({"type": "scalar", "dtype": "<f8", "value": "1"}),
    "a scalar of objects": with_value({"type": "scalar", "dtype": "|O", "value": 1}),
    "a float of words": with_value({"type": "float", "value": "1 + 1"}),
    "objects that do not fit": with_value({"type": "objects", "shape": [2**40, 0, 3], "items": [1]}),
}


@pytest.fixture(scope="module")
def all_imported():
    """The first name that is unknown imports the rest of the package: a cost of the process, not of the file."""
    nodes.known_classes(everything=True)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.usefixtures("all_imported")
def test_hostile_headers(name, tmp_path):
    """No crash, no hang, no memory: an error."""
    raw = forged(HOSTILE[name])
    tracemalloc.start()
    try:
        refused(raw)
        assert tracemalloc.get_traced_memory()[1] < 2**21 + 60 * len(raw)
    finally:
        tracemalloc.stop()
    (tmp_path / "m.gsm").write_bytes(raw)
    with contextlib.suppress(ValueError):  # it need not look at everything
        store.inspect(tmp_path / "m.gsm")


def test_hostile_arrays():
    """Bytes that are no booleans and no text."""
    node = {"type": "array", "index": 0}
    assert "no |b1" in refused(forged(with_value(node, ("|b1", [1])), b"\2"))
    assert "no <U1" in refused(forged(with_value(node, ("<U1", [1])), b"\xff\xff\xff\xff"))


#: What could lead a loop out of its arrays, or into too many of them.
BROKEN = {
    "known": [-1, 1, 5, 10**9, 2.0, True],
    "steps": [-1, 3, 2**63, None],
    "refresh_in": [2**62, 0.5, -(2**62)],
    "scale": ["1", None, [1.0]],
    "raw": ["cut", "wide", "flat", "float32"],
    "summed": ["cut", "wide"],
    "dropped": ["cut", "wide"],
    "trace": ["extra", "flat"],
    "kappas": ["cut", "negative", "nan", "float32"],
    "entered": ["cut"],
    "births": ["cut", "negative", "float64", "late"],
    "ids": ["cut", "float64"],
    "points": ["cut", "wide", "nan", "flat", "int64"],
    "dropped_points": ["wide", "flat", "extra"],
    "gram": ["extra", 1.0],
}


def broken(value, how):
    if not isinstance(how, str) or not isinstance(value, np.ndarray):
        return how
    filled = value.copy()
    if how in ("negative", "nan", "late"):
        filled.flat[:1] = {"negative": -1, "nan": np.nan, "late": 10**6}[how]
    turns = {
        "cut": lambda: value[..., :-1] if value.shape[-1] else value[1:],
        "wide": lambda: np.concatenate([value, value, np.ones((*value.shape[:-1], 1))], axis=-1),
        "flat": value.ravel,
        "extra": lambda: np.ones((len(value) + 1, *value.shape[1:])),
    }
    if how in turns:
        return turns[how]()
    return filled if how in ("negative", "nan", "late") else value.astype(how)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("which", LEARNERS)
def test_broken_states(which, name):
    """A state that does not fit itself or the parts never reaches a loop, and the learner stays what it was."""
    learner = store.loads(LEARNERS[which])
    good = learner.state()
    for how in BROKEN[name]:
        value = getattr(good, name)
        bad = broken(value, how)
        if isinstance(bad, np.ndarray) and bad.dtype == value.dtype and np.array_equal(bad, value):
            continue  # an empty array has nothing to break
        with pytest.raises(ValueError, match="must be"):
            learner.restore(good.replace(**{name: bad}))
        assert_same(learner.state(), good)
    if name != "gram":  # which is made again where it is missing
        with pytest.raises(ValueError, match="must be"):
            learner.restore(good.replace(**{name: None}))


def test_states_of_other_learners():
    """A state with what the learner has no room for: another kernel's, dropped points, too many points."""
    silk = store.loads(LEARNERS["SILK"])
    state = silk.state()
    with pytest.raises(ValueError, match="a Kernel"):
        silk.restore(state.replace(kernel="gaussian"))
    assert len(state.dropped_points) > 0
    with pytest.raises(ValueError, match="does not keep them"):
        Learner(silk.kernel, silk.loss, silk.rule, silk.budget).restore(state)
    with pytest.raises(ValueError, match="at most 4"):
        Learner(silk.kernel, silk.loss, silk.rule, Smallest(4), average=True, track_norm=True).restore(state)


def test_repeated_ids():
    """Examples that return are told apart."""
    learner = store.loads(LEARNERS["Adatron"])
    state = learner.state()
    with pytest.raises(ValueError, match="all different"):
        learner.restore(state.replace(ids=np.zeros_like(state.ids)))


def test_classes_cost_memory_only_if_they_are_there():
    """A loss that claims a million classes is refused before a row is made for each."""
    header, arrays = split(LEARNERS["softmax"])
    header["value"]["parameters"]["loss"]["parameters"]["classes"] = 10**6
    assert "known" in refused(forged(header, arrays))


def places(node):
    """Every place in a header, as a container and a key."""
    keys = node.keys() if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from places(node[key])


odd = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 70), st.floats(0, 2), st.text(max_size=3),
    st.sampled_from([2**31, 2**63 - 1, -(2**63), 10**9]),
    st.sampled_from(["<f4", "<i8", "auto", "sparse", "Linear", "Softmax", "Hinge", "array", "dict"]),
    st.lists(st.integers(0, 70), max_size=3), st.just({"type": "array", "index": 0}), st.just(object_node("Softmax")),
)  # fmt: skip


def use(learner):
    """Learn and score with whatever was loaded: errors are fine, crashes are not."""
    try:
        width = learner.points.shape[1] if learner.steps and hasattr(learner.points, "shape") else 3
        X, y = stream(learner.loss, 40, seed=3, features=min(width, 1000))
        with np.errstate(all="ignore"):
            learner.learn(X, y)
            learner.score(X)
    except ValueError:
        pass


@settings(max_examples=300)
@given(st.data())
def test_forged_headers(data):
    """Any entry of a header replaced: refused, or a learner that works or says why not."""
    header, arrays = split(data.draw(st.sampled_from([*LEARNERS.values(), WHOLE])))
    for _ in range(data.draw(st.integers(1, 3))):
        found = list(places(header))
        node, key = found[data.draw(st.integers(0, len(found) - 1))]
        if data.draw(st.integers(0, 9)):
            node[key] = copy.deepcopy(data.draw(odd))  # it may be changed next
        else:
            del node[key]
    try:
        learner = store.loads(forged(header, arrays))
    except ValueError:
        return
    if isinstance(learner, Learner):
        use(learner)


@settings(max_examples=100)
@given(st.data())
def test_forged_arrays(data):
    """Any bytes in the arrays: refused, or a learner that works or says why not."""
    header, arrays = split(data.draw(st.sampled_from([*LEARNERS.values()])))
    at = data.draw(st.integers(0, len(arrays) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=16))
    try:
        learner = store.loads(forged(header, arrays[:at] + noise[: len(arrays) - at] + arrays[at + len(noise) :]))
    except ValueError:
        return
    use(learner)


# -------------------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failing_write_changes_nothing(step, tmp_path, monkeypatch):
    """The disk is full, the rename fails: the old file is whole, and nothing lies beside it."""
    path = tmp_path / "m.gsm"
    path.write_bytes(WHOLE)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space"):
        store.loads(LEARNERS["SILK"]).save(path)
    assert path.read_bytes() == WHOLE
    assert [found.name for found in tmp_path.iterdir()] == ["m.gsm"]


def test_files_keep_their_mode_and_links(tmp_path):
    """A file that is replaced keeps its permissions; a link stays a link."""
    path, link = tmp_path / "m.gsm", tmp_path / "link.gsm"
    store.loads(WHOLE).save(path)
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    store.loads(LEARNERS["SILK"]).save(str(link))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes() == LEARNERS["SILK"]


def test_saved_while_it_learns():
    """A model that another thread teaches is saved between two rows."""
    X, y = stream(Squared(), 400, seed=1)
    learner = Learner(Gaussian(0.5), Squared(), Gradient(0.1, 0.0))  # every row comes to stay
    learner.learn(X[:1], y[:1])
    enough, interval = threading.Event(), sys.getswitchinterval()

    def teach():
        while not enough.is_set():
            for x, target in zip(X, y.tolist(), strict=True):
                learner.learn_one(x, target)

    thread = threading.Thread(target=teach)
    sys.setswitchinterval(1e-5)
    try:
        thread.start()
        seen = {store.loads(learner.to_bytes()).steps for _ in range(30)}
    finally:
        enough.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert len(seen) > 2


KILLED = """
import os, random, signal, sys, time
import numpy as np
from gossamer import store
path, rng = sys.argv[1], random.Random(0)
good = [store.dumps({"number": i, "data": np.full(20_000 * (i + 1), float(i))}) for i in range(3)]
store.save(store.loads(good[0]), path)
seen = set()
for start in range(40):
    saved, saying = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            store.save(store.loads(good[start % 3]), path)
            os.write(saying, b".")
            start += 1
    os.read(saved, 1)  # it has begun, however busy the machine is
    time.sleep(rng.uniform(0.0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(saved)
    os.close(saying)
    raw = open(path, "rb").read()
    assert raw in good, "half a file"
    seen.add(good.index(raw))
print(len(seen))
"""


def test_killed_while_saving(tmp_path):
    """Killed at any moment, the file is one that was saved, whole."""
    result = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "m.gsm")], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) == 3, "the file was not replaced"
