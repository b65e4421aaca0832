"""Models by name and parameters: what a request may ask for, and the default of each task, in one place."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
from sklearn.utils import get_tags

from gossamer import _checks, estimators
from gossamer.bank import ModelBank
from gossamer.budgets import Unlimited
from gossamer.estimators import OnlinePipeline, OnlineScaler, pipeline
from gossamer.estimators.base import Online
from gossamer.estimators.pipelines import last_step
from gossamer.evaluate.adapters import task_of
from gossamer.rows import Column, RowEncoder
from gossamer.rows.plan import parse_kind
from gossamer.serve.limits import LARGEST_BUDGET, LONGEST_TEXT, MOST_CLASSES, MOST_FEATURES
from gossamer.serve.mixed import Label
from gossamer.serve.rows import check_columns, short

#: The model of a task where a request names none.
DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "classification": ("AutoClassifier", {"budget": 128}),
    "regression": ("AutoRegressor", {"budget": 128}),
    "novelty": ("SILKDetector", {"budget": 128, "nu": 0.05}),
}
#: The same for a model per key, of which there may be many: one learner instead of a mixture of them.
DEFAULTS_PER_KEY: dict[str, tuple[str, dict[str, Any]]] = {
    **DEFAULTS,
    "classification": ("NewtonClassifier", {"budget": 128}),
    "regression": ("NewtonRegressor", {"budget": 128}),
}
#: Parameters of passes over stored data, or matrices, which a stream does not have.
HIDDEN = ("self", "n_passes", "shuffle", "cost", "weights", "products", "differences")
#: Parameters of the encoder that a recipe may give: ``kinds`` and ``scale`` stand beside them.
OF_ENCODER = ("missing", "places", "hashed", "text_width", "memory", "timezone", "clip", "forget")

Setting = bool | int | float | str | None


class Recipe(msgspec.Struct, forbid_unknown_fields=True):
    """What a model is made of. ``task`` None: the first labels decide it; ``columns`` None: the first row does.

    ``learner`` is "auto" or the name of an estimator, ``params`` its parameters, parts as texts
    ("gaussian:gamma=0.5"). ``key`` is the column of a model per key, ``target`` that of the label. ``kinds`` says
    what some columns are ("category", "timestamp", "text:64"), ``encoder`` has parameters of `gossamer.RowEncoder`:
    with either, and where the first rows have texts or gaps, an encoder reads the rows.
    """

    task: str | None = None
    learner: str = "auto"
    params: dict[str, Setting] = {}
    scale: bool = True
    columns: list[str] | None = None
    target: str | None = None
    key: str | None = None
    classes: list[Label] | None = None
    kinds: dict[str, str] | None = None
    encoder: dict[str, Setting] | None = None

    @property
    def encoded(self) -> bool | None:
        """Whether an encoder reads the rows; None: if the first rows have more than numbers."""
        return True if self.kinds is not None or self.encoder is not None else None


def learners() -> dict[str, type[Online]]:
    """The estimators that may be named.

    >>> "SILKClassifier" in learners(), "OnlineScaler" in learners()
    (True, False)
    """
    found = {name: getattr(estimators, name) for name in estimators.__all__}
    return {name: part for name, part in found.items() if inspect.isclass(part) and issubclass(part, Online)}


def check_recipe(recipe: Recipe) -> Recipe:
    """Validate a recipe as far as it can be without rows; returns it with the task that its learner implies."""
    if recipe.task is not None:
        _checks.one_of("model", "task", recipe.task, list(DEFAULTS))
    if recipe.learner != "auto":
        known = learners()
        _checks.one_of("model", "learner", recipe.learner, ["auto", *sorted(known)])
        task = known[recipe.learner].task
        if recipe.task not in (None, task):
            raise _checks.wrong("model", "learner", f"one for {recipe.task}", recipe.learner)
        recipe.task = task
    if recipe.columns is not None:
        check_columns(recipe.columns)
    for name in (recipe.target, recipe.key):
        if name is not None and not 0 < len(name) <= LONGEST_TEXT:
            raise _checks.wrong("model", "target", f"a name of at most {LONGEST_TEXT} characters", name[:80])
    if recipe.target is not None and recipe.target == recipe.key:
        raise _checks.wrong("model", "key", "another column than the target", recipe.key)
    if recipe.classes is not None:
        kinds = {type(label) for label in recipe.classes}
        if not 2 <= len(set(recipe.classes)) == len(recipe.classes) <= MOST_CLASSES or len(kinds) > 1:
            raise _checks.wrong("model", "classes", f"2 to {MOST_CLASSES} different labels of one kind", recipe.classes)
        if kinds & {float} or not all(map(short, recipe.classes)):
            raise _checks.wrong("model", "classes", "texts, whole numbers or booleans", recipe.classes)
    if recipe.key is not None and recipe.task == "classification" and recipe.classes is None:
        raise _checks.wrong("model", "classes", "given for a classifier per key", None)
    if recipe.encoded:
        _check_kinds(recipe)
    if recipe.task is not None and recipe.columns is not None:
        make_model(recipe, recipe.task, len(recipe.columns))
    return recipe


def _check_kinds(recipe: Recipe) -> None:
    make_encoder(recipe)
    kinds = recipe.kinds or {}
    if len(kinds) > MOST_FEATURES or not all(0 < len(name) <= LONGEST_TEXT for name in kinds):
        raise _checks.wrong("model", "kinds", f"at most {MOST_FEATURES}, of columns with short names", len(kinds))
    strange = [name for name in kinds if recipe.columns is not None and name not in recipe.columns]
    if strange or not {recipe.target, recipe.key}.isdisjoint(kinds):
        raise _checks.wrong("model", "kinds", "those of columns, not of the target or the key", (strange or kinds))
    features = sum(len(parse_kind(name, kind, Column(name, "number")).features) for name, kind in kinds.items())
    if features > MOST_FEATURES:
        raise _checks.wrong("model", "kinds", f"of at most {MOST_FEATURES} features together", features)


def make_encoder(recipe: Recipe) -> RowEncoder:
    """The encoder of a recipe, its parameters checked; the first rows decide the rest."""
    given: dict[str, Any] = recipe.encoder or {}
    for name, value in given.items():
        if name not in OF_ENCODER:
            raise _checks.wrong("model", "encoder", f"some of {', '.join(OF_ENCODER)}", name[:80])
        if name in ("places", "hashed", "text_width"):
            _checks.whole("model", name, value, 1, MOST_FEATURES)
    made = RowEncoder(recipe.kinds, scale=recipe.scale, **given)
    made._check_parameters()
    return made


def check_encoder(encoder: RowEncoder) -> RowEncoder:
    """Validate the width of an encoder that knows its columns."""
    if encoder.n_features_out_ > MOST_FEATURES:
        raise _checks.wrong("model", "rows", f"such that they have at most {MOST_FEATURES} features",
                            encoder.n_features_out_)  # fmt: skip
    return encoder


def make_model(recipe: Recipe, task: str, width: int, encoder: RowEncoder | None = None) -> Any:
    """The estimator, pipeline or bank of a recipe, all its parameters checked. An encoder before it scales the rows."""
    scale = recipe.scale and encoder is None
    width = width if encoder is None else encoder.effective_width_
    defaults = DEFAULTS if recipe.key is None else DEFAULTS_PER_KEY
    name, params = defaults[task] if recipe.learner == "auto" else (recipe.learner, {})
    kind = learners()[name]
    taken = {key: value for key, value in inspect.signature(kind.__init__).parameters.items() if key not in HIDDEN}
    for key, value in recipe.params.items():
        if key not in taken:
            raise _checks.wrong("model", key[:80], f"left out for {name}, which takes {', '.join(taken)}", value)
    params = {**params, **recipe.params}
    if "kernel" in taken and taken["kernel"].default == "gaussian":
        # scaled rows lie at a squared distance of about 2 * width; "scale" would be decided by the first rows
        params.setdefault("kernel", f"gaussian:gamma={1.0 / width!r}")
    if "budget" in taken and taken["budget"].default is None:
        params.setdefault("budget", 100_000 if name.startswith("Additive") else 256)
    scales = "scale" in taken  # inside
    if scales:
        params.setdefault("scale", scale if name.startswith("Auto") else recipe.scale)
    if name.startswith("Auto") and encoder is not None and encoder.scale:
        params.setdefault("kernel", "mixed")  # as gossamer run has it
    made = kind(**params)
    budget = made._start().budget  # checks all parameters
    if budget is None or isinstance(budget, Unlimited):
        raise _checks.wrong(
            "model", "budget", "a number of points, for a stream has no end", recipe.params.get("budget")
        )
    size = getattr(budget, "size", None)
    if not name.startswith("Additive") and isinstance(size, int) and size > LARGEST_BUDGET:
        raise _checks.wrong("model", "budget", f"at most {LARGEST_BUDGET} points", size)
    model = pipeline(OnlineScaler(), made) if scale and not scales else made
    return model if recipe.key is None else ModelBank(model, threads=1, classes=recipe.classes)


def join(encoder: RowEncoder | None, model: Any) -> Any:
    """An encoder and a model as one pipeline, as files have it."""
    if encoder is None:
        return model
    steps = model.steps if isinstance(model, OnlinePipeline) else [(type(model).__name__.lower(), model)]
    return OnlinePipeline([(type(encoder).__name__.lower(), encoder), *steps])


def split(model: Any) -> tuple[RowEncoder | None, Any]:
    """The encoder that a pipeline begins with, and the rest of it."""
    if not isinstance(model, OnlinePipeline) or not isinstance(model.steps[0][1], RowEncoder) or len(model.steps) < 2:
        return None, model
    name, last = model.steps[1]
    alone = len(model.steps) == 2 and name == type(last).__name__.lower()
    return model.steps[0][1], last if alone else OnlinePipeline(model.steps[1:])


def check_loaded(model: Any) -> Any:
    """Validate what a .gsm file held: an estimator or a pipeline of them that can be served."""
    if not isinstance(model, (Online, OnlinePipeline)) or not isinstance(last_step(model), Online):
        raise _checks.wrong("model", "file", "a saved estimator or pipeline", type(model).__name__)
    task_of(model)
    encoder, _ = split(model)
    if encoder is not None and encoder.__sklearn_is_fitted__():
        check_encoder(encoder)
    return model


def takes_many_classes(model: Any) -> bool:
    """Whether a classifier learns more than two classes."""
    found = model.template if isinstance(model, ModelBank) else model
    return bool(get_tags(last_step(found)).classifier_tags.multi_class)
