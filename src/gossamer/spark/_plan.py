"""The plan of a query, columns, types and task: validated on the driver, and shared by all readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from gossamer import _checks, store
from gossamer.bank.objects import task_of
from gossamer.estimators.pipelines import last_step
from gossamer.spark._rows import Task

#: The types of keys; for each type of order its stored type, and the expressions that convert it there and back.
KEYS = ("string", "tinyint", "smallint", "int", "bigint")
ORDERS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ("bigint", "cast({0} as bigint)", "cast({0} as {1})")),
    **dict.fromkeys(("float", "double"), ("double", "cast({0} as double)", "cast({0} as {1})")),
    "timestamp": ("bigint", "unix_micros({0})", "timestamp_micros({0})"),
    "timestamp_ntz": ("bigint", "unix_micros(cast({0} as timestamp))", "cast(timestamp_micros({0}) as timestamp_ntz)"),
    "date": ("bigint", "cast(unix_date({0}) as bigint)", "date_from_unix_date(cast({0} as int))"),
}
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean")
#: The placeholder of a missing target, so that the others keep their type on the way to Python.
NOTHING = {"string": "''", "boolean": "false"}


@dataclass(frozen=True)
class Plan:
    """Columns by name, their types, and the task of the workers."""

    key: str
    order: str
    features: tuple[str, ...]
    target: str | None
    types: dict[str, str]
    task: Task

    @property
    def key_type(self) -> str:
        return self.types[self.key]

    @property
    def order_type(self) -> str:
        """The stored type of an order: bigint or double."""
        return ORDERS[self.types[self.order]][0]

    @property
    def label_type(self) -> str:
        """The type of a prediction."""
        if self.task.kind == "regression":
            return "double"
        if self.task.kind == "novelty":
            return "boolean"
        return {str: "string", bool: "boolean", int: "bigint", float: "double"}[type(self.task.labels[0])]

    def rows(self, df: Any) -> Any:
        """The columns that workers read: key, order, error so far, target, x0, x1, ..."""
        from pyspark.sql import functions as sql

        key, order = _quoted(self.key), ORDERS[self.types[self.order]][1].format(_quoted(self.order))
        bad = [f"when {key} is null then 'The key is missing.'", f"when {order} is null then 'The order is missing.'"]
        if self.order_type == "double":
            bad.append(f"when isnan({order}) then 'The order is NaN.'")
        columns = []
        for place, name in enumerate(self.features):
            number = f"try_cast({_quoted(name)} as {'float' if self.task.single else 'double'})"
            columns.append(sql.expr(number).alias(f"x{place}"))
            if self.types[name] == "string":
                bad.append(_no_number(name, number))
        if self.target is not None:
            target = _quoted(self.target)
            bad.append(f"when {target} is null then 'The target is missing.'")
            if self.task.kind == "regression":
                target = f"try_cast({target} as double)"
                bad.append(_no_number(self.target, target))
            nothing = NOTHING.get(self.types[self.target], "0") if self.task.kind == "classification" else "0"
            columns.append(sql.expr(f"coalesce({target}, {nothing})").alias("target"))
        nothing = "''" if self.key_type == "string" else "0"
        return df.select(
            sql.expr(f"coalesce({key}, {nothing})").alias("key"), sql.expr(f"{key} is null").alias("nameless"),
            sql.expr(f"coalesce({order}, 0)").cast(self.order_type).alias("order"),
            sql.expr(f"case {' '.join(bad)} end").alias("bad"), *columns,
        )  # fmt: skip

    def results(self, df: Any) -> Any:
        """The schema of the workers' results, with the names and types of the given columns."""
        from pyspark.sql import functions as sql

        back = ORDERS[self.types[self.order]][2].format("order", self.types[self.order])
        return df.select(
            sql.col("key").cast(self.key_type).alias(self.key), sql.expr(back).alias(self.order), "prediction", "score",
            "error",
        )  # fmt: skip

    @property
    def result_schema(self) -> str:
        kinds = {"key": self.key_type, "order": self.order_type, "prediction": self.label_type}
        return ", ".join(f"`{name}` {kind}" for name, kind in {**kinds, "score": "double", "error": "string"}.items())

    @property
    def model_schema(self) -> str:
        error = f"array<struct<`order`: {self.order_type}, error: string>>"
        return f"`key` {self.key_type}, model binary, last {self.order_type}, errors {error}"


def plan(
    owner: str, df: Any, *, key: Any, features: Any, target: Any, order: Any, model: Any, classes: Any, buckets: Any,
    late: str = "learn", learns: bool = True,
) -> Plan:  # fmt: skip
    """Validate the columns of a frame and make the plan, so that errors come before anything runs.

    ``learns``: whether rows are learned, which takes a target, or only scored.
    """
    types = dict(df.dtypes)
    if isinstance(features, str) or not features:
        raise _checks.wrong(owner, "features", "a list of names of columns", features)
    features = tuple(features)
    kind = _kind(owner, model)
    if learns and (target is None) != (kind == "novelty"):
        rule = "None for a detector" if target is not None else f"given for {type(last_step(model)).__name__}"
        raise _checks.wrong(owner, "target", rule, target)
    for parameter, name in [("key", key), ("order", order), *(("features", name) for name in features)]:
        if name not in types:
            raise _checks.wrong(owner, parameter, f"a column of {sorted(types)}", name)
    if target is not None and target not in types:
        raise _checks.wrong(owner, "target", f"a column of {sorted(types)}", target)
    if types[key] not in KEYS:
        raise _checks.wrong(owner, "key", f"a column of type {', '.join(KEYS)} (cast it to string)", types[key])
    if types[order] not in ORDERS:
        raise _checks.wrong(owner, "order", f"a column of type {', '.join(ORDERS)}", types[order])
    for name in features:
        if types[name] not in (*NUMBERS, "string") and not types[name].startswith("decimal"):
            raise _checks.wrong(owner, "features", "columns of numbers", f"{name}: {types[name]}")
    task = Task(
        model=store.dumps(clone(model)), kind=kind, labels=_labels(owner, model, kind, classes),
        features=len(features), single=all(types[name] == "float" for name in features),
        late=_checks.one_of(owner, "late", late, ["learn", "skip", "error"]),
        buckets=_checks.whole(owner, "buckets", buckets, 1),
    )  # fmt: skip
    return Plan(key, order, features, target, types, task)


def _kind(owner: str, model: Any) -> str:
    """The target of a model, if it does not depend on the first rows."""
    if not hasattr(model, "predict_learn") or not hasattr(model, "get_params"):
        raise _checks.wrong(owner, "model", "an estimator of Gossamer or an OnlinePipeline", model)
    kernel = getattr(last_step(model), "kernel", None)
    if kernel is not None and not isinstance(kernel, (list, tuple)):
        from gossamer.kernels import as_kernel

        made, rng = as_kernel(kernel), np.random.default_rng(0)
        if not made.takes_any() and made.resolve(rng.normal(size=(20, 2))) != made.resolve(rng.normal(size=(20, 2))):
            rule = "with a kernel whose parameters are numbers, or models would depend on how rows fall into batches"
            raise _checks.wrong(owner, "model", rule, kernel)
    return task_of(model)


def _labels(owner: str, model: Any, kind: str, classes: Any) -> tuple[Any, ...]:
    if kind != "classification":
        if classes is not None:
            raise _checks.wrong(owner, "classes", f"None for {type(last_step(model)).__name__}", classes)
        return ()
    if classes is None:
        raise _checks.wrong(owner, "classes", "all labels, for a classifier: others are errors", None)
    labels = np.unique(np.asarray(classes)).tolist()
    if len(labels) < 2 or type(labels[0]) not in (str, bool, int, float):
        raise _checks.wrong(owner, "classes", "at least two texts or numbers", classes)
    return tuple(labels)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _no_number(name: str, number: str) -> str:
    """The case of a text that is no number."""
    text = f"cast({_quoted(name)} as string)"
    return f"when {_quoted(name)} is not null and {number} is null then concat({text}, ' is no number.')"
