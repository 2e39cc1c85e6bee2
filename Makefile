# Thin over the CMake presets (CMakePresets.json); `make` alone lists the targets.
PREFIX ?= /usr/local
ARGS ?=
FULL ?=
TIME ?= 120
SCALE ?= 20
GOAL ?= 0
ONLY ?=

FOR ?= demo test

.PHONY: help deps demo server quick test test-all check bench scaling programs drainability site platforms tslab build install install-lib uninstall dist packages soak fuzz mutants clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

deps: ## install the Debian packages that targets need (FOR="demo test"; as root or by sudo), and say which
	@scripts/install-deps.sh $(FOR)

demo: ## build the request server demo and run it (ARGS=--leak: one route leaks; ARGS=--help: all flags)
	@scripts/install-deps.sh --root demo
	@scripts/build.sh demo
	@build/demo/tslab_demo $(ARGS)

server: ## build the HTTP server demo and load it under glibc, jemalloc, mimalloc and phases: half an hour (ARGS="--seconds 60"; ARGS=--help)
	@scripts/install-deps.sh --root server
	@scripts/get-peers.sh jemalloc mimalloc
	@scripts/build.sh server
	@demo/server/measure.py --json build/server/server.json $(ARGS)

quick: ## the law, and unit and contract tests but for the long ones: a minute after a small change; installs nothing
	@cmake --preset gcc-release >/dev/null
	@cmake --build --preset gcc-release --target temporal_slab temporal_slab_preload unit_programs contract_programs
	@TSLAB_TEST_SCALE=0.25 ctest --preset gcc-release -L '^(law|unit|contract)$$' -E 'test_(between|ended_steps|lent|stepped|stopped)$$|/(address_space|close_race)$$'

test: ## build and run the library's own tests with gcc; needs compilers and libraries only (VERBOSE=1 shows each test)
	@scripts/run-tests.sh core

test-all: ## every test: gcc, clang, ThreadSanitizer, AddressSanitizer, tools, servers, browser, models; skips must be listed
	@scripts/run-tests.sh -k -s 1 tsan asan clang-release core rest

check: ## the same as test-all with three times the work: about an hour on two cores
	@scripts/run-tests.sh -k -s 3 tsan asan clang-release core rest

bench: ## fetch the peers, build the benchmark, run its short form (FULL=1: the long one; ARGS="..." go to the program)
	@scripts/install-deps.sh --root bench
	@scripts/get-peers.sh
	@scripts/build.sh bench
	build/bench/tslab_bench $(if $(FULL),,--quick) $(ARGS)

scaling: ## how allocators scale with threads, up to all processors, as a table to report; minutes (ARGS="--threads 16"; ARGS=--help: all flags)
	@scripts/install-deps.sh --root bench
	@scripts/get-peers.sh
	@scripts/build.sh bench
	@bench/scaling.py $(ARGS)

programs: ## run programs and servers under the preload library, glibc's malloc and peers (ARGS="--reps 3"; ARGS=--help: all flags)
	@scripts/install-deps.sh --root programs
	@scripts/get-peers.sh jemalloc mimalloc tcmalloc snmalloc
	@scripts/build.sh bench
	@bench/programs/run.py $(ARGS)

drainability: ## build and run the drainability experiment, docs/results/drainability.md (ARGS="..." goes to the program)
	@scripts/install-deps.sh --root drainability
	@scripts/build.sh bench
	build/bench/tslab_drainability $(ARGS)

site: ## build the documentation's site in build/site, with a reference of the headers and a search that needs no network
	@scripts/install-deps.sh --root site
	@scripts/site.sh

platforms: ## build and test with other compilers, musl, arm64 by an emulator, and larger pages; an hour and more (ARGS="gcc-11 musl"; ARGS=-n: what is missing)
	@scripts/platforms.sh $(ARGS)

tslab: ## build the command line tool build/tslab, with Go 1.26 from PATH or /usr/local/go
	@scripts/build-tslab.sh

build: ## build what make install installs, in build/install
	@scripts/install.sh build "$(PREFIX)"

install: ## install libraries, headers, programs, CMake package and .pc file (PREFIX=/usr/local, DESTDIR=); builds what is missing, downloads nothing
	@scripts/install.sh install "$(PREFIX)"

install-lib: ## install libraries, headers, package files, manual page and licence only (PREFIX, DESTDIR as above)
	@scripts/install.sh install-lib "$(PREFIX)"

uninstall: ## remove what make install or make install-lib has put into PREFIX
	@scripts/uninstall.sh "$(PREFIX)"

dist: ## make the source archive of the commit, build/temporal-slab-VERSION.tar.gz, the same bytes each time
	@scripts/dist.sh

packages: ## build the Debian packages of the commit and check them with lintian; in build/packages (ARGS=--cli: tslab as well)
	@scripts/packages.sh $(ARGS)

soak: ## stress, fault and model tests with SCALE times the work (SCALE=20: half an hour and more on two cores)
	@scripts/install-deps.sh --root soak
	@scripts/build.sh gcc-release
	TSLAB_TEST_SCALE="$(SCALE)" ctest --preset soak

fuzz: ## fuzz each harness for TIME seconds (TIME=120; GOAL=10000000 leaves out those with so many executions; ONLY="NAME..."; ARGS="..." goes to libFuzzer)
	@GOAL="$(GOAL)" ONLY="$(ONLY)" scripts/run-fuzz.sh "$(TIME)" $(ARGS)

mutants: ## break the library in small ways, one at a time, and see that tests notice (JOBS=2; ARGS="..." goes to the runner)
	@scripts/install-deps.sh --root mutants
	@tests/mutants/run.py $(if $(JOBS),--jobs $(JOBS)) $(ARGS)

clean: ## remove everything that was built
	rm -rf build
