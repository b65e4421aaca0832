"""The registry: every part has one name, and a text names every part that numbers and words can make."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from parts import KINDS, by_name, classes, examples, label

import gossamer
from gossamer import Learner, ParameterError, _registry
from gossamer.budgets import as_budget
from gossamer.kernels import Gaussian, Kernel, Matern, Scaled, as_kernel
from gossamer.losses import Hinge, Huber, Loss, as_loss
from gossamer.rules import as_rule

ROOT = Path(__file__).parents[2]
FROM_TEXT = {"kernel": as_kernel, "loss": as_loss, "rule": as_rule, "budget": as_budget}


def text_of(part):
    """A part as a text; None if a value of it cannot be told in one."""
    name, settings = _registry.name_of(type(part)), []
    for key in _registry.parameters(type(part)):
        value = getattr(part, key)
        if isinstance(value, (Kernel, Loss)):
            inner = text_of(value)
            if inner is None:
                return None
            settings.append(f"{key}=({inner})")
        elif callable(value):
            return None
        else:
            settings.append(f"{key}={value}")
    return f"{name}:{','.join(settings)}" if settings else name


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_different(kind):
    """Of all parts of a kind, aliases too."""
    ours = [part for part in classes(kind) if _registry.is_ours(part)]
    names = [name for part in ours for name in (_registry.name_of(part), *vars(part).get("aliases", ()))]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name == name.lower() for name in names)


@pytest.mark.parametrize(("kind", "part"), [(k, p) for k in KINDS for p in examples(k)], ids=label)
def test_a_text_makes_every_part(kind, part):
    """A part, told as a text with all its parameters, is made again, equal to the last digit."""
    text = text_of(part)
    if text is None:
        assert any(word in repr(part) for word in ("function", "user_"))
    else:
        assert FROM_TEXT[kind](text) == part


@pytest.mark.parametrize("kind", KINDS)
def test_errors_list_what_there_is(kind):
    """An unknown name: all names. An unknown parameter, or a missing one: all parameters with their defaults."""
    with pytest.raises(ParameterError) as caught:
        FROM_TEXT[kind]("nobody")
    assert caught.value.parameter == kind
    for name, part in by_name(kind).items():
        assert repr(name) in caught.value.rule
        with pytest.raises(ParameterError) as unknown:
            FROM_TEXT[kind](f"{name}:colour=3")
        assert (unknown.value.owner, unknown.value.parameter) == (part.__name__, "colour")
        for key, parameter in _registry.parameters(part).items():
            needed = parameter.default is parameter.empty
            assert (key if needed else f"{key}={parameter.default!r}") in unknown.value.rule
    with pytest.raises(ParameterError, match="must be"):
        FROM_TEXT[kind](3.5)


def test_short_forms():
    """The first parameter without its name, words in any case, settings between colons, parts in parts."""
    assert as_budget("project:64") == as_budget("project:size=64") == as_budget("Project: size = 64")
    assert as_kernel("matern:nu=2.5:length=2") == as_kernel("matern:2.5,length=2") == Matern(2.5, 2.0)
    assert as_kernel("scaled:base=(matern:nu=2.5,length=2),factor=3") == Scaled(Matern(2.5, 2.0), 3.0)
    learner = Learner("rbf:0.5", "huber:delta=0.5", "ilk:C=2", "none")
    assert (learner.kernel, learner.loss) == (Gaussian(0.5), Huber(0.5))
    for text in ("huber:1,2", "huber:delta=1,delta=2", "huber:delta=wide", "huber:"):
        if text == "huber:":
            assert as_loss(text) == Huber()
        else:
            with pytest.raises(ParameterError, match="of Huber must be"):
                as_loss(text)


def test_parts_outside_the_package_have_names():
    """As those inside. Of a class that was defined again, the later; two classes of one name are named in the error."""

    def define(place):
        @dataclass(frozen=True)
        class RatherOdd(Hinge):
            __module__, aliases = place, ("odd",)

        return RatherOdd

    first = define("somewhere")
    assert type(as_loss("rather_odd:margin=2")) is first
    again = define("somewhere")
    assert as_loss("odd") == again() != first()
    other = define("elsewhere")
    with pytest.raises(ParameterError, match=r"of one class, not of somewhere\..*RatherOdd and elsewhere\..*RatherOdd"):
        as_loss("rather_odd")
    assert as_loss("hinge") == Hinge(), "other names go on"
    del first, again, other


#: Runs in a process of its own: the four parts of CONTRIBUTING.md, each a new file of the package, are found.
FOUND = """
import contextlib, importlib.util, io, sys
from pathlib import Path

tests, docs, place, *names = sys.argv[1:]
sys.path.insert(0, tests)
import numpy as np
import parts
import gossamer
from gossamer import OnlineRegressor, _registry, budgets, cli, kernels, losses, rules

assert Path(gossamer.__file__).is_relative_to(place), gossamer.__file__
spec = importlib.util.spec_from_file_location("site_pages", docs)
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
reference = pages.reference()

def printed(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        assert cli.main(list(arguments)) == 0
    return out.getvalue()

told, page = printed("parts"), printed("run", "--help")
shorts = []
for kind, package, name in zip(parts.KINDS, (kernels, losses, rules, budgets), names, strict=True):
    part, short = getattr(package, name), _registry.name_of(getattr(package, name))
    shorts.append(short)
    assert name in package.__all__ and part in parts.classes(kind) and parts.settings(part)
    assert short in told and short in page
    assert name in reference[package.__name__], "the API pages"

X = np.random.default_rng(0).uniform(-3, 3, size=(300, 1))
kernel, loss, rule, budget = shorts
model = OnlineRegressor(f"{kernel}:0.5", f"{loss}:0.5", f"{rule}:0.3", f"{budget}:size=20")
model.fit(X, np.sin(X[:, 0]))
again = gossamer.from_bytes(model.to_bytes())
assert np.array_equal(again.predict(X), model.predict(X)) and 0 < len(model.support_vectors_) <= 20
rows = "\\n".join(f"{x},{np.sin(x)}" for x in X[:, 0])
Path(place, "data.csv").write_text("x,y\\n" + rows + "\\n")
options = ["--kernel", kernel, "--loss", f"{loss}:0.5", "--rule", rule, "--budget", f"{budget}:20"]
printed("run", str(Path(place, "data.csv")), "--target", "y", *options, "--save", str(Path(place, "m.gsm")))
"""


def test_a_new_file_is_found_everywhere(tmp_path):
    """A part is one file in the folder of its kind: no list in the package, the tests or the pages changes."""
    package = Path(gossamer.__file__).parent
    shutil.copytree(package, tmp_path / "gossamer", ignore=shutil.ignore_patterns("__pycache__"))
    guide, imports, names = (ROOT / "CONTRIBUTING.md").read_text(), [], []
    for heading, folder in (("kernel", "kernels"), ("loss", "losses"), ("rule", "rules"), ("budget", "budgets")):
        code = re.search(r"```python\n(.*?)```", guide.split(f"### A {heading}\n")[1], re.DOTALL)[1]
        names += re.findall(r"^class (\w+)\(", code, re.MULTILINE)
        left_out = ("print", "from gossamer._engine")  # inside the package, the engine is above: for annotations only
        lines = [line for line in code.splitlines() if not line.startswith(left_out)]
        imports += [line for line in lines if line.startswith(("from ", "import "))]
        rest = [line for line in lines if not line.startswith(("from ", "import "))]
        (tmp_path / "gossamer" / folder / "added.py").write_text("\n".join([*dict.fromkeys(imports), *rest, ""]))
    command = [sys.executable, "-c", FOUND, str(ROOT / "tests"), str(ROOT / "docs" / "pages.py"), str(tmp_path), *names]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
