"""Texts as numbers, booleans and timestamps. Columns of texts are coded: each different text is parsed once."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from gossamer._typing import Floats
from gossamer.rows.table import EPOCH, Coded

# possessive quantifiers: no backtracking, so that matching takes linear time
NUMBER = re.compile(
    r"[+-]?+(?:(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+|inf(?:inity)?+|nan)", re.ASCII | re.IGNORECASE
)
#: A number with a currency, a percent sign or separators.
DISGUISED = re.compile(r"[+-]?[$€£¥]?[ \u00a0]?[+-]?\d[\d.,'\u2019 \u00a0]{0,30}[ \u00a0]?[%$€£¥]?", re.ASCII)
COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
#: Groups of thousands before a decimal sign, for either sign.
GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}([,'\u2019 \u00a0]\d{3})+(\.\d*)?|[+-]?\d+(\.\d*)?|[+-]?\.\d+", re.ASCII),
    ",": re.compile(r"[+-]?\d{1,3}([.'\u2019 \u00a0]\d{3})+(,\d*)?|[+-]?\d+(,\d*)?|[+-]?,\d+", re.ASCII),
}
SIGNS = re.compile(r"[$€£¥%]")
#: The pairs of words for true and false.
TRUTHS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("on", "off"))
TRUTH = {word: float(value == 0) for pair in TRUTHS for value, word in enumerate(pair)}
#: The commonest form of timestamps.
PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?", re.ASCII)
#: The formats of timestamps besides ISO 8601.
FORMATS = tuple(
    date + time
    for date in ("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y")
    for time in ("", " %H:%M", " %H:%M:%S")
)


def parse_number(text: str, decimal: str = ".") -> float:
    """A number, also with a currency, a percent sign or separators of thousands; NaN for what is none.

    >>> parse_number("1e3"), parse_number("$1,234.50"), parse_number("1.234,5", ","), parse_number("7 kg")
    (1000.0, 1234.5, 1234.5, nan)
    """
    plain = text.strip()
    if decimal == "." and NUMBER.fullmatch(plain):
        return float(plain)
    if len(plain) > 40 or not DISGUISED.fullmatch(plain):
        return float("nan")
    bare = SIGNS.sub("", plain).strip(" \u00a0")
    if not GROUPED[decimal].fullmatch(bare):
        return float("nan")
    digits = re.sub(r"[^\d.,+-]", "", bare)
    return float(digits.replace(",", "")) if decimal == "." else float(digits.replace(".", "").replace(",", "."))


def parse_truth(text: str) -> float:
    """1 for true, yes, t, y and on, 0 for their opposites, NaN for anything else."""
    return TRUTH.get(text.strip().lower(), float("nan"))


def parse_time(text: str, form: str = "") -> float:
    """Seconds since 1970 of a timestamp in ISO 8601, or of a format; NaN for what is none. Without a zone it is UTC.

    >>> parse_time("2024-02-29T06:00"), parse_time("29.02.2024", "%d.%m.%Y"), parse_time("soon")
    (1709186400.0, 1709164800.0, nan)
    """
    plain = text.strip()
    try:
        if form:
            moment = datetime.datetime.strptime(plain, form)
        elif len(plain) >= 8 and plain[:4].isdecimal():
            moment = datetime.datetime.fromisoformat(plain)
        else:
            return float("nan")
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):  # the first day of the year 1, in a zone where it is still the year 0
        return float("nan")
    return (moment - EPOCH).total_seconds()


def parse_times(values: Sequence[str], form: str = "") -> Sequence[float]:
    """`parse_time` of many texts; those that are all in the commonest form together."""
    if not form and all(map(PLAIN_TIME.fullmatch, values)):
        try:
            microseconds = np.array(values, dtype="datetime64[us]").astype(np.int64)
            if np.abs(microseconds).max(initial=0) < 2**53:  # beyond, they are no floats
                return list((microseconds / 1e6).tolist())
        except ValueError:
            pass
    return [parse_time(value, form) for value in values]


def map_texts(coded: Coded, parse: Callable[[str], float]) -> Floats:
    """A number for each text."""
    return coded.map([parse(value) for value in coded.values])


def find_format(values: Sequence[str]) -> str | None:
    """The format in which nine of ten texts are timestamps; None if there is none.

    >>> find_format(["2024-01-05", "2024-01-06T12:00:00Z"]), find_format(["31/12/2023", "01/02/2024"])
    ('', '%d/%m/%Y')
    """
    some = values[:200]
    for form in ("", *FORMATS):
        if form and not any(sign in some[0] for sign in "/.-"):
            return None
        for part in (some[:10], some):  # most texts are no times: a few show it
            good = sum(not math.isnan(parse_time(value, form)) for value in part)
            if not part or good < 0.9 * len(part):
                break
        else:
            return form
    return None
