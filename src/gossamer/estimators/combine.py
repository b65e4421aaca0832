"""Merge models: the weighted sum of their expansions, projected onto the number of points that the budget allows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gossamer import _checks
from gossamer._engine.expansion import REFRESH
from gossamer._engine.state import State
from gossamer._sparse import TABLES, SparseRows, stack
from gossamer._typing import Array, Floats
from gossamer.clock import as_half_life, elapse
from gossamer.estimators import several
from gossamer.estimators.base import Online
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.estimators.pipelines import OnlinePipeline
from gossamer.estimators.projection import MOST_POINTS, gram_matrix, inner_product, one_thread, project_metric, reduce
from gossamer.estimators.scaler import OnlineScaler
from gossamer.estimators.targets import fade_moments, pool, units
from gossamer.learner import Learner
from gossamer.rules import Rule

#: What a classifier of several labels knows of them.
OF_LABELS = ("_order", "_given", "classes_", "_links")


class Merged(NamedTuple):
    """The result of `merge`: ``model``; ``error``, the RKHS norm that the projection lost; ``norm``, that of the whole
    weighted sum. ``error / norm`` is the relative cost of the budget."""

    model: Any
    error: float
    norm: float


def merge(models: Sequence[Any], weights: Sequence[float] | None = None, budget: int | None = None) -> Merged:
    """The weighted sum of models, f = sum_j weights_j f_j, reduced to a budget by projection.

    While there are too many points, the point whose removal loses least is removed, and its function is projected on
    the rest. With the coefficients a and the inverse Gram matrix Q,

        i = argmin_i a_i^2 / Q_ii;  a_j <- a_j - a_i Q_ji / Q_ii;  the squared loss is a_i^2 / Q_ii

    (several outputs: summed over them; Csato and Opper 2002, section 3.3). The result is the best approximation with
    the points that stay, and its distance is reported. Points that are equal are joined first, which loses nothing.
    The time grows with the cube of the number of points.

    Models with second-order steps (`gossamer.rules.Newton`) know how certain they are. Without ``weights`` all that
    they have learned is joined: two models of the halves of a stream, without a budget and with the squared loss, are
    the model of the whole stream. With ``weights`` the scores are the weighted sum, the certainty is that of all.

    Parameters
    ----------
    models : estimators, pipelines or Learners of one kind with equal kernel, rule and budget; a kernel that settles its
        parameters on the first rows (``gamma="scale"``) differs between shards: give it a number. Classifiers may have
        seen different classes: the result knows them all. The statistics of an `OnlineScaler` are pooled.
    weights : a number for each model; None weights each by its number of rows: a mean.
    budget : the number of points to keep, at most the models' own budget, which is the default.

    Returns
    -------
    `Merged`, of (model, error, norm). The model goes on learning: it has seen the rows of all, and where there is a
    mean of hypotheses, a ``nu`` or a step size that adapts, it has the weighted mean of theirs.

    Examples
    --------
    >>> from gossamer import SILKRegressor
    >>> from gossamer.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(4000, 1))
    >>> shards = [SILKRegressor(Gaussian(1.0), C=10, budget=40).fit(X[i::2], np.sin(X[i::2, 0])) for i in (0, 1)]
    >>> model, error, norm = merge(shards)
    >>> len(model.support_vectors_), model.n_seen_, error < 0.01 * norm
    (40, 4000, True)
    >>> [round(float(value), 1) for value in model.predict([[1.5], [4.7]])]
    [1.0, -1.0]
    """
    models = [_checked(model) for model in models]
    models = [model for model in models if _seen(model)]
    if not models:
        raise _checks.wrong("merge", "models", "at least one model that has learned", models)
    if len({type(model) for model in models}) > 1:
        raise _checks.wrong("merge", "models", "of one kind", sorted({type(model).__name__ for model in models}))
    rows = np.array([_seen(model) for model in models], dtype=np.float64)
    shares = rows / rows.sum() if weights is None else _checks.vector("merge", "weights", weights, len(models))
    exact = weights is None
    if isinstance(models[0], OnlinePipeline):
        return _pipelines(models, None if exact else shares.tolist(), budget)
    if isinstance(models[0], Learner):
        columns = [np.eye(len(model.state().raw)) for model in models]
        return _learners(models, Learner(**models[0]._parameters()), columns, shares, budget, exact)
    return _estimators(models, shares, budget, exact)


def _checked(model: Any) -> Any:
    if isinstance(model, (Learner, Online, OnlinePipeline)):
        return model
    raise _checks.wrong("merge", "models", "estimators, pipelines or Learners of Gossamer", model)


def _seen(model: Any) -> int:
    """The rows that a model has learned."""
    last = model.steps[-1][1] if isinstance(model, OnlinePipeline) else model
    learner = last if isinstance(last, Learner) else last.__dict__.get("learner_")
    return 0 if learner is None else int(learner.steps)


# -------------------------------------------------------------------------------------------------- around Learners


def _pipelines(models: list[Any], weights: list[float] | None, budget: int | None) -> Merged:
    """Step by step: the models merged, the scalers pooled."""
    last, error, norm = merge([model.steps[-1][1] for model in models], weights, budget)
    steps = []
    for place, (name, step) in enumerate(models[0].steps[:-1]):
        parts = [model.steps[place][1] for model in models]
        if hasattr(step, "learn_transform"):
            if any(type(part) is not OnlineScaler for part in parts):
                raise _checks.wrong("merge", "models", "pipelines of transformers that pool (OnlineScaler)", step)
            step = pooled(parts)
        steps.append((name, step))
    return Merged(OnlinePipeline([*steps, (models[0].steps[-1][0], last)]), error, norm)


def pooled(scalers: Sequence[OnlineScaler]) -> OnlineScaler:
    """A scaler with the statistics of all rows (Chan, Golub, LeVeque 1979); with ``forget``, of their weights."""
    scaler: OnlineScaler = clone(scalers[0])
    fades, now = _scaler_fades(scalers)
    weights = np.array([part.weight_ for part in scalers]) * fades
    means = np.array([part.mean_ for part in scalers])
    mean = weights @ means / weights.sum()
    scaler.mean_ = mean
    squares = [fade * part.squares_ for fade, part in zip(fades, scalers, strict=True)]
    scaler.squares_ = np.sum(squares, axis=0) + weights @ (means - mean) ** 2
    scaler.weight_ = float(weights.sum())
    scaler.n_seen_ = sum(part.n_seen_ for part in scalers)
    scaler.n_features_in_ = scalers[0].n_features_in_
    if now is not None:
        scaler.time_ = now
    if hasattr(scalers[0], "feature_names_in_"):
        scaler.feature_names_in_ = scalers[0].feature_names_in_
    return scaler


def _scaler_fades(scalers: Sequence[OnlineScaler]) -> tuple[Floats, float | None]:
    """What is left of each scaler at the time of the latest row of any, and that time."""
    half_life = as_half_life("merge", scalers[0].half_life)
    if half_life is None:
        return np.ones(len(scalers)), None
    if any(as_half_life("merge", part.half_life) != half_life for part in scalers):
        raise _checks.wrong("merge", "models", "of equal half_life", [part.half_life for part in scalers])
    now = max(part.time_ for part in scalers)
    return np.array([elapse("merge", half_life, part.time_, np.array([now]))[0][0] for part in scalers]), now


def _estimators(models: list[Any], shares: Floats, budget: int | None, exact: bool) -> Merged:
    """The learners of estimators, their outputs put in the order of all classes."""
    model = clone(models[0])
    learned = {name: models[0].__dict__[name] for name in ("feature_names_in_",) if hasattr(models[0], name)}
    learners = [part.learner_ for part in models]
    if len(widths := {getattr(part.loss, "targets", 0) for part in learners}) > 1:
        raise _checks.wrong("merge", "models", "of equally many targets", sorted(widths))
    if several.is_several(models[0]):
        fresh, columns = model._start(learners[0].loss), [np.eye(max(widths))] * len(models)
        learned.update({name: models[0].__dict__[name] for name in OF_LABELS if name in models[0].__dict__})
    elif isinstance(model, OnlineClassifier):
        order = list(dict.fromkeys(label for part in models for label in part._order))
        given = all(part._given for part in models)
        many = len(order) > 2 or any(part.loss.target == "label" for part in learners)
        fresh = model._start(model._loss_many(len(order) if given else None) if many else None)
        share = fresh.loss.widening
        columns = [_columns(part._order, order, many, part.learner_.loss.target == "label", share) for part in models]
        learned.update(_order=order, classes_=np.unique(np.array(order)), _given=given)
        if isinstance(model.class_weight, str):
            learned["_class_counts"] = _counts(models, order)
    else:
        fresh, columns = model._start(), [np.eye(1)] * len(models)
    unit = 1.0
    if isinstance(model, OnlineRegressor) and all(part._moments() is not None for part in models):
        moments = [pool(own, shares) for own in _moments_now(models)]
        scale = np.array([units(own)[1] for own in moments])
        # from the units of each model to common units; a model whose targets were all equal adds nothing
        safe = np.where(scale > 0, scale, 1.0)
        ratios = [np.where(scale > 0, np.atleast_1d(part._units()[1]) / safe, 1.0) for part in models]
        columns = [np.diag(ratio) for ratio in ratios]
        learned["_target_moments"] = tuple(moments) if several.is_several(models[0]) else moments[0]
        unit = 1.0 if several.is_several(models[0]) else float(scale[0])
    elif any(part.__dict__.get("_target_moments") is not None for part in models):
        raise _checks.wrong("merge", "models", "of equal scale_target", [part._moments() for part in models])
    learner, error, norm = _learners(learners, fresh, columns, shares, budget, exact)
    if hasattr(models[0], "n_features_in_"):
        learned["n_features_in_"] = models[0].n_features_in_
    largest = max(models, key=_seen)
    if largest.__dict__.get("_order") == learned.get("_order") and "_certainty" in largest.__dict__:
        learned["_certainty"] = copy.deepcopy(largest._certainty)  # of the one that has seen most
    model.__dict__.update(learned, learner_=learner)
    return Merged(model, unit * error, unit * norm)


def _moments_now(models: list[Any]) -> list[list[Any]]:
    """The moments of each target, of every model, all at the time of the latest row of any."""
    half_life, times = models[0].learner_.half_life, [part.learner_.state().time for part in models]
    fades = [1.0] * len(models)
    if half_life is not None:
        now = np.array([max(times)])
        fades = [float(elapse("merge", half_life, time, now)[0][0]) for time in times]
    each = [part._moments() if several.is_several(part) else (part._moments(),) for part in models]
    return [[fade_moments(own[j], fade) for own, fade in zip(each, fades, strict=True)] for j in range(len(each[0]))]


def _counts(models: list[Any], order: list[Any]) -> Floats:
    """The rows of each class that models have seen together."""
    total = np.zeros(len(order))
    for part in models:
        total[[order.index(label) for label in part._order]] += part._class_counts
    return total


def _columns(own: list[Any], order: list[Any], many: bool, has_many: bool, share: float) -> Floats:
    """The matrix that maps coefficients over a model's own classes to coefficients over all classes."""
    if not many:  # a single score: the first of all labels is its -1
        return np.array([[1.0 if own[0] == order[0] else -1.0]])
    out = np.zeros((len(order), len(own) if has_many else 1))
    for place, label in enumerate(own):
        if has_many:
            out[order.index(label), place] = 1.0
        else:  # g_1 = -g_0 = share * f
            out[order.index(label), 0] = share if place else -share
    return out


# --------------------------------------------------------------------------------------------------------- Learners


def _learners(
    parts: list[Learner], fresh: Learner, columns: list[Floats], shares: Floats, budget: int | None, exact: bool
) -> Merged:
    """Put the weighted sum of learners into a fresh one, or with ``exact`` all that they know, if their rule can tell.
    ``columns``: from a learner's outputs to those of the sum."""
    for name in ("kernel", "rule", "budget", "average", "half_life"):
        values = [getattr(part, name) for part in parts]
        if any(value != values[0] for value in values):
            raise _checks.wrong("merge", "models", f"of equal {name}", values)
    if any(type(part) is not Learner for part in parts):
        raise _checks.wrong("merge", "models", "without a map of the features that is their own (rescale=False)", parts)
    if parts[0].budget.space:
        raise _checks.wrong("merge", "models", "sums over support points", parts[0].budget)
    states: list[Any] = _states_now(parts)
    limit = _limit(parts[0], budget)
    steps = sum(int(state.steps) for state in states)

    def together(rows: Any) -> Floats:
        """Coefficients of each model, in its own outputs, side by side in those of the sum."""
        made = zip(rows, columns, shares, strict=True)
        return np.hstack([share * (column @ np.atleast_2d(row)) for row, column, share in made])

    points, place, first = _unique([state.points for state in states])
    kinds = [together(state.coefs for state in states)]
    if parts[0].rule.needs_trace:
        kinds.append(together(s.trace_coefs for s in states))
    if parts[0].average:  # the mean over its rounds of each, as if all had made all rounds
        kinds.append(together(s.sums * (steps / max(s.steps, 1)) for s in states))
    joined = [_joined(coefs, place, len(first)) for coefs in kinds]
    rule = parts[0].rule.merge_states([s.rule for s in states], 0)
    pooled = _pool(parts, states, columns, points, place)
    if pooled is not None and exact:
        joined[0] = pooled[0]
    labels = getattr(fresh.loss, "label_kernel", None)
    metric = np.eye(len(joined[0])) if labels is None else np.array(labels)
    kept, reduced, error, norm = reduce(parts[0].kernel, points, joined, metric, limit)
    if pooled is not None:
        over = project_metric(gram_matrix(parts[0].kernel, points), pooled[1], kept)
        rule = parts[0].rule.pack({**parts[0].rule.unpack(rule, 0), "metric": over, "factor": 1.0})

    def each(values: Any) -> Array:
        """One entry per remaining point."""
        return np.asarray(np.concatenate(list(values))[first][kept])

    # an offset turns and scales with the only output, a level scales with it
    turns = [float(column[0, 0]) if column.shape == (1, 1) else 1.0 for column in columns]
    offset_shares, level_shares = shares * turns, shares * np.abs(turns)

    def mean(name: str, by: Floats = shares) -> float:
        return float(sum(share * getattr(s, name) for share, s in zip(by, states, strict=True)))

    m, outputs = len(kept), len(reduced[0])
    trace = reduced[1] if parts[0].rule.needs_trace else np.zeros((0, m))
    kept_points = points[kept] if isinstance(points, TABLES) else [points[i] for i in kept]
    kernel, coefs = parts[0].kernel, reduced[0]
    births = _different(each(s.births + (steps - s.steps) for s in states))  # counted from the end
    fresh.restore(State(
        budget=parts[0].budget.merge_states([s.budget for s in states], m),
        rule=rule, kernel=kernel, points=kept_points, gram=None,
        raw=coefs, scale=1.0, norm2=max(0.0, inner_product(kernel, kept_points, coefs, metric @ coefs)),
        trace=trace, trace_scale=1.0, mix=0.0,
        inner=inner_product(kernel, kept_points, coefs, trace) if len(trace) else 0.0,
        rate=mean("rate"), offset=mean("offset", offset_shares), level=mean("level", level_shares),
        kappas=each(s.kappas for s in states),
        births=births, ids=-births,
        summed=reduced[-1] if parts[0].average else np.zeros((outputs, m)), entered=np.zeros(m),
        rounds_scale=0.0, offset_sum=steps * sum(
            share * s.offset_sum / max(s.steps, 1) for share, s in zip(offset_shares, states, strict=True)
        ),
        dropped=together(s.dropped * (steps / max(s.steps, 1)) for s in states),
        dropped_points=stack([s.dropped_points for s in states]), refresh_in=REFRESH,
        steps=steps, updates=sum(s.updates for s in states), mistakes=sum(s.mistakes for s in states),
        discarded=sum(s.discarded for s in states) + error,
        known=outputs if fresh.loss.many else 0, time=states[0].time,
    ))  # fmt: skip
    return Merged(fresh, error, norm)


def _states_now(parts: list[Learner]) -> list[Any]:
    """The states of learners, all at the time of the latest row of any."""
    states: list[Any] = [part.state() for part in parts]
    half_life = parts[0].half_life
    if half_life is None:
        return states
    now = max(state.time for state in states)
    found = zip(parts, states, strict=True)
    return [s.faded(float(elapse("merge", half_life, s.time, np.array([now]))[0][0]), p.rule, now) for p, s in found]


def _pool(
    parts: list[Learner], states: list[Any], columns: list[Floats], points: Any, place: Array
) -> tuple[Floats, Floats] | None:
    """The coefficients and the metric of all that learners know, over their points together; None without a metric."""
    rule = parts[0].rule
    if type(rule).pool is Rule.pool:
        return None
    if len(points) > MOST_POINTS:
        raise _checks.wrong("merge", "models", f"of at most {MOST_POINTS} points together", len(points))
    places = np.split(place, np.cumsum([len(state.points) for state in states])[:-1])
    made = zip(states, columns, places, strict=True)
    coefs = [_joined(column @ np.atleast_2d(state.coefs), own, len(points)) for state, column, own in made]
    with one_thread():
        return rule.pool(gram_matrix(parts[0].kernel, points), coefs, [state.rule for state in states], places)


def _limit(learner: Learner, budget: int | None) -> int | None:
    """The number of points to keep."""
    own = learner.budget.limit
    if budget is None:
        return own
    size = _checks.whole("merge", "budget", budget, 1)
    if own is not None and size > own:
        raise _checks.wrong("merge", "budget", f"an int up to that of the models, {own}", budget)
    return size


def _different(births: Array) -> Array:
    """Rounds of the past, the same or a little earlier, so that no two are equal and the newest stays the newest."""
    newest = np.argsort(-births, kind="stable")
    place = np.arange(len(births))
    out = np.empty_like(births)
    out[newest] = np.minimum.accumulate(births[newest] + place) - place
    return out


def _unique(points: list[Any]) -> tuple[Any, Array, Array]:
    """The distinct points; the index of each point among them; and the first occurrence of each."""
    together = stack(points)
    if not isinstance(together, TABLES):
        every = np.arange(len(together))
        return together, every, every
    if isinstance(together, SparseRows):
        keys = [tuple(array.tobytes() for array in row.arrays[1:]) for row in together]
        codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        _, first, place = np.unique([codes[key] for key in keys], return_index=True, return_inverse=True)
    else:
        _, first, place = np.unique(together, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they came
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return together[first[order]], rank[place.reshape(-1)], first[order]


def _joined(coefs: Floats, place: Array, count: int) -> Floats:
    """Sum the coefficients of equal points."""
    out = np.zeros((len(coefs), count))
    np.add.at(out.T, place, coefs.T)
    return out
