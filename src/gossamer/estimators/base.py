"""The base of all estimators: a Learner made of the parameters, and the methods that feed it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from gossamer import _checks, _core
from gossamer._locks import Snapshot, exclusive, publish
from gossamer._registry import as_part
from gossamer._stored import Stored
from gossamer._typing import Array, Floats
from gossamer.budgets import Budget, Smallest
from gossamer.clock import as_half_life, to_plain
from gossamer.estimators import certain, divergence, fitting, inputs, several
from gossamer.estimators.attributes import Shown
from gossamer.estimators.choose import choose_budget, choose_loss
from gossamer.estimators.late import LateLabels
from gossamer.estimators.loaded import LEARNED, check_estimator
from gossamer.estimators.part_params import PartParameters
from gossamer.kernels import as_kernel
from gossamer.learner import Learner
from gossamer.losses import Loss
from gossamer.rules import Rule


class Online(LateLabels, Shown, PartParameters, Stored, Snapshot, BaseEstimator):  # type: ignore[misc]
    """A Learner made of the parameters. A subclass makes the loss, rule and budget.

    Threads learn one after the other. The learned attributes are replaced in one step (`publish`): a single read of
    ``__dict__``, as in `_known`, gives a learner and its classes of the same moment.
    """

    #: Whether a feature that comes later, 0 in all rows before, leaves the scores as they are.
    takes_new_features: ClassVar[bool] = True
    #: Whether y may have several columns (`gossamer.estimators.several`), if loss and rule have no objection.
    takes_several: ClassVar[bool] = True
    #: "classification", "regression" or "novelty", and the targets of the losses for it (see `Loss`).
    task: ClassVar[str]
    targets: ClassVar[tuple[str, ...]] = ()
    #: The budget that a number stands for.
    _by_number: ClassVar[Any] = Smallest
    kernel: Any
    loss: Any
    rule: Any
    average: bool | str
    n_passes: int
    shuffle: bool
    random_state: Any
    half_life: Any

    def _loss(self) -> Loss:
        return choose_loss(self)

    def _rule(self) -> Rule:
        return as_part(Rule, self.rule, "rule", "a Rule, such as Implicit(C=1.0), or a name", self)

    def _budget(self) -> Budget | None:
        return choose_budget(self, self._by_number)

    def _kernel_for(self, rows: Array) -> Any:
        """The kernel for a stream that begins with these rows, if they alone are to settle its parameters."""
        return as_kernel(self.kernel).resolve(rows)

    def _start(self, loss: Loss | None = None) -> Learner:
        """A learner from the parameters, all of them checked."""
        fitting.check_parameters(self)
        loss = self._loss() if loss is None else loss
        options: dict[str, Any] = {"average": self._average(), "half_life": as_half_life(self, self.half_life)}
        return Learner(self.kernel, loss, self._rule(), self._budget(), **options)

    def _average(self) -> bool | str:
        """The ``average`` of the learner: "fit" is handled by `fitting`, not by the learner."""
        average: bool | str = _checks.one_of(self, "average", self.average, ["fit", False, True, "sparse"])
        return False if average == "fit" else average

    def _begin(self, loss: Loss | None = None) -> Learner:
        """A learner from the parameters; ``fit`` has its kernel settled on all rows, whichever come first."""
        learner = self._start(loss)
        if "_all_rows" in self.__dict__:
            inputs.settle(learner, self._all_rows)
        return learner

    def _learner(self) -> Learner:
        learner = self.__dict__.get("learner_")
        return self._begin() if learner is None else learner

    def _known(self) -> dict[str, Any]:
        """A snapshot of the learned attributes, all of one moment, whatever other threads learn."""
        known: dict[str, Any] = self.__dict__
        if "learner_" not in known:
            check_is_fitted(self, "learner_")
        return known

    def _fitted(self) -> Learner:
        learner: Learner = self._known()["learner_"]
        return learner

    def _scores(self, X: Any, learner: Learner | None = None) -> Floats:
        return self._scores_levels(X, learner)[0]

    @inputs.speaks
    def _scores_levels(self, X: Any, learner: Learner | None = None) -> tuple[Floats, Floats]:
        """Scores, and the level at the moment of each."""
        learner = self._fitted() if learner is None else learner
        inputs.names(self, X, fitted=True)
        found = inputs.score(learner, X, learner.average is not None)
        divergence.watch(self, found[0], scaled="_target_moments" in self.__dict__)
        return found

    def _names(self, X: Any) -> Array | None:
        """The column names of a frame, checked if there were rows before."""
        return inputs.names(self, X, fitted="learner_" in self.__dict__)

    def _new_certainty(self) -> Any:
        """What says how sure a model is that has learned nothing."""
        return _core.Certainty(self.task)

    def _certain(self) -> Any:
        """What the estimator keeps to say how sure it is: its own, or a new one. None in later passes of ``fit``: the
        model has learned their rows before, so that their scores are too good."""
        if "_rehearses" in self.__dict__:
            return None
        found = self.__dict__.get("_certainty")
        return self._new_certainty() if found is None else found

    def _sure(self) -> Any:
        """The same for a face that feeds the learner itself; a new one is kept."""
        found = self._certain()
        if self.__dict__.get("_certainty") is not found:
            publish(self, {"_certainty": found})
        return found

    def _keep(self, learner: Learner, names: Array | None, **more: Any) -> None:
        """Publish the learner and the other learned attributes after a batch without errors."""
        known = self.__dict__
        if known.get("learner_") is learner:
            changed = [name for name, value in more.items() if known.get(name) is not value]
            if not changed:
                return
            if len(changed) == 1 and changed[0] in known:  # an assignment is one step too, and a cheaper one
                known[changed[0]] = more[changed[0]]
                return
        now = {"learner_": learner, **more}
        if "learner_" not in known:
            points = learner.points
            if isinstance(points, np.ndarray) or issparse(points):
                now["n_features_in_"] = int(points.shape[1])
            if names is not None:
                now["feature_names_in_"] = names
        publish(self, now)

    @inputs.speaks
    def _anew(self, X: Any, y: Any, sample_weight: Any, time: Any) -> Any:
        """Forget everything and make ``n_passes`` passes; if one fails, nothing has changed."""
        fresh = clone(self)
        names = fresh._names(X)
        fitting.fit(fresh, X, y, sample_weight, time)
        learned = {name: fresh.__dict__[name] for name in LEARNED if name in fresh.__dict__}
        self._replace(learned if names is None else {**learned, "feature_names_in_": names})
        divergence.inherit(fresh, self)
        return self

    @exclusive
    def _replace(self, learned: dict[str, Any]) -> None:
        publish(self, learned, instead_of=LEARNED)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if self.task != "novelty":
            tags.target_tags.multi_output = several.takes(self)
        return tags

    def _pass(self, part: fitting.Part) -> Floats | None:
        """Learn rows in order; a detector returns the rho that each has met."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        given = super()._parameters()
        given["half_life"] = to_plain(given["half_life"])
        later = ("half_life", "class_weight")  # unless they are used, files are those of older versions
        return {name: value for name, value in given.items() if name not in later or value is not None}

    def _learned(self) -> dict[str, Any]:
        learned = super()._learned()
        if "_certainty" in learned:
            learned["_certainty"] = learned["_certainty"].state()
        return learned

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        check_estimator(self, learned)
        if "_certainty" in learned:
            self._certainty = certain.restore(self, self._new_certainty(), learned["_certainty"])
