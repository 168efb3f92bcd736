# Every target works on a fresh checkout: the first one you call builds .venv with pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GOLDEN ?= $(MAVIC_GOLDEN)
DEMO := runs/demo/box_pushing
METHODS := mavic naive vanilla

STUDY ?= table1
JAX ?= 0.6.2
JAX_VENV = .venv-jax/$(JAX)
# Training, acting, several devices, the cache and the memory of a program: what depends on JAX's inner workings.
JAX_TESTS := tests/training/test_same_numbers.py tests/learn/test_networks.py tests/rollout/test_threefry.py \
  tests/session/test_reliability.py tests/apps/test_cache.py tests/apps/test_own_parts.py \
  tests/test_docs.py::test_the_readmes_team_obeys

# Two workers, a file on one of them, so that its tests share what they compile; tests/conftest.py says which go first.
TWO := -n 2 --dist loadfile --no-loadscope-reorder
# pip chooses torch with sentence-transformers; without a version it takes several GB of GPU packages.
TORCH ?= torch==2.13.0
MUTANTS ?=
FAULTS ?= --kills 100 --files 10000 --surfaces 5000 --disk 40 --races 400

.PHONY: help demo play test test-long test-runtime test-wheel test-jax test-browser test-faults test-mutants docs notebooks slow bench reproduce report clean
help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mavic needs Python 3.11 or newer; here $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/run: pyproject.toml | $(VENV)/pip
	@echo "installing mavic and what it runs on (once)…"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[report]'
	@touch $@

$(VENV)/dev: pyproject.toml | $(VENV)/pip
	@echo "installing mavic with its test tools (once)…"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/run

$(VENV)/sentence: pyproject.toml | $(VENV)/dev
	@echo "installing sentence-transformers (once)…"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[sentence]' '$(TORCH)'
	@touch $@

$(VENV)/worlds: pyproject.toml | $(VENV)/dev
	@echo "installing the simulators of the examples (once)…"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[worlds]'
	@touch $@

demo: $(VENV)/run  ## Train MAVIC, naive and vanilla on Box Pushing; table, figures, a replay (under 6 minutes)
	@$(BIN)/mavic train box_pushing --method $(METHODS) --seeds 2 --population 2 --episodes 32000 --out runs/demo --quick --overwrite
	@$(BIN)/mavic replay $(DEMO)/mavic-residual+population2 --against $(DEMO)/naive-residual+population2 \
	  --out $(DEMO)/replay.html
	@$(BIN)/mavic report $(DEMO) --brief
	@echo "open in a browser: $(DEMO)/replay.html"

$(VENV)/play: pyproject.toml | $(VENV)/pip
	@echo "installing the playground (once)…"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[web,language,report]'
	@touch $@ $(VENV)/run

$(VENV)/browser: pyproject.toml | $(VENV)/dev
	@echo "installing the browser's driver (once)…"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[browser]'
	@touch $@

play: $(VENV)/play  ## Open the playground: talk to the teams in a browser
	@$(BIN)/mavic play

test: $(VENV)/dev  ## Lint, types, import rules, fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	MAVIC_GOLDEN=$(GOLDEN) JAX_PLATFORMS=cpu $(BIN)/python -m pytest $(TWO) --durations=10

test-long: $(VENV)/dev $(VENV)/sentence $(VENV)/worlds  ## Further cases and proofs that the fast tests leave out
	MAVIC_GOLDEN=$(GOLDEN) JAX_PLATFORMS=cpu $(BIN)/python -m pytest $(TWO) -m 'long and not slow' --durations=15

.venv-runtime/ready:
	$(PYTHON) -m venv .venv-runtime
	@.venv-runtime/bin/pip install -q --disable-pip-version-check numpy onnxruntime tokenizers pytest
	@touch $@

test-runtime: .venv-runtime/ready  ## A team on robots, in an environment without JAX
	@! .venv-runtime/bin/python -c 'import jax' 2> /dev/null || { echo "JAX is installed here"; exit 1; }
	PYTHONPATH=. .venv-runtime/bin/python -m pytest --confcutdir=tests/runtime -m 'not slow' tests/runtime

test-browser: $(VENV)/browser  ## The pages in a real browser; installs Debian's chromium when there is none
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { echo "no chromium here: installing Debian's (apt-get install chromium)"; \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get update -q && \
	    $$(test "$$(id -u)" = 0 || echo sudo) apt-get install -q -y --no-install-recommends chromium; }
	JAX_PLATFORMS=cpu $(BIN)/python -m pytest -m browser

$(VENV)/build: pyproject.toml | $(VENV)/pip
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[build]'
	@touch $@

test-wheel: $(VENV)/build  ## Build the wheel, install it in an empty environment, run the README there
	JAX_PLATFORMS=cpu $(BIN)/python tests/check_wheel.py

test-jax:  ## A few tests with another JAX, in an environment of its own: make test-jax JAX=0.6.2 PYTHON=python3.11
	$(PYTHON) -m venv $(JAX_VENV)
	$(JAX_VENV)/bin/pip install -q --disable-pip-version-check -e '.[dev]' jax==$(JAX)
	JAX_PLATFORMS=cpu $(JAX_VENV)/bin/python -m pytest -p no:cacheprovider $(JAX_TESTS)
	JAX_PLATFORMS=cpu $(JAX_VENV)/bin/python -m pytest -p no:cacheprovider -m long tests/training/test_devices.py

$(VENV)/docs: pyproject.toml | $(VENV)/dev
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(VENV)/docs  ## Build the docs site into site/; a broken link is an error
	@rm -rf .cache/playground
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

notebooks: $(VENV)/docs  ## Run both notebooks from top to bottom
	JAX_PLATFORMS=cpu $(BIN)/python tests/run_notebooks.py

test-faults: $(VENV)/dev  ## Kills, damaged files, wrong commands, a full disk, races; FAULTS="--pages 50 --minutes 60" adds pages
	JAX_PLATFORMS=cpu PYTHONPATH=.:tests $(BIN)/python tests/faults.py $(FAULTS)

test-mutants: $(VENV)/dev  ## Deliberate mistakes in a copy of the tree: do the fast tests find them? MUTANTS="--most 30"
	$(BIN)/python -m tools.mutants --named
	$(BIN)/python -m tools.mutants --sample 400 $(MUTANTS)

slow: $(VENV)/dev  ## Learning thresholds and long proofs (tens of minutes)
	MAVIC_GOLDEN=$(GOLDEN) $(BIN)/python -m pytest -m slow

bench: $(VENV)/run  ## Measure speed here: environment alone, training with learning, compile time, memory
	@$(BIN)/mavic bench

reproduce: $(VENV)/play  ## The paper's Table 1 from nothing (for a GPU; a day on two cores); STUDY=heatmap for another study
	@$(BIN)/mavic reproduce $(STUDY)

report: $(VENV)/run  ## Remake tables and figures from the committed records
	@for world in results/*/; do $(BIN)/mavic report $$world; done
	@$(BIN)/python -m tools.headline README.md docs/*.md docs/record/*.md

clean:  ## Remove .venv and caches; keeps runs/
	rm -rf $(VENV) .venv-jax .venv-runtime .mypy_cache .ruff_cache .pytest_cache .hypothesis
