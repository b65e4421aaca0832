"""Laws of `RowEncoder`: batches, faces of a table, the store, and the kinds that it finds."""

import datetime
import io
import itertools
import math
import pickle
import zlib
import zoneinfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from tables import make_frame

import gossamer
from gossamer import OnlinePipeline, RowEncoder, SILKRegressor, pipeline
from gossamer.rows import KINDS, Coded, Column, Plan, as_table
from gossamer.rows.categories import CANDIDATES, Categories, growth_of
from gossamer.rows.parse import FORMATS, find_format, parse_number, parse_time
from gossamer.rows.plan import LEFT_OUT

FRAME = make_frame()
FOUND = RowEncoder().fit(FRAME).plan_
#: The kinds that the columns of the frame have.
EXPECTED = {
    "number": "number", "holes": "number", "sentinel": "number", "boolean": "boolean", "answer": "boolean",
    "category": "category", "drifting": "category", "mixed": "mixed", "text": "text", "timestamp": "timestamp",
    "hour": "cyclic", "price": "number", "id": "id", "constant": "category",
}  # fmt: skip
FACES = {
    "pandas": lambda frame: frame,
    "objects": lambda frame: frame.astype(object).where(frame.notna(), None),
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "dicts": lambda frame: frame.astype(object).where(frame.notna(), None).to_dict("records"),
    "array": lambda frame: frame.astype(object).where(frame.notna(), None).to_numpy(),
}


def learn_in_parts(encoder, X, cuts):
    edges = [0, *sorted(cuts), len(X)]
    return np.vstack([encoder.learn_transform(X[a:b]) for a, b in itertools.pairwise(edges) if a < b])


def test_kinds_are_found():
    """Every kind that is not said is found, with its sentinel, its format and the reason."""
    assert {column.name: column.kind for column in FOUND} == EXPECTED
    assert set(EXPECTED.values()) | {"constant", "ignored"} == set(KINDS)
    assert [column.name for column in FOUND if column.dormant] == ["constant"]
    assert FOUND["sentinel"].missing == (-999.0,)
    assert "-999" in FOUND["sentinel"].why
    assert not FOUND["number"].indicator
    assert FOUND["holes"].indicator


@pytest.mark.parametrize("options", [{}, {"scale": False, "forget": 0.02, "memory": 30.0}, {"timezone": "Europe/Rome"}])
def test_the_law_of_batches(options):
    """Row by row, in any batches, at once: the same bits, and the same state."""
    frame = FRAME[:200]
    whole = RowEncoder(FOUND, **options)
    expected = whole.learn_transform(frame)
    assert np.isfinite(expected).all()
    rng = np.random.default_rng(0)
    for cuts in (range(1, 200), rng.integers(0, 200, 5), [199]):
        encoder = RowEncoder(FOUND, **options)
        assert np.array_equal(learn_in_parts(encoder, frame, cuts), expected)
        assert encoder.to_bytes() == whole.to_bytes()
    found = RowEncoder(**options)  # the start in one piece, the rest in any: as if the plan had been given
    found.set_params(start=100)
    planned = RowEncoder(RowEncoder(**options).fit(frame[:100]).plan_, **options)
    assert np.array_equal(learn_in_parts(found, frame, [100, 150]), planned.learn_transform(frame))


@pytest.mark.parametrize("face", FACES)
def test_faces_of_a_table(face):
    """Whatever the rows come in, their features are the same bits."""
    expected = RowEncoder(FOUND).learn_transform(FRAME)
    encoder = RowEncoder(FOUND)
    if face == "array":
        encoder.settle(FRAME)  # an array has no names: the encoder knows them
    assert np.array_equal(encoder.learn_transform(FACES[face](FRAME)), expected)


def test_rows_before_and_after():
    """transform gives a row what learn_transform gives it, and learns nothing: what a row teaches comes after it."""
    encoder = RowEncoder(FOUND)
    encoder.learn_transform(FRAME[:50])
    for i in range(50, 80):
        row, before = FRAME[i : i + 1], encoder.to_bytes()
        shown = encoder.transform(row)
        assert encoder.to_bytes() == before
        assert np.array_equal(encoder.learn_transform(row), shown)
    many = encoder.transform(FRAME[80:120])
    assert np.array_equal(many, np.vstack([encoder.transform(FRAME[i : i + 1]) for i in range(80, 120)]))


def test_stored_with_a_model(tmp_path):
    """Through the store and pickle, alone and in a pipeline, an encoder goes on as if it had never stopped."""
    model = pipeline(RowEncoder({"hour": "number"}), SILKRegressor("gaussian", budget=32))
    y = FRAME["number"].to_numpy()
    model.partial_fit(FRAME[:100], y[:100])
    model.save(tmp_path / "model.gsm")
    loaded = gossamer.load(tmp_path / "model.gsm")
    assert isinstance(loaded, OnlinePipeline)
    assert loaded.to_bytes() == model.to_bytes() == pickle.loads(pickle.dumps(model)).to_bytes()
    scores = [each.predict_learn(FRAME[100:], y[100:]) for each in (model, loaded)]
    assert np.array_equal(*scores)
    assert model.to_bytes() == loaded.to_bytes()
    given = RowEncoder(FOUND)
    assert clone(given).get_params().keys() == given.get_params().keys()
    assert np.array_equal(RowEncoder.from_bytes(given.to_bytes()).learn_transform(FRAME), given.learn_transform(FRAME))


def damage(state):
    """Ways to forge a state, by name."""
    numbers, categories = state["numbers"], dict(state["categories"])
    first = next(iter(categories))

    def category(**change):
        return {**state, "categories": {**categories, first: {**categories[first], **change}}}

    texts = categories[first]["texts"]
    yield {**state, "numbers": numbers[:, :-1]}
    yield {**state, "numbers": np.where(np.arange(numbers.size).reshape(numbers.shape) == 0, np.nan, numbers)}
    yield {**state, "numbers": -1.0 - np.abs(numbers)}
    yield {**state, "more": 1}
    yield {key: value for key, value in state.items() if key != "last"}
    yield category(texts=texts[:-1])
    yield category(texts=["a", "a", *texts[2:]])
    yield category(texts=[1, *texts[1:]])
    yield category(counts=np.full((2, len(texts)), np.inf))
    yield category(weight=float("nan"))
    yield category(row=-1)
    yield category(row=10**9)


def test_forged_states_are_refused():
    """A state that no rows can have made is a ValueError; the same one untouched loads."""
    learned = RowEncoder().fit(FRAME)._learned()
    assert RowEncoder().__dict__.keys() < RowEncoder.from_bytes(RowEncoder().fit(FRAME).to_bytes()).__dict__.keys()
    for state in damage(learned["state_"]):
        with pytest.raises(ValueError, match="RowEncoder"):
            RowEncoder()._relearn({**learned, "state_": state})
    plan = [dict(column) for column in learned["plan_"]]
    for change in ({"kind": "magic"}, {"places": 10**9}, {"width": -1}, {"parts": ["century"]}, {"extra": 1}):
        with pytest.raises(ValueError, match=r"RowEncoder|Column"):
            RowEncoder()._relearn({**learned, "plan_": [{**plan[0], **change}, *plan[1:]]})


# ----------------------------------------------------------------------------------------------- kinds, one by one


def naive_numbers(values, clip, keep):
    """The mean and deviation of the values before each, written out; a value that was the only one is 16 at most."""
    shown, seen = [], []
    for t, x in enumerate(values):
        past = [(value, keep ** (t - 1 - i) * share) for i, value, share in seen]
        weight = sum(w for _, w in past)
        mean = sum(value * w for value, w in past) / weight if past else 0.0
        deviation = math.sqrt(sum(w * (value - mean) ** 2 for value, w in past) / weight) if past else 0.0
        z = 0.0 if not deviation > 1e-9 or math.isnan(x) else (x - mean) / deviation
        most = min(clip, math.sqrt(weight))
        shown.append(min(max(z, -most), most))
        if math.isnan(x):
            continue
        if past and weight > 16.0 and {value for value, _ in past} == {past[0][0]} != {x}:
            seen = [(i, value, 16.0 / weight) for i, value, _ in seen]
        seen.append((t, x, 1.0))
    return shown


@pytest.mark.parametrize("forget", [0.0, 0.1])
def test_numbers_are_scaled_by_the_rows_before(forget):
    rng = np.random.default_rng(1)
    x = np.where(rng.random(60) < 0.2, np.nan, rng.normal(3.0, 2.0, 60))
    found = RowEncoder({"x": "number"}, forget=forget).learn_transform(pd.DataFrame({"x": x}))
    # a gap takes its place in time: the weight of what was before it fades as well
    assert np.allclose(found[:, 0], naive_numbers(x, 5.0, 1.0 - forget), rtol=1e-9, atol=1e-9)
    assert np.array_equal(found[:, 1], np.isnan(x))
    raw = RowEncoder({"x": "number"}, scale=False).learn_transform(pd.DataFrame({"x": x}))[:, 0]
    before = [np.nanmean(x[:t]) if np.isfinite(x[:t]).any() else 0.0 for t in range(60)]
    assert np.allclose(raw, np.where(np.isnan(x), before, x))
    late = np.concatenate([np.full(300, -7.0), rng.normal(50.0, 10.0, 60)])
    found = RowEncoder({"x": "number"}, forget=forget).learn_transform(pd.DataFrame({"x": late}))[:, 0]
    assert np.allclose(found, naive_numbers(late, 5.0, 1.0 - forget), rtol=1e-9, atol=1e-9)
    assert len(np.unique(np.abs(found[301:]))) == 59  # they are not all clipped


def naive_categories(texts, places, hashed, memory):
    """The rules of `core/rows/categories.hpp` with dicts: counts that fade, candidates, places."""
    growth, period = growth_of(memory)
    entries, counts, errors = [None] * places * (1 + CANDIDATES), {}, {}
    weight, row, shown = 1.0, 0, []

    def least(some):
        free = [e for e in some if entries[e] is None]
        return free[0] if free else min(some, key=lambda e: (counts[entries[e]], e))

    for text in texts:
        where = None if text is None or text not in entries else entries.index(text)
        placed = where is not None and where < places
        if text is not None:
            shown.append(where if placed else places + zlib.crc32(text.encode()) % hashed)
            if where is None:
                where = least(range(places))
                where = where if entries[where] is None else least(range(places, len(entries)))
                old = entries[where]
                counts[text] = errors[text] = 0.0 if old is None else counts.pop(old)
                entries[where] = text
            counts[text] += weight
            if where >= places:
                sure, place = counts[text] - errors[text], least(range(places))
                if sure >= 3.0 * weight and sure > 1.5 * counts[entries[place]]:
                    entries[place], entries[where] = entries[where], entries[place]
                    counts[text], errors[text] = sure, 0.0
                    errors[entries[where]] = 0.0
        else:
            shown.append(-1)
        weight, row = weight * growth, row + 1
        if row == period:
            weight, row = 1.0, 0
            for part in (counts, errors):
                part.update({key: value * 2.0**-40 for key, value in part.items()})
    return shown, entries


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.sampled_from("abcdefghijklmnopqrstuvwxyz")), min_size=1, max_size=300),
    st.integers(1, 3), st.integers(1, 3), st.sampled_from([1.0, 3.0, 50.0]),
)  # fmt: skip
def test_categories_are_those_of_the_rules(texts, places, hashed, memory):
    """Compiled places and candidates are those of the rules written out, also where counts are divided."""
    state, out = Categories(places, hashed), np.zeros((len(texts), places + hashed))
    state.encode(Coded.of(texts), out, 0, True, memory)
    shown, entries = naive_categories(texts, places, hashed, memory)
    assert [int(np.argmax(row)) if row.any() else -1 for row in out] == shown
    assert state.texts == entries


def test_unknown_is_not_missing():
    """An unknown category stands in a shared place, a missing one nowhere; a missing number has its indicator."""
    encoder = RowEncoder({"c": "category:places=4,hashed=2"}).fit([{"c": "a", "x": 1.0}, {"c": "b", "x": 2.0}])
    unknown, missing, known = encoder.transform([{"c": "new"}, {"c": None}, {"c": "a"}])[:, :6]
    assert unknown[4:].sum() == 1.0
    assert unknown[:4].sum() == 0.0
    assert not missing.any()
    assert known[:4].sum() == 1.0
    assert encoder.transform([{"c": "a"}])[0, -1] == 1.0  # x is missing


def test_a_place_that_is_not_used_is_given_up():
    """One category in ten drops out and a new one comes, again and again: each is soon in a place; memory is flat."""
    rng, encoder = np.random.default_rng(0), RowEncoder({"c": "category:places=12,hashed=2"}, memory=100.0)
    names = [f"c{i}" for i in range(10)]
    encoder.fit([{"c": name} for name in names])
    sizes, placed = [], []
    for step in range(150):
        names[step % 10] = f"c{10 + step}"
        rows = [{"c": name} for name in rng.choice(names, 600)]
        encoder.learn_transform(rows[:500])
        found = encoder.transform(rows[500:])
        placed.append(float(found[:, :12].sum(axis=1).mean()))
        sizes.append(len(encoder.to_bytes()))
    assert min(placed) == 1.0
    assert max(sizes[70:]) <= min(sizes[70:]) + 64  # names get longer: c99, c100


def test_many_categories_have_a_bounded_width():
    """10,000 categories: the width and the state are those of the places."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": [f"u{i}" for i in rng.zipf(1.3, 20_000) % 10_000]})
    encoder = RowEncoder()
    X = encoder.learn_transform(frame)
    assert X.shape[1] == 80
    assert np.array_equal(X.sum(axis=1), np.ones(len(X)))
    assert len(encoder.to_bytes()) < 20_000
    frequent = frame["user"].value_counts().index[:10]
    assert set(frequent) <= set(encoder._layout.categories["user"].known)


def test_timestamps_are_points_on_circles():
    """Hour, weekday and day of the year by the calendar of Python, in UTC and in a zone, before 1970 too."""
    stamps = pd.date_range("1899-12-31 23:00", "2101-01-02", periods=500).round("s").to_series()
    york = zoneinfo.ZoneInfo("America/New_York")  # older versions of pandas have no summer time after 2037
    zone = stamps.map(lambda t: t.to_pydatetime().replace(tzinfo=datetime.UTC).astimezone(york).replace(tzinfo=None))
    for name, local in (("UTC", stamps), ("America/New_York", zone)):
        found = RowEncoder({"t": "timestamp"}, timezone=name, scale=False).learn_transform(pd.DataFrame({"t": stamps}))
        day = (local - local.dt.normalize()).dt.total_seconds() / 86400
        year = (local.dt.day_of_year - 1 + day) / np.where(local.dt.is_leap_year, 366, 365)
        for i, share in enumerate((day, local.dt.day_of_week / 7, year)):
            expected = np.exp(2j * np.pi * share.to_numpy())
            assert np.allclose(found[:, 1 + 2 * i], expected.imag, atol=1e-7)
            assert np.allclose(found[:, 2 + 2 * i], expected.real, atol=1e-7)
        assert np.allclose(found[1:, 0], np.log1p(np.diff(stamps.to_numpy()).astype("m8[s]").astype(float)))
    gap = RowEncoder({"t": "timestamp"}).learn_transform([{"t": None}, {"t": "2024-01-01"}])
    assert not gap[0].any()


def test_values_of_another_kind_are_counted():
    """Texts among numbers, dates that are none, infinities: gaps that `describe` tells; an error if asked."""
    frame = make_frame(120)
    encoder = RowEncoder().fit(frame)
    odd = frame[:3].astype(object).assign(number=["much", math.inf, 1e300], timestamp="soon")
    X = encoder.learn_transform(odd)
    assert np.isfinite(X).all()
    assert "3 values of another kind" in encoder.describe()["number"].why
    assert "3 values of another kind" in encoder.describe()["timestamp"].why
    strict = RowEncoder(encoder.plan_, missing="error")
    before = strict.settle(frame).to_bytes()
    for part, words in ((odd, "number"), (frame, "sentinel|holes"), (frame.drop(columns="hour"), "hour")):
        with pytest.raises(ValueError, match=words):
            strict.learn_transform(part)
    assert strict.to_bytes() == before


def test_plans_are_edited_and_passed_on():
    """What `describe` returns, changed, is what another encoder does; kinds in a dict for some columns."""
    plan = RowEncoder().fit(FRAME).describe()
    assert str(plan).count("\n") == len(FRAME.columns)
    plan["hour"].kind = "number"
    plan["text"].width = 16
    plan["id"].kind = "category"
    encoder = RowEncoder(plan).fit(FRAME)
    assert encoder.transform(FRAME[:2]).shape[1] == len(plan.names) == len(encoder.get_feature_names_out())
    assert plan["hour"].features == ["hour"]
    said = RowEncoder({"hour": "number", "text": "text:16", "id": "category", "number": "ignored"}).fit(FRAME)
    assert said.plan_["text"].width == 16
    assert said.plan_["number"].kind in LEFT_OUT
    for columns in ({"nope": "number"}, {"hour": "magic"}, {"hour": "cyclic:often"}, [Column("a", "b")], [1], plan[:0]):
        with pytest.raises(ValueError, match=r"RowEncoder|Column"):
            RowEncoder(columns).fit(FRAME)


def test_columns_that_come_and_go():
    """A column that is not there is missing; one that is new is left out; none of the columns is an error."""
    encoder = RowEncoder({"c": "category:places=2,hashed=1"}).fit([{"a": 1.0, "c": "x"}, {"a": 2.0, "c": "y"}])
    assert encoder.transform({"a": 2.0, "z": 5.0}).tolist() == encoder.transform([{"a": 2.0, "c": None}]).tolist()
    with pytest.raises(ValueError, match="columns"):
        encoder.transform([{"z": 1.0}])
    with pytest.raises(ValueError, match="as in the rows before"):
        encoder.transform(np.zeros((1, 3)))


@pytest.mark.parametrize("form", ["", *FORMATS])
def test_formats_of_timestamps(form):
    """Each format is found where the days tell it from the others, and gives the seconds of the calendar."""
    stamps = pd.date_range("2023-05-13 06:30", periods=60, freq="31h").round("min")
    texts = [stamp.strftime(form or "%Y-%m-%dT%H:%M:%S") for stamp in stamps]
    found = find_format(texts)
    assert found is not None
    seconds = [parse_time(text, found) for text in texts]
    exact = stamps if "%H" in form or not form else stamps.normalize()
    assert seconds == [stamp.timestamp() for stamp in exact]


@settings(max_examples=100, deadline=None)
@given(st.floats(-1e9, 1e9), st.sampled_from(["", "$", "€"]))
def test_numbers_in_disguise(x, sign):
    """Groups of thousands, signs and decimal commas are read as what was written."""
    x = round(x, 2)
    text = f"{x:,.2f}"
    assert parse_number(text if x < 0 else sign + text) == x
    assert parse_number(text.translate(str.maketrans(",.", ".,")), ",") == x
    assert math.isnan(parse_number(f"{text} kg"))


def test_parameters_are_checked():
    wrong = {"missing": "guess", "places": 0, "memory": 0.5, "timezone": "Mars/Base", "clip": 0.0, "forget": 1.0,
             "start": 0, "text_width": 0, "hashed": -1, "scale": 1, "sparse": None, "largest": 0.0}  # fmt: skip
    assert {*wrong, "columns"} == RowEncoder().get_params().keys()
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=name):
            RowEncoder(**{name: value}).fit(FRAME)
    with pytest.raises(ValueError, match="at least one row"):
        RowEncoder().fit(FRAME[:0])
    with pytest.raises(ValueError, match="feature remains"):
        RowEncoder({"a": "ignored"}).fit([{"a": 1}])
    with pytest.raises(ValueError, match="numbers, booleans, texts or dates"):
        RowEncoder().fit([{"a": object()}])


def test_csv_of_pandas():
    """What pandas reads of a file is read alike from the frame and from its rows."""
    text = FRAME.to_csv(index=False)
    frame = pd.read_csv(io.StringIO(text))
    plan = RowEncoder().fit(frame).plan_
    assert {c.name: c.kind for c in plan} == EXPECTED
    assert Plan.of(plan.to_dicts()) == plan
    assert as_table(frame).shape == frame.shape
