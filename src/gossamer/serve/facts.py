"""What the rows of a model are, and the validation that follows from it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from gossamer import _checks
from gossamer.estimators.pipelines import last_step
from gossamer.evaluate.adapters import task_of
from gossamer.rows import RowEncoder
from gossamer.serve import mixed
from gossamer.serve.limits import LONGEST_TEXT, MOST_CLASSES
from gossamer.serve.mixed import Label, Mixed
from gossamer.serve.recipes import Recipe, check_encoder, make_encoder, make_model, split, takes_many_classes
from gossamer.serve.rows import AnyBlock, short


class Facts(NamedTuple):
    """What the rows of a model are, as decided by the entries so far. `follow` is the validation that needs them."""

    columns: tuple[str, ...] | None
    task: str | None
    kind: type | None  # of the labels of a classifier
    labels: frozenset[Label]
    many: bool  # whether more than two classes may come
    fixed: bool  # whether the classes were given
    encoded: bool | None = False  # whether an encoder reads the rows; None: the first rows decide
    encoder: RowEncoder | None = None  # one that knows the columns; another learns

    def follow(self, block: AnyBlock, recipe: Recipe) -> Facts:
        """The facts after a block is learned; a ValueError if it does not fit."""
        facts = self
        if facts.columns is None:
            facts = facts._replace(columns=tuple(recipe.columns or block.columns or ()))
        elif block.columns is not None and tuple(block.columns) != facts.columns:
            raise _checks.wrong("request", "rows", f"of the columns {list(facts.columns[:20])}", block.columns[:20])
        columns = facts.columns or ()
        if block.width != len(columns):
            raise _checks.wrong("request", "rows", f"of {len(columns)} columns", block.width)
        facts = facts.read(block, recipe, columns)
        if facts.task is None:
            facts = facts._replace(task=find_task(block.y))
            if recipe.key is not None and facts.task == "classification" and recipe.classes is None:
                raise _checks.wrong("model", "classes", "given for a classifier per key", None)
            # raises for a wrong parameter
            model = make_model(recipe, str(facts.task), len(columns), facts.encoder)
            facts = facts._replace(many=facts.task == "classification" and takes_many_classes(model))
        return facts.follow_labels(block.y)

    def read(self, block: AnyBlock, recipe: Recipe, columns: Sequence[str]) -> Facts:
        """Whether an encoder reads the rows, and what it has decided by the first of them."""
        mixed_block = isinstance(block, Mixed)
        if self.encoded is not None and self.encoded != mixed_block:
            rule = "as those before: an encoder reads them" if self.encoded else "numbers, as those before"
            raise _checks.wrong("request", "rows", rule, "numbers" if self.encoded else "texts or nulls")
        if not isinstance(block, Mixed):
            return self if self.encoded is False else self._replace(encoded=False)
        if self.encoder is None:
            encoder = check_encoder(mixed.settle(make_encoder(recipe), block, columns))
            return self._replace(encoded=True, encoder=encoder).read(block, recipe, columns)
        if self.encoder.missing == "error":
            self.encoder.transform(block.rows(columns))  # raises for gaps
        return self

    def follow_labels(self, y: Sequence[Label] | None) -> Facts:
        """The facts after these labels."""
        if self.task == "novelty":
            if y is not None:
                raise _checks.wrong("request", "y", "left out for a detector", y[:3])
            return self
        if y is None:
            raise _checks.wrong("request", "y", "given, one for each row", None)
        kinds = set(map(type, y))
        if self.task == "regression":
            if not kinds <= {int, float} or not all(abs(value) <= 1e100 for value in y):  # type: ignore[arg-type]
                raise _checks.wrong("request", "y", "numbers up to 1e100", next(iter(y)))
            return self
        kind = self.kind or next(iter(kinds))
        if kinds != {kind} or kind is float:
            names = {str: "texts", bool: "true or false", int: "whole numbers"}.get(kind, "texts or whole numbers")
            raise _checks.wrong("request", "y", f"labels that are all {names}", sorted(map(str, y))[:3])
        new = frozenset(y) - self.labels
        if not new:
            return self
        if not all(map(short, new)):
            raise _checks.wrong("request", "y", f"texts of at most {LONGEST_TEXT} characters, or below 2^53", "more")
        most = len(self.labels) if self.fixed else MOST_CLASSES if self.many else 2
        if len(self.labels) + len(new) > most:
            known = sorted(self.labels)[:20]
            rule = f"one of the classes {known}" if self.fixed or not self.many else f"at most {MOST_CLASSES} classes"
            raise _checks.wrong("request", "y", rule, sorted(new)[:5])
        return self._replace(kind=kind, labels=self.labels | new)


def find_task(y: Sequence[Label] | None) -> str:
    """The task that the first labels imply: fractions are regressed, other labels are classes, none is novelty.

    >>> find_task(["yes", "no"]), find_task([1, 2.5]), find_task([1, 2]), find_task(None)
    ('classification', 'regression', 'classification', 'novelty')
    """
    if y is None:
        return "novelty"
    return "regression" if any(type(label) is float for label in y) else "classification"


def first_facts(recipe: Recipe, model: Any) -> Facts:
    """The facts before the first entry."""
    columns = None if recipe.columns is None else tuple(recipe.columns)
    classes = [] if recipe.classes is None else recipe.classes
    task, many = recipe.task, False
    encoded, encoder = recipe.encoded, None
    if model is not None:
        encoder, _ = split(model)
        encoded = encoder is not None
        task = task_of(model)
        known = getattr(last_step(model), "classes_", None)
        classes = classes if known is None else known.tolist()
    if task == "classification":
        made = model if model is not None else make_model(recipe, task, len(columns or "x"))
        many = takes_many_classes(made)
    kind = type(classes[0]) if classes else None
    return Facts(columns, task, kind, frozenset(classes), many, recipe.classes is not None, encoded,
                 copy.deepcopy(encoder))  # fmt: skip
