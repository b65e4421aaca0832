"""Thousands to millions of models by key, behind one `learn`: a model per sensor, customer, host or camera.

The file is long because the class is one public face: learning, scoring, models and file are its verbs, and what each
does is in the other modules of this folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from gossamer import _checks
from gossamer._locks import CallLock, exclusive, shared
from gossamer._typing import Array, Floats
from gossamer.bank import keyed
from gossamer.bank.compact import compact, head
from gossamer.bank.files import read_file
from gossamer.bank.keyed import Groups, RowError, Rows, UnknownKeyError
from gossamer.bank.manifest import MOST_FEATURES, Manifest, to_json
from gossamer.bank.objects import Estimators, description, shape_of, task_of
from gossamer.bank.shelf import Shelf
from gossamer.estimators import certain, inputs, labels as _labels, several as _several
from gossamer.estimators.divergence import watch
from gossamer.estimators.pipelines import has_clock, last_step
from gossamer.losses import Taxonomy
from gossamer.rows.pending import Pending

#: The fewest models that are in memory together while rows are learned.
FEWEST = 1024
#: The most threads of a call.
MOST_THREADS = 1024


class ModelBank:
    """A model for every key, cloned from one; each row is predicted and then learned by the model of its key.

    The rows of a key are learned in the order given (or by ``order``), different keys in parallel threads. Scores and
    models are, bit for bit, those of one estimator per key, however the rows are cut into calls.

    Parameters
    ----------
    model : any estimator of Gossamer, or an `OnlinePipeline`.
    memory : bytes that models may take in memory; the least recently used are kept in the file beyond that. None: all.
        While rows are learned, up to 1,024 models are in memory whatever their size.
    path : an SQLite file, where `commit` stores the models and the offset in one transaction; if it exists, the bank
        resumes from its last commit. None: no file, or with ``memory`` a temporary file.
    threads : the number of threads, up to 1,024; None: one per processor.
    errors : "raise": a bad row (NaN, a wrong type, a label that may not come) is a ValueError, and nothing has changed.
        "report": such rows are left out, their output is NaN, and ``errors`` lists them.
    classes : all labels, for classifiers; None: labels may appear at any time.
    targets : the columns of y, for regressors that take several (docs/sklearn.md).

    Attributes
    ----------
    errors : a list of RowError(key, position, message): the rows that the last call left out.
    offset : the offset given to the last `learn` or `commit`; None at the beginning.
    classes_ : all labels seen, sorted.
    backend : "native": compiled code learns; "estimators": one Python object per key; both with the same results.

    Examples
    --------
    >>> from gossamer import NORMADetector
    >>> from gossamer.kernels import Gaussian
    >>> bank = ModelBank(NORMADetector(Gaussian(0.5), nu=0.1))
    >>> rng = np.random.default_rng(0)
    >>> keys = rng.choice(["door", "lift", "pump"], size=3000)
    >>> X = rng.normal(size=(3000, 2)) + 5 * (keys == "lift")[:, None]
    >>> alarms = bank.learn(keys, X) < 0
    >>> len(bank), round(float(alarms[-1000:].mean()), 2)
    (3, 0.1)
    >>> bank.predict(["door", "lift"], [[5.0, 5.0], [5.0, 5.0]]).tolist()
    [-1, 1]
    """

    def __init__(
        self, model: Any, memory: int | None = None, path: str | os.PathLike[str] | None = None,
        threads: int | None = None, *, errors: str = "raise", classes: Any = None, targets: int = 1,
    ) -> None:  # fmt: skip
        if not hasattr(model, "predict_learn") or not hasattr(model, "get_params"):
            raise _checks.wrong(self, "model", "an estimator of Gossamer or an OnlinePipeline", model)
        self.template = clone(model)
        self.memory = None if memory is None else _checks.whole(self, "memory", memory, 1)
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        wanted = min(available, MOST_THREADS) if threads is None else threads
        self.threads = _checks.whole(self, "threads", wanted, 1, MOST_THREADS)
        self._reports = _checks.one_of(self, "errors", errors, ["raise", "report"]) == "report"
        self._task = task_of(model)
        self._given = self._given_classes(classes)
        self.targets = _checks.whole(self, "targets", targets, 1)
        if targets > 1 and not (self._task == "regression" and _several.takes(last_step(model))):
            raise _checks.wrong(self, "targets", "1 for a model that is no regressor of several targets", targets)
        self._labels: list[Any] = [] if self._given is None else list(self._given)
        self.errors: list[RowError] = []
        self.offset: Any = None
        #: The rows that wait for labels, with counts of what became of the others.
        self.pending = Pending()
        self.n_features_in_: int | None = None
        self._dtype: Any = None
        self._engine: Any = None
        self._lock = CallLock()  # of the shelf, for concurrent readers
        if memory is not None or path is not None:
            description(model)  # raise now for a model that cannot be stored
        self._lasting = path is not None
        self._shelf = Shelf(path, self.memory)
        try:
            self._open(None if path is None else os.fspath(path))
        except BaseException:
            self._shelf.close()
            raise

    # ------------------------------------------------------------------------------------------------------- learning

    @exclusive
    def learn(
        self, keys: Any, X: Any, y: Any = None, order: Any = None, offset: Any = None, *, sample_weight: Any = None,
        time: Any = None,
    ) -> Floats:  # fmt: skip
        """Predict and then learn each row with the model of its key; returns the predictions, row for row.

        These are the scores of ``predict_learn``. Once a classifier's bank has seen more than two labels there is a
        column for each of ``classes_``, -inf where the model of the row had not yet seen the class.

        ``order``: numbers, times or texts by which the rows of a key are sorted first (a stable sort).
        ``offset``: any plain data that says how far the stream is read when these rows are learned; `commit` stores it.
        ``sample_weight``: the weight of each row, as in an estimator; None: all 1.
        ``time``: when each row came, for a model with a ``half_life``; each key has a clock of its own.
        """
        return self._learn(keys, X, y, order, offset, sample_weight, time)

    def _learn(
        self, keys: Any, X: Any, y: Any, order: Any = None, offset: Any = None, sample_weight: Any = None,
        time: Any = None,
    ) -> Floats:  # fmt: skip
        with self._lock:
            encoded = None if offset is None else to_json(self, "offset", offset)
            names = self._names(X)
            rows = keyed.checked(self, keys, X, order, self.n_features_in_, self._dtype)
            labels = self._targets(rows, y)
            rows.weights = keyed.row_weights(self, rows, sample_weight)
            rows.time = keyed.row_times(self, rows, time)
            self._refuse(rows.bad, rows)
            groups, failed = keyed.gathered(rows), {}
            out = self._room(len(rows.keys), labels)
            if groups.keys:
                engine = self._engine or self._make_engine(int(rows.X.shape[1]), rows.X.dtype)
                failed = self._learn_groups(engine, groups, rows, labels, out)
                self._use(engine)
                if names is not None:
                    self.feature_names_in_ = names
                self._labels = labels
            if encoded is not None:
                self.offset = json.loads(encoded)
            self._report({**rows.bad, **failed}, rows)
            watch(self, np.delete(out, [*rows.bad, *failed], axis=0) if rows.bad or failed else out)
            return out

    def _learn_groups(self, engine: Any, groups: Groups, rows: Rows, labels: list[Any], out: Floats) -> dict[int, str]:
        """Learn the keys in batches that fit in memory; if a key fails and errors are raised, nothing has changed."""
        shelf, failed = self._shelf, {}
        self._connect(engine, labels)
        at_once = len(groups.keys)
        if self.memory is not None:
            at_once = max(FEWEST, self.memory // (8 * shelf.largest))
        several = at_once < len(groups.keys)
        if several:
            shelf.mark()
        try:
            for first in range(0, len(groups.keys), max(1, at_once)):
                part = groups.part(first, min(first + at_once, len(groups.keys)))
                before = shelf.get(part.keys)
                after, bad = engine.learn(before, part, rows, labels, out)
                self._refuse(bad, rows)
                failed.update(bad)
                kept = [i for i, state in enumerate(after) if state is not None]  # a new key may have bad rows only
                shelf.check([part.keys[i] for i in kept if before[i] is None])
                shelf.put([part.keys[i] for i in kept], [after[i] for i in kept], [before[i] for i in kept])
        except BaseException:
            if several:
                shelf.back()
            self._connect(self._engine, self._labels)
            raise
        return failed

    @exclusive
    def learn_labels(self, ids: Any, y: Any, *, time: Any = None) -> list[Any]:
        """Learn labels of rows that ``predict(..., ids=...)`` was shown, in the order in which they come.

        Returns the prediction that was made for each; None where the id is unknown, had its label already, or waited
        too long: ``bank.pending.counts`` has the numbers of these. `commit` stores the rows that wait, too.
        """

        def learn(rows: Array, labels: Array, keys: list[Any]) -> None:
            timed = time is not None and has_clock(self.template)
            self._learn(keys, rows, labels, time=np.full(len(rows), float(time)) if timed else None)

        return self.pending.join(ids, y, learn, time)

    def keep_pending(self, limit: int = 1_000_000, ttl: Any = None, spill: str | None = None) -> ModelBank:
        """How rows wait for their labels: the most of them, how long ("7 days"), a file of SQLite instead of memory."""
        self.pending = Pending(limit, ttl, spill)
        return self

    # -------------------------------------------------------------------------------------------------------- scoring

    def score(self, keys: Any, X: Any, *, unknown: str = "raise") -> Floats:
        """The decision function of each row's model; of a regressor, the prediction. ``unknown``: as in `predict`."""
        return self._score(keys, X, unknown)[0]

    def predict(self, keys: Any, X: Any, *, unknown: str = "raise", ids: Any = None, time: Any = None) -> Array:
        """The prediction of each row's model: a label, a number, or 1 and -1 of a detector.

        ``ids``: remember the rows until `learn_labels` brings their labels; a key without a model has no answer then.

        ``unknown``: a key without a model is an error, a KeyError and a ValueError ("raise"), or its rows have no
        answer ("default"), as rows that are left out with ``errors="report"``: NaN for numbers, None for labels, 0 for
        a detector.
        """
        if ids is not None:
            made = self._predict(keys, X, "default")
            rows = _checks.matrix(self, X, self.n_features_in_)
            self.pending.add(ids, rows, made.tolist(), time, np.asarray(keys).tolist())
            return made
        return self._predict(keys, X, unknown)

    def _predict(self, keys: Any, X: Any, unknown: str) -> Array:
        scores, winners = self._score(keys, X, unknown)
        if self._task == "regression":
            return scores
        if self._task == "novelty":
            return np.where(np.isnan(scores), 0, np.where(scores < 0, -1, 1))
        whole = bool((winners >= 0).all())
        labels = np.array(self._labels) if whole else np.array([*self._labels, None], dtype=object)
        return np.asarray(labels[winners])

    def predict_proba(self, keys: Any, X: Any, *, unknown: str = "raise") -> Floats:
        """The probability of each of ``classes_``: 0 for a class that the model of the row has not seen, NaN in rows
        without an answer (see `predict`)."""
        self._can("predict_proba", "a classifier")

        def room(count: int) -> tuple[Floats]:
            return (np.full((count, len(self._labels)), np.nan),)

        out: Floats = self._query("proba", keys, X, unknown, room)[0]
        return out

    def predict_interval(self, keys: Any, X: Any, coverage: Any = 0.9, *, unknown: str = "raise") -> Floats:
        """The low and the high end of each row, by its model (`gossamer.OnlineRegressor.predict_interval`); several
        coverages give (rows, coverages, 2). NaN in rows without an answer (see `predict`)."""
        self._can("predict_interval", "a regressor")
        missed, one = certain.shares(self, coverage)

        def room(count: int) -> tuple[list[float], Floats]:
            return [1.0 - share for share in missed], np.full((count, len(missed), 2), np.nan)

        out: Floats = self._query("intervals", keys, X, unknown, room)[1]
        return out[:, 0] if one else out

    def predict_set(self, keys: Any, X: Any, coverage: Any = 0.9, *, unknown: str = "raise") -> Array:
        """The classes that are not strange, True in a column for each of ``classes_``, by the model of each row
        (`gossamer.OnlineClassifier.predict_set`); none in rows without an answer, nor a class that the model has not
        seen. Several coverages add an axis."""
        self._can("predict_set", "a classifier")
        missed, one = certain.shares(self, coverage)

        def room(count: int) -> tuple[list[float], Array]:
            return [1.0 - share for share in missed], np.zeros((count, len(self._labels), len(missed)), dtype=np.bool_)

        out: Array = self._query("sets", keys, X, unknown, room)[1]
        return out[:, :, 0] if one else out

    def score_pvalue(self, keys: Any, X: Any, *, unknown: str = "raise") -> Floats:
        """The p-value of each row, by its model (`gossamer.OnlineDetector.score_pvalue`): small for a strange row, NaN
        in rows without an answer (see `predict`)."""
        self._can("score_pvalue", "a detector")
        out: Floats = self._query("pvalues", keys, X, unknown, lambda count: (np.full(count, np.nan),))[0]
        return out

    def _can(self, verb: str, rule: str) -> None:
        if not hasattr(self.template, verb):
            raise _checks.wrong(self, "model", f"{rule}, which has {verb}", self.template)

    def _score(self, keys: Any, X: Any, unknown: str) -> tuple[Floats, Any]:
        def room(count: int) -> tuple[Floats, Any]:
            return self._room(count, self._labels), np.full(count, -1, dtype=np.int64)

        scores, winners = self._query("score", keys, X, unknown, room)
        if not self._reports and unknown == "raise":  # else NaN stands for a row without an answer
            watch(self, scores)
        return scores, winners

    @exclusive
    def _query(self, method: str, keys: Any, X: Any, unknown: str, room: Callable[[int], Any]) -> Any:
        """The engine's results for the rows of all keys with a model, in arrays that ``room`` allocates."""
        _checks.one_of(self, "unknown", unknown, ["raise", "default"])
        with self._lock:
            self._names(X)
            rows = keyed.checked(self, keys, X, None, self.n_features_in_, self._dtype)
            self._refuse(rows.bad, rows)
            out, groups = room(len(rows.keys)), keyed.gathered(rows)
            for first in range(0, len(groups.keys), FEWEST):
                part = groups.part(first, min(first + FEWEST, len(groups.keys)))
                states = self._shelf.get(part.keys)
                if unknown == "raise":
                    for group in (i for i, state in enumerate(states) if state is None):
                        strange = part.of(group)
                        rows.refuse(strange, lambda i: _checks.wrong(self, "keys", "those of models", rows.key(i)))
                    self._refuse(rows.bad, rows, UnknownKeyError)
                there = [i for i, state in enumerate(states) if state is not None]
                if there:
                    states, part = [states[i] for i in there], part.only(there)
                    rows.bad.update(getattr(self._engine, method)(states, part, rows, self._labels, *out))
                self._refuse(rows.bad, rows)
            self._report(rows.bad, rows)
            return out

    # --------------------------------------------------------------------------------------------------------- models

    def __len__(self) -> int:
        return len(self._shelf)

    @shared
    def __contains__(self, key: Any) -> bool:
        with self._lock:
            return type(key) in keyed.KEYS and self._shelf.has(key)

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    @shared
    def keys(self) -> Iterator[Any]:
        """The keys of all models, as they are now."""
        with self._lock:
            return iter(list(self._shelf.keys()))

    @exclusive
    def model(self, key: Any) -> Any:
        """The model of a key as an estimator, independent of the bank."""
        with self._lock:
            model = self._engine.to_model(self._state(key), self._labels)
            if "feature_names_in_" in self.__dict__:
                first = getattr(model, "steps", [("", model)])[0][1]
                first.feature_names_in_ = self.feature_names_in_.copy()
            return model

    @exclusive
    def dump(self, key: Any) -> bytes:
        """The model of a key as bytes, for the `put` of a bank with the same model: checksummed, without pickle."""
        with self._lock:
            return bytes(self._engine.pack(self._state(key), self._labels))

    @exclusive
    def put(self, key: Any, data: bytes) -> None:
        """Set the model of a key to the bytes of a `dump`. Invalid bytes change nothing."""
        if type(key) not in keyed.KEYS:
            raise _checks.wrong(self, "key", "an int, a text or bytes", key)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise _checks.wrong(self, "data", "bytes", type(data).__name__)
        with self._lock:
            data = bytes(data)
            engine = self._engine or self._make_engine(*(head(data) if data[:3] == b"GSB" else shape_of(data)))
            state, labels = engine.unpack(data, self._labels)
            if self._given is not None and labels != self._labels:
                raise _checks.wrong(self, "data", f"a model of the classes {self._given}", labels)
            self._shelf.check([key])
            known = self._shelf.has(key)  # it may be damaged: then this is how to mend it
            self._use(engine)
            self._labels = labels
            self._connect(engine, labels)
            self._shelf.put([key], [state], [state if known else None])

    @exclusive
    def drop(self, key: Any) -> None:
        """Forget the model of a key."""
        with self._lock:
            if type(key) not in keyed.KEYS or not self._shelf.has(key):
                raise UnknownKeyError(str(_checks.wrong(self, "key", "that of a model", key)))
            self._shelf.drop(key)

    def _state(self, key: Any) -> Any:
        state = self._shelf.get([key])[0] if type(key) in keyed.KEYS else None
        if state is None:
            raise UnknownKeyError(str(_checks.wrong(self, "key", "that of a model", key)))
        return state

    @property
    def classes_(self) -> Array:
        """All labels seen by any model, or given, sorted."""
        return np.unique(np.array(self._labels))

    @property
    def backend(self) -> str:
        """Which code learns: decided with the first rows."""
        return "not chosen yet" if self._engine is None else str(self._engine.backend)

    # ----------------------------------------------------------------------------------------------------------- file

    @exclusive
    def commit(self, offset: Any = None) -> None:
        """Store all models, and the offset (if none is given, that of the last `learn`), in one transaction.

        A process that is killed goes on from here: open the same ``path`` again, and read the stream from ``offset``.
        """
        with self._lock:
            encoded = None if offset is None else to_json(self, "offset", offset)
            self._shelf.commit(self._metadata(self.offset if encoded is None else json.loads(encoded)))
            if encoded is not None:
                self.offset = json.loads(encoded)

    @exclusive
    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write all models as they are now, the offset and the rows that wait for labels to a new file; `restore` reads
        it. Rows that wait in a file of their own stay with this bank."""
        with self._lock:
            self._shelf.snapshot(path, self._metadata(self.offset, waiting=self.pending.spill is None))

    @classmethod
    def restore(
        cls, path: str | os.PathLike[str], *, memory: int | None = None, into: str | os.PathLike[str] | None = None,
        threads: int | None = None, errors: str = "raise",
    ) -> ModelBank:  # fmt: skip
        """A bank from a `snapshot`, which is only read; ``into`` is the ``path`` of the new bank."""
        with read_file(path) as (facts, models):
            manifest = Manifest.read(os.fspath(path), facts)
            own: dict[str, Any] = {"classes": manifest.classes, "targets": manifest.targets}
            bank = cls(manifest.model, memory, into, threads, errors=errors, **own)
            try:
                if len(bank):
                    raise _checks.wrong(cls.__name__, "into", "a file that does not exist yet", into)
                bank._resume(manifest)
                for key, data in models:
                    bank.put(key, data)
                bank._wait(facts)
                if into is not None:
                    bank.commit()
            except BaseException:
                bank.close()
                raise
        return bank

    @exclusive
    def close(self) -> None:
        """Close the file. Changes since the last commit are lost; the bank cannot be used any more.

        As a context manager, a bank with a ``path`` commits first if the block ends well. If it ends by an exception
        the file stays as the last commit left it, so that no half-finished work is kept.
        """
        self._shelf.close()

    def __enter__(self) -> ModelBank:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._lasting:
                self.commit()
        finally:
            self.close()

    def _metadata(self, offset: Any, waiting: bool = True) -> dict[str, Any]:
        names = list(self.feature_names_in_) if "feature_names_in_" in self.__dict__ else None
        labels, classes = self._labels, self._given
        rows = (self.n_features_in_, self._dtype, names)
        facts = Manifest(self.template, *rows, labels, classes, offset, self.targets).facts()
        return {**facts, "pending": self.pending.to_bytes()} if waiting and self.pending.event else facts

    def _open(self, path: Any) -> None:
        """Resume from the file, if it has models."""
        facts = self._shelf.facts()
        manifest = Manifest.read(path, facts) if facts else None
        if len(self._shelf) and (manifest is None or manifest.features is None):
            raise _checks.wrong(self, "path", "a file that a ModelBank has made (the facts are missing)", path)
        if manifest is None:
            return
        if description(manifest.model) != description(self.template):
            raise _checks.wrong(self, "model", f"that of the file, {manifest.model}", self.template)
        if manifest.classes != self._given:
            raise _checks.wrong(self, "classes", f"those of the file, {manifest.classes}", self._given)
        if manifest.targets != self.targets:
            raise _checks.wrong(self, "targets", f"those of the file, {manifest.targets}", self.targets)
        self._resume(manifest)
        self._wait(facts)

    def _wait(self, facts: dict[str, Any]) -> None:
        """Take the rows that wait for labels from the metadata of a file."""
        if (stored := facts.get("pending")) is not None:
            waiting = Pending.from_bytes(stored)
            if waiting.keyed is False:
                raise _checks.wrong(self, "pending", "rows that wait with the keys of their models", "none of them")
            self.pending = waiting

    def _resume(self, manifest: Manifest) -> None:
        if manifest.labels and self._task != "classification":
            raise _checks.wrong(self, "path", "a file without labels where the models are no classifiers", "labels")
        self.offset, self._labels = manifest.offset, manifest.labels
        if manifest.names is not None:
            self.feature_names_in_ = np.array(manifest.names, dtype=object)
        if manifest.features is not None:
            self._use(self._make_engine(manifest.features, manifest.dtype))
            self._connect(self._engine, self._labels)

    # --------------------------------------------------------------------------------------------------------- inside

    def _make_engine(self, features: int, dtype: Any) -> Any:
        """The compiled engine where it has all parts of the model, and else the general one."""
        if features > MOST_FEATURES:
            raise _checks.wrong(self, "X", f"rows of at most {MOST_FEATURES} features", features)
        one = self.targets == 1
        engine = compact(self.template, features, dtype, self._given, self.threads) if one else None
        return engine or Estimators(self.template, features, np.dtype(dtype), self._given, self.threads, self.targets)

    def _use(self, engine: Any) -> None:
        """Use this engine from now on: rows have its width and type."""
        self._engine, self.n_features_in_, self._dtype = engine, engine.features, engine.dtype

    def _connect(self, engine: Any, labels: list[Any]) -> None:
        """Give the shelf the functions that serialize states; a serialized state names its labels."""

        def unpack(data: bytes) -> Any:
            state, found = engine.unpack(data, labels)
            if found != labels:
                raise _checks.wrong(self, "data", f"a model of the labels {labels}", found)
            return state

        if engine is not None:
            self._shelf.pack = lambda state: engine.pack(state, labels)
            self._shelf.unpack = unpack
            self._shelf.size = engine.size

    def _given_classes(self, classes: Any) -> list[Any] | None:
        if classes is None:
            structure = getattr(last_step(self.template), "cost", None)
            classes = structure.labels if isinstance(structure, Taxonomy) else None
        if classes is None:
            return None
        if self._task != "classification":
            raise _checks.wrong(self, "classes", "None for a model without labels", classes)
        labels: list[Any] = _labels.unique(self, "classes", np.asarray(classes))[0].tolist()
        return labels

    def _names(self, X: Any) -> Array | None:
        return inputs.names(self, X, fitted=self.n_features_in_ is not None)

    def _targets(self, rows: Rows, y: Any) -> list[Any]:
        """Give the rows their targets; returns all labels."""
        if self._task == "classification":
            rows.y, labels = keyed.label_targets(self, rows, y, self._labels, self._given is not None)
            return labels
        if self._task == "regression":
            find = keyed.real_targets if self.targets == 1 else keyed.several_targets
            rows.y = find(self, rows, y)
        return []

    def _room(self, count: int, labels: list[Any]) -> Floats:
        """An array for the scores: a vector, or a column for each target, or label where there are more than two."""
        if self.targets > 1:
            return np.full((count, self.targets), np.nan)
        structured = self._given is not None and getattr(last_step(self.template), "cost", None) is not None
        many = len(labels) > 2 or structured
        return np.full((count, len(labels)) if many else count, np.nan)

    def _refuse(self, bad: dict[int, str], rows: Rows, kind: type[ValueError] = ValueError) -> None:
        """Raise for the first bad row, unless bad rows are to be reported."""
        if bad and not self._reports:
            position = min(bad)
            raise kind(f"{bad[position]} It is row {position}, of key {rows.key(position)!r}.")

    def _report(self, bad: dict[int, str], rows: Rows) -> None:
        self.errors = [RowError(rows.key(position), position, bad[position]) for position in sorted(bad)]

    def __repr__(self) -> str:
        return f"ModelBank({self.template}, {len(self)} models)"
