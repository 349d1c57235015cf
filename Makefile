# Two commands do everything on a fresh machine with Python >= 3.11, pip, make and git:
#   make demo    sets up .venv, re-creates the paper's experiments, says where the report is
#   make test    the same set-up, then all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard src/condmeta/native/*.cpp src/condmeta/native/*.h) CMakeLists.txt

.PHONY: setup demo test docs lint format bench accuracy mutants sanitize fuzz floors audit lock clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml .ci/linters.txt $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "condmeta needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement .ci/linters.txt
	@$(BIN)/python -c 'import condmeta; condmeta.show_versions()'
	@touch $@

demo: setup
	$(BIN)/condmeta reproduce --out report

# One process a core: further threads of OpenMP in each would only wait for one another.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

docs: setup
	rm -rf docs/generated
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q docs docs/_build/html
	$(BIN)/python tools/check_site.py docs/_build/html
	@echo "The site is in docs/_build/html/index.html"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m benchmarks

accuracy: setup
	$(BIN)/python -m pip install --quiet --group bench-accuracy
	$(BIN)/python -m benchmarks.accuracy

mutants: setup
	$(BIN)/python tools/mutants.py

sanitize: setup
	$(BIN)/python tools/sanitize.py $(SANITIZE)

fuzz: setup
	PYTHONPATH=tools $(BIN)/python -m tools.fuzz

floors: setup
	$(BIN)/python tools/floors.py

# Known weaknesses of all packages in .venv. It fails where the service that lists them cannot be reached.
audit: setup
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --require-hashes --requirement .ci/release.txt
	$(BIN)/python -m pip freeze --exclude-editable > build/audit/installed.txt
	build/audit/bin/python -m pip_audit --strict --no-deps --disable-pip --requirement build/audit/installed.txt

# New versions of the tools of CI, with the hashes of all their files. What linters share with condmeta is not pinned.
COMPILE := build/lock/bin/pip-compile --quiet --upgrade --generate-hashes --strip-extras --no-header --no-emit-options \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet pip-tools
	$(COMPILE) $(foreach name,click rich markdown-it-py mdurl pygments typing-extensions,--unsafe-package $(name)) \
	  --output-file .ci/linters.txt .ci/linters.in
	$(COMPILE) --allow-unsafe --output-file .ci/release.txt .ci/release.in

clean:
	rm -rf $(VENV) build dist report docs/_build docs/generated docs/gallery .pytest_cache .ruff_cache .hypothesis .import_linter_cache
