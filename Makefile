# make demo   real kernels on every device present, checked against the oracle; writes out/
# make test   everything, from a fresh machine: environment, packages, drivers, then the tests
# make test-all  the same, every test on every shim, texts for every target
# make test-coopmat   the tests on a newer Mesa, with cooperative matrices, in a tree of its own (as root)
# Each target sets up what it needs and says what it installs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all test-coopmat test-pythons lint fuzz bench clean system

$(STAMP): pyproject.toml tools/setup_environment.sh
	PYTHON=$(PYTHON) tools/setup_environment.sh $(VENV)
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/sarek demo --out out

system:
	tools/setup_system.sh

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: system $(STAMP) lint
	PYTHON=$(BIN)/python tools/coopmat_tree.sh --where-possible
	$(BIN)/python -m pytest -q -n auto --dist worksteal

test-coopmat: $(STAMP)
	PYTHON=$(BIN)/python tools/coopmat_tree.sh

test-all: system $(STAMP) lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal --everything

test-pythons: $(STAMP)
	tools/test_pythons.sh

# make fuzz N=3000 SEED=1
N ?= 300
SEED ?= 0
fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz --count $(N) --seed $(SEED)

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) out build dist
