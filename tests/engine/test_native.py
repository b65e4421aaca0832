"""The compiled core: which instruction set runs, which parts are really native, and which are not."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from parts import KINDS, agree, classes, examples, fitted, is_native, label, python_backend, settings, stream, width

from gossamer import Learner, _core
from gossamer._engine.blocks import CROSSOVER
from gossamer.budgets import Forgetron, Smallest
from gossamer.kernels import Gaussian, Kernel
from gossamer.losses import Hinge, Squared
from gossamer.rules import Gradient, Implicit, Perceptron

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from parts import agree, backends, examples, fitted, settled, stream
import numpy as np
from gossamer import Learner, _core
from gossamer.losses import Hinge, Multiclass, Softmax, Squared
results = []
machines = [(kernel, backend) for kernel in map(settled, examples("kernel")) for backend in backends(kernel)]
for i, (kernel, backend) in enumerate(machines):
    for rule in examples("rule", one_each=True)[i % 2 :: 2]:
        for loss in [loss for loss in (Squared(), Hinge(), Multiclass(), Softmax()) if agree(loss, rule)]:
            for dtype in (np.float32, np.float64):
                X, y = stream(loss, 50, seed=1, dtype=dtype)
                X, learner = fitted(kernel, X), Learner(kernel, loss, rule, backend=backend)
                scores = np.nan_to_num(learner.learn(X, y), neginf=0.0)  # a class not yet seen
                results.append([repr(learner), scores.tolist(), learner.score(X).tolist()])
print(json.dumps([_core.isa(), results]))
"""


def run(isa, script=SCRIPT):
    """The script in a process with another instruction set, or the best one."""
    environment = {name: value for name, value in os.environ.items() if name != "GOSSAMER_ISA"}
    if isa is not None:
        environment["GOSSAMER_ISA"] = isa
    arguments = [sys.executable, "-c", script, os.path.dirname(os.path.dirname(__file__))]
    return subprocess.run(arguments, env=environment, capture_output=True, text=True)


def test_instruction_sets_agree():
    """Sets with fused multiply-add give the same bits; the baseline of x86-64 agrees to 1e-9 (1e-3 in float32)."""
    best = run(None)
    assert best.returncode == 0, best.stderr
    isa, results = json.loads(best.stdout)
    for name in ("baseline", "avx2", "avx512"):
        other = run(name)
        if other.returncode != 0:
            assert f"GOSSAMER_ISA names {name}, which this processor does not have" in other.stderr
            assert name not in ("baseline", isa)
            continue
        other_isa, others = json.loads(other.stdout)
        assert other_isa == name
        if "baseline" not in (name, isa):
            assert others == results
            continue
        for i, ((learner, *one), (_, *two)) in enumerate(zip(results, others, strict=True)):
            rtol = 1e-9 if i % 2 else 1e-3  # float32 and float64 in turn
            np.testing.assert_allclose(two, one, rtol=rtol, atol=rtol * np.abs(one).max(), err_msg=learner)


def test_unknown_instruction_set():
    """A name that is none raises a clear ValueError."""
    script = "from gossamer import _core\ntry: _core.isa()\nexcept ValueError as error: print(error)"
    result = run("sse9", script)
    assert result.stdout.strip() == (
        "The environment variable GOSSAMER_ISA must be one of baseline, avx2, avx512. Got 'sse9' instead."
    ), result.stderr


def test_isa_is_known():
    """isa() names the set in use."""
    assert _core.isa() in ("baseline", "avx2", "avx512", "neon")


@pytest.mark.parametrize("loss", examples("loss", one_each=True), ids=label)
@pytest.mark.parametrize("budget", examples("budget", one_each=True), ids=label)
def test_parts_with_a_twin_run_natively(loss, budget):
    """Parts that name a twin run in the core, with every kernel and rule; there is no silent fall-back."""
    rows, y = stream(loss, 5, seed=1)
    for kernel in examples("kernel"):
        X = fitted(kernel, rows)
        kernel = kernel.resolve(X)
        trees = kernel.coordinates(X.shape[1]) is not None and (budget.limit is None or budget.limit >= CROSSOVER)
        trees = trees and not budget.needs_gram
        for rule in examples("rule", one_each=True):
            if not agree(loss, rule, budget, kernel):
                continue
            learner = Learner(kernel, loss, rule, budget)
            learner.learn(X, y)
            twins = all(part.compiled() is not None for part in (loss, rule, budget))
            python = python_backend(budget) if twins else "numpy"
            native = "native trees" if trees and rule.keeps_norm else "native"
            assert learner.backend == (native if twins and is_native(kernel) else python)
            assert Learner(kernel, loss, rule, budget).backend == "not chosen yet"


def test_every_twin_exists():
    """The core knows every twin that a part names."""
    others = {"loss": ("hinge", (1.0,)), "rule": ("gradient", (0.5, 0.0, 0.0, 0.1)), "budget": ("unlimited", ())}
    for kind in ("loss", "rule", "budget"):
        for twin in filter(None, (part.compiled() for part in examples(kind))):
            _core.Loop(**{**others, kind: twin}, average="none", gram=False, epsilon=0.0)
        with pytest.raises(ValueError, match=f"the core has no {kind} 'unknown'"):
            _core.Loop(**{**others, kind: ("unknown", ())}, average="none", gram=False, epsilon=0.0)


@pytest.mark.parametrize("part", [c for kind in KINDS for c in classes(kind)], ids=label)
def test_subclasses_are_taken_at_their_word(part):
    """A user's subclass of a built-in part, without a twin of its own, never runs as the parent's compiled code."""
    example, user = part(**settings(part)[0]), type("Mine", (part,), {})(**settings(part)[0])
    if isinstance(user, Kernel):
        assert user.program(width(user)) is user.coordinates(width(user)) is user.terms() is None
    else:
        assert user.compiled() is None
    chosen = {"kernel": Gaussian(0.5), "loss": Squared(), "rule": Implicit(), "budget": Smallest(4)}
    kind = next(kind for kind, base in KINDS.items() if isinstance(user, base))
    chosen[kind] = user
    if kind == "rule":  # with the first loss it takes
        chosen["loss"] = next(loss for loss in (Squared(), Hinge()) if agree(loss, example))
    if not agree(chosen["loss"], chosen["rule"]):
        chosen["rule"] = Gradient()
    if isinstance(user, Forgetron):
        chosen["loss"], chosen["rule"] = Hinge(), Perceptron()
    X, y = stream(chosen["loss"], 30, seed=2)
    X, learner = fitted(chosen["kernel"], X), Learner(**chosen)
    scores = learner.learn(X, y)
    assert learner.backend == ("native loop, numpy kernel" if kind == "kernel" else "numpy")
    chosen[kind] = example
    np.testing.assert_allclose(scores, Learner(**chosen).learn(X, y), rtol=1e-8, atol=1e-9)


def test_an_overridden_method_is_called():
    """What a subclass overrides takes effect."""

    class Softer(Hinge):
        def slope(self, z, y):
            return 0.5 * super().slope(z, y)

    class Shifted(Gaussian):
        def __call__(self, A, B):
            return super().__call__(A, B) + 1

        def diag(self, A):
            return super().diag(A) + 1

    X, y = np.zeros((1, 2)), [1.0]
    soft, shifted = Learner(Gaussian(1.0), Softer(), Gradient(1.0)), Learner(Shifted(1.0), Hinge(), Gradient(1.0))
    soft.learn(X, y)
    shifted.learn(X, y)
    assert soft.coefs.tolist() == [0.5]
    assert shifted.score(X).tolist() == [2.0]
