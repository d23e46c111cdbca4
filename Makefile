# Every target does its own set-up: a virtual environment in .venv, and Apache Kafka's jars in build/kafka where tests
# need them. Only what changed is done again.

VENV  := .venv
BIN   := $(VENV)/bin
# Two workers, as many as the smallest machine that this is tested on has cores, for tests that compute; one more where
# tests also wait for servers. tests/conftest.py has one begin with Spark, and another with Kafka.
TESTS := --numprocesses 2 --dist worksteal
ALL_TESTS := --numprocesses 3 --dist worksteal -p tests.progress
# `make SPARK=4.0.0 VENV=build/pyspark-4.0.0 setup` installs another Spark than the usual one.
CONSTRAINTS := $(if $(SPARK),$(VENV)/constraints.txt,constraints.txt)
# Build tools are installed like the rest, not into a place of their own, so that the constraints hold for them too:
# Octavo's own (hatchling, editables), and setuptools and wheel for what comes as an sdist (PySpark).
PIP   := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
# The releases besides, whose controllers members of Octavo are tried with in the soak.
OLDER := $(shell sed -n 's/.*<kafka\.4\.[0-9]*\.version>\([0-9.]*\)<.*/\1/p' tests/kafka/pom.xml)
POMS  := $(wildcard tests/kafka/pom.xml tests/kafka/*/pom.xml)
SPARK_POM := tests/spark/pom.xml

# The versions that tests are run with (`make versions`), and that a release names; README.md and pyproject.toml have the
# same.
TESTED := 3.11 3.12 3.13 3.14
# The older versions of Spark that the core of its tests is run with (`make sparks`): the first of 4.0, which is the
# oldest that there can be, and where there is one, the version of which Spark's Kafka connector is of the same. README.md,
# docs/spark.md and pyproject.toml name them too, with the newest, which constraints.txt has.
SPARKS := 4.0.0 4.1.1 4.2.0
# The newest of them that Delta and Iceberg have packages for (tests/spark/lakes/pom.xml).
LAKES_SPARK := 4.1.1
SPARK_TESTS := tests/unit/spark $(addprefix tests/spark/test_,session.py connector.py streams.py sink.py sink_streams.py sink_kafka.py)
# What asks the system, in which other systems than Linux differ: files, locks and forks, sockets, processes, and memory.
WITHOUT_LINUX := $(addprefix tests/unit/,log server broker client cli inspect/verify inspect/report \
	records/kernels/compilation) tests/server tests/clients/test_matrix.py
# The first Python on the PATH of a tested version, else the first that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for check in 'version in "$(TESTED)".split()' 'sys.version_info >= (3, 11)'; do \
	for python in python3 $(TESTED:%=python%); do \
		$$python -c "import ensurepip, sys, venv; version = '%d.%d' % sys.version_info[:2]; sys.exit(not ($$check))" \
			2>/dev/null && echo $$python && exit; done; done)

# Says what is about to be done, and how long it took.
STEP  := tests/machines/step.sh
# Ends with 0 if these programs are there.
HAVE  := $(BIN)/python -m tests.machines.programs
# What is not there is installed, where that is allowed; `make INSTALL=no` forbids it.
BRING := $(BIN)/python -m tests.machines.bring
export INSTALL
MVN   := mvn --batch-mode --quiet -Dstyle.color=never

# Tests start hundreds of processes, each of which would compile Octavo and the tests anew if bytecode were not kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run check quick test test-all lint style docs programs kafka older clients lakes constraints golden bench soak versions older-sparks sparks without-linux clean
.DEFAULT_GOAL := help

help: ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/ready-to-test ## create .venv and install Octavo with all that its tests need

run: $(VENV)/ready-to-run ## show what Octavo does
	@$(BRING) demo
	@$(BIN)/octavo demo

check: lint ## lint, types, layers, unit and damage tests: two minutes, and no Java
	$(BIN)/pytest $(TESTS) -m 'not java and not long and not soak and not exhaustive' tests/unit tests/corruption

quick: $(VENV)/ready-to-test ## ruff, and the unit tests of the folders that were changed: under a minute
	$(BIN)/python -m tests.quick

test: programs style kafka clients ## lint, types, layers, then every feature once: 12 minutes, set-up included
	@mkdir -p build # types are checked beside the tests, and told of at the end if they are wrong
	@{ $(BIN)/mypy > build/types.txt 2>&1 && rm build/types.txt; } & \
		$(BIN)/pytest $(ALL_TESTS); status=$$?; wait; test ! -e build/types.txt || { cat build/types.txt; exit 1; }; exit $$status

test-all: programs $(VENV)/ready-to-test kafka clients ## what `make test` leaves out: other versions, seeds and combinations
	$(BIN)/pytest $(ALL_TESTS) -m 'exhaustive and not soak'
	@$(MAKE) --no-print-directory without-linux

lint: style ## ruff, mypy --strict, import-linter
	$(BIN)/mypy

style: $(VENV)/ready-to-test # what `lint` does in seconds
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --cache-dir build/import-linter

docs: $(VENV)/ready-to-test ## build the documentation site, with the API reference, in build/docs/html
	$(BIN)/python docs/site build/docs

programs: $(VENV)/ready-to-run ## install what tests need beside Python (a JDK, Maven, Chromium, kcat, Node, Go), where that is allowed
	@$(if $(SPARK),,$(BRING) tests) # an older Spark's environment is the second

kafka: build/kafka/fetched build/spark/fetched ## fetch the Apache Kafka releases that tests ask, and Spark's connector

older: $(OLDER:%=build/kafka/fetched-%) ## fetch releases of Apache Kafka that only the soak needs

clients: build/clients/kafkajs/fetched build/clients/franz-go/driver ## fetch the clients that tests try with the broker

lakes: build/lakes/fetched ## fetch Delta's and Iceberg's packages for Spark, and the Spark that they are for
	$(MAKE) --no-print-directory VENV=build/pyspark-$(LAKES_SPARK) SPARK=$(LAKES_SPARK) setup

constraints: $(VENV)/ready-to-test ## after a change of constraints.txt: ask the package index which Pythons can have them
	$(BIN)/python -m tests.packaging.index

golden: $(VENV)/ready-to-test kafka ## have Apache Kafka write tests/golden again
	$(BIN)/python -m tests.golden.make

bench: $(VENV)/ready-to-test kafka ## measure against other readers and writers
	$(BIN)/python -m benchmarks records
	$(BIN)/python -m benchmarks log
	$(BIN)/python -m benchmarks compaction
	$(BIN)/python -m benchmarks spark_read
	$(BIN)/python -m benchmarks spark_export
	$(BIN)/python -m benchmarks spark_write
	$(BIN)/python -m benchmarks broker
	$(BIN)/python -m benchmarks groups
	$(BIN)/python -m benchmarks cluster

# How many minutes the soak takes, without set-up. `SEED` does a run again, and `ONLY` does some kinds of soak alone.
MINUTES ?= 60
soak: $(VENV)/ready-to-test kafka older clients lakes older-sparks ## fuzzing, kills, faults and other versions, each for its share of MINUTES=60
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) $(SEED:%=--seed %) $(ONLY:%=--only %)

versions: ## set-up and unit tests with each tested version of Python that is on the PATH
	@failed=; for version in $(TESTED); do \
		python$$version -c '' 2>/dev/null || { echo "Python $$version: not on the PATH, so not tested"; continue; }; \
		echo "Python $$version"; \
		$(MAKE) --no-print-directory VENV=build/python$$version PYTHON=python$$version setup && \
			build/python$$version/bin/pytest -q $(TESTS) tests/unit tests/corruption || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "failed with Python$$failed" >&2; exit 1; }

older-sparks: kafka
	@for version in $(SPARKS); do \
		$(MAKE) --no-print-directory VENV=build/pyspark-$$version SPARK=$$version setup build/spark/fetched-$$version || exit; \
	done

without-linux: $(VENV)/ready-to-test ## types as on macOS, and the tests of what asks the system without Linux's own means
	$(BIN)/mypy --platform darwin --cache-dir build/mypy-darwin src
	PYTHONPATH=$(CURDIR)/tests/without_linux $(BIN)/python -m pytest $(TESTS) -p tests.without_linux \
		-m 'not java and not soak and not exhaustive' -k 'not test_matrix or confluent' $(WITHOUT_LINUX)

sparks: older-sparks ## the core of the Spark tests with each older version of Spark
	@failed=; for version in $(SPARKS); do \
		echo "Spark $$version"; \
		build/pyspark-$$version/bin/pytest -q $(SPARK_TESTS) || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "failed with Spark$$failed" >&2; exit 1; }

clean: ## remove all that was built or fetched
	rm -rf $(VENV) build dist

ifdef SPARK
$(VENV)/constraints.txt: constraints.txt
	@mkdir -p $(VENV)
	sed 's/^pyspark==.*/pyspark==$(SPARK)/' constraints.txt > $@
endif

$(VENV)/ready-to-run: pyproject.toml $(CONSTRAINTS)
	@test -n "$(PYTHON)" || { \
		echo "Octavo needs Python, one of $(TESTED), with its venv module (Debian: python3-venv): there is none on the PATH." >&2; \
		exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot create virtual environments: install its venv module (Debian: python3-venv)." >&2; exit 1; }
	@test -x $(BIN)/python || $(STEP) "Creating $(VENV) with $$($(PYTHON) --version)" $(PYTHON) -m venv $(VENV)
	@$(STEP) "Installing pip, as constraints.txt has it" $(PIP) pip
	@$(STEP) "Installing what builds Octavo" $(PIP) hatchling editables setuptools wheel
	@$(STEP) "Installing Octavo, with Arrow, Numba and other libraries" $(PIP) --no-build-isolation --editable .
	@$(STEP) "Installing Spark and librdkafka, which the demo shows it with" $(PIP) --no-build-isolation --editable '.[demo]'
	@touch $@

$(VENV)/ready-to-test: $(VENV)/ready-to-run
	@$(STEP) "Installing what tests need" $(PIP) --no-build-isolation --editable '.[dev]'
	@touch $@

# Without a JDK and Maven nothing is fetched, and the tests that want it are left out.
build/kafka/fetched: $(POMS) | programs
	@$(HAVE) javac mvn || exit 0; \
		$(STEP) "Fetching Apache Kafka" $(MVN) --file tests/kafka/pom.xml package && touch $@

build/kafka/fetched-%: | build/kafka/fetched
	@$(HAVE) javac mvn || exit 0; \
		$(STEP) "Fetching Apache Kafka $*" $(MVN) -Dkafka.broker.version=$* --file tests/kafka/pom.xml --projects broker package && touch $@

build/spark/fetched: $(SPARK_POM) | build/kafka/fetched
	@$(HAVE) javac mvn || exit 0; \
		$(STEP) "Fetching Spark's connector for Kafka" $(MVN) --file $(SPARK_POM) package && touch $@

build/spark/fetched-%: $(SPARK_POM) | build/spark/fetched
	@$(HAVE) javac mvn || exit 0; \
		$(STEP) "Fetching the connector of Spark $*" $(MVN) -Dspark.version=$* --file $(SPARK_POM) package && touch $@

build/lakes/fetched: tests/spark/lakes/pom.xml | build/kafka/fetched
	@$(HAVE) javac mvn || exit 0; \
		$(STEP) "Fetching Delta and Iceberg for Spark" $(MVN) --file $< package && touch $@

build/clients/kafkajs/fetched: tests/clients/kafkajs/package.json | programs
	@$(HAVE) node || exit 0; \
		mkdir -p $(@D) && cp $< $(@D)/package.json && PATH="$(abspath $(BIN)):$$PATH" $(STEP) "Fetching kafkajs" \
		npm install --prefix $(@D) --no-package-lock --no-audit --no-fund --loglevel=error && touch $@

# What Go fetches and caches stays in build too.
build/clients/franz-go/driver: $(wildcard tests/clients/franz_go/*) | programs
	@$(HAVE) go || exit 0; \
		mkdir -p $(@D) && PATH="$(abspath $(BIN)):$$PATH" CGO_ENABLED=0 GOMODCACHE=$(CURDIR)/build/clients/go/modules \
		GOCACHE=$(CURDIR)/build/clients/go/cache GOFLAGS='-mod=mod -modcacherw' \
		$(STEP) "Building a client with franz-go" go build -C tests/clients/franz_go -o $(CURDIR)/$@ .
