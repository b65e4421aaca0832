"""Several targets in river: dicts of numbers, or of labels, over one set of points where the rule takes them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from gossamer import _checks
from gossamer._locks import Snapshot, exclusive
from gossamer.estimators import several
from gossamer.river.columns import Row
from gossamer.river.models import Classifier, Model, Regressor


class _Several(Snapshot, base.Wrapper[Any]):
    """A model for all targets together where its rule takes several; else one for each."""

    _kind: type[Model]
    model: Any

    def _start(self) -> None:
        self._targets: tuple[Any, ...] = ()
        self._joint: Any = None
        self._apart: dict[Any, Any] = {}

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def targets(self) -> tuple[Any, ...]:
        """The names of the targets, those of the first row."""
        return self._targets

    @property
    def models(self) -> list[Any]:
        """The models inside: one for all targets, or one for each."""
        return [self._joint] if self._joint is not None else list(self._apart.values())

    @exclusive
    def learn_one(self, x: Row, y: dict[Any, Any], w: float = 1.0, t: Any = None) -> None:
        """Learn one row with a dict of targets and a weight; ``t``: its time, with ``half_life``."""
        if not isinstance(self.model, self._kind):
            raise _checks.wrong(self, "model", f"a {self._kind.__name__.lower()} of gossamer.river", self.model)
        if not isinstance(y, Mapping) or not y or (self._targets and y.keys() != set(self._targets)):
            known = f" with the keys {list(self._targets)}" if self._targets else ""
            raise _checks.wrong(self, "y", f"a dict of targets{known}", y)
        names = self._targets or tuple(y)
        values = [self._read(name, y[name]) for name in names]
        joint, apart = self._joint, dict(self._apart)
        if not self._targets:
            weighed = getattr(self.model, "class_weight", None) is not None  # by label, so each has its own rows
            together = len(names) > 1 and several.takes(self.model._made()) and not weighed
            joint = self.model.clone() if together else None
            apart = {} if together else {name: self.model.clone() for name in names}
        when = {} if t is None else {"t": t}
        if joint is not None:
            joint._learn_together(x, values, w, t)
        elif not self._targets or not self._fits(x):  # a row that a later model refuses changes none
            apart = copy.deepcopy(apart)
            for name, value in zip(names, values, strict=True):
                apart[name].learn_one(x, value, w, **when)
        else:
            for name, value in zip(names, values, strict=True):
                apart[name].learn_one(x, value, w, **when)
        self._targets, self._joint, self._apart = names, joint, apart

    def _fits(self, x: Row) -> bool:
        """Whether all models know the features of a row: then the first refuses what others would."""
        first = next(iter(self._apart.values()))._learned
        return first is not None and first.columns.row(x) is not None

    def _read(self, name: Any, value: Any) -> Any:
        raise NotImplementedError


class MultiTarget(_Several, base.MultiTargetRegressor):  # type: ignore[misc]
    """A regressor of this module for dicts of numbers as targets.

    Rules that take several targets (`SILKRegressor`, `NORMARegressor`, `NewtonRegressor`, ...) learn all of them over
    one set of points, with second order one matrix; of other models, such as `AutoRegressor`, each target has its own.

    >>> from gossamer import river
    >>> model = river.MultiTarget(river.NewtonRegressor("gaussian:gamma=0.1"))
    >>> for i in range(400):
    ...     model.learn_one({"x": i % 10}, {"twice": 2.0 * (i % 10), "minus": -1.0 * (i % 10)})
    >>> {name: round(value) for name, value in model.predict_one({"x": 4}).items()}, len(model.models)
    ({'twice': 8, 'minus': -4}, 1)
    """

    _kind = Regressor

    def __init__(self, model: Any) -> None:
        self.model = model
        self._start()

    def _read(self, name: Any, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not np.isfinite(number):
            raise _checks.wrong(self, "y", "a dict of finite numbers", f"{value!r} for {name!r}")
        return number

    def predict_one(self, x: Row) -> dict[Any, float]:
        """The prediction of each target; empty before the first row."""
        if self._joint is None:
            return {name: model.predict_one(x) for name, model in self._apart.items()}
        score, learned = self._joint._score_long(x)
        return dict(zip(self._targets, np.asarray(learned.outward(score)).tolist(), strict=True))


class MultiLabel(_Several, base.MultiLabelClassifier):
    """A classifier of this module for dicts of labels that a row has or has not, as `MultiTarget` for numbers.

    >>> from gossamer import river
    >>> model = river.MultiLabel(river.SILKClassifier())
    >>> for i in range(100):
    ...     model.learn_one({"x": float(i % 4)}, {"odd": i % 2 == 1, "big": i % 4 > 1})
    >>> model.predict_one({"x": 3.0}), model.predict_one({"x": 0.0})
    ({'odd': True, 'big': True}, {'odd': False, 'big': False})
    """

    _kind = Classifier

    def __init__(self, model: Any) -> None:
        self.model = model
        self._start()

    def _read(self, name: Any, value: Any) -> bool:
        if value not in (0, 1):
            raise _checks.wrong(self, "y", "a dict of True and False", f"{value!r} for {name!r}")
        return bool(value)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, dict[bool, float]]:
        """The probability that a row has each label, and that it has it not; empty before the first row."""
        if self._joint is None:
            found = {name: model.predict_proba_one(x) for name, model in self._apart.items()}
            return {name: {False: float(p.get(False, 0.0)), True: float(p.get(True, 0.0))} for name, p in found.items()}
        score, learned = self._joint._score_long(x)
        shares = several.probabilities(learned.estimator, np.asarray(score)[None])[0].tolist()
        return {name: {False: 1.0 - p, True: p} for name, p in zip(self._targets, shares, strict=True)}

    def predict_one(self, x: Row, **kwargs: Any) -> dict[Any, bool]:
        """Whether a row has each label; empty before the first row."""
        if self._joint is None:
            return {name: bool(model.predict_one(x)) for name, model in self._apart.items()}
        score, _ = self._joint._score_long(x)
        return dict(zip(self._targets, (np.asarray(score) > 0).tolist(), strict=True))
