# The targets that people and CI use. Tools are run at pinned versions through
# the Go module proxy; nothing is installed.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0
GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# make test TESTFLAGS='-run TestX ./gateway' narrows the tests to some of the gateway's,
# make test TESTFLAGS= DOCSEARCHFLAGS=./index to some of docsearch's.
TESTFLAGS      ?= ./...
DOCSEARCHFLAGS ?= $(if $(filter ./...,$(TESTFLAGS)),./...)
# docsearch's SQLite is C, translated: the race detector takes minutes to compile it and
# finds nothing. Only packages without generic code can be left out: the linker keeps one
# copy of a generic function, and without the detector's marks that copy makes correct
# code look wrong.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/sqlite/vec=-race=false
# Without this, each program with the race detector sleeps for a second at its end. No
# goroutine is left then that could race: tests check that.
export GORACE ?= atexit_sleep_ms=0
# Each fuzz target runs this long.
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
# make run ARGS='-- npx -y @modelcontextprotocol/server-everything'
ARGS      ?=

# How long make chaos acts, over all configurations, and its seed.
FOR       ?= 60s
SEED      ?= 1

# A test that hangs shows its goroutines before CI's own limit.
TIMEOUT   ?= 25m

.PHONY: help run build test test-json race e2e chaos fuzz bench bench-compare lint golangci clean

help:
	@echo 'run       serve the demo server, or ARGS="-- command args"'
	@echo 'build     bin/sse-server and bin/docsearch'
	@echo 'test      lint, then all tests with the race detector, e2e too'
	@echo 'race      all tests but e2e, with the race detector'
	@echo 'e2e       the built binary against real clients and servers (Node.js >= 20)'
	@echo 'chaos     servers and clients that act at random, for FOR ($(FOR)), from SEED ($(SEED))'
	@echo 'fuzz      each fuzz target for FUZZTIME ($(FUZZTIME))'
	@echo 'bench     the benchmarks'
	@echo 'bench-compare  against other programs and handlers; starts with and without a pool (Node.js >= 20)'
	@echo 'lint      gofmt, go vet, staticcheck'
	@echo 'golangci  golangci-lint with .golangci.yml; builds it first, which takes minutes'

run:
	go run ./cmd/sse-server $(ARGS)

build:
	go build -trimpath -buildvcs=auto -o bin/ ./cmd/sse-server
	cd docsearch && go build -trimpath -buildvcs=auto -o ../bin/ ./cmd/docsearch

# Both modules, in one run with one summary. -count=1: the end-to-end tests build the
# binaries themselves, of which the cache of go test knows nothing.
test: lint
	go run $(GOTESTSUM) --format pkgname --raw-command -- make --no-print-directory --silent test-json

# The events of go test, of both modules.
test-json:
	@status=0; \
	if [ -n '$(TESTFLAGS)' ]; then \
		go test -json -race -count=1 -timeout $(TIMEOUT) $(TESTFLAGS) || status=1; fi; \
	if [ -n '$(DOCSEARCHFLAGS)' ]; then \
		(cd docsearch && go test -json $(RACE) -count=1 -timeout $(TIMEOUT) $(DOCSEARCHFLAGS)) || status=1; fi; \
	exit $$status

race:
	go run $(GOTESTSUM) --format pkgname -- -race -count=1 -timeout $(TIMEOUT) $$(go list ./... | grep -v /e2e)

e2e:
	go run $(GOTESTSUM) --format testname -- -race -count=1 -timeout $(TIMEOUT) ./e2e/...

# All waits of the run are bounded, so it needs no timeout.
chaos:
	go test ./e2e -race -count=1 -timeout 0 -v -run '^TestChaos$$' -chaos.for $(FOR) -chaos.seed $(SEED)

# go test fuzzes one target of one package at a time.
fuzz:
	@set -e; for module in . docsearch; do cd $(CURDIR)/$$module; for pkg in $$(go list ./...); do \
		listed=$$(go test -list '^Fuzz' $$pkg); \
		for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done; done

bench:
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...
	cd docsearch && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

# bench/README.md says how to read it.
bench-compare:
	go build -trimpath -o bin/ ./cmd/sse-server ./bench/...
	bin/compare --rounds 5 --clients 64 --in-flight 1 --calls 50000
	[ -d e2e/clients/node_modules ] || (cd e2e/clients && npm ci)
	bin/compare --rounds 5 --clients 64 --in-flight 1 --calls 10000 --transport streamable \
		--node e2e/clients/node_modules/node/bin/node \
		--proxy e2e/clients/node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs
	bin/compare --mode connect --rounds 30 --warm 2 \
		--server e2e/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js
	bin/compare --mode pairs --rounds 5
	bin/compare --mode pairs --rounds 5 --transport streamable
	bin/compare --mode idle
	bin/compare --mode storm --rounds 5

lint:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	cd docsearch && go vet ./... && go run $(STATICCHECK) ./...

golangci:
	go run $(GOLANGCI) run ./...

clean:
	rm -rf bin
