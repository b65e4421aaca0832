"""Validation of kernel matrices: shape, symmetry, positive semidefiniteness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gossamer._typing import Array


class KernelLike(Protocol):
    """The methods of a kernel that the checks call."""

    def __call__(self, A: Any, B: Any) -> Array: ...

    @property
    def diag(self) -> Callable[[Any], Array]: ...


def check_kernel(kernel: KernelLike, X: Sequence[Any] | Array) -> None:
    """Raise a ValueError that says how a kernel fails on X: wrong shape, not finite, not symmetric, its diagonal
    not k(x, x), or not positive semidefinite.

    >>> from gossamer.kernels import Custom, Gaussian
    >>> check_kernel(Gaussian(1.0), np.arange(6.0).reshape(3, 2))
    >>> check_kernel(Custom(lambda A, B: A @ B.T - 1.0), np.eye(2))
    Traceback (most recent call last):
        ...
    ValueError: The kernel Custom is not positive semidefinite: its smallest eigenvalue on 2 points is -1.
    """
    name = type(kernel).__name__
    values = checked_values(kernel, kernel(X, X), (len(X), len(X)))
    tolerance = 1e-3 if values.dtype == np.float32 else 1e-6  # high powers magnify the rounding of float32
    gram = np.asarray(values, dtype=np.float64)
    diag = np.asarray(checked_values(kernel, kernel.diag(X), (len(X),)), dtype=np.float64)
    slack = tolerance * max(float(np.abs(gram).max(initial=0.0)), float(np.finfo(np.float64).tiny))
    skew = np.abs(gram - gram.T)
    if skew.max(initial=0.0) > slack:
        i, j = divmod(int(skew.argmax()), len(X))
        raise ValueError(
            f"The kernel {name} is not symmetric: k({i}, {j}) = {gram[i, j]:g}, k({j}, {i}) = {gram[j, i]:g}."
        )
    off = np.abs(diag - gram.diagonal())
    if off.max(initial=0.0) > slack:
        i = int(off.argmax())
        raise ValueError(f"The kernel {name} has diag {diag[i]:g} but k(x, x) = {gram[i, i]:g} at point {i}.")
    smallest = float(np.linalg.eigvalsh(gram).min(initial=0.0))
    if smallest < -slack * len(X):
        raise ValueError(
            f"The kernel {name} is not positive semidefinite: "
            f"its smallest eigenvalue on {len(X)} points is {smallest:.3g}."
        )


def checked_values(kernel: object, values: Any, shape: tuple[int, ...]) -> Array:
    """Validate kernel values: an array of floats of this shape, all finite; the error names the kernel."""
    try:
        array = np.asarray(values)
        if array.dtype not in (np.float32, np.float64):
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"The kernel {type(kernel).__name__} must return an array of numbers.") from None
    if array.shape != shape:
        raise ValueError(f"The kernel {type(kernel).__name__} must return shape {shape}. Got {array.shape} instead.")
    if not np.isfinite(array).all():
        raise ValueError(f"The kernel {type(kernel).__name__} must return finite numbers. Got NaN or infinity.")
    return array
