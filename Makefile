# Two commands matter: `make trial` runs an A/B trial on an embedded engine, `make test` runs the tests.
# Both set everything up in .venv first. Options go through ARGS, as in `make trial ARGS="--model smollm2-moe"`.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
SOURCES := src tests benchmarks

.PHONY: trial test lint format bench docs clean

trial: $(VENV)/.local
	$(BIN)/breakeven trial $(ARGS)

# Tests with real engines have the machine to themselves; all others share its cores.
test: $(VENV)/.dev
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest -n auto --dist loadfile tests/unit tests/oracle tests/cases
	$(BIN)/python -m pytest tests/e2e
endif

lint: $(VENV)/.dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/client.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/replay_memory.py
	$(BIN)/python benchmarks/published.py
	-$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/forecast_speed.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/power.py
	$(BIN)/python benchmarks/fuzz.py
	$(BIN)/python benchmarks/aa.py
	$(BIN)/python benchmarks/aa.py --embedded 5
	$(BIN)/python benchmarks/llamacpp_slots.py
	$(BIN)/python benchmarks/forecast.py

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

$(VENV)/.local: EXTRAS := local,fast,replay
$(VENV)/.dev: EXTRAS := dev
$(VENV)/.docs: EXTRAS := docs
$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

$(VENV)/bin/python:
	@python=$$(for candidate in python3 python3.13 python3.12 python3.11; do \
	  $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$candidate && break; done); \
	if [ -z "$$python" ]; then echo "no Python 3.11 or newer found: install one, then run make again" >&2; exit 2; fi; \
	$$python -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
