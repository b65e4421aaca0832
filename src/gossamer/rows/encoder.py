"""`RowEncoder`: rows of any kind become rows of numbers, of a fixed width, while the encoder learns from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gossamer import _checks
from gossamer._locks import Snapshot, exclusive, publish
from gossamer._stored import Stored
from gossamer._typing import Array
from gossamer.rows import clock
from gossamer.rows.find import Limits, find_plan
from gossamer.rows.layout import MOST_ROWS, Layout, effective_width, is_sparse
from gossamer.rows.plan import Column, Plan, parse_kind, shown
from gossamer.rows.table import Table, as_table

#: The learned attributes.
LEARNED = ("plan_", "state_", "n_seen_", "n_features_in_", "feature_names_in_")
#: Numbers of this size have squares that cannot be summed.
LARGEST = 1e100


class RowEncoder(Stored, Snapshot, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers with gaps, booleans, categories, text and timestamps as features of a fixed width, learned online.

    The first call looks at its first rows and decides what each column is (`describe`); the width is then fixed. What
    is learned from a row is used from the next row on: `learn_transform` gives the same bits for any split of the rows
    after the start. With all columns given, that holds from the first row.

    | kind | features |
    |---|---|
    | number | (x - mean) / deviation of the rows before (skewed: of logarithms); a gap is the mean, with an indicator |
    | boolean | 0 or 1, with an indicator |
    | category | 1 in its own place if it is frequent, else in one of some shared ones; a gap is all zeros |
    | mixed | numbers and texts in one column: both of these |
    | text | hashed words, pairs of words and n-grams of characters |
    | timestamp | the time since the row before; the hour, the day of the week and of the year as points on circles |
    | cyclic | a point on a circle |
    | id, constant, ignored | left out; a column that has one value in the first rows keeps a place for others |

    Parameters
    ----------
    columns : what the columns are, instead of finding out: a dict of kinds for some of them, such as
        ``{"hour": "cyclic:24", "note": "text:64", "row": "ignored"}``, or a `Plan`, such as `describe` returns.
    missing : "fill" copes with gaps and with values of another kind, which count as gaps; "error" refuses them.
    places, hashed : the most categories of a column with a feature each, and the features that the others share.
    text_width : the features of a text.
    memory : rows after which a category counts half: a place that is used too seldom goes to one that comes more often.
    timezone : of hours and days; timestamps without a zone are UTC.
    scale : whether numbers are scaled; otherwise they stay as they are.
    clip : scaled numbers are at most so many deviations from 0.
    forget : in [0, 1): the share of its weight that the past of a number loses with each row.
    start : how many rows of the first call are looked at.
    sparse : whether the features come as a CSR matrix; "auto": where texts of many features make that much smaller.
    largest : numbers of this size and more are taken for missing: their squares have no use.

    Attributes
    ----------
    plan_ : what each column is. n_seen_ : rows learned. n_features_in_, feature_names_in_ : the columns of the rows.

    Examples
    --------
    >>> rows = [{"size": 1.0, "shop": "Rome"}, {"size": None, "shop": "Oslo"}, {"size": 3.0, "shop": None}]
    >>> encoder = RowEncoder({"shop": "category:places=2,hashed=1"}, scale=False)
    >>> encoder.learn_transform(rows).tolist()
    [[1.0, 0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0, 0.0]]
    >>> encoder.transform([{"size": 2.0, "shop": "Oslo"}, {"shop": "Bonn"}]).tolist()
    [[2.0, 0.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0, 1.0]]
    """

    plan_: Plan
    n_seen_: int
    n_features_in_: int
    _layout: Layout

    def __init__(
        self, columns: Any = None, *, missing: str = "fill", places: int = 64, hashed: int = 16, text_width: int = 128,
        memory: float = 2000.0, timezone: str = "UTC", scale: bool = True, clip: float = 5.0, forget: float = 0.0,
        start: int = 1000, sparse: bool | str = "auto", largest: float = LARGEST,
    ) -> None:  # fmt: skip
        self.columns, self.missing, self.places, self.hashed, self.text_width = (
            columns,
            missing,
            places,
            hashed,
            text_width,
        )
        self.memory, self.timezone, self.scale, self.clip, self.forget = memory, timezone, scale, clip, forget
        self.start, self.sparse, self.largest = start, sparse, largest

    # ----------------------------------------------------------------------------------------------- what users call

    def fit(self, X: Any, y: Any = None) -> Any:
        """Forget everything and learn these rows."""
        self._learn(X, fresh=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Go on with more rows."""
        self._learn(X)
        return self

    def learn_transform(self, X: Any) -> Any:
        """The features of each row, with what is known from the rows before it; then the row is learned."""
        return self._learn(X)

    def transform(self, X: Any) -> Any:
        """The features of rows, with what is known from all rows learned; nothing is learned."""
        self._check_parameters()
        known = self._known()
        return self._encode(known["_layout"], self._table(X, known), learn=False)

    @exclusive
    def settle(self, X: Any = None) -> Any:
        """Decide what the columns are from these rows, or from a plan alone, and learn none of them."""
        self._check_parameters()
        table = Table(0, {}) if X is None else self._read(X)
        publish(self, self._settle(table), instead_of=(*LEARNED, "_layout"))
        return self

    def describe(self) -> Plan:
        """What was decided for each column, and what came since: a `Plan`, which prints as a table.

        >>> encoder = RowEncoder({"row": "ignored"}).fit([{"x": 1.5, "row": 1}, {"x": None, "row": 2}])
        >>> print(encoder.describe())
        column  kind     features             why
        x       number          2  indicator  1 missing
        row     ignored         0  left out   as said
        """
        known = self._known()
        plan = Plan.of(known["plan_"])
        notes = self._notes(known)
        for column in plan:
            column.why = "; ".join(part for part in (column.why, notes.get(column.name, "")) if part)
        return plan

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the features."""
        return np.array(self._known()["plan_"].names, dtype=object)

    @property
    def n_features_out_(self) -> int:
        """The number of features."""
        return int(self._known()["_layout"].width)

    @property
    def effective_width_(self) -> int:
        """How many numbers of variance 1 the features are worth, for the width of a kernel: gamma = 1 / that."""
        return effective_width(self._known()["plan_"])

    # -------------------------------------------------------------------------------------------------------- inside

    @exclusive
    def _learn(self, X: Any, fresh: bool = False) -> Any:
        self._check_parameters()
        known = {} if fresh or "_layout" not in self.__dict__ else self.__dict__
        if not known:
            table = self._read(X)
            known = self._settle(table)
        else:
            table = self._table(X, known)
        layout = known["_layout"].clone()
        out = self._encode(layout, table, learn=True)
        now = {**{name: known[name] for name in LEARNED if name in known and name != "state_"}, "_layout": layout}
        now["n_seen_"] = int(known.get("n_seen_", 0)) + table.rows
        publish(self, now, instead_of=(*LEARNED, "_layout"))
        return out

    def _encode(self, layout: Layout, table: Table, *, learn: bool) -> Any:
        zone = clock.read_zone(self, self.timezone)
        return layout.encode(
            table,
            learn=learn,
            memory=float(self.memory),
            keep=1.0 - self.forget,
            zone=zone,
            strict=self.missing == "error",
        )

    def _settle(self, table: Table) -> dict[str, Any]:
        """The learned attributes before the first row."""
        given = self.columns
        if given is None or isinstance(given, Mapping):
            limits = Limits(self.places, self.hashed, self.text_width)
            plan = find_plan(table[: self.start], given, limits)
        else:
            plan = Plan.of(given)
            absent = [column.name for column in plan.used if column.name not in table.columns]
            if absent and not table.named:
                raise _checks.wrong(self, "X", f"a matrix with the columns {shown(absent)}", table.shape)
        if not plan.names:
            raise _checks.wrong(
                self, "X", f"such that a feature remains (left out: {shown(c.name for c in plan)})", "none"
            )
        known: dict[str, Any] = {"plan_": plan, "_layout": self._make_layout(plan), "n_seen_": 0}
        known["n_features_in_"] = len(plan)
        if table.named:
            known["feature_names_in_"] = np.array([column.name for column in plan], dtype=object)
        return known

    def _make_layout(self, plan: Plan) -> Layout:
        sparse = is_sparse(plan) if self.sparse == "auto" else bool(self.sparse)
        return Layout(plan, float(self.clip) if self.scale else 0.0, float(self.largest), sparse)

    def _read(self, X: Any, names: list[str] | None = None) -> Table:
        if issparse(X):
            raise _checks.wrong(self, "X", "dense here, not sparse: use X.toarray()", type(X).__name__, TypeError)
        table = as_table(X, names, owner=self)
        if not table.rows:
            raise _checks.wrong(self, "X", "at least one row (a minimum of 1 is required)", table.shape)
        return table

    def _table(self, X: Any, known: dict[str, Any]) -> Table:
        names = [column.name for column in known["plan_"]]
        table = self._read(X, names)
        if self.missing == "error" and not set(names) <= table.columns.keys():
            used = {column.name for column in known["plan_"].used}
            if absent := sorted(used - table.columns.keys()):
                raise _checks.wrong(self, "X", f"a table with the columns {shown(absent)}", list(table.columns)[:20])
        if table.named and not any(name in table.columns for name in names):
            raise _checks.wrong(self, "X", f"a table with some of the columns {shown(names)}", list(table.columns)[:20])
        return table

    @property
    def coped_(self) -> dict[str, tuple[int, int]]:
        """For each column, how many values were missing, and how many were of another kind, so far."""
        layout: Layout = self._known()["_layout"]
        return {name: (gaps, layout.strays[name]) for name, gaps in layout.gaps.items()}

    def _notes(self, known: dict[str, Any]) -> dict[str, str]:
        layout: Layout = known["_layout"]
        notes = {}
        for column in known["plan_"].used:
            gaps, strays, parts = layout.gaps[column.name], layout.strays[column.name], []
            parts += [f"{gaps:,} missing"] if gaps else []
            parts += [f"{strays:,} values of another kind, taken for missing"] if strays else []
            notes[column.name] = ", ".join(parts)
        return notes

    def _known(self) -> dict[str, Any]:
        known: dict[str, Any] = self.__dict__
        if "_layout" not in known:
            check_is_fitted(self, "plan_")
        return known

    def _check_parameters(self) -> None:
        _checks.one_of(self, "missing", self.missing, ["fill", "error"])
        for name, most in (("places", 1 << 16), ("hashed", 1 << 16), ("text_width", 1 << 20), ("start", 1 << 30)):
            _checks.whole(self, name, getattr(self, name), 1, most)
        _checks.number(self, "memory", self.memory, 1.0, 1e12, "both")
        _checks.number(self, "clip", self.clip, 0.0, np.inf)
        _checks.number(self, "largest", self.largest, 0.0, LARGEST if self.scale else np.inf, "right")
        _checks.number(self, "forget", self.forget, 0.0, 1.0, "left")
        _checks.one_of(self, "scale", self.scale, [False, True])
        _checks.one_of(self, "sparse", self.sparse, ["auto", False, True])
        clock.read_zone(self, self.timezone)

    # --------------------------------------------------------------------------------------------------- the store

    def _parameters(self) -> dict[str, Any]:
        given = super()._parameters()
        columns = given["columns"]
        if columns is not None and not isinstance(columns, Mapping):
            given["columns"] = Plan.of(columns).to_dicts()
        elif columns is not None:
            given["columns"] = dict(columns)
        return given

    def _learned(self) -> dict[str, Any]:
        known = self.__dict__
        if "_layout" not in known:
            return {}
        learned: dict[str, Any] = {name: known[name] for name in LEARNED[2:] if name in known}
        return {**learned, "plan_": known["plan_"].to_dicts(), "state_": known["_layout"].state()}

    def _relearn(self, learned: dict[str, Any]) -> None:
        """Validate learned attributes from a file before the core sees them."""
        self._check_parameters()
        if isinstance(self.columns, Mapping):
            for name, said in self.columns.items():
                parse_kind(name, said, Column(name, "number"))
        elif self.columns is not None:
            Plan.of(self.columns)
        if not learned:
            return
        if not {"plan_", "state_", "n_seen_", "n_features_in_"} <= set(learned) <= set(LEARNED):
            raise _checks.wrong(self, "learned", f"some of {', '.join(LEARNED)}", sorted(learned))
        if not isinstance(learned["plan_"], list):
            raise _checks.wrong(self, "plan_", "a list of columns", learned["plan_"])
        plan = Plan.of(learned["plan_"])
        layout = self._make_layout(plan)
        layout.restore(learned["state_"], float(self.memory))
        if _checks.whole(self, "n_seen_", learned["n_seen_"], 0) > MOST_ROWS or learned["n_features_in_"] != len(plan):
            raise _checks.wrong(self, "n_features_in_", f"{len(plan)}", learned["n_features_in_"])
        names: Any = learned.get("feature_names_in_")
        if names is not None and list(names) != [column.name for column in plan]:
            raise _checks.wrong(self, "feature_names_in_", "the names of the columns", names)
        now = {"plan_": plan, "_layout": layout, "n_seen_": learned["n_seen_"], "n_features_in_": len(plan)}
        publish(self, now if names is None else {**now, "feature_names_in_": np.array(list(names), dtype=object)})

    def __sklearn_is_fitted__(self) -> bool:
        return "_layout" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
