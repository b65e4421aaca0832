"""The estimators without settings: experts over all settings, mixed (`gossamer.mixture`)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Array, Floats
from gossamer.budgets import Budget, Project
from gossamer.clock import as_half_life
from gossamer.estimators import class_weights, fitting, inputs
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.estimators.late import remembers
from gossamer.estimators.newton import NewtonClassifier, NewtonRegressor
from gossamer.estimators.pipelines import OnlinePipeline
from gossamer.estimators.scaler import OnlineScaler
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss, Pinball, Softmax, Squared
from gossamer.mixture import MixedLearner, Setting
from gossamer.rules import Newton, Rule


class _Auto:
    """What the two have in common: a mixture inside, and a look into it."""

    takes_several = False
    average: Any = False  # no parameter: what is averaged are experts
    n_passes: Any = 1
    budget: Any
    kernel: Any
    scale: Any
    memory: Any
    time: Any
    n_jobs: Any
    half_life: Any

    def _rule(self) -> Rule:
        return Newton()

    def _budget(self) -> Budget:
        return Project(_checks.whole(self, "budget", self.budget, 1))

    def _mixture(self, **options: Any) -> MixedLearner:
        fitting.check_parameters(self)
        names = ("budget", "kernel", "scale", "memory", "time", "n_jobs")
        given = {name: getattr(self, name) for name in names}
        return MixedLearner(**given, half_life=as_half_life(self, self.half_life), **options)

    def _kernel_for(self, rows: Array) -> Any:
        return self.kernel

    def _mixed(self: Any) -> MixedLearner:
        found: MixedLearner = self._fitted()
        return found

    @property
    def experts_(self) -> list[Setting]:
        """The settings of the experts, the heaviest first; those that sleep are among them."""
        return [setting for setting, _, _ in self._mixed().experts()]

    @property
    def weights_(self) -> Floats:
        """The weights of `experts_`."""
        return np.array([weight for _, weight, _ in self._mixed().experts()])

    def explain(self, least: float = 0.01) -> str:
        """The settings that carry the weight now, in words: a line for each with at least this weight."""
        mixed = self._mixed()
        found = mixed.explain()
        lines = [f"{weight:5.1%}  {words}" for words, weight in found if weight >= least]
        quiet = len(found) - len(lines)
        return "\n".join([*lines, f"       and {quiet} more below {least:.0%}"] if quiet else lines)


class AutoClassifier(_Auto, OnlineClassifier):
    """A classifier without settings, for two or more classes: it tunes itself while it learns.

    Second-order experts (`gossamer.rules.Newton`) of many widths, factors of forgetting and noises learn every row.
    Their scores become probabilities through calibrated links, and these are mixed by Bayes weights with a fixed share
    (Herbster and Warmuth 1998): the log loss is hardly above that of the best expert, also where the best changes with
    the stream (`gossamer.bounds.fixed_share`). Experts that stay negligible are retired, and others are started.

    Parameters
    ----------
    kernel : None for Gaussians of all widths beside linear parts; "laplace" for that family; "mixed" for both, as
        rows of numbers and categories often have steps; a Kernel to fix it, whose "scale" is that of features with
        variance 1.
    budget : the most support points of each expert.
    scale : whether features are scaled online.
    memory : the most bytes for the experts, as `gossamer.mixture.costs` counts them; None: no limit. Fewer start and
        stay awake, with fewer points.
    time : the most microseconds for a row, in the steady state of a usual processor; None: no limit. The same.
    n_jobs : threads over experts.
    shuffle, random_state : whether ``fit`` makes its pass in a random order, and the seed of the order.
    half_life : experts forget by the clock: never, and in 10, 1, 1/10 and 1/50 times this time, instead of by rows; the
        verbs that learn take the ``time`` of each row. See `gossamer.HalfLife`.
    class_weight : as in `OnlineClassifier`.

    Attributes
    ----------
    experts_, weights_ : the settings of the experts and their weights, the heaviest first.

    ``decision_function`` and ``predict_learn`` give log-odds, with more than two classes the logarithms of
    probabilities.

    >>> import gossamer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, "up", "down")
    >>> model = gossamer.AutoClassifier()
    >>> scores = model.predict_learn(X, y)
    >>> round(float(np.mean((scores >= 0) != (y == "up"))), 2)
    0.03
    >>> model.predict_proba([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]).round(1).tolist()
    [[0.0, 1.0], [0.6, 0.4]]
    >>> print(model.explain(0.2).splitlines()[0])
    37.6%  Gaussian of width 3 and linear on squashed rows, forgetting 1, noise 0.1
    """

    def __init__(
        self, kernel: Any = None, *, budget: int = 256, scale: bool = True, memory: float | None = None,
        time: float | None = None, n_jobs: int = 1, shuffle: bool = True, random_state: Any = 0, half_life: Any = None,
        class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.budget, self.kernel, self.scale, self.memory, self.time = budget, kernel, scale, memory, time
        self.n_jobs, self.shuffle, self.random_state = n_jobs, shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight

    def _new_certainty(self) -> Any:
        return _core.Certainty("log_odds")

    def _loss(self) -> Loss:
        return Logistic()

    def _loss_many(self, classes: int | None) -> Loss:
        return Softmax(classes=classes)

    def _structure(self) -> Any:
        return None

    def _start(self, loss: Loss | None = None) -> Learner:
        class_weights.check(self, self.class_weight)
        many = loss is not None and loss.target == "label"
        return self._mixture(many=many, classes=getattr(loss, "classes", None))

    def best(self) -> OnlinePipeline:
        """The heaviest expert alone, with what it has learned: a pipeline of a scaler and a `NewtonClassifier` that
        goes on learning. Its settings are those that `explain` names first. (The mixture also clips features beyond ten
        deviations. Where the expert sees rows moved, the means of the scaler have moved instead, and come back as it
        goes on.)"""
        setting, learner, scaler, _ = self._mixed().heaviest()
        loss = "logistic" if setting.smooth else "squared_hinge"
        model = NewtonClassifier(
            learner.kernel, loss=loss, noise=setting.noise, budget=learner.budget, **_forgetting(setting, learner)
        )
        own = {name: self.__dict__[name] for name in ("_order", "_given", "classes_")}
        return _as_pipeline(self, setting, learner, scaler, model, own)


class AutoRegressor(_Auto, OnlineRegressor):
    """A regressor without settings: it tunes itself while it learns.

    As `AutoClassifier`, with experts for numbers, whose predictions are densities: Student's t around the mean, with
    the expert's variance times a factor that is learned. With ``quantile``, experts learn that quantile, and are
    weighed by the asymmetric Laplace density, which is the pinball loss.

    Parameters
    ----------
    quantile : None for the mean; or the level of a quantile to predict, in (0, 1).
    kernel, budget, scale, memory, time, n_jobs, shuffle, random_state, half_life : as in `AutoClassifier`.

    Attributes
    ----------
    experts_, weights_ : the settings of the experts and their weights, the heaviest first.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.AutoRegressor().partial_fit(X, 1000 + 10 * np.sin(X[:, 0]))
    >>> mean, deviation = model.predict([[1.57], [4.71]], return_std=True)
    >>> mean.round(1).tolist(), bool(deviation.max() < 1)
    ([1010.0, 990.0], True)
    """

    scale_target = False  # the mixture does it inside
    _of_old: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, kernel: Any = None, *, quantile: float | None = None, budget: int = 256, scale: bool = True,
        memory: float | None = None, time: float | None = None, n_jobs: int = 1, shuffle: bool = True,
        random_state: Any = 0, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.quantile, self.budget, self.kernel, self.scale = quantile, budget, kernel, scale
        self.memory, self.time, self.n_jobs = memory, time, n_jobs
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _loss(self) -> Loss:
        return Squared() if self.quantile is None else Pinball(self.quantile)

    def _start(self, loss: Loss | None = None) -> Learner:
        return self._mixture(task="regression", quantile=self.quantile)

    @remembers
    @inputs.speaks
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The prediction for each row; with ``return_std`` also the deviation of a new target there."""
        _checks.one_of(self, "return_std", return_std, [False, True])
        if return_std and self.quantile is not None:
            raise _checks.wrong(self, "return_std", "False for a quantile", return_std)
        mean: Array = super().predict(X)
        return (mean, np.sqrt(inputs.variance(self._mixed(), X))) if return_std else mean

    def best(self) -> OnlinePipeline:
        """The heaviest expert alone, with what it has learned: a pipeline of a scaler and a `NewtonRegressor` that goes
        on learning. Its settings are those that `explain` names first. (The mixture also clips features beyond ten
        deviations.)"""
        setting, learner, scaler, moments = self._mixed().heaviest()
        loss: dict[str, Any] = {} if self.quantile is None else {"loss": "pinball", "quantile": self.quantile}
        model = NewtonRegressor(
            learner.kernel, noise=setting.noise, budget=learner.budget, **_forgetting(setting, learner), **loss
        )
        return _as_pipeline(self, setting, learner, scaler, model, {"_target_moments": moments})


def _forgetting(setting: Setting, learner: Learner) -> dict[str, Any]:
    """How an expert forgets, as parameters: by the clock, or by rows."""
    clock = learner.rule.forgetting != setting.forgetting  # type: ignore[attr-defined]
    return {"half_life": learner.half_life} if clock else {"forgetting": setting.forgetting}


def _as_pipeline(
    estimator: Any, setting: Setting, learner: Learner, seen: dict[str, Any], model: Any, learned: dict[str, Any]
) -> OnlinePipeline:
    """An expert as a pipeline: a scaler that has ``seen`` the rows, and the model with the state of the expert."""
    loss = model._loss_many(None) if learner.loss.target == "label" else None
    own = model._start(loss)
    own.restore(learner.state())
    model.__dict__.update(learned, learner_=own, n_features_in_=estimator.n_features_in_)
    if not estimator.scale or setting.view == "plain":
        return OnlinePipeline([("model", model)])
    scaler = OnlineScaler(squash=setting.view == "squashed", root=setting.view == "rooted")
    scaler.__dict__.update(seen)
    return OnlinePipeline([("scaler", scaler), ("model", model)])
