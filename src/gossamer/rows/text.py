"""Texts as hashed words and character n-grams: scikit-learn's HashingVectorizer, which learns nothing."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from gossamer.rows.table import Coded

#: Characters of a text that are looked at.
LONGEST = 10_000


@functools.lru_cache(64)
def _hashers(width: int) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import HashingVectorizer

    words = width // 2
    word = HashingVectorizer(n_features=max(1, words), ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b")
    return word, HashingVectorizer(n_features=width - words, analyzer="char_wb", ngram_range=(3, 4))


def hash_texts(coded: Coded, width: int) -> csr_matrix:
    """A sparse row for each text, of length 1 at most: words and pairs of words first, n-grams of characters after.

    A missing text has zeros.

    >>> rows = hash_texts(Coded.of(["red car", "red cars", None]), 64).toarray()
    >>> rows.shape, round(float(rows[0] @ rows[1]), 2), float(rows[2].sum())
    ((3, 64), 0.5, 0.0)
    """
    used, codes = np.unique(coded.codes, return_inverse=True)
    texts = ["" if code < 0 else coded.values[code][:LONGEST] for code in used.tolist()]
    texts = [text.encode(errors="replace").decode() for text in texts]  # half of a surrogate pair cannot be hashed
    parts = [hasher.transform(texts) for hasher in _hashers(width)] if width > 1 else []
    if not parts:
        return csr_matrix(_hashers(2)[0].transform(texts)[codes])
    return csr_matrix(hstack(parts).tocsr()[codes] * math.sqrt(0.5))
