"""Kernels: batched functions k(A, B) -> matrix, with k.diag(A) = (k(a, a) for a in A).

A kernel is a value. Kernels add, multiply and scale: ``0.5 * Gaussian(1.0) + Linear() * Polynomial(2)``.
"""

from gossamer import _registry
from gossamer.kernels.additive import Additive, Brownian, Exponential, Spline
from gossamer.kernels.base import Custom, Kernel, Product, Scaled, Sum
from gossamer.kernels.checks import check_kernel
from gossamer.kernels.vector import Gaussian, Laplace, Linear, Matern, Polynomial, as_kernel

__all__ = [
    "Additive",
    "Brownian",
    "Custom",
    "Exponential",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Polynomial",
    "Product",
    "Scaled",
    "Spline",
    "Sum",
    "as_kernel",
    "check_kernel",
]

#: The files of this folder may have more parts than those named above: each is exported, whoever adds it.
BASE = Kernel
__all__ += _registry.discover(__name__)
