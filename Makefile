# `make demo` and `make test` do all their own set-up, in .venv and build/: they need Python 3.11 or later with venv and
# headers, g++ or clang++ (CXX=clang++) and make. A second run starts at once; a changed source rebuilds.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WHEELS := $(VENV)/wheels
ARGS ?=

# Folders are listed too: their time changes when a file is removed.
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
  $(shell find src core -name __pycache__ -prune -o ! -name '*.pyc' -print)

CXX_FILES = $(shell find core tests/core -name '*.hpp' -o -name '*.cpp')

.DELETE_ON_ERROR:
.PHONY: help demo test test-spark example-spark figures docs dist bench bench-budgets bench-certainty bench-newton bench-auto bench-rows bench-sparse bench-scale bench-video lint format coverage test-oldest test-newest test-bare test-arm test-compilers release-check sanitize fuzz soak kill tsan golden clean serve-demo bench-serve kill-serve hostile-serve

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.extra-plot ## seven learners on a drifting stream: tables, and a picture in out/demo.png
	@mkdir -p out
	@$(BIN)/python -m gossamer demo --out out/demo.png $(ARGS)

test: $(VENV)/.extra-test $(VENV)/.extra-lint ## ruff, mypy, import-linter, the tests, the examples in the docstrings
	@command -v java > /dev/null && $(MAKE) --no-print-directory $(VENV)/.extra-spark || echo "without Spark: its tests are skipped"
	@echo "ruff"
	@$(BIN)/python -m ruff check .
	@echo "mypy (the installed package)"
	@$(BIN)/python -m mypy
	@echo "import-linter (the direction of imports)"
	@$(BIN)/lint-imports --no-cache
	@echo "pytest"
	@$(BIN)/python -m pytest tests -n 2 --dist loadgroup $(ARGS)
	@echo "doctests (of the installed package)"
	@$(BIN)/python -m pytest --doctest-modules --pyargs gossamer

# What users may install with the package; the oldest and the newest versions of all of it are tried.
EXTRAS := plot video io dask serve $(if $(shell command -v java),spark)

# river asks for a newer NumPy than the others need: the tests that need it have an environment of their own. pyparsing is held
# where matplotlib 3.8 does not make it warn.
NEED_RIVER := tests/river tests/engine/test_threads.py tests/estimators/test_divergence.py tests/estimators/test_targets.py \
  tests/project/test_registry.py tests/project/test_structure.py
test-oldest: $(VENV)/.package ## the tests with the lowest version of every dependency that pyproject.toml allows (ARGS="tests/bank")
	@rm -rf build/oldest build/oldest-river && $(PYTHON) -m venv build/oldest && $(PYTHON) -m venv build/oldest-river
	@$(BIN)/python tools/requirements.py --lowest $(EXTRAS) test --without river > build/oldest/requirements.txt
	@echo "installing $$(tr '\n' ' ' < build/oldest/requirements.txt)"
	@build/oldest/bin/python -m pip --disable-pip-version-check install -qq -r build/oldest/requirements.txt "pyparsing<3.3" $(WHEELS)/*.whl
	@build/oldest/bin/python -m pytest -n 2 --dist loadgroup $(or $(ARGS),tests) $(NEED_RIVER:%=--ignore=%)
	@$(BIN)/python tools/requirements.py --lowest river > build/oldest-river/requirements.txt
	@$(BIN)/python tools/requirements.py --only test --without river >> build/oldest-river/requirements.txt
	@build/oldest-river/bin/python -m pip --disable-pip-version-check install -qq -r build/oldest-river/requirements.txt $(WHEELS)/*.whl
	@build/oldest-river/bin/python -m pytest -n 2 --dist loadgroup $(NEED_RIVER)

test-newest: $(VENV)/.package ## the tests with the newest version of every dependency (ARGS="tests/bank")
	@rm -rf build/newest && $(PYTHON) -m venv build/newest
	@$(BIN)/python tools/requirements.py $(EXTRAS) river test > build/newest/requirements.txt
	@build/newest/bin/python -m pip --disable-pip-version-check install -qq -r build/newest/requirements.txt $(WHEELS)/*.whl
	@build/newest/bin/python -m pip --disable-pip-version-check list
	@build/newest/bin/python -m pytest -n 2 --dist loadgroup $(or $(ARGS),tests)

# Without extras: every module imports, what needs an extra names it, and the tests that need none pass.
BARE := tests/kernels tests/losses tests/rules tests/budgets tests/engine tests/bounds tests/store tests/project/test_extras.py

test-bare: $(VENV)/.package ## the core tests where no extra is installed, and what each missing one says
	@rm -rf build/bare && $(PYTHON) -m venv build/bare
	@build/bare/bin/python -m pip --disable-pip-version-check install -qq $(WHEELS)/*.whl \
	  $$($(BIN)/python tools/requirements.py --only test | grep -E '^(pytest|hypothesis)')
	@build/bare/bin/python -m pytest -n 2 $(or $(ARGS),$(BARE)) $(NEED_RIVER:%=--ignore=%)

lint: $(VENV)/.extra-lint ## all that pre-commit checks, on every file: ruff, clang-format, codespell, import-linter, mypy, actionlint
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	@$(BIN)/codespell
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m mypy
	@if command -v actionlint > /dev/null; then actionlint; else echo "actionlint is not installed: the workflows are not checked"; fi

format: $(VENV)/.extra-lint ## ruff and clang-format on every file
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .
	@$(BIN)/clang-format -i $(CXX_FILES)

coverage: $(VENV)/.extra-test $(VENV)/.extra-coverage build/coverage/package ## lines of src and of core that the tests run (ARGS="tests/bank"), in build/coverage
	@find build/coverage -name '*.gcda' -delete
	@PYTHONPATH=build/coverage/package $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term --cov-report=html:build/coverage/src $(or $(ARGS),tests)
	@$(BIN)/gcovr --config tools/gcovr.cfg

release-check: $(VENV)/.made ## version, changelog, tag, tree, the files of a release tried, the README as PyPI shows it; uploads nothing
	@$(BIN)/python tools/requirements.py --only dist | $(PIP) install -qq -r /dev/stdin
	@$(BIN)/python tools/release.py $(ARGS)

docs: $(VENV)/.extra-docs ## the documentation as a site, in site/index.html; a broken link or a page that is not listed fails
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --jobs 2 docs site
	@echo "site/index.html"

dist: $(VENV)/.made ## wheel and source archive in dist/, looked through, and tried in empty environments (ARGS="--python python3.11 python3.12")
	@$(BIN)/python tools/requirements.py --only dist | $(PIP) install -qq -r /dev/stdin
	@$(BIN)/python tools/dist.py $(ARGS)

bench: $(VENV)/.extra-bench ## measure the engine, the rules, the trees, the faces, the command line; the contest with other libraries
	@$(BIN)/python benchmarks/engine.py $(ARGS)
	@$(BIN)/python benchmarks/rules.py $(ARGS)
	@$(BIN)/python benchmarks/additive.py $(ARGS)
	@$(BIN)/python benchmarks/shell.py $(ARGS)
	@$(BIN)/python benchmarks/cli_page.py $(ARGS)
	@$(BIN)/python benchmarks/faces.py $(ARGS)
	@$(BIN)/python benchmarks/river_face.py $(ARGS)
	@$(BIN)/python benchmarks/contest.py $(ARGS)

bench-budgets: $(VENV)/.extra-bench ## what each budget costs in accuracy and time (half an hour; GOSSAMER_DATA has the sets)
	@$(BIN)/python benchmarks/budgets.py $(ARGS)

bench-certainty: $(VENV)/.extra-bench $(VENV)/.extra-video ## probabilities, intervals and alarms: the tables of docs/certainty.md (some minutes; GOSSAMER_DATA has the sets)
	@$(BIN)/python benchmarks/certainty.py $(ARGS)
	@$(BIN)/python benchmarks/certainty_widths.py

bench-newton: $(VENV)/.extra-bench ## second-order steps: accuracy by the contest's protocol, and time (some minutes; GOSSAMER_DATA has the sets)
	@$(BIN)/python benchmarks/newton.py $(ARGS)
	@$(BIN)/python benchmarks/newton_sizes.py --resume

bench-auto: $(VENV)/.extra-bench ## the learners without settings: errors (of the last contest), times, log loss, switches, memory (GOSSAMER_DATA has the sets)
	@$(BIN)/python benchmarks/auto.py $(ARGS)

bench-rows: $(VENV)/.extra-bench ## rows as they come: the encoder, late labels, ten messy files beside gradient boosting (some minutes)
	@$(BIN)/python benchmarks/rows.py $(ARGS)

bench-sparse: $(VENV)/.extra-bench ## sparse rows of a million features: time, memory, errors as of dense rows (GOSSAMER_DATA has a9a)
	@$(BIN)/python benchmarks/sparse.py $(ARGS)

bench-video: $(VENV)/.extra-bench $(VENV)/.extra-video ## the background subtractor against OpenCV's (GOSSAMER_DATA has the clips)
	@$(BIN)/python benchmarks/video.py $(ARGS)

serve-demo: $(VENV)/.extra-serve ## a server with three models on a drifting market, and a page to watch it; Ctrl-C stops it
	@mkdir -p out
	@$(BIN)/python examples/serve_demo.py $(ARGS)

bench-serve: $(VENV)/.extra-serve $(VENV)/.extra-bench ## a server's rates, latency and recovery (ARGS="--soak 3600" for an hour at 70 %)
	@$(BIN)/python benchmarks/serve.py $(ARGS)

kill-serve: $(VENV)/.extra-test $(VENV)/.extra-serve ## kill -9 a server under load, 200 times (ARGS="--count 20")
	@$(BIN)/python tests/long/kill_serve.py $(ARGS)

hostile-serve: $(VENV)/.extra-test $(VENV)/.extra-serve ## 100,000 hostile requests to a server on 127.0.0.1 (ARGS="--count 5000")
	@$(BIN)/python tests/long/hostile_serve.py $(ARGS)

figures: $(VENV)/.extra-figures ## every figure of the papers, made again beside its script (ARGS=--quick: small, in out/figures)
	@failed=; for script in $$(grep -l 'Figure(__file__' experiments/*/*.py); do \
	  $(BIN)/python $$script $(ARGS) || failed="$$failed $$script"; done; \
	  test -z "$$failed" || { echo "not made:$$failed"; exit 1; }

test-spark: $(VENV)/.extra-test $(VENV)/.extra-spark ## only the tests of models by key on Spark (needs Java 17)
	@$(BIN)/python -m pytest tests/spark/test_spark.py $(ARGS)

bench-scale: $(VENV)/.extra-bench $(VENV)/.extra-spark $(VENV)/.extra-dask ## many models by key: in one process, on Spark (needs Java 17); shards, sweeps
	@$(BIN)/python benchmarks/scale_bank.py $(ARGS)
	@$(BIN)/python benchmarks/scale_spark.py $(ARGS)
	@$(BIN)/python benchmarks/shards.py $(ARGS)
	@$(BIN)/python benchmarks/sweeps.py $(ARGS)

example-spark: $(VENV)/.extra-spark $(VENV)/.extra-plot ## a detector for each of 92 series, on Spark and in a bank (GOSSAMER_DATA has them)
	@$(BIN)/python examples/spark_keyed_anomalies.py $(ARGS)

sanitize: build/address/core build/thread/core ## the C++ core alone under the address, undefined-behaviour and thread sanitizers
	@build/address/core_test && build/thread/core_test && build/thread/core_threads 5 && echo "sanitize: passed"

test-arm: build/native/core_test build/arm/core_test ## the core for 64-bit ARM, under qemu: its tests, and the same bits as here (some minutes)
	@$(BIN)/python tests/core/compare_machines.py build/native/core_test "qemu-aarch64 build/arm/core_test"

test-compilers: build/native/core_test build/clang/core_test ## the core by g++ and by clang++, warnings being errors: its tests, and the same bits
	@$(BIN)/python tests/core/compare_machines.py build/native/core_test build/clang/core_test

fuzz: $(VENV)/.extra-test build/address/package ## damaged and forged files, texts and databases, with an instrumented core (ARGS=--quick)
	@$(BIN)/python tests/long/campaign.py fuzz $(ARGS)

soak: $(VENV)/.extra-test ## 10^8 rows: memory, norm, inverse, accuracy (ARGS=--quick)
	@$(BIN)/python tests/long/campaign.py soak $(ARGS)

kill: $(VENV)/.extra-test ## kill -9 at random moments: gossamer run, a bank, late labels, executors of Spark where Java is (ARGS=--quick)
	@command -v java > /dev/null && $(MAKE) --no-print-directory $(VENV)/.extra-spark || echo "without Spark"
	@$(BIN)/python tests/long/campaign.py kill $(ARGS)

tsan: $(VENV)/.extra-test build/thread/package ## every public object from eight threads under the thread sanitizer (ARGS=--quick)
	@$(BIN)/python tests/long/campaign.py tsan $(ARGS)

golden: $(VENV)/.extra-test ## hash every number that the package computes (ARGS="make FILE", then ARGS="compare FILE")
	@$(BIN)/python tests/golden.py $(ARGS)

clean: ## remove everything that was made
	rm -rf $(VENV) build dist out site docs/made .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks experiments -name __pycache__ -prune -exec rm -rf {} + 2> /dev/null || true

# ------------------------------------------------------------------------------------------------------------- set-up
# A stamp is touched only when all before it has succeeded, so an interrupted set-up is done again.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is no working Python 3.11 or later; name one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' \
	  || { echo "Python.h is missing: install the headers of $(PYTHON) (python3-dev, python3-devel)"; exit 1; }
	@echo "making the virtual environment $(VENV)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# A warning of the compiler fails the tests, but not a demo or an installation by a compiler that nobody here has seen.
WERROR := $(if $(filter test%,$(MAKECMDGOALS)),ON,OFF)

# The wheel is built once and installed for every target; --force-reinstall because its version does not change.
$(VENV)/.package: $(VENV)/.made $(SOURCES)
	@echo "building the package: C++, once for each instruction set (about a minute), then NumPy, SciPy and scikit-learn"
	@rm -rf $(WHEELS)
	@$(PIP) wheel -qq --no-deps --wheel-dir $(WHEELS) --config-settings cmake.define.GOSSAMER_WERROR=$(WERROR) .
	@$(PIP) install -qq $(WHEELS)/*.whl
	@$(PIP) install -qq --force-reinstall --no-deps $(WHEELS)/*.whl
	@touch $@

# The package alone is the older stamp's business; what an extra needs changes with pyproject.toml only.
$(VENV)/.extra-%: pyproject.toml $(VENV)/.made | $(VENV)/.package
	@echo "installing what 'make $(or $(MAKECMDGOALS),$*)' needs besides: $$($(BIN)/python tools/requirements.py --only $* | tr '\n' ' ')"
	@$(PIP) install -qq "$$(echo $(WHEELS)/*.whl)[$*]"
	@touch $@

# The core with a sanitizer in it: core_test is a program of its own; package/ is the Python package with such a core, for
# PYTHONPATH, and needs the sanitizer's runtime loaded first (tests/long/campaign.py does both).
build/%/core: $(VENV)/.package
	@command -v cmake > /dev/null || $(PIP) install -qq cmake
	@PATH="$$PATH:$$PWD/$(BIN)" && cmake -S . -B build/$* -DGOSSAMER_SANITIZE=$* > /dev/null \
	  && cmake --build build/$* --target core_test core_threads --parallel 2
	@touch $@

# The core and its test program for this machine by g++ and clang++, and for 64-bit ARM (Debian: clang, g++-aarch64-linux-gnu
# and qemu-user).
CMAKE_native := -DCMAKE_CXX_COMPILER=g++
CMAKE_clang := -DCMAKE_CXX_COMPILER=$(or $(shell command -v clang++),$(shell command -v clang++-14),clang++)
CMAKE_arm := -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_EXE_LINKER_FLAGS=-static
build/native/core_test build/clang/core_test build/arm/core_test: build/%/core_test: $(VENV)/.package $(SOURCES) $(wildcard tests/core/*.?pp tests/core/parts/*/*.hpp)
	@command -v cmake > /dev/null || $(PIP) install -qq cmake
	@PATH="$$PATH:$$PWD/$(BIN)" && cmake -S . -B build/$* -DGOSSAMER_TESTS=ON -DGOSSAMER_WERROR=ON $(CMAKE_$*) > /dev/null \
	  && cmake --build build/$* --target core_test --parallel 2

build/%/package: $(VENV)/.package $(SOURCES)
	@echo "building the package with the $* sanitizer (some two minutes)"
	@$(PIP) install -qq cmake nanobind
	@PATH="$$PWD/$(BIN):$$PATH" && cmake -S . -B build/$* -DGOSSAMER_SANITIZE=$* -DPython_EXECUTABLE="$$PWD/$(BIN)/python" \
	  -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)" > /dev/null && cmake --build build/$* --target _core --parallel 2
	@rm -rf $@ && mkdir -p $@ && cp -r src/gossamer $@ && cp build/$*/_core*.so $@/gossamer && touch $@
