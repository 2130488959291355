# Everything a newcomer needs; `make` alone prints this list.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test quick check unit audit fuzz bench values growth attacks drills mutants supply-chain docs system-deps clean

help:
	@echo "make demo         publish a made-up survey privately; writes demo/ and demo-internal/"
	@echo "make test         all checks and all tests"
	@echo "make quick        the fast tests only, in about a minute: no browser, Spark, PostgreSQL, long statistics"
	@echo "make check        style, types and import contracts only"
	@echo "make unit         the tests only (ARGS='-k ledger' to choose)"
	@echo "make audit        every mechanism, every verb and whole runs: claimed and measured loss (ARGS=--quick)"
	@echo "make fuzz         100,000 damaged files, 1,000 requests of each kind (tests run fewer)"
	@echo "make bench        benchmarks beside other libraries, and docs/benchmarks.md (ARGS='--list')"
	@echo "make values       raw values of releases beside other libraries, and docs/values.md (hours)"
	@echo "make growth       what every main job costs as tables grow, and docs/growth.md (25 minutes)"
	@echo "make attacks      attacks on broken releases and on ours, and docs/attacks.md (10 minutes)"
	@echo "make drills       kill, race, fill, damage: the ledger, the commands, the service (35 minutes)"
	@echo "make mutants      weakened programs that tests must notice, and docs/mutants.md (what changed only)"
	@echo "make supply-chain lowest and newest versions, wheel alone, same build twice, known holes"
	@echo "make docs         rewrite docs/reference.md from the code, and the site in site/"
	@echo "make system-deps  Debian packages that some tests use (needs root)"
	@echo "make clean        remove what the other targets made"

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) --editable '.[test]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/sfumato demo --out demo --force

test: check unit

check: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/seal.py
	$(BIN)/python tools/house.py --counts

unit: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --quick tests/unit tests/contracts tests/golden src $(ARGS)

audit: $(VENV)/.installed-test
	$(BIN)/python -m audits $(ARGS)

fuzz: $(VENV)/.installed-test
	SFUMATO_FUZZ=100000 $(BIN)/python -m pytest -n 2 tests/privacy/test_fuzz.py
	SFUMATO_FUZZ_SERVICE=1000 $(BIN)/python -m pytest -n 2 tests/service/test_openapi.py

bench: $(VENV)/.installed-test
	$(BIN)/python bench/run.py $(ARGS); code=$$?; $(BIN)/python docs/make_benchmarks.py && exit $$code

values: $(VENV)/.installed-test
	$(BIN)/python bench/values.py --json bench/results/values.json $(ARGS); code=$$?; \
	  $(BIN)/python docs/make_values.py && exit $$code

growth: $(VENV)/.installed-test
	$(BIN)/python bench/growth.py $(ARGS); code=$$?; $(BIN)/python docs/make_growth.py && exit $$code

attacks: $(VENV)/.installed-test
	$(BIN)/python bench/attack.py --json bench/results/attacks.json $(ARGS); code=$$?; \
	  $(BIN)/python docs/make_attacks.py && exit $$code

drills: $(VENV)/.installed-test
	$(BIN)/python bench/drill.py $(ARGS)

mutants: $(VENV)/.installed-test
	$(BIN)/python tools/mutants.py $(ARGS); code=$$?; $(BIN)/python docs/make_mutants.py && exit $$code

supply-chain: $(VENV)/.installed-test
	$(BIN)/python tools/supply_chain.py $(ARGS)

docs: $(VENV)/.installed-test
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_pictures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

system-deps:
	sh tools/system-deps.sh

clean:
	rm -rf $(VENV) demo demo-internal site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
