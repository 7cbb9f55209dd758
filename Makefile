# `make help` lists the targets.

PYTHON ?= python3
TORCH ?= 2.13.0
VENV ?= .venv
BIN = $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES = $(wildcard csrc/*/*.[ch] src/fastprof/_core/*.p[yx][xd]) setup.py
READY = $(VENV)/.built $(VENV)/.installed
PYTHON_FILES = python tests bench examples setup.py
DEMO = .demo
MUTANTS ?= 20000
SEED ?= 1
FUZZ_SECONDS ?= 60
PART ?= 1/1
FUZZ = PYTHONPATH=tests:. $(BIN)/python -m
# Tests start hundreds of interpreters, which would compile all modules without cached bytecode.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadfile

.DEFAULT_GOAL = build
.PHONY: build environment help demo test test-all test-python test-torch test-without-traces opinfo bench gpu pictures \
	bench-annotate bench-smoke test-programs bench-instructions asan fuzz fuzz-c lint wheel dist-test clean

help:
	@echo "make                        create .venv, compile, install in editable mode"
	@echo "make environment            also install what tests and checks need"
	@echo "make demo [TRACE=file]      report on a generated capture, or on your own"
	@echo "make test [TORCH=none]      run the tests; TORCH is a version of torch, or none"
	@echo "make test-all               run all tests at full length, for some 12 minutes"
	@echo "make test-python PYTHON=python3.12 [NUMPY=1.26.4]"
	@echo "                            run the tests without torch on another Python"
	@echo "make test-torch TORCH=2.15.0"
	@echo "                            run the tests of annotation with another torch"
	@echo "make test-without-traces    skip the tests of real traces, as without \$$FASTPROF_DATA"
	@echo "make test-programs          run real programs under fastprof run"
	@echo "make lint                   check style and types"
	@echo "make asan                   test the C core and the modules under ASan and UBSan"
	@echo "make wheel                  build the sdist and a wheel in dist/"
	@echo "make dist-test              build the wheel and test it in an empty environment"
	@echo "make bench                  run the benchmark (bench/README.md)"
	@echo "make bench-smoke            run every contender once on a small capture"
	@echo "make bench-instructions     count the instructions of the C stages"
	@echo "make bench-annotate         measure the overhead of annotation"
	@echo "make pictures               draw the pictures of README and docs again"
	@echo "make gpu                    compare fastprof with what a GPU measures (docs/measured.md)"
	@echo "make fuzz [MUTANTS=20000] [SEED=1] [GROWTH=--every]"
	@echo "                            fuzz the readers and the markers for an hour"
	@echo "make fuzz-c [CC=clang]      fuzz the C readers, FUZZ_SECONDS=60 each"
	@echo "make opinfo [PART=1/4]      annotate torch's own operator samples; 1 to 2 hours"
	@echo "make clean                  delete environments and build products"

# Stamps in the environment record which steps are done.
$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.tools: $(VENV)/.made pyproject.toml
	$(PIP_INSTALL) "setuptools>=77" "cython>=3.1,<4"
	touch $@

$(VENV)/.built: $(VENV)/.tools $(SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

$(VENV)/.installed: $(VENV)/.tools pyproject.toml | $(VENV)/.built
	$(PIP_INSTALL) --no-build-isolation --editable .
	touch $@

$(VENV)/.test: $(VENV)/.tools pyproject.toml | $(VENV)/.built
	$(PIP_INSTALL) --no-build-isolation --editable ".[test]"
	touch $@ $(VENV)/.installed

$(VENV)/.torch-$(TORCH): $(VENV)/.made | $(VENV)/.test
ifneq ($(TORCH),none)
	$(PIP_INSTALL) torch==$(TORCH) nvtx lightning
endif
	touch $@

$(VENV)/.lint: $(VENV)/.made pyproject.toml
	$(PIP_INSTALL) "ruff>=0.6" "cython-lint>=0.16" "clang-format==18.1.8" \
		"build>=1.2" "mypy>=2.4,<2.5" "pandas-stubs>=2.0" "types-tqdm>=4.60" "numpy>=2.0" "apsw>=3.46"
	touch $@

build: $(READY)

# Everything that the other targets install, so that they can run in parallel.
environment: $(VENV)/.lint $(VENV)/.built $(VENV)/.test $(VENV)/.torch-$(TORCH)

ifdef TRACE
demo: $(READY)
	$(BIN)/fastprof summary "$(TRACE)"
	$(BIN)/fastprof layers --fold --limit 20 "$(TRACE)"
	$(BIN)/fastprof roofline --limit 10 "$(TRACE)"
	$(BIN)/fastprof "$(TRACE)"
else
demo: $(READY)
	mkdir -p $(DEMO)
	$(BIN)/python -m bench.generate --kernels 1000 --seed 1 -o $(DEMO)/net.sqlite
	$(BIN)/fastprof parse $(DEMO)/net.sqlite -o $(DEMO)/net.dict
	$(BIN)/fastprof prof -w 150 $(DEMO)/net.dict -o $(DEMO)/net.txt
	$(BIN)/fastprof prof -w 150 -c layer,trace,dir,op,kernel,params,sil,tc,flops,bytes \
		$(DEMO)/net.sqlite | head -n 30
	$(BIN)/fastprof summary -w 120 $(DEMO)/net.sqlite
	$(BIN)/fastprof layers -w 120 --fold $(DEMO)/net.sqlite
	$(BIN)/fastprof roofline -w 120 --limit 10 $(DEMO)/net.sqlite
	$(BIN)/fastprof $(DEMO)/net.sqlite
endif

test: $(VENV)/.built $(VENV)/.test $(VENV)/.torch-$(TORCH)
	$(PYTEST)

test-all: $(VENV)/.built $(VENV)/.test $(VENV)/.torch-$(TORCH)
	HYPOTHESIS_PROFILE=full $(PYTEST)

# As in a clone: no real traces, and another seed of the hash in each process.
test-without-traces: $(VENV)/.built $(VENV)/.test
	mkdir -p $(VENV)/no-traces
	env -u PYTHONHASHSEED FASTPROF_DATA=$(abspath $(VENV)/no-traces) $(BIN)/python -m pytest -n 2 tests/real

opinfo: $(VENV)/.built $(VENV)/.test $(VENV)/.torch-$(TORCH)
	PYTHONPATH=tests $(BIN)/python -m unit.annotate.opinfo_sweep --part $(PART)

# Real programs, in an environment that contains the main one. There is no CPU build of torchvision:
# it is kept apart, without its requirements, for the programs that define its operators first.
PROGRAMS = $(VENV)/programs
$(PROGRAMS)/.made: pyproject.toml | $(VENV)/.torch-$(TORCH)
	$(BIN)/python -m venv --clear $(PROGRAMS)
	$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % \
		sysconfig.get_path('purelib'))" > main.pth
	mv main.pth $$($(PROGRAMS)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")
	$(PROGRAMS)/bin/python -m pip install --quiet --disable-pip-version-check "fastprof[programs]"
	$(PROGRAMS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target $(PROGRAMS)/vision "timm>=1.0,<2" "torchvision>=0.20,<1"
	touch $@

test-programs: $(VENV)/.built $(PROGRAMS)/.made
	FASTPROF_PROGRAMS=1 FASTPROF_VISION=$(abspath $(PROGRAMS)/vision) $(PROGRAMS)/bin/python \
		-m pytest -n auto tests/programs

# Another Python, and optionally another numpy, in a separate environment.
NUMPY ?= any
OTHER = .venv-$(notdir $(PYTHON))-numpy-$(NUMPY)
test-python:
	$(MAKE) $(OTHER)/.built $(OTHER)/.test $(OTHER)/.torch-none \
		PYTHON=$(PYTHON) VENV=$(OTHER) TORCH=none
ifneq ($(NUMPY),any)
	$(OTHER)/bin/python -m pip install --quiet "numpy==$(NUMPY)"
endif
	$(OTHER)/bin/python -m pytest -n auto --dist loadfile

# Annotation with another torch, in a separate environment: the wheels are large.
OF_TORCH = .venv-torch-$(TORCH)
TORCH_TESTS = $(wildcard tests/unit/annotate/test_*.py) tests/unit/annotate/program/test_recording.py
test-torch:
	$(MAKE) $(OF_TORCH)/.built $(OF_TORCH)/.test $(OF_TORCH)/.torch-$(TORCH) VENV=$(OF_TORCH)
	PYTHONDONTWRITEBYTECODE= $(OF_TORCH)/bin/python -m pytest -n auto --dist loadfile $(TORCH_TESTS)

bench: $(READY)
	$(BIN)/python -m bench

bench-smoke: $(READY)
	$(BIN)/python -m bench --smoke

bench-instructions: $(VENV)/.built
	$(BIN)/python -m bench instructions

bench-annotate: $(VENV)/.built $(VENV)/.test $(VENV)/.torch-$(TORCH)
	$(BIN)/python -m bench annotate

pictures: $(READY) $(VENV)/.test
	$(BIN)/python docs/make_pictures.py

# On a machine with an NVIDIA GPU, with an environment that has torch for it.
GPU_PYTHON = python3
gpu:
	$(GPU_PYTHON) -m bench.gpu

asan: $(VENV)/.built $(VENV)/.test
	$(BIN)/python -m pytest tests/csrc --run-slow -n 2 --dist loadfile

fuzz: fuzz-c
	$(FUZZ) fuzz --mutants $(MUTANTS) --seed $(SEED)
	$(FUZZ) fuzz --shapes --seconds 300
	$(FUZZ) fuzz.of_smallest
	$(FUZZ) fuzz.growth $(GROWTH)
	$(BIN)/python -m pip install --quiet atheris || echo "atheris is not available: skipping the markers"
	! $(BIN)/python -c "import atheris" || $(FUZZ) fuzz.markers -max_total_time=$(FUZZ_SECONDS)

fuzz-c: $(VENV)/.built $(VENV)/.test
	CC="$(CC)" $(FUZZ) fuzz.native --seconds $(FUZZ_SECONDS) --seed $(SEED)

lint: $(VENV)/.lint
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/cython-lint src/fastprof
	$(BIN)/clang-format --dry-run --Werror csrc/*/*.[ch] tests/csrc/*.c tests/support/nvtx_tool/*.[ch] \
		tests/support/rocprof_tool/*.c \
		tests/fuzz/native/*.c \
		bench/callgrind/*.[ch] bench/floor/*.c

# The sdist, and the wheel built from it.
wheel: $(VENV)/.lint
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

dist-test: wheel $(VENV)/.built $(VENV)/.test
	FASTPROF_DIST=dist $(BIN)/python -m pytest tests/dist

clean:
	rm -rf $(VENV) .venv-* build dist $(DEMO) python/fastprof/_core/*.so python/*.egg-info
