# What a person or a CI machine runs. Needs Python 3.11 or newer with pip, and make; `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
# Absolute, for commands that run in another folder.
AT := $(abspath $(BIN))
KBTOOLS := $(BIN)/kbtools
# Each file of tests in one process, as many processes as there are cores, and in order: the last files are short, which
# those with the fewest tests are not. Bytecode is written even where the environment says not to: the tests start
# hundreds of commands, which would each compile kbtools again.
# Temporary files are in memory if it has room for them, since every build flushes its files to the disk.
MEMORY := $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'END { print $$4 }')" -gt 8000000 && echo TMPDIR=/dev/shm)
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(MEMORY) $(BIN)/pytest --numprocesses auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder
# Marks of what is installed: kbtools alone, with its server, all that its tests need, what it is compared with, and what builds the site.
CORE := $(VENV)/.core
SERVER := $(VENV)/.server
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench
SITE := $(VENV)/.site
SAMPLE := --facts examples/sample.facts.txt --names examples/sample.names.txt --types examples/sample.types.txt
# Pages that cog writes parts of.
DOCUMENTS := README.md benchmarks/README.md $(wildcard docs/*.md)
COG := $(BIN)/cog -I benchmarks -p 'from figures import origins, table, text'
ROOMS := scorers indexers serve cli examples

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo serve bench test check format docs docs-site axe clean view figures lint types coverage docs-check wheel compose env

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

demo: $(CORE) ## ask the sample knowledge base four questions
	@for question in "who created the character harry potter" "Which genre of album is harder.....faster?" \
		"where was stephan king born" "what is peters point plantation's architectural style"; do \
		$(KBTOOLS) query sample --top 1 "$$question" || exit 1; done
	@printf '%s\n' "" "Next:" \
		"  kbtools query sample --explain who wrote it      why the first answer is first" \
		"  kbtools lookup sample pirates of the carribean   entities by name, misspelt or not" \
		"  kbtools index table.csv --out mine.kb            a knowledge base of your own table" \
		"  make serve                                       the same in a browser" \
		"(kbtools is $(KBTOOLS) here, until you run: . $(BIN)/activate)"

serve: $(SERVER) ## ask the sample knowledge base in a browser
	$(KBTOOLS) serve sample

bench: $(BENCH) ## compare kbtools with other tools, half an hour; BENCH_OPTIONS="--titles 50000" takes less
	@$(BIN)/python benchmarks/bench.py --out build/bench $(BENCH_OPTIONS)

test: $(READY) ## run the whole test suite
	@$(PYTEST)

check: lint types compose coverage docs-check docs-site wheel ## everything that must pass before a commit

format: $(READY) ## sort imports and format
	@$(BIN)/ruff check --quiet --select I --fix .
	@$(BIN)/ruff format --quiet .

docs: $(READY) ## write docs/cli.md from --help, and figures into the documents
	@$(COG) --verbosity=1 -r $(DOCUMENTS)

figures: $(READY) ## measure again and write the figures into the documents: NAME=fuzzy
	@$(BIN)/python benchmarks/figures.py $(NAME)
	@$(COG) --verbosity=1 -r $(DOCUMENTS)

docs-site: $(SITE) view ## build the documentation site in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

axe: ## fetch axe-core, which the tests of the page use (needs npm)
	@npm install --silent --no-save --prefix build axe-core@4

clean: ## remove what the other targets made, the environment excepted
	@rm -rf build dist *.egg-info .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

lint: $(READY)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "run make format" >&2; exit 1; }

# The rooms are one import package only once installed, so mypy reads a view that has them in place.
view:
	@rm -rf build/view && mkdir -p build/view/kbtools
	@ln -s $(CURDIR)/kbtools/* $(ROOMS:%=$(CURDIR)/%) build/view/kbtools/

types: $(READY) view
	@ln -s $(CURDIR)/tests $(CURDIR)/benchmarks/*.py build/view/
	@cd build/view && $(AT)/mypy --strict --no-error-summary \
		--config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache -p kbtools -p tests \
		$(patsubst benchmarks/%.py,-m %,$(wildcard benchmarks/*.py))

# Without a cluster the modules that speak to one cannot be covered.
coverage: export KBTOOLS_COVERAGE_OMIT = $(if $(KBTOOLS_TEST_ELASTICSEARCH_URL),,indexers/elastic/*)
coverage: $(READY)
	@$(PYTEST) --cov

compose: $(READY)
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
	@$(BIN)/hadolint --no-color Dockerfile

env: .secrets/elastic ## write a password for docker-compose.yml into .secrets/elastic

.secrets/elastic:
	@umask 077 && mkdir -p .secrets && $(PYTHON) -c "import secrets; print(secrets.token_urlsafe(24), end='')" > $@
	@test "$$(id -u)" != 0 || chown 1000 .secrets $@ # the user of the containers
	@echo "wrote $@; kbtools finds the password with: export KBTOOLS_ELASTICSEARCH_USER=elastic" \
		"KBTOOLS_ELASTICSEARCH_PASSWORD_FILE=$@"

docs-check: $(READY)
	@$(COG) --verbosity=0 --check --check-fail-msg="run make docs" $(DOCUMENTS)

# What a user installs: built from the sdist, in an environment of its own, used from another folder.
wheel: $(READY)
	@rm -rf build/dist build/smoke && mkdir -p build/smoke
	@$(BIN)/python -m build --outdir build/dist > build/wheel.log 2>&1 || { cat build/wheel.log >&2; exit 1; }
	@$(PYTHON) -m venv build/smoke/venv
	@build/smoke/venv/bin/python -m pip install -qq build/dist/*.whl
	@cd build/smoke && PATH=$$PWD/venv/bin:$$PATH && cp $(CURDIR)/examples/sample.*.txt . \
		&& python -I -c "import kbtools, kbtools.scorers, kbtools.indexers, kbtools.serve, kbtools.cli" \
		&& { kbtools --version \
		&& kbtools index $(subst examples/,,$(SAMPLE)) --out sample.kb \
		&& kbtools query --kb sample.kb "who created the character harry potter" \
		&& KBTOOLS_CACHE=cache kbtools query --kb sample "who created the character harry potter"; } > smoke.log 2>&1 \
		|| { cat smoke.log >&2; exit 1; }

$(CORE): setup.cfg pyproject.toml | $(BIN)/python
	@echo "installing kbtools into $(VENV): a minute, once" >&2
	@$(BIN)/python -m pip install -qq --editable .
	@touch $@

$(SERVER): setup.cfg pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install -qq --editable '.[serve]'
	@touch $(CORE) $@

# Torch first, and this one: any other that satisfies the extra may bring gigabytes with it.
$(READY): setup.cfg pyproject.toml | $(BIN)/python
	@$(BIN)/python -c "import torch" 2> /dev/null || $(BIN)/python -m pip install -qq 'torch==2.13.0'
	@$(BIN)/python -m pip install -qq --editable '.[dev,train,crf,serve,minilm,ranker]'
	@$(KBTOOLS) encoder install > /dev/null
	@touch $(CORE) $(SERVER) $@

$(BENCH): setup.cfg pyproject.toml | $(BIN)/python
	@$(BIN)/python -c "import torch" 2> /dev/null || $(BIN)/python -m pip install -qq 'torch==2.13.0'
	@$(BIN)/python -m pip install -qq --editable '.[bench]'
	@touch $(CORE) $@

$(SITE): setup.cfg pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install -qq --editable '.[site]'
	@touch $(CORE) $@

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)
