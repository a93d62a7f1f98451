# linerate: `make demo` and `make test` work on a fresh Debian machine that has Go and make.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/linerate/linerate/internal/cli.version=$(VERSION) -X github.com/linerate/linerate/hub/internal/daemon.version=$(VERSION)
export CGO_ENABLED := 0

# What the tests may not do without. Guests run Debian's kernel for amd64.
comma   := ,
REQUIRE := netns,sshd,peers,nft$(if $(filter amd64,$(shell $(GO) env GOARCH)),$(comma)guest)

.PHONY: build program demo test matrix bench fuzz lint gen cross setup
build: ## two static binaries in bin/: the program, and the hub with its history and page
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/linerate ./hub/cmd/linerate-hub

program: ## linerate alone, which is all that a host needs
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/linerate

demo: program ## the whole loop in a private world on this machine; needs nothing that is not in the binary
	./bin/linerate demo

test: setup ## the whole test suite; what it needs and does not find is a failure, not a skip
	LINERATE_REQUIRE=$(REQUIRE) dev/test $(LINERATE_TEST_FLAGS)

matrix: program setup ## every known fault planted, and every verdict compared with it; half an hour on a machine with nothing else to do
	bin/linerate lab matrix $(MATRIX_FLAGS)

bench: program setup ## side by side with iperf3, iperf, nuttcp and sockperf on a veth pair, as ratios in one run; needs root
	$(GO) build -o bin/ ./dev/bench
	bin/bench $(BENCH_FLAGS)

fuzz: ## every fuzz target for ten seconds
	dev/fuzz 10s

lint: ## formatting, vet, staticcheck
	dev/lint

gen: ## everything that is generated from the code: schemas, finding pages, reference pages
	$(GO) test -count=1 ./internal/report ./internal/diagnose ./internal/cli ./hub/internal/daemon ./hub/internal/web/api -run 'Generated' -update

cross: ## every system builds, and vets with its tests
	dev/cross

setup: ## what the tests and the demo need from Debian
	dev/setup
