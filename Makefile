# Mirador. `make help` lists what can be made.

PREFIX   ?= /usr/local
FUZZTIME ?= 20s
TIMES    ?= 20
SIEGE    ?=
TORTURE  ?= -time 10m -kills 200

# Packages whose goroutines share state are tested once more under the race
# detector; all of them would take too long.
RACE = ./omis/engine/... ./probes/... ./http/...

TARGETS = $(notdir $(patsubst %/,%,$(dir $(wildcard examples/targets/*/main.c examples/targets/*/main.cc))))

.PHONY: help run demo build targets criu test survive torture siege trees lint bench fuzz generate install clean needs-run needs-test needs-bench

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build targets ## start the gateway and the example target, measure, serve until Ctrl-C
	bin/mirador demo --serve

demo: build targets ## the same, but end after the measurement
	bin/mirador demo

build: needs-run ## build bin/mirador
	@mkdir -p bin
	go build -o bin/mirador .

targets: needs-run ## build the example targets into bin/
	@for target in $(TARGETS); do examples/targets/build $$target bin || exit 1; done

criu: ## make sure of a CRIU that works, to save, restore and migrate processes
	@scripts/criu

# Tests of live processes wait half of their time, so one package more than processors runs.
PACKAGES = $(shell expr $$(nproc) + 1)

# lint has vetted already.
TESTFLAGS = -count=1 -vet=off -p=$(PACKAGES) -timeout=12m

test: needs-test lint ## run every test; a skipped one is a failure
	go run ./scripts/testreport $(TESTFLAGS) ./... -- $(TESTFLAGS) -race $(RACE)

survive: needs-test ## run what targets must survive TIMES (20) times, and count
	go run ./scripts/survive -times $(TIMES)

torture: build needs-test ## torture real programs with random probes, as TORTURE (-time 10m -kills 200) says
	@scripts/install torture
	go run ./torture $(TORTURE)

siege: build needs-test ## besiege a gateway with many requests and mutated ones, as SIEGE says
	go run ./torture/siege $(SIEGE)

lint: needs-run ## check the code's form: gofmt, go vet, staticcheck
	@scripts/lint

trees: needs-test ## read more source packages of Debian, and all of Go's library, check their structures, and compare branches and loops with gcov
	go test -count=1 -timeout=60m -run 'Trees|StandardLibrary|AgreeWithGcov' ./sir/source -trees

bench: build targets needs-bench ## measure how fast mirador is, beside other tools
	go run ./bench

fuzz: needs-run ## run every fuzz target for FUZZTIME (20s)
	@scripts/fuzz $(FUZZTIME)

generate: needs-run ## write generated files anew
	go generate ./...

install: build ## install the binary, man pages and completions under PREFIX (/usr/local)
	install -D -m 755 bin/mirador $(DESTDIR)$(PREFIX)/bin/mirador
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	bin/mirador man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	bin/mirador completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mirador
	bin/mirador completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_mirador
	bin/mirador completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/mirador.fish

clean: ## remove what was built
	rm -rf bin build

# What this machine lacks is installed, saying what and why.
needs-run:
	@scripts/install run

# Where no CRIU can save processes, or none can be built, scripts/criu says so. The
# tests then see that requests to save processes are refused.
needs-test:
	@scripts/install run test
	@scripts/criu || true
	@scripts/sourcetrees >/dev/null

# What cannot be had is named in the tables, with the reason.
needs-bench:
	-@scripts/install bench
