"""Ten messy files of the kind that people publish, made by a seed: each with its own troubles and a target."""

import numpy as np


def _rows(seed, rows):
    """What all files have: a time, numbers, a category, gaps."""
    rng = np.random.default_rng(seed)
    times = np.datetime64("2023-01-01T00:00:00") + rng.exponential(900.0, rows).cumsum().astype("timedelta64[s]")
    hour = (times - times.astype("datetime64[D]")).astype(float) / 3600.0
    return rng, times, hour


def _gaps(rng, texts, share):
    return ["" if gap else text for text, gap in zip(texts, rng.random(len(texts)) < share, strict=True)]


def _csv(header, columns, separator=",", end="\n", start=""):
    lines = [separator.join(header), *map(separator.join, zip(*columns, strict=True))]
    return (start + end.join(lines) + end).encode()


def _noise(rng, rows, deviation=0.3):
    return deviation * rng.normal(size=rows)


def make_sensors(rows, seed):
    """-999 where a sensor was off, and a sensor that starts late."""
    rng, times, hour = _rows(seed, rows)
    heat, wind, damp = rng.normal(15, 8, rows), rng.gamma(2.0, 2.0, rows), rng.uniform(20, 100, rows)
    y = 0.4 * heat + 3 * np.sin(2 * np.pi * hour / 24) - 0.8 * wind + 0.02 * damp * (wind < 3) + _noise(rng, rows)
    late = [f"{v:.1f}" if i > rows // 4 else "" for i, v in enumerate(damp)]
    shown = [f"{v:.2f}" if use else "-999" for v, use in zip(heat, rng.random(rows) > 0.08, strict=True)]
    return _csv(["time", "heat", "wind", "damp", "load"],
                [times.astype(str), shown, [f"{v:.2f}" for v in wind], late,
                 [f"{v:.3f}" for v in y]]), "load"  # fmt: skip


def make_shops(rows, seed):
    """A BOM, CRLF, quoted commas, unicode names."""
    rng, times, _ = _rows(seed, rows)
    names = ['"Bäcker, Köln"', "Łódź 24", '"Tōkyō ""Mart"""', "Ærø", '"Rome, centro"', "数据店"]
    shop, price, week = (
        rng.integers(0, 6, rows),
        rng.uniform(1, 20, rows),
        (times.astype("datetime64[D]").astype(int) + 3) % 7,
    )
    effect = np.array([2.0, -1.0, 0.5, 3.0, 0.0, -2.0])[shop]
    y = effect + 2.0 * (week >= 5) - 0.3 * price + 0.5 * effect * (price > 10) + _noise(rng, rows)
    return _csv(["date", "shop", "price", "sales"],
                [times.astype(str), [names[i] for i in shop], [f"{v:.2f}" for v in price], [f"{v:.3f}" for v in y]],
                end="\r\n", start="\ufeff"), "sales"  # fmt: skip


def make_users(rows, seed):
    """10,000 users, most of them rare; the frequent ones matter."""
    rng, times, hour = _rows(seed, rows)
    user = np.minimum(rng.zipf(1.4, rows), 10_000)
    age, device = rng.integers(18, 80, rows), rng.integers(0, 3, rows)
    taste = np.random.default_rng(7).normal(0, 1.5, 10_001)[user]
    risk = taste + 1.2 * np.sin(2 * np.pi * (hour - 6) / 24) + 0.03 * (age - 45) * (device - 1) + _noise(rng, rows, 0.5)
    return _csv(["user_id", "when", "age", "device", "click"],
                [[str(u) for u in user], times.astype(str), _gaps(rng, [str(a) for a in age], 0.1),
                 [["phone", "tablet", "desktop"][d] for d in device],
                 [str(int(r > 0)) for r in risk]]), "click"  # fmt: skip


def make_survey(rows, seed):
    """Mixed types in a column, yes and no, repeated and missing names in the header."""
    rng, _, _ = _rows(seed, rows)
    score, answer, years = rng.integers(0, 11, rows), rng.random(rows) < 0.5, rng.gamma(2.0, 5.0, rows)
    refused = rng.random(rows) < 0.12
    y = (
        0.5 * (score - 5) * ~refused + 1.5 * answer - 2.0 * refused + 0.1 * years * answer - 1.0 + _noise(rng, rows)
    ) > 0
    noise = rng.normal(size=rows)
    return _csv(["score", "", "score", "years", "stays"],
                [["refused" if r else str(s) for s, r in zip(score, refused, strict=True)],
                 ["yes" if a else "no" for a in answer], [f"{v:.3f}" for v in noise],
                 _gaps(rng, [f"{v:.1f}" for v in years], 0.05),
                 [["leaves", "stays"][int(v)] for v in y]]), "stays"  # fmt: skip


def make_money(rows, seed):
    """Currency signs, separators of thousands, percents, a row number."""
    rng, _, _ = _rows(seed, rows)
    income, rate, debt = rng.lognormal(8, 0.5, rows), rng.uniform(0, 15, rows), rng.lognormal(7, 1.0, rows)
    y = 1.5 * np.log(income) - 0.2 * rate - 0.8 * np.log(debt) + 0.1 * rate * (debt > 2000) + _noise(rng, rows)
    return _csv(["row", "income", "rate", "debt", "limit"],
                [[str(i) for i in range(rows)], [f'"${v:,.2f}"' for v in income], [f"{v:.1f}%" for v in rate],
                 _gaps(rng, [f'"{v:,.0f}"' for v in debt], 0.07), [f"{v:.3f}" for v in y]]), "limit"  # fmt: skip


def make_german(rows, seed):
    """Semicolons, decimal commas, dates day first."""
    rng, times, _ = _rows(seed, rows)
    day = times.astype("datetime64[D]")
    width, kind = rng.normal(10, 3, rows), rng.integers(0, 4, rows)
    year = 2 * np.pi * (day - day.astype("datetime64[Y]")).astype(float) / 365
    y = 0.5 * width + 2.0 * np.cos(year) + np.array([0.0, 1.5, -1.0, 3.0])[kind] * (width > 10) + _noise(rng, rows)
    dates = [".".join(reversed(str(d).split("-"))) for d in day]
    return _csv(["datum", "breite", "art", "wert"],
                [dates, _gaps(rng, [f"{v:.2f}".replace(".", ",") for v in width], 0.05),
                 [["A1", "B2", "C3", "D4"][k] for k in kind],
                 [f"{v:.3f}".replace(".", ",") for v in y]], ";"), "wert"  # fmt: skip


def make_turnover(rows, seed):
    """Categories that go and come: of ten, one is replaced every 700 rows."""
    rng, times, _ = _rows(seed, rows)
    made = np.arange(rows)[:, None] // 700 + np.arange(10)
    which = made[np.arange(rows), rng.integers(0, 10, rows)]
    effect, size = np.random.default_rng(3).normal(0, 2.0, made.max() + 1)[which], rng.normal(size=rows)
    y = effect + size**2 + _noise(rng, rows)
    return _csv(["when", "article", "size", "count"],
                [times.astype(str), [f"article {w}" for w in which], [f"{v:.3f}" for v in size],
                 [f"{v:.3f}" for v in y]]), "count"  # fmt: skip


def make_mail(rows, seed):
    """A text, a constant, an id."""
    rng, times, _ = _rows(seed, rows)
    good, bad = (
        ["report", "meeting", "lunch", "review", "notes", "plan"],
        ["prize", "winner", "free", "cash", "pills", "click"],
    )
    both, spam = ["the", "and", "please", "today", "for", "your"], rng.random(rows) < 0.4
    texts = []
    for s in spam:
        words = [*rng.choice(both, 4), *rng.choice(bad if s else good, 2), *rng.choice(good + bad, 1)]
        texts.append(" ".join(rng.permutation(words)))
    flips = rng.random(rows) < 0.05
    return _csv(["message", "server", "when", "text", "label"],
                [[f"<{rng.integers(1 << 40):x}@mx>" for _ in range(rows)], ["mx1"] * rows, times.astype(str), texts,
                 [["mail", "spam"][int(s != f)] for s, f in zip(spam, flips, strict=True)]]), "label"  # fmt: skip


def make_clicks(rows, seed):
    """Seconds since 1970, an hour, booleans with gaps, three classes."""
    rng, times, hour = _rows(seed, rows)
    speed, mobile, site = rng.gamma(3.0, 1.0, rows), rng.random(rows) < 0.6, rng.integers(0, 30, rows)
    score = np.stack([speed - 3, 2 * np.sin(2 * np.pi * hour / 24) + mobile, 0.1 * (site % 7) * (speed > 2)])
    y = np.argmax(score + _noise(rng, score.size).reshape(score.shape), axis=0)
    return _csv(["timestamp", "hour", "mobile", "site", "speed", "kind"],
                [[str(t) for t in times.astype(np.int64)], [str(int(h)) for h in hour],
                 _gaps(rng, ["true" if m else "false" for m in mobile], 0.1), [f"site-{s:02d}" for s in site],
                 [f"{v:.3f}" for v in speed], [["read", "buy", "leave"][k] for k in y]]), "kind"  # fmt: skip


def make_drift(rows, seed):
    """Half of a column missing, a rule that changes, strange values among numbers."""
    rng, times, _ = _rows(seed, rows)
    a, b, zone = rng.normal(size=rows), rng.normal(size=rows), rng.integers(0, 5, rows)
    angle = 2 * np.pi * np.arange(rows) / rows
    y = (a * np.cos(angle) + b * np.sin(angle) + 0.5 * (zone == 2) + _noise(rng, rows)) > 0
    shown = ["error" if e else f"{v:.3f}" for v, e in zip(b, rng.random(rows) < 0.01, strict=True)]
    return _csv(["t", "a", "b", "c", "zone", "alarm"],
                [times.astype(str), [f"{v:.3f}" for v in a], shown, _gaps(rng, [f"{v:.3f}" for v in a * b], 0.5),
                 [f"Z{z}" for z in zone], [str(bool(v)).lower() for v in y]]), "alarm"  # fmt: skip


MESSY = {name.removeprefix("make_"): make for name, make in list(globals().items()) if name.startswith("make_")}
