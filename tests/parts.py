"""Every kernel, loss, rule and budget of the package: found, and made with several settings each.

Nothing is registered here. A part is found because it is a subclass; its settings come from the types of its fields
and, where a field takes one of a few values, from the error that lists them.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import itertools
import math
import pkgutil
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from gossamer import Learner, OnlineScaler, _registry
from gossamer.budgets import Budget, Fourier, Nystrom
from gossamer.kernels import Additive, Brownian, Exponential, Gaussian, Kernel, Linear, Matern, Spline
from gossamer.losses import Loss
from gossamer.rules import SVMD, Implicit, Newton, Perceptron, Rule

KINDS = {"kernel": Kernel, "loss": Loss, "rule": Rule, "budget": Budget}


def user_kernel(A, B):
    """A kernel as a user writes it, for rows as an array or as a list."""
    A, B = np.asarray(A), np.asarray(B)
    return (1 + A @ B.T / 4) ** 2


def user_diagonal(A):
    A = np.asarray(A)
    return (1 + (A * A).sum(axis=1) / 4) ** 2


def user_schedule(t):
    return (1 + t / 10) ** -0.75


def scaler_options() -> list[dict[str, bool]]:
    """Every combination of the switches of a scaler, which are the parameters that are True or False."""
    switches = {
        name: parameter.default
        for name, parameter in inspect.signature(OnlineScaler).parameters.items()
        if isinstance(parameter.default, bool)
    }
    return [
        dict(zip(switches, chosen, strict=True)) for chosen in itertools.product([True, False], repeat=len(switches))
    ]


#: Values to try for a field, by its part and name or by its name alone, and else by a word in its type.
BY_NAME = {
    "function": (user_kernel,),
    "diagonal": (None, user_diagonal),
    "schedule": ("constant", "inverse_sqrt", user_schedule),
    "reg": (0.05, 0.0),
    "forgetting": (1.0, 0.9),
    "settling": (0.0, 0.7),
    "margin": (0.7, 0.0, 1.0),
    "C": (0.7, math.inf),
    "cost": (None, ((0.0, 1.0, 2.0, 2.0), (1.0, 0.0, 2.0, 2.0), (2.0, 2.0, 0.0, 0.5), (2.0, 2.0, 0.5, 0.0))),
    "label_kernel": (None, ((2.0, 1.0, 0.0, 0.0), (1.0, 2.0, 0.0, 0.0), (0.0, 0.0, 1.5, 1.0), (0.0, 0.0, 1.0, 1.5))),
    "classes": (None, 4),
    "Matern.nu": (0.5, 1.5, 2.5, 4.5),
    "Spline.order": (1, 0, 3),
    "Additive.base": (Spline(), Exponential(0.7), Gaussian(0.4)),
    "Additive.weights": (None,),
    "Additive.products": ((), ((0, 0),)),
    "Additive.differences": ((),),
    "ALMA.C": (0.7, 1.5),
    "Project.size": (9, 4),  # with one or two points, which of them goes is decided by rounding
    "Project.tolerance": (1e-3, 0.2),
    "Auto.start": (9, 4),
    "Auto.memory": (30_000.0, 3_000.0),
    "Auto.size": (None, 20),
    "Fourier.size": (4, 6),
    "Nystrom.size": (9, 4),
    "Nystrom.tolerance": (0.001, 0.05),  # with a point or two in the dictionary, classes tie and rounding decides
    "Sublinear.rate": (0.9, 0.6),  # terms are dropped from round 12, 27, 68, 141 on
    "Sublinear.reg": (1.0, 0.6),
    "Sublinear.exponent": (0.35, 0.4),
}
BY_TYPE = {
    "Kernel": (Gaussian(0.4), Linear()),
    "bool": (False, True),
    "float": (0.7, 0.2),
    "int": (4, 1),
}


@functools.cache
def classes(kind: str) -> list[type]:
    """The public classes of a kind, in any file of its folder."""
    folder = importlib.import_module(KINDS[kind].__module__.rpartition(".")[0])
    for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        importlib.import_module(module.name)
    found, todo = [], [KINDS[kind]]
    while todo:
        for part in todo.pop().__subclasses__():
            todo.append(part)
            ours = part.__module__.startswith("gossamer.") and not part.__name__.startswith("_")
            if ours and getattr(part, "target", None) != "several":  # a matrix of targets has laws of its own
                found.append(part)
    return sorted(found, key=lambda part: part.__name__)


def by_name(kind: str) -> dict[str, Any]:
    """The package's parts of a kind by name, with aliases; without those whose name a test has given to its own."""
    found = _registry.named(KINDS[kind])
    return {name: parts[0] for name, parts in found.items() if len(parts) == 1 and _registry.is_ours(parts[0])}


def fields(part: type) -> list[str]:
    return [field.name for field in dataclasses.fields(part)]


@functools.cache
def settings(part: type) -> list[dict[str, Any]]:
    """Settings of a part in which every pair of values of two fields occurs, as far as they go together."""
    tried = {field.name: _candidates(part, field) for field in dataclasses.fields(part)}
    every = [dict(zip(tried, values, strict=True)) for values in itertools.product(*tried.values())]
    every = [setting for setting in every if _works(part, setting)]
    chosen, missing = [], set().union(*map(_pairs, every))
    while missing or (every and not chosen):
        chosen.append(max(every, key=lambda setting: len(_pairs(setting) & missing)))
        missing -= _pairs(chosen[-1])
    assert chosen, (
        f"No setting of {part.__name__} works: tried {tried}. "
        f"Give tests/parts.py a value for its fields in BY_NAME, or for their types in BY_TYPE."
    )
    return chosen


@functools.cache
def examples(kind: str, one_each: bool = False) -> list[Any]:
    """Instances of every part of a kind, all their settings or only the first."""
    return [part(**s) for part in classes(kind) for s in settings(part)[: 1 if one_each else None]]


def _pairs(setting: dict[str, Any]) -> set[Any]:
    items = [(name, repr(value)) for name, value in setting.items()]
    return {*items, *itertools.combinations(items, 2)}


def _works(part: type, setting: dict[str, Any]) -> bool:
    try:
        part(**setting)
    except ValueError:
        return False
    return True


def _candidates(part: type, field: dataclasses.Field[Any]) -> tuple[Any, ...]:
    words = re.findall(r"\w+", str(field.type))
    values = BY_NAME.get(f"{part.__name__}.{field.name}") or BY_NAME.get(field.name)
    if values is not None:
        return (None, *values) if "None" in words and None not in values else values
    typed = [value for word in words for value in BY_TYPE.get(word, ())]
    if "None" in words:
        typed.insert(0, None)
    return (*typed, *_choices(part, field.name, "?" if "str" in words else -123.5))


def _choices(part: type, name: str, wrong: Any) -> tuple[Any, ...]:
    """The values that the error for a wrong one lists."""
    needed = {
        f.name: (BY_NAME.get(f.name) or BY_TYPE.get(str(f.type)) or (None,))[0]
        for f in dataclasses.fields(part)
        if f.default is dataclasses.MISSING
    }
    try:
        part(**{**needed, name: wrong})
    except ValueError as error:
        listed = re.search(r"must be one of (.*)\. Got", str(error))
        return ast.literal_eval(f"({listed[1]},)") if listed and f"'{name}'" in str(error) else ()
    return ()


def label(part: Any) -> str:
    """The name of an example in a test's name, the same in every run."""
    return part.__name__ if isinstance(part, type) else re.sub(r"<function (\w+) at \w+>", r"\1", str(part))


def agree(
    loss: Loss, rule: Rule, budget: Budget | None = None, kernel: Kernel | None = None, backend: str = "auto"
) -> bool:
    """Whether these parts go together."""
    try:
        Learner(Gaussian(1.0), loss, rule, budget)  # no kernel for trees, which track any norm
        if budget is not None and kernel is not None:
            budget.check(kernel, loss, rule, backend)
    except ValueError:
        return False
    return True


def decay(learner: Learner) -> float:
    """The factor of f in the round just learned, if the rule had no step to make."""
    rule = learner.rule
    if isinstance(rule, Newton):
        return math.sqrt(rule.forgetting)
    rate = learner.state().rate if rule.needs_trace else float(rule.rates(learner.steps, 1)[0])
    shrink = rate * getattr(rule, "reg", 0.0)
    implicit = isinstance(rule, Implicit) or (isinstance(rule, SVMD) and rule.C is not None)
    return 1 / (1 + shrink) if implicit else 1 - shrink


def label_kernel(loss: Loss, outputs: int) -> np.ndarray:
    """K_Y of a loss, the identity (a single 1 for one score) if it has none."""
    given = getattr(loss, "label_kernel", None)
    return np.eye(outputs) if given is None else np.array(given)


def size_of(scores: Any) -> float:
    """The largest score, at least 1, to measure rounding by; -inf stands for a class not yet seen."""
    return max(1.0, float(np.abs(scores, where=np.isfinite(scores), out=np.zeros(np.shape(scores))).max()))


# ------------------------------------------------------------------------------------------------ kernels and rows


def of_one_number(kernel: Kernel) -> bool:
    """Whether the kernel takes rows of one feature only."""
    try:
        kernel.check_domain(kernel, np.zeros((1, 3)))
    except ValueError:
        return True
    return False


def width(kernel: Kernel, features: int = 3) -> int:
    """The number of features of the rows that a kernel gets: as asked, or 1."""
    return 1 if of_one_number(kernel) else features


def from_zero(kernel: Kernel) -> bool:
    """Whether the kernel takes no negative numbers."""
    try:
        kernel.check_domain(kernel, -np.ones((1, width(kernel))))
    except ValueError:
        return True
    return False


def fitted(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """X as rows that the kernel takes: their first feature only, or in [0, 1), where powers stay small."""
    X = X[:, :1] if of_one_number(kernel) else X
    return np.abs(X) / (1 + np.abs(X)) if from_zero(kernel) else X


def compiled_kernel(estimator: type) -> Kernel:
    """A kernel with which an estimator is all compiled code."""
    return Matern(1.5, 0.3) if estimator.__name__.startswith("Additive") else Gaussian(0.5)


def as_they_come(estimator: type) -> dict[str, Any]:
    """Arguments with which an estimator hands its rows to the kernel unchanged."""
    return {"rescale": False} if estimator.__name__.startswith("Additive") else {}


def settled(kernel: Kernel, features: int = 3) -> Kernel:
    """The kernel with everything that depends on the data settled."""
    return kernel.resolve(np.zeros((1, width(kernel, features))))


def rounding(budget: Budget) -> float:
    """How far NumPy and the core may be apart: a projection multiplies rounding by the condition of the Gram matrix."""
    return 1e-5 if budget.needs_gram else 1e-9


def rule_for(budget: Budget, rule: Rule, loss: Loss) -> Rule:
    """The rule, or the one that the budget insists on."""
    return rule if agree(loss, rule, budget) else Perceptron()


def compiled(*parts: Any) -> bool:
    """Whether the core has all of these losses, rules and budgets."""
    return all(part.compiled() is not None for part in parts)


def is_native(kernel: Kernel, features: int = 3) -> bool:
    """Whether the core has the kernel, for rows of so many features if it takes them."""
    return kernel.program(width(kernel, features)) is not None


def backends(kernel: Kernel, features: int = 3) -> list[str]:
    """The compiled machines that have this kernel, for a Learner to insist on."""
    trees = kernel.coordinates(width(kernel, features)) is not None
    return ["native"] * is_native(kernel, features) + ["trees"] * trees


def python_backend(budget: Budget) -> str:
    """The machine for compiled parts and a kernel in Python: the features of a space are made in NumPy."""
    return "numpy" if isinstance(budget, (Nystrom, Fourier)) else "native loop, numpy kernel"


#: Kernels that stand in trees, beyond the examples: weighted sums, a base and a weight for each coordinate of two
#: features, interactions, higher orders.
SPLITTING = [
    Spline(7), 0.5 * Exponential(0.3) + 2.0 * Matern(2.5), Spline(2) + 0.3 * Brownian() + Linear() + Matern(16.5, 3.0),
    Additive(Brownian(), weights=(0.5, 2.0)), Additive((Spline(2), Exponential(2.0)), weights=(1.0, 0.1)),
    Additive(Matern(1.5, 0.5), products=((0, 1), (1, 1)), differences=((0, 1),)),
    Additive((Linear(), Spline(0), Matern(3.5), Exponential(0.2) + Linear()), (1, 0.5, 2, 1.5), ((0, 1),), ((1, 0),)),
    Additive(Exponential()) + 0.5 * Additive(Spline(1), products=((0, 1),)),
]  # fmt: skip


# ------------------------------------------------------------------------------------------------ streams and facts


def stream(loss: Loss, rows: int, seed: int, features: int = 3, dtype: Any = np.float64) -> tuple[Any, Any]:
    """Random rows, and targets that the loss takes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)).astype(dtype)
    smooth = np.sin(2 * X[:, 0].astype(np.float64)) + 0.3 * rng.normal(size=rows)
    labels = np.digitize(smooth, [-0.6, 0.0, 0.6]) % (1 + np.arange(rows) // 4).clip(max=4)  # classes come one by one
    return X, {
        "binary": np.where(smooth > 0, 1.0, -1.0), "real": smooth, "none": None, "label": labels.astype(np.float64),
    }[loss.target]  # fmt: skip


def widened(scores: list[np.ndarray]) -> np.ndarray:
    """Scores of several batches as one array; a class that a batch did not know has -inf."""
    columns = max(np.shape(part)[-1] for part in scores) if np.ndim(scores[0]) == 2 else None
    if columns is None:
        return np.concatenate(scores)
    pads = [((0, 0), (0, columns - part.shape[1])) for part in scores]
    return np.concatenate([np.pad(part, pad, constant_values=-np.inf) for part, pad in zip(scores, pads, strict=True)])


def cut(values: Any, part: slice) -> Any:
    return None if values is None else values[part]


def learn_split(learner: Learner, X: Any, y: Any, weights: Any = None, cuts: Any = ()) -> np.ndarray:
    """The scores of a stream learned in batches that end at the cuts."""
    ends = [0, *sorted(cuts), len(X)]
    batches = [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]
    return widened([learner.learn(X[part], cut(y, part), cut(weights, part)) for part in batches])


def learn_rows(learner: Learner, X: Any, y: Any, weights: Any = None) -> np.ndarray:
    """The scores of a stream learned row by row, on the path for single rows."""
    scores = [
        learner.learn_one(X[t], None if y is None else float(y[t]), 1.0 if weights is None else float(weights[t]))
        for t in range(len(X))
    ]
    return widened([part[None] for part in scores]) if np.ndim(scores[0]) else np.array(scores)


def facts(learner: Learner) -> dict[str, Any]:
    """What a learner has learned, as users see it."""
    names = ["points", "coefs", "births", "offset", "steps", "updates", "mistakes", "norm"]
    return {name: getattr(learner, name) for name in names + ["level"] * learner.loss.adapts}


def entries_of(state: Any) -> dict[str, Any]:
    """A dict as it is, the entries of a `State` by name; none before the first row."""
    return state if isinstance(state, dict) else {} if state is None else dict(state.items())


def assert_same(one: Any, other: Any) -> None:
    """Dicts or states, bit for bit."""
    one, other = entries_of(one), entries_of(other)
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(np.asarray(one[name]), np.asarray(other[name])), name


def assert_close(one: dict[str, Any], other: dict[str, Any], rtol: float = 1e-9) -> None:
    """Up to rounding; counts exactly."""
    assert one.keys() == other.keys()
    for name in one:
        a, b = np.asarray(one[name]), np.asarray(other[name])
        assert a.shape == b.shape, name
        if a.dtype.kind == "i":
            assert np.array_equal(a, b), name
        else:  # the root of a squared norm near 0 has half the digits
            scale = max(1.0, float(np.abs(b).max(initial=0.0)))
            np.testing.assert_allclose(a, b, rtol, (rtol**0.5 if name == "norm" else rtol) * scale, err_msg=name)


def random_rows(rows, features, density, rng):
    """Sparse rows, in CSR; `scipy.sparse.random_array` is younger than the oldest SciPy."""
    return sp.csr_array(sp.random(rows, features, density, format="csr", random_state=rng))
