# Everything is set up in .venv, .venv-sglang and .cache by the targets themselves: a fresh clone needs Python (3.10 or
# later), pip and make.
#
# Variables:
#   PYTHON  makes the virtual environments [python3]
#   JOBS    test processes at once [2]
#   VERSION the release that `make release` adds
#   TESTS   what `make test` and `make pytest` run [everything]; for example TESTS="tests/unit -k planner"
# pip's own variables are honoured. Where plain PyPI gives a CUDA build of torch (gigabytes that no test needs), let
# PIP_EXTRA_INDEX_URL name the index of CPU builds that PyTorch documents.

PYTHON ?= python3
JOBS ?= 2
TESTS ?=

VENV := .venv
SGLANG := .venv-sglang
PIP_QUIETLY := -m pip --quiet --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all lint types pytest bench acceptance drift-table snapshots release docs supported-releases survival patch-survival screenshots wheels clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

demo: $(VENV)/tool ## patch a real SGLang 0.5.11, verify it, revert it, prove that every byte is back
	@$(VENV)/bin/python tools/demo.py

test: lint types pytest ## everything: lint, types and all tests (downloads 300 MB of wheels and SGLang's CPU dependencies)

lint: $(VENV)/dev ## ruff, check and format
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/dev ## mypy
	$(VENV)/bin/mypy

pytest: $(VENV)/dev $(SGLANG)/ready wheels ## the tests alone
	$(VENV)/bin/python -m pytest -n $(JOBS) --dist worksteal --durations 15 $(TESTS)

test-all: ## as test, and hybrid targets on every release
	DDTREE_TEST_ALL=1 $(MAKE) test

bench: $(VENV)/dev $(SGLANG)/ready ## the speed that is promised, as ratios measured in one run
	PYTHONPATH=tools $(VENV)/bin/python tests/benchmarks/bench.py

acceptance: $(VENV)/dev $(SGLANG)/ready ## what a tree saves on the trained pair: verify steps by budget, in the engine and in plain torch (12 minutes)
	PYTHONPATH=tests:tests/e2e:tools $(VENV)/bin/python tests/benchmarks/acceptance.py

drift-table: $(VENV)/dev $(SGLANG)/ready ## what upstream may do to the places that are patched, on real releases: applied, or refused by name
	PYTHONPATH=tests:tools $(VENV)/bin/python -m mutations.table $(abspath $(SGLANG))/bin/python

snapshots: $(VENV)/tool ## capture every snapshot anew, from the wheels
	$(VENV)/bin/python tools/capture_snapshots.py

release: $(VENV)/tool ## VERSION=0.5.24: fetch a release, list it, capture its snapshot, compare it and plan it
	$(VENV)/bin/python tools/add_release.py $(VERSION)

docs: $(VENV)/tool ## docs/primitives.md anew, of the primitives' docstrings and of examples that are run
	$(VENV)/bin/python tools/primitives_reference.py

supported-releases: $(VENV)/dev $(SGLANG)/ready wheels ## docs/supported-releases.md anew: what the tests show, and what `matrix` says of every wheel
	DDTREE_TEST_ALL=1 $(VENV)/bin/python -m pytest -n $(JOBS) --dist worksteal -m shows --record-capabilities docs/capabilities.json
	$(VENV)/bin/ddtree-patch matrix --wheels .cache/wheels --capabilities docs/capabilities.json --markdown docs/supported-releases.md

survival: $(VENV)/tool wheels ## snapshots/survival anew: by which variant each step finds its place in each release
	$(VENV)/bin/ddtree-patch matrix --wheels .cache/wheels --survival snapshots/survival/ddtree.json
	$(VENV)/bin/ddtree-patch --patchset rocm matrix --wheels .cache/wheels --survival snapshots/survival/rocm.json

patch-survival: $(VENV)/tool wheels ## docs/patchsets.md anew: how long the second patchset's edits live as text under `patch`
	$(VENV)/bin/python tools/patch_survival.py

screenshots: $(VENV)/tool wheels ## docs/images/*.svg anew: what a terminal shows of real runs
	$(VENV)/bin/python tools/screenshots.py

wheels: $(VENV)/tool ## fetch every SGLang wheel that the tests need into .cache/wheels
	@$(VENV)/bin/python tools/fetch_wheels.py

clean: ## remove all that the targets made, downloads included
	rm -rf $(VENV) $(SGLANG) .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/tool: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP_QUIETLY) install --editable .
	@touch $@

$(VENV)/dev: $(VENV)/tool
	$(VENV)/bin/python $(PIP_QUIETLY) install --editable '.[dev]'
	@touch $@

$(SGLANG)/ready: tests/requirements-sglang-cpu.txt
	$(PYTHON) -m venv $(SGLANG)
	$(SGLANG)/bin/python $(PIP_QUIETLY) install --requirement tests/requirements-sglang-cpu.txt
	@touch $@

$(SGLANG): $(SGLANG)/ready
