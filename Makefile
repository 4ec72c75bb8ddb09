# Every target makes the virtual environment it needs; nothing but python3 and pip is assumed.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto

.PHONY: setup demo test soak search lint api docs site links package matrix release image numba mutants bench guard clean

setup: .venv/.dev

.venv/.made:
	$(PYTHON) -m venv .venv
	@touch $@

# The demo needs the program and its data; developers need the tools too; benchmarks need the peers.
.venv/.demo: .venv/.made pyproject.toml constraints.txt
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[cli,data]'
	@touch $@

.venv/.dev: .venv/.made pyproject.toml constraints.txt
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ .venv/.demo

.venv/.docs: .venv/.dev
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	@touch $@

.venv/.release: .venv/.dev
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,release]'
	@touch $@

.venv/.bench: .venv/.dev
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@

demo: .venv/.demo
	$(BIN)/shoal run dataset:flights --report demo-report.html

# Empty: bytecode is written, or every process of a test would translate all sources anew.
test: export PYTHONDONTWRITEBYTECODE =
test: .venv/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

# The tests of the service in their long forms: fifty kills, ten thousand malformed requests.
soak: .venv/.dev
	SOAK=50 $(BIN)/python -m pytest -n 0 tests/serve --timeout 3600

# The properties alone, ten times as long as `make test` looks for a counterexample.
search: .venv/.dev
	SEARCH=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m hypothesis --timeout 1200

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house_rules.py

# The reference of all public names; `make lint` says when it is stale.
api: .venv/.dev
	$(BIN)/python tools/api_reference.py

# The site in build/docs: the pages in docs and every public name. A warning, such as a link to nowhere, ends it.
docs: .venv/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

# Every page in headless Chromium, light and dark, at 1,200 and 400 px; keyboard and search. After `make docs`.
site: .venv/.docs
	$(BIN)/python tools/check_site.py $(ONLY)

# Links to other sites; it needs the internet, so that CI does not run it.
links: .venv/.docs
	$(BIN)/python -m sphinx -b linkcheck -q docs build/links

# The sdist and the wheel, built, installed into a fresh environment and tried there.
package: .venv/.dev
	$(BIN)/python tools/check_package.py

# The wheel with the oldest and the newest packages on every Python at hand; ONLY="3.12 oldest" is one environment.
matrix: .venv/.release
	$(BIN)/python tools/matrix.py $(ONLY)

# All steps of a release but the upload; TAG=1 tags the commit in this clone.
release: .venv/.release
	$(BIN)/python tools/release.py $(if $(TAG),--tag)

# The steps of deploy/Dockerfile without a container, and what they leave tried as an image's user, read-only.
image: .venv/.dev
	$(BIN)/python tools/check_image.py

# The tests of compiled code with the oldest and the newest numba; after a change of a bound or of engine/compile.py or engine/intrinsics.py.
numba: .venv/.dev
	$(BIN)/python tools/check_numba.py

# Faults planted in FILE that no test notices; TESTS names more tests, SAMPLE plants so many. No part of `make test`.
mutants: .venv/.dev
	$(BIN)/python tools/mutants.py $(FILE) $(if $(TESTS),--tests $(TESTS)) $(if $(SAMPLE),--sample $(SAMPLE)) \
		$(if $(FILES),--files-of-a-room $(FILES))

bench: .venv/.bench
	$(BIN)/python -m benchmarks

guard: .venv/.dev
	$(BIN)/python -m benchmarks.guard --cost

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache demo-report* build dist docs/reference docs/learn docs/do docs/coming-from docs/sg_execution_times.rst
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
