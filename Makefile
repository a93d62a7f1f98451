# linerate: `make demo` and `make test` work on a fresh Debian machine that has Go and make.
GO      ?= go
# A build names its revision; a tree without git has none.
REVISION ?= $(shell git describe --always --dirty --exclude '*' 2>/dev/null)
LDFLAGS  := -s -w -X github.com/linerate/linerate/internal/base/release.revision=$(REVISION)
# Rooms that run once in a command are compiled without inlining: docs/design/0011-wings.md has what it saves.
ONCE    := change/advice cli diagnose report resolver/server
GCFLAGS := $(ONCE:%=-gcflags=github.com/linerate/linerate/internal/%/...=-l)
export CGO_ENABLED := 0

# What the whole suite relies on. Guests run Debian's kernel for amd64.
REQUIRE := $(if $(filter amd64,$(shell $(GO) env GOARCH)),all,netns,peers,sshd,browser,network,long)

.PHONY: build program demo docs check test test-wine soak matrix bench interop race fuzz gen cross setup install release \
	test-packages test-compatibility reproducible
build: program ## two static binaries in bin/: the program, and the hub with its history and page
	$(GO) -C hub build -trimpath $(GCFLAGS) -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/linerate-hub

program: ## linerate alone, which is all that a host needs
	$(GO) build -trimpath $(GCFLAGS) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/linerate

demo: program ## the whole loop in a private world on this machine; needs nothing but the binary
	./bin/linerate demo

docs: ## the documentation as static pages with search, in bin/site; the generator comes from PyPI
	dev/docs

check: ## before each commit: formatting, vet, staticcheck, and the tests that need nothing but Go
	dev/check

test: setup ## the whole suite: namespaces, guests, browser, other programs; what is missing fails
	LINERATE_REQUIRE=$(REQUIRE) dev/test $(LINERATE_TEST_FLAGS)

soak: setup ## the tests that repeat: kills, power cuts, rulesets, cards, NFS worlds, sound name servers, rollouts, ten thousand hosts; some hours
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) test -tags soak -vet=off -timeout 90m ./internal/firewall/...
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) test -tags soak -vet=off -timeout 1h -run TestGuest ./internal/experiment/transfer
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) test -tags soak -vet=off -timeout 11h -run TestGuestReload ./internal/change/knob/live
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) test -tags soak -vet=off -timeout 3h -run 'TestReloadPowerCut|TestTwoPeople' ./cmd/linerate
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) test -tags soak -vet=off -timeout 2h -p 1 -parallel 1 \
		-run 'TestThrottleLadder|TestBurstOnCardRing' ./internal/cli/worldtest
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) test -tags soak -vet=off -timeout 20h -run TestSoundResolvers ./internal/cli/worldtest
	LINERATE_REQUIRE=$(REQUIRE),soak $(GO) -C hub test -tags soak -vet=off -timeout 3h ./internal/fleet/...

matrix: program setup ## every known fault planted and every verdict compared with it; half an hour on an idle machine
	bin/linerate lab matrix $(MATRIX_FLAGS)

bench: program setup ## side by side with iperf3, iperf, nuttcp and sockperf on a veth pair, as ratios in one run; needs root
	$(GO) build -o bin/ ./dev/bench
	bin/bench $(BENCH_FLAGS)

interop: program setup ## the clients and servers of iperf3, iperf, nuttcp and sockperf against linerate, as a table; needs root
	dev/interop

race: ## the tests that need nothing but Go, under the race detector; needs a C compiler
	dev/race

fuzz: ## every fuzz target for ten seconds
	dev/fuzz 10s

gen: ## everything generated from the code: schemas, finding pages, reference pages, the map in ARCHITECTURE.md
	$(GO) test -count=1 ./internal ./internal/change/advice ./internal/diagnose ./internal/cli -run 'Generated' -update
	$(GO) -C hub test -count=1 ./internal/daemon ./internal/web/api -run 'Generated' -update

test-wine: ## the tests of Windows' registry and knobs under Wine; needs wine and gcc-mingw-w64-x86-64-win32
	dev/test-wine

cross: ## every system builds, and vets with its tests
	dev/cross

PREFIX  ?= /usr/local
install: ## both programs with manual, completions and units below PREFIX; DESTDIR stages it, and root is asked only to copy
	@test -x bin/linerate -a -x bin/linerate-hub || $(MAKE) build
	PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' dev/install

release: ## every file of a release in bin/release: packages, archives, images; KEY=FILE signs the checksums
	cd dev/release && $(GO) run . $(if $(KEY),-key '$(abspath $(KEY))') $(if $(TARGETS),-targets $(TARGETS))

test-packages: ## installs, upgrades and removes the packages in clean systems; needs root and Debian's mirrors
	dev/test-packages

reproducible: ## the release of HEAD twice, and which files differ; TARGETS=GOOS/GOARCH,… for some systems
	dev/reproducible $(TARGETS)

test-compatibility: ## the previous release against this tree: journal, documents, measurements and tunes both ways; needs root
	dev/test-compatibility

setup: ## what the whole suite needs from Debian
	dev/setup
