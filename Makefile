# The targets that people and CI use. Tools are run at pinned versions through
# the Go module proxy; nothing is installed.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOTESTSUM   := gotest.tools/gotestsum@v1.13.0
GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# make test TESTFLAGS='-run TestX ./gateway' narrows the tests to some of the gateway's,
# make test TESTFLAGS= DOCSEARCHFLAGS=./index to some of docsearch's.
TESTFLAGS      ?= ./...
WHOLE          := $(filter ./...,$(TESTFLAGS))
DOCSEARCHFLAGS ?= $(if $(WHOLE),./...)
TOOLSFLAGS     ?= $(if $(WHOLE),./...)
# Tests with the build tag all are for make test-all only.
TAGS           ?=
# Without this, each program with the race detector sleeps for a second at its end. No
# goroutine is left then that could race: tests check that.
export GORACE ?= atexit_sleep_ms=0
# Each fuzz target runs this long.
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
# make run ARGS='-- npx -y @modelcontextprotocol/server-everything'
ARGS      ?=

# How long the chaos of make soak acts, over all configurations, and its seed.
FOR       ?= 5m
SEED      ?= 1

# A package that hangs shows its goroutines. On a slow machine the whole matrix of e2e takes
# 15 minutes and more.
TIMEOUT   ?= $(if $(TAGS),40m,15m)

.PHONY: help run build docsearch api test test-all agents test-json check-deploy deploy-needs e2e soak fuzz perf bench bench-compare compare-peers compare-logins vet lint golangci clean

help:
	@echo 'run       serve the demo server, or ARGS="-- command args"'
	@echo 'build     bin/sse-server'
	@echo 'docsearch bin/docsearch, an MCP server that searches documents'
	@echo 'test      gofmt, go vet, all unit tests, and one client of each SDK with each kind of server (Node.js >= 20)'
	@echo 'test-all  lint, test, and the whole matrix of clients and servers, attacks and cycles'
	@echo 'agents    real agents of npm, which it installs into the cache directory of the user, and their table in docs/reference/clients.md'
	@echo 'check-deploy  deploy/, packages, image and chart, as root on Debian'
	@echo 'e2e       the end-to-end tests of make test alone'
	@echo 'soak      chaos for FOR ($(FOR)) from SEED ($(SEED)); each fuzz target for FUZZTIME ($(FUZZTIME))'
	@echo 'perf      the benchmarks, and comparisons with other programs and handlers'
	@echo 'compare-peers  what happens with sse-server, supergateway, mcp-proxy and mcp-remote: the table of README.md'
	@echo 'compare-logins  what happens with sse-server and mcp-remote before a server that wants a login: the tables of docs/login.md'
	@echo 'api       docs/reference/api.txt, the public API that version 1 promises'
	@echo 'lint      gofmt, go vet, staticcheck, the program for Windows, and whether api has been run'
	@echo 'golangci  golangci-lint with .golangci.yml; builds it first, which takes minutes'

run:
	go run ./cmd/sse-server $(ARGS)

build:
	go build -trimpath -buildvcs=auto -o bin/ ./cmd/sse-server

# 54 MB, and most of the time from nothing.
docsearch:
	cd docsearch && go build -trimpath -buildvcs=auto -o ../bin/ ./cmd/docsearch

# All modules, in one run with one summary. -count=1: the end-to-end tests build the
# binaries themselves, and the cache of go test knows nothing of them.
test: vet
	go run $(GOTESTSUM) --format pkgname --raw-command -- make --no-print-directory --silent test-json TAGS=$(TAGS)

test-all: lint
	$(MAKE) --no-print-directory test TAGS=all
	$(MAKE) --no-print-directory agents

# Two gigabytes of programs, and ten minutes. AGENTS='-run TestRecord -record testdata' records anew what
# make test replays; AGENTS='-run TestConnects/Codex' is one point of one agent.
AGENTS ?= -long 90s -page ../../docs/reference/clients.md
agents:
	go test -tags agents -count=1 -v -timeout 60m ./e2e/agents $(AGENTS)

# The events of go test, of all modules; the target vet has run go vet. docsearch reads PDFs in
# WebAssembly, which takes half a minute with the race detector: only test-all has it there.
test-json:
	@status=0; flags='-json -count=1 -vet=off -timeout $(TIMEOUT) -tags=$(TAGS)'; \
	if [ -n '$(TESTFLAGS)' ]; then \
		go test -race $$flags $(TESTFLAGS) || status=1; fi; \
	if [ -n '$(TOOLSFLAGS)' ]; then \
		(cd tools && go test -race $$flags $(TOOLSFLAGS)) || status=1; fi; \
	if [ -n '$(DOCSEARCHFLAGS)' ]; then \
		(cd docsearch && go test $(if $(TAGS),-race) $$flags $(DOCSEARCHFLAGS)) || status=1; fi; \
	exit $$status

# What check-deploy runs: programs, and the packages of Debian that have them.
DEPLOY_NEEDS := caddy=caddy chromium=chromium curl=curl debootstrap=debootstrap fish=fish help2man=help2man man=man-db nginx=nginx npm=npm \
	openssl=openssl prometheus-alertmanager=prometheus-alertmanager promtool=prometheus systemd-analyze=systemd unshare=util-linux zsh=zsh

check-deploy:
	@missing=; for need in $(DEPLOY_NEEDS); do \
		PATH=$$PATH:/usr/sbin command -v $${need%=*} >/dev/null || missing="$$missing $${need#*=}"; done; \
	if [ -n "$$missing" ]; then echo "a program is missing: apt-get install$$missing" >&2; exit 1; fi
	@[ "$$(id -u)" = 0 ] || { echo "run it as root: it boots systemd in namespaces" >&2; exit 1; }
	@[ -d e2e/clients/node_modules ] || (cd e2e/clients && npm ci)
	go run $(GOTESTSUM) --format testname -- -race -count=1 -vet=off -timeout 90m -tags deploy ./deploy/deploytest/

# Packages of Debian, for a workflow.
deploy-needs:
	@echo $(sort $(foreach need,$(DEPLOY_NEEDS),$(lastword $(subst =, ,$(need)))))

e2e:
	go run $(GOTESTSUM) --format testname -- -race -count=1 -timeout $(TIMEOUT) -tags=$(TAGS) ./e2e/...

# All waits of the chaos are bounded, so it needs no timeout.
soak: fuzz
	go test ./e2e -race -count=1 -timeout 0 -tags all -v -run '^TestChaos$$' -chaos.for $(FOR) -chaos.seed $(SEED)
	WALKS=4000 go test -count=1 -timeout 60m -run TestWalkThroughTheLivesOfSessions ./gateway
	WALKS=2000 go test -count=1 -timeout 60m -run TestWalkThroughViews ./compose

perf: bench bench-compare

# go test fuzzes one target of one package at a time.
fuzz:
	@set -e; for module in . tools docsearch; do cd $(CURDIR)/$$module; for pkg in $$(go list ./...); do \
		listed=$$(go test -list '^Fuzz' $$pkg); \
		for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done; done

bench:
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...
	cd tools && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...
	cd docsearch && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

# tools/README.md says how to read it.
bench-compare:
	go build -trimpath -o bin/ ./cmd/sse-server github.com/nats-io/nats-server/v2
	go build -C tools -trimpath -o ../bin/ ./...
	bin/compare --rounds 5 --clients 64 --in-flight 1 --calls 50000
	[ -d e2e/clients/node_modules ] || (cd e2e/clients && npm ci)
	bin/compare --rounds 5 --clients 64 --in-flight 1 --calls 10000 --transport streamable \
		--node e2e/clients/node_modules/node/bin/node \
		--proxy e2e/clients/node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs
	bin/compare --mode connect --rounds 30 --warm 2 \
		--server e2e/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js
	bin/compare --mode pairs --rounds 5
	bin/compare --mode pairs --rounds 5 --transport streamable
	bin/compare --mode views --rounds 5 --payload 32
	bin/compare --mode lists --rounds 10
	bin/compare --mode idle
	bin/compare --mode storm --rounds 5
	bin/compare --mode replicas --rounds 5
	bin/compare --mode replicas --rounds 5 --transport streamable

# The table of README.md: no speeds, but what happens. It needs the network once, for the programs of npm.
PEERS := tools/compare/peers
compare-peers:
	go build -trimpath -o bin/ ./cmd/sse-server
	go build -C tools -trimpath -o ../bin/ ./compare ./echo ./inprocess
	[ -d $(PEERS)/node_modules ] || (cd $(PEERS) && npm ci --ignore-scripts)
	bin/compare --mode peers --timeout 1m --peers $(PEERS)

# The tables of docs/login.md, beside mcp-remote: what happens, and then time and memory, for which nothing else may run.
compare-logins:
	go build -trimpath -o bin/ ./cmd/sse-server
	go build -C tools -trimpath -o ../bin/ ./compare
	[ -d $(PEERS)/node_modules ] || (cd $(PEERS) && npm ci --ignore-scripts)
	bin/compare --mode logins --timeout 1m --peers $(PEERS)
	bin/compare --mode windows --timeout 1m --peers $(PEERS)

# With -race as the tests have it, so that nothing is compiled twice. It also sees the files of
# test-all and check-deploy.
vet:
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet -race -tags all,deploy,agents ./...
	cd tools && go vet -race -tags all ./...
	cd docsearch && go vet ./...

# staticcheck takes minutes to build: make test does without it. Windows, which nothing here runs on, is compiled:
# 46 s the first time, where go vet of all packages takes three minutes.
lint: vet
	go test ./internal/deptest -run TestLinesFit
	GOOS=windows go build -o /dev/null ./cmd/sse-server
	GOBIN=$(CURDIR)/bin go install $(STATICCHECK)
	GOFLAGS=-race bin/staticcheck -tags all,deploy,agents ./...
	cd tools && GOFLAGS=-race ../bin/staticcheck -tags all ./...
	cd docsearch && ../bin/staticcheck ./...
	go run ./internal/publicapi -check

# The difference of the file is the change of the API, for a review.
api:
	go run ./internal/publicapi > docs/reference/api.txt.new
	mv docs/reference/api.txt.new docs/reference/api.txt

golangci:
	go run $(GOLANGCI) run ./...

clean:
	rm -rf bin
