"""The engine against bare matrix products, careful NumPy and scikit-learn: ``make bench``."""

from __future__ import annotations

import argparse
import gc

import numpy as np
import psutil
from harness import DOCS, Row, add, best_of, centres_stream, machine, mnist, progress, report, table
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

from gossamer import Learner
from gossamer.budgets import Smallest
from gossamer.kernels import Custom, Gaussian, Kernel, Polynomial
from gossamer.losses import Hinge
from gossamer.rules import Implicit


def silk(kernel: Kernel, C: float, budget: int, reg: float = 5e-5) -> Learner:
    return Learner(kernel, Hinge(), Implicit(C=C, reg=reg), Smallest(budget))


def error(scores: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.where(scores >= 0, 1.0, -1.0) != y))


def power9(z: np.ndarray) -> np.ndarray:
    z = z + np.float32(1)
    square = z * z
    fourth = square * square
    return fourth * fourth * z


def numpy_silk(X: np.ndarray, y: np.ndarray, budget: int, C: float, reg: float) -> np.ndarray:
    """SILK row by row in NumPy, as carefully as it can be written: no allocation that can be helped."""
    points = np.zeros((budget, X.shape[1]), dtype=X.dtype)
    coefs, weights, scores = np.zeros(budget), np.full(budget, np.inf), np.empty(len(X))
    size, scale, keep = 0, 1.0, 1.0 / (1.0 + reg)
    kappas = power9(np.einsum("ij,ij->i", X, X)).astype(np.float64)
    for t in range(len(X)):
        x, label = X[t], y[t]
        value = scale * float(coefs[:size] @ power9(points[:size] @ x)) if size else 0.0
        scores[t] = value
        scale *= keep
        a = min(max((1.0 - label * keep * value) / kappas[t], 0.0), C * keep)
        if a == 0.0:
            continue
        weight = a / scale * kappas[t] ** 0.5
        slot = size if size < budget else int(weights.argmin())
        if size < budget:
            size += 1
        elif weight < weights[slot]:
            continue
        points[slot], coefs[slot], weights[slot] = x, label * a / scale, weight
    return scores


def images(rows: list[Row], quick: bool) -> str:
    """60,000 x 784 float32."""
    X, digits, source = mnist()
    if quick:
        X, digits = X[:6000], digits[:6000]
    n, y = len(X), np.where(digits < 5, 1.0, -1.0)
    polynomial = Polynomial(9)
    few, many = X[:128].copy(), X[: min(2048, n)].copy()
    products = np.zeros((n, len(many)), dtype=np.float32)  # made in advance: the bare products pay for no memory
    narrow_products = np.zeros((n, len(few)), dtype=np.float32)
    progress(f"{source}, budget 128, polynomial")
    bare, ours, user, loop = best_of(
        3 if not quick else 1,
        lambda: np.matmul(X, few.T, out=narrow_products),
        lambda: silk(polynomial, 100.0, 128).learn(X, y),
        lambda: silk(
            Custom(lambda A, B: power9(A @ B.T), lambda A: power9(np.einsum("ij,ij->i", A, A))), 100.0, 128
        ).learn(X, y),
        lambda: numpy_silk(X, y, 128, 100.0, 5e-5),
    )
    shape = f"{n:,} x 784 float32"
    add(rows, f"{shape}, Polynomial(9), SILK hinge, budget 128: whole pass / bare products", ours / bare, 2.2, 1.6)
    add(rows, "the same pass / a careful row-by-row NumPy loop", loop / ours, 5, 8, faster=True)
    add(
        rows,
        "the same pass with the kernel as a user's NumPy function, its speed / the built-in's",
        ours / user,
        0.5,
        0.7,
        faster=True,
        unit="",
    )
    progress(f"{source}, budget 2,048, Gaussian")
    bare, ours = best_of(
        3 if not quick else 1,
        lambda: np.matmul(X, many.T, out=products),
        lambda: silk(Gaussian(0.02), 10.0, len(many)).learn(X, y),
    )
    add(rows, f"{shape}, Gaussian, SILK hinge, budget 2,048: whole pass / bare products", ours / bare, 1.5, 1.25)
    return source


def kernel_matrix(X: np.ndarray, points: np.ndarray, gamma: float) -> None:
    """k(X, points) alone, in blocks of 256 rows that stay in the cache, in place."""
    squares = (points * points).sum(axis=1)
    for start in range(0, len(X), 256):
        rows = X[start : start + 256]
        block = rows @ points.T
        block *= -2
        block += (rows * rows).sum(axis=1)[:, None]
        block += squares
        np.maximum(block, 0, out=block)
        block *= X.dtype.type(-gamma)
        np.exp(block, out=block)


def narrow(rows: list[Row], quick: bool) -> None:
    """1,000,000 x 16."""
    n = 50_000 if quick else 1_000_000
    X64, y = centres_stream(n, 16, seed=1)
    for dtype in (np.float64, np.float32):
        X = X64.astype(dtype)
        points = X[:128].copy()
        progress(f"{n:,} x 16 {dtype.__name__}")
        alone, ours = best_of(
            3,
            lambda X=X, points=points: kernel_matrix(X, points, 0.05),
            lambda X=X: silk(Gaussian(0.05), 1.0, 128).learn(X, y),
        )
        work = f"{n:,} x 16 {dtype.__name__}, Gaussian, budget 128: whole pass / NumPy making k(X, S) alone"
        add(rows, work, ours / alone, 2.0, 1.2)

    progress("single rows")
    learner = silk(Gaussian(0.05), 1.0, 128)
    learner.learn(X64[:5000], y[:5000])
    singles, labels = list(X64[5000:25000]), y[5000:25000].tolist()

    def one_by_one() -> None:
        for x, label in zip(singles, labels, strict=True):
            learner.score_one(x)
            learner.learn_one(x, label)

    (seconds,) = best_of(3, one_by_one)
    add(rows, "`score_one` + `learn_one`, 16 features, budget 128", 1e6 * seconds / len(labels), 6, 3, unit=" us")
    opponent(rows, X64[:200_000], y[:200_000])


def random_features(gamma: float, step: float, X: np.ndarray, y: np.ndarray) -> float:
    """RBFSampler(128) + SGDClassifier, 500 rows at a time: predict, then partial_fit. Returns the error."""
    features = RBFSampler(gamma=gamma, n_components=128, random_state=0).fit(X[:1])
    model = SGDClassifier(loss="hinge", alpha=1e-5, learning_rate="constant", eta0=step, random_state=0)
    wrong = 0
    for start in range(0, len(X), 500):
        part, labels = features.transform(X[start : start + 500]), y[start : start + 500]
        if start:
            wrong += int((model.predict(part) != labels).sum())
        model.partial_fit(part, labels, classes=[-1.0, 1.0])
    return wrong / max(len(X) - 500, 1)


def opponent(rows: list[Row], X: np.ndarray, y: np.ndarray) -> None:
    """Both get the same grid of widths and three step sizes of their own, on a stream of another seed."""
    progress("tuning both sides on another seed")
    Xt, yt = centres_stream(20_000, 16, seed=77)
    widths = (0.01, 0.02, 0.05, 0.1, 0.2)
    _, gamma, step = min((random_features(g, s, Xt, yt), g, s) for g in widths for s in (0.1, 0.3, 1.0))
    _, ours_gamma, C = min(
        (error(silk(Gaussian(g), c, 128, reg=1e-4).learn(Xt, yt), yt), g, c) for g in widths for c in (0.1, 0.3, 1.0)
    )
    progress("RBFSampler + SGDClassifier")
    errors = {}

    def gossamer_pass() -> None:
        learner = silk(Gaussian(ours_gamma), C, 128, reg=1e-4)
        scores = [learner.learn(X[i : i + 500], y[i : i + 500]) for i in range(0, len(X), 500)]
        errors["ours"] = error(np.concatenate(scores)[500:], y[500:])

    def sampler_pass() -> None:
        errors["theirs"] = random_features(gamma, step, X, y)

    theirs, ours = best_of(2, sampler_pass, gossamer_pass)
    text = f"error {errors['ours']:.1%} against {errors['theirs']:.1%}"
    reached = theirs / ours >= 1 and errors["ours"] < errors["theirs"]
    work = "500 rows at a time / RBFSampler(128) + SGDClassifier, `predict` + `partial_fit`"
    measured = f"{theirs / ours:.1f}x faster, {text}"
    rows.append(Row(work, measured, "not slower, at lower error", "3x faster", theirs / ours, reached))


def memory(rows: list[Row], quick: bool) -> None:
    """Resident memory while the stream goes on."""
    total = 500_000 if quick else 10_000_000
    progress(f"memory over {total:,} rows")
    X, y = centres_stream(100_000, 16, seed=2)
    learner, process = silk(Gaussian(0.05), 1.0, 128), psutil.Process()
    warm = 0
    for i in range(total // len(X)):
        learner.learn(X, y)
        if i == 0:
            gc.collect()
            warm = process.memory_info().rss
    gc.collect()
    growth = (process.memory_info().rss - warm) / 2**20
    work = f"resident memory over {total:,} rows, budget 128"
    rows.append(Row(work, f"{growth:+.1f} MB after warm-up", "< 5 MB growth", "", growth, growth < 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows: list[Row] = []
    source = images(rows, quick)
    narrow(rows, quick)
    memory(rows, quick)
    note = f"One thread, best of 2 or 3 taken in turns within one run; images: {source}. {machine()}."
    if quick:
        print(table(rows), note, sep="\n\n")
    else:
        report("engine", rows, note, page=DOCS / "performance.md")


if __name__ == "__main__":
    main()
