# make demo [TRACE=file]   build, and report on a small generated export or on your own file
# make test [TORCH=none]   build, and run all tests; TORCH names a version of torch, or none
# make opinfo [PART=1/4]   torch's own samples of all its operators and types, annotated and not: an hour or two on a core
# make bench               measure (bench/README.md)
# make bench-annotate      what annotation adds to a call of torch
# make bench-smoke         all contenders once on a small export, no limits
# make bench-instructions  instructions of the C stages, against those kept
# make asan                the C core and the compiled modules under sanitizers, with bounds checks
# make fuzz [MUTANTS=20000] [SEED=1]   mutated files, C readers and markers under fuzzers: an hour
# make fuzz-c [CC=clang]   the C readers only, FUZZ_SECONDS=60 each
# make wheel, make dist-test   sdist and wheel; the wheel in an empty environment
# make test-python PYTHON=python3.12 [NUMPY=1.26.4]   tests without torch, on another Python
# make lint, make clean

PYTHON ?= python3
TORCH ?= 2.13.0
VENV ?= .venv
BIN = $(VENV)/bin
SOURCES = $(wildcard csrc/*.[ch] src/fastprof/*.p[yx][xd]) setup.py pyproject.toml
PYTHON_FILES = python tests bench examples setup.py
DEMO = .demo
MUTANTS ?= 20000
SEED ?= 1
FUZZ_SECONDS ?= 60
PART ?= 1/1
FUZZ = PYTHONPATH=tests:. $(BIN)/python -m

.PHONY: demo test test-python opinfo bench bench-annotate bench-smoke bench-instructions asan fuzz fuzz-c lint \
	wheel dist-test clean build

# Each step leaves a stamp, so that a second run does nothing that is done.
$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.tools: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet "setuptools>=77" "cython>=3.0.8,<4" "numpy>=2.0"
	touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable .
	touch $@

$(VENV)/.test: $(VENV)/.built
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[test]"
	touch $@

$(VENV)/.torch-$(TORCH): $(VENV)/.made
ifneq ($(TORCH),none)
	$(BIN)/python -m pip install --quiet torch==$(TORCH) nvtx lightning
endif
	touch $@

$(VENV)/.lint: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet "ruff>=0.6" "cython-lint>=0.16" "clang-format==18.1.8" \
		"build>=1.2" "mypy>=2.4,<2.5" "pandas-stubs>=2.0" "types-tqdm>=4.60" "numpy>=2.0" "apsw>=3.46"
	touch $@

build: $(VENV)/.built

ifdef TRACE
demo: $(VENV)/.built
	$(BIN)/fastprof prof -w 150 "$(TRACE)"
else
demo: $(VENV)/.built
	mkdir -p $(DEMO)
	$(BIN)/python -m bench.generate --kernels 1000 --seed 1 -o $(DEMO)/net.sqlite
	$(BIN)/fastprof parse $(DEMO)/net.sqlite -o $(DEMO)/net.dict
	$(BIN)/fastprof prof -w 150 $(DEMO)/net.dict -o $(DEMO)/net.txt
	$(BIN)/fastprof prof -w 150 -c layer,trace,dir,op,kernel,params,sil,tc,flops,bytes \
		$(DEMO)/net.sqlite | head -n 60
	@echo "... the whole report: $(BIN)/fastprof prof -w 150 $(DEMO)/net.sqlite"
endif

test: $(VENV)/.test $(VENV)/.torch-$(TORCH)
	$(BIN)/python -m pytest -n auto --dist loadfile

opinfo: $(VENV)/.test $(VENV)/.torch-$(TORCH)
	PYTHONPATH=tests $(BIN)/python -m opinfo_sweep --part $(PART)

# Another Python, and with NUMPY another numpy, in an environment of their own.
NUMPY ?= any
OTHER = .venv-$(notdir $(PYTHON))-numpy-$(NUMPY)
test-python:
	$(MAKE) $(OTHER)/.test $(OTHER)/.torch-none PYTHON=$(PYTHON) VENV=$(OTHER) TORCH=none
ifneq ($(NUMPY),any)
	$(OTHER)/bin/python -m pip install --quiet "numpy==$(NUMPY)"
endif
	$(OTHER)/bin/python -m pytest -n auto --dist loadfile

bench: $(VENV)/.built
	$(BIN)/python -m bench

bench-smoke: $(VENV)/.built
	$(BIN)/python -m bench --smoke

bench-instructions: $(VENV)/.built
	$(BIN)/python -m bench instructions

bench-annotate: $(VENV)/.test $(VENV)/.torch-$(TORCH)
	$(BIN)/python -m bench annotate

asan: $(VENV)/.test
	$(BIN)/python -m pytest tests/csrc --run-slow -n 2 --dist loadfile

fuzz: fuzz-c
	$(FUZZ) fuzz --mutants $(MUTANTS) --seed $(SEED)
	$(FUZZ) fuzz --shapes --seconds 300
	$(BIN)/python -m pip install --quiet atheris || echo "no atheris here: markers are left out"
	! $(BIN)/python -c "import atheris" || $(FUZZ) fuzz.markers -max_total_time=$(FUZZ_SECONDS)

fuzz-c: $(VENV)/.test
	CC="$(CC)" $(FUZZ) fuzz.native --seconds $(FUZZ_SECONDS) --seed $(SEED)

lint: $(VENV)/.lint
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cython-lint src/fastprof
	$(BIN)/clang-format --dry-run --Werror csrc/*.[ch] tests/csrc/*.c tests/nvtx_tool/*.[ch] \
		tests/fuzz/native/*.c \
		bench/callgrind/*.[ch] bench/floor/*.c

# The source distribution, and of it the wheel.
wheel: $(VENV)/.lint
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

dist-test: wheel $(VENV)/.test
	FASTPROF_DIST=dist $(BIN)/python -m pytest tests/dist

clean:
	rm -rf $(VENV) .venv-* build dist $(DEMO) python/fastprof/*.so python/*.egg-info src/fastprof/*.c
