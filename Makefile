# Everything a developer does, by name. Each target installs and builds what it needs first.
#
#   make demo     train on the 5,000 MNIST images that come with a package, on the xla device
#   make check    the quick tests, C++ and Python: two minutes
#   make test     all that a change needs: C++ (ctest) and Python (pytest), a share of torch's databases
#   make test-all every test there is, the second engine, sanitizers, fuzzers and soak among them: hours
#   make conformance   torch's whole databases of operators, modules and optimizers on the device
#   make test-draws    random numbers by the hundred million, where rare events happen
#   make test-programs a hundred thousand random programs of operators against eager
#   make test-sizes    random programs with a hundred thousand sizes, against eager and exact programs, and in a world
#   make test-clients  Lightning, accelerate, transformers, ignite and Keras, from PyPI, train on the device
#   make test-tensorflow  TensorFlow, 250 MB from PyPI, loads the saved models that are made of exports
#   make test-upstream  PyTorch/XLA's own tests: CHECKOUT is pytorch/xla at v2.9.0; UPSTREAM_ARGS="--group core --only gru"
#   make test-recipes  the recipes of docs/recipes: each is applied to a copy of the tree, built and tried
#   make test-failures  10,000 forks beside working threads, a failure of each allocation (FAILURE_SECONDS of those
#                 of a compile), a network that is away, clients that are stopped for five minutes: half an hour
#   make sanitize the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer, then, where threads
#                 meet, they and Python's under ThreadSanitizer; SANITIZERS=thread (or address) for one
#   make soak     millions of steps, thousands of shapes, clients and epochs: memory stays bounded
#   make fuzz     what comes from outside, and random programs, under libFuzzer and both sanitizers, FUZZ_SECONDS each
#   make fuzz-long    the same, an hour each
#   make bench    compare the speed with eager, torch.compile and JAX
#   make bench-check  the processor time of sixty small programs, against eager's: has a share grown since it was recorded?
#   make build    the libraries, into torch_xla/lib/
#   make docs     the documentation as a site, build/docs/html: guide, reference, and how it works
#   make explain-pipeline   the table of the CPU engine's passes
#   make lint     check the format and lint; `make format` mends the format
#   make stubs    check the type stubs against the built extension
#   make lock     newer packages: write requirements/*.txt, with the hashes of what scripts/install takes
#   make wheel    dist/torch_xla-*.whl, of what is built
#   make test-wheel   what the wheel needs of a system, and that it trains where there is no compiler and no library of ours
#   make clean    remove what was built; the virtual environment stays

PYTHON := .venv/bin/python
BUILD ?= build
BUILD_TYPE ?= Release
FAILURE_SECONDS ?= 1800
JOBS ?= $(shell nproc)
export PYTHONPATH := $(CURDIR)
# Tests start hundreds of processes, and each would compile the package's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test test-all conformance test-upstream test-clients test-tensorflow test-failures sanitize soak fuzz fuzz-long test-draws test-programs test-sizes test-recipes bench bench-check build install install-test install-clients install-tensorflow build-test ctest pytest lint format stubs lock wheel test-wheel clean explain-pipeline docs

demo: build
	$(PYTHON) examples/mnist.py $(DEMO_ARGS)

install:
	@scripts/install

install-test:
	@scripts/install --test

build: install
	@BUILD_DIR=$(BUILD) BUILD_TYPE=$(BUILD_TYPE) JOBS=$(JOBS) scripts/build

build-test: install-test
	@BUILD_DIR=$(BUILD) BUILD_TYPE=$(BUILD_TYPE) JOBS=$(JOBS) scripts/build --tests

test: ctest pytest

test-all: PYTEST_TIER :=
test-all: CTEST_TIER :=
test-all: ctest pytest conformance docs test-wheel test-clients test-tensorflow test-draws test-programs test-sizes test-recipes test-failures sanitize fuzz soak

# Many of them wait for one another more than they compute, hence more at a time than there are processors.
# Programs with many short tests are one test each, but in `make test-all`: `.venv/bin/ctest --test-dir build -R name` runs one.
CTEST_TIER := -C check -LE each
ctest: build-test
	.venv/bin/ctest --test-dir $(BUILD) --output-on-failure --timeout 600 -j $$((2 * $(JOBS))) $(CTEST_TIER) $(CTEST_ARGS)

# JAX, the oracle and foreign client, and torch in processes of their own. Tests of Python often wait for processes.
MORE_JOBS := $$(($(JOBS) + 1))
PYTEST_TIER := -m "not exhaustive"
pytest: export TORCH_XLA_PYTEST_MATCHED := $(CURDIR)/$(BUILD)/pytest-matched
pytest: build-test
	@rm -f $(TORCH_XLA_PYTEST_MATCHED)
	$(PYTHON) -m pytest -n $(JOBS) tests/hlo tests/pjrt $(PYTEST_ARGS)
	$(PYTHON) -m pytest -n $(MORE_JOBS) --dist loadfile --no-loadscope-reorder tests/python tests/programs $(PYTEST_TIER) $(PYTEST_ARGS)
	$(PYTHON) -m pytest -n $(JOBS) tests/conformance --share 30 --programs 1000 $(PYTEST_ARGS)
	TORCH_XLA_INTERPRET=always $(PYTHON) -m pytest -n $(JOBS) tests/conformance/test_operators.py --share 120 $(PYTEST_ARGS)
	@test -e $(TORCH_XLA_PYTEST_MATCHED) || { echo "No test matches $(PYTEST_ARGS)." >&2; exit 5; }

check: build-test
	.venv/bin/ctest --test-dir $(BUILD) --output-on-failure --timeout 600 -j $$((2 * $(JOBS))) -C check -L check $(CTEST_ARGS)
	$(PYTHON) -m pytest -n $(JOBS) tests/hlo -m "not slow" $(PYTEST_ARGS)
	$(PYTHON) -m pytest -n $(MORE_JOBS) --dist loadfile --no-loadscope-reorder tests/python tests/programs -m "not slow and not exhaustive" $(PYTEST_ARGS)

# Their helpers' packages are none of ours: pip install --no-deps --target FOLDER absl-py expecttest parameterized, and EXTRA=FOLDER
test-upstream: build
	PYTHONPATH=$(CURDIR):$(EXTRA) $(PYTHON) tests/upstream/run.py $(CHECKOUT) $(UPSTREAM_ARGS)

install-clients:
	@scripts/install --clients

install-tensorflow:
	@scripts/install --tensorflow

conformance: build-test
	$(PYTHON) -m pytest -n $(JOBS) tests/conformance --counts $(BUILD)/conformance.json $(PYTEST_ARGS)
	TORCH_XLA_INTERPRET=always $(PYTHON) -m pytest -n $(JOBS) tests/conformance/test_operators.py $(PYTEST_ARGS)

# Ten times what an ordinary run draws, and more of what happens once in 2^24 draws.
test-draws: build-test
	$(PYTHON) -m pytest tests/python/test_draws.py --draws 100000000 $(PYTEST_ARGS)

test-programs: build-test
	$(PYTHON) -m pytest -n $(JOBS) tests/conformance/test_random_programs.py --operator-programs 100000 $(PYTEST_ARGS)
	TORCH_XLA_TEST_FIRST_PROGRAM=1000 TORCH_XLA_TEST_PROGRAMS=10000 $(BUILD)/tests/fuzz/random_programs_test

test-sizes: build-test
	$(PYTHON) tests/python/sized_programs.py --steps 100000
	$(PYTHON) tests/python/sized_programs.py --steps 10000 --peer exact
	$(PYTHON) tests/python/sized_programs.py --steps 20000 --processes 2

test-recipes: install-test
	$(PYTHON) tests/recipes.py $(RECIPES)

test-clients: install-clients build
	.venv-clients/bin/python -m pytest -n 2 --dist loadfile tests/clients $(PYTEST_ARGS)

test-tensorflow: install-tensorflow build
	.venv-tensorflow/bin/python -m pytest tests/saved_model $(PYTEST_ARGS)

test-failures: build-test
	TORCH_XLA_TEST_FORKS=10000 $(BUILD)/tests/lazy/lazy_test --gtest_filter='Fork.*'
	TORCH_XLA_TEST_FORKS=5000 $(BUILD)/tests/pjrt/pjrt_test --gtest_filter='*.ForksBesideCollectives'
	$(BUILD)/tests/pjrt/pjrt_failures_test --gtest_filter=-*.OfAllocationsOfACompile
	seq $(JOBS) | TORCH_XLA_TEST_SECONDS=$(FAILURE_SECONDS) xargs -P $(JOBS) -I{} \
	  env TORCH_XLA_TEST_EVERY_FAILURE={}/$(JOBS) $(BUILD)/tests/pjrt/pjrt_failures_test --gtest_filter=*.OfAllocationsOfACompile
	TORCH_XLA_TEST_LINK_SECONDS=10 $(PYTHON) -m pytest tests/python/test_network_link.py
	TORCH_XLA_TEST_STOP_SECONDS=310 $(PYTHON) -m pytest tests/python/test_runtime_server.py -k stopped

sanitize: install-test
	@JOBS=$(JOBS) scripts/sanitize $(SANITIZERS)

soak: build
	$(PYTHON) tests/python/soak.py steps --times 1000000
	$(PYTHON) tests/python/soak.py shapes --times 20000
	$(PYTHON) tests/python/soak.py reconnects --times 1000
	$(PYTHON) tests/python/soak.py epochs --times 1000

fuzz: install-test
	@JOBS=$(JOBS) FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) scripts/fuzz $(FUZZ_TARGETS)

fuzz-long:
	$(MAKE) fuzz FUZZ_SECONDS=3600

bench: install-test build
	$(PYTHON) -m benchmarks.run $(BENCH_ARGS)

bench-check: install-test build
	$(PYTHON) -m benchmarks.small --threads 1 --check $(BENCH_ARGS)

docs: build
	@scripts/install --docs
	@.venv-docs/bin/python docs/site/build.py $(BUILD)/docs

lint: install-test
	@scripts/lint

format: install-test
	@scripts/lint --fix

stubs: build-test
	$(PYTHON) scripts/check_stubs.py

lock: install
	$(PYTHON) scripts/lock.py

explain-pipeline: build
	@cmake --build $(BUILD) --target hlo_opt > /dev/null
	@$(BUILD)/tools/hlo_opt --list

wheel: build
	@BUILD_DIR=$(BUILD) JOBS=$(JOBS) scripts/wheel

test-wheel: install-test wheel
	$(PYTHON) -m pytest tests/wheel $(PYTEST_ARGS)

clean:
	rm -rf $(BUILD) build-sanitize build-tsan build-fuzz dist demo-output torch_xla/lib torch_xla/include torch_xla/share
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
