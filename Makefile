# teescope's build. `make help` lists the targets. Plain `go build ./cmd/teescope` needs none of this:
# the BPF objects, the page and the generated documents are committed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO       ?= go
CLANG    ?= clang-14
STRIP    ?= llvm-strip-14
FORMAT   ?= clang-format-14
SUDO     := $(if $(filter-out 0,$(shell id -u)),sudo -E)
BIN      := bin/teescope
TOOLS    := .cache/tools
LINT_TOOLS := $(addprefix $(TOOLS)/,golangci-lint deadcode typecheck)

# Paths of this checkout are not part of what Go compiles. So all steps, and the clone of test/fresh, share one build cache.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(shell $(GO) env GOFLAGS))

# Relative names and a fixed compilation directory: the objects are the same on every machine.
BPF_FLAGS := -O2 -g -Wall -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 \
	-Ibpf/include -I/usr/include/x86_64-linux-gnu \
	-fdebug-compilation-dir=. -ffile-prefix-map=$(CURDIR)=.
BPF_SRC := $(sort $(wildcard internal/agent/collector/*/*.bpf.c internal/agent/tee/*/*.bpf.c internal/agent/tee/*/*/*.bpf.c internal/agent/profiling/*.bpf.c internal/agent/userprobe/*.bpf.c internal/agent/nested/*.bpf.c internal/agent/bpf/testdata/*.bpf.c bench/*.bpf.c))
BPF_OBJ := $(BPF_SRC:.c=.o)
BPF_H   := $(wildcard bpf/include/*.h internal/agent/collector/*/*.bpf.h internal/agent/collector/*/*.h internal/agent/tee/*/*.h internal/agent/tee/*/*/*.h internal/agent/profiling/*.h internal/agent/userprobe/*.h internal/agent/nested/*.h)
BPF_FMT := $(BPF_SRC) $(BPF_H)
C_FMT   := $(wildcard test/e2e/progs/*.c internal/cli/micro/program/*.c bench/progs/*.c internal/agent/tee/*/*/testdata/*.[ch] internal/agent/profiling/*/testdata/*.[ch] internal/agent/nested/testdata/*.c testbed/module/*.[ch] testbed/standins/*.c testbed/enclaves/*/*.[ch])

# The Go mirrors of what BPF objects share with their user sides: each object with the package's directory.
LAYOUT_OF := \
	internal/agent/collector/system/system.bpf.o internal/agent/attribution \
	internal/agent/collector/system/system.bpf.o internal/agent/collector/system \
	internal/agent/profiling/profiling.bpf.o internal/agent/profiling \
	internal/agent/tee/sgx/driver/sgx.bpf.o internal/agent/tee/sgx/driver \
	internal/agent/tee/cvm/guest/guest.bpf.o internal/agent/tee/cvm/guest \
	internal/agent/tee/vm/vm.bpf.o internal/agent/tee/vm \
	internal/agent/tee/nitro/nitro.bpf.o internal/agent/tee/nitro \
	internal/agent/userprobe/userprobe.bpf.o internal/agent/userprobe \
	internal/agent/nested/nested.bpf.o internal/agent/nested \
	internal/agent/tee/sgx/boundary/boundary.bpf.o internal/agent/tee/sgx/aex \
	$(foreach package,breakpoint count transition functions gramine interrupts window,\
		internal/agent/tee/sgx/boundary/boundary.bpf.o internal/agent/tee/sgx/boundary/$(package))
LAYOUTS   := $(addsuffix /layout.go,$(filter-out %.o,$(LAYOUT_OF)))

# What `make generate` writes; `make check-generated` writes it again and compares.
GENERATED := $(BPF_OBJ) $(LAYOUTS) internal/lib/syscalls/table.go docs/dev/probe-cost.md \
	web/dist internal/server/dashboards/panels.json internal/server/report/questions.json internal/server/pagequery/pagequery.json internal/server/pagequery/testdata/fill.json web/src/panels/metrics.json deploy/grafana/dashboards deploy/helm/teescope/files docs/user/metrics.md docs/user/cli.md docs/user/advisor.md docs/user/thresholds.md

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Building

.PHONY: build run sbom image
build: ## build bin/teescope with Go alone
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags '-s -w' -o $(BIN) ./cmd/teescope

run: build ## build, then start the main job: agent, storage and page on 127.0.0.1:9750
	$(SUDO) $(BIN) up

# The tag of the image is the version that the chart installs.
IMAGE     ?= ghcr.io/teescope/teescope:$(shell awk '/^appVersion:/ {print $$2}' deploy/helm/teescope/Chart.yaml)
PLATFORMS ?= amd64 arm64
ARCHIVE   ?= bin/teescope.oci.tar

image: ## write bin/teescope.oci.tar: a container image of the static binary for PLATFORMS; no container engine needed
	for arch in $(PLATFORMS); do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=auto -ldflags '-s -w' -o bin/linux-$$arch/teescope ./cmd/teescope; \
	done
	$(GO) -C deploy/packaging run ./image -name $(IMAGE) -license $(CURDIR)/LICENSE -o $(CURDIR)/$(ARCHIVE) $(foreach arch,$(PLATFORMS),$(CURDIR)/bin/linux-$(arch)/teescope)

.PHONY: packages
packages: image ## write bin/*.deb and bin/*.rpm for PLATFORMS; neither dpkg, rpm nor root is needed
	$(MAKE) --no-print-directory build
	mkdir -p bin/completion
	for shell in bash zsh fish; do $(BIN) completion $$shell >bin/completion/$$shell; done
	$(GO) -C deploy/packaging run ./packages -version $$(awk '/^appVersion:/ {gsub(/"/, ""); print $$2}' $(CURDIR)/$(CHART)/Chart.yaml) \
		-root $(CURDIR) -shell $(CURDIR)/bin/completion -time $$(git log -1 --format=%ct) -o $(CURDIR)/bin $(foreach arch,$(PLATFORMS),$(CURDIR)/bin/linux-$(arch)/teescope)
	cd bin && sha256sum *.deb *.rpm teescope.oci.tar >SHA256SUMS
	$(if $(SIGN_KEY),$(MAKE) --no-print-directory sign)

# The key is one of ssh. ssh-keygen asks an agent or for a passphrase if it needs to, and refuses to replace a signature.
SUMS ?= bin/SHA256SUMS

.PHONY: sign
sign: ## sign the checksums with SIGN_KEY, a private key of ssh: SHA256SUMS.sig
	@[ -n '$(SIGN_KEY)' ] || { echo 'name the key: make sign SIGN_KEY=~/.ssh/id_ed25519' >&2; exit 1; }
	rm -f $(SUMS).sig
	ssh-keygen -q -Y sign -f $(SIGN_KEY) -n teescope $(SUMS)

.PHONY: generate generate-bpf generate-layouts generate-go generate-probe-cost generate-dashboards generate-chart generate-web generate-docs check-generated
generate: generate-bpf generate-layouts generate-go generate-probe-cost generate-dashboards generate-chart generate-web generate-docs ## write all generated files: BPF objects, tables, page, documents

generate-bpf: $(BPF_OBJ) ## compile the BPF programs to the committed objects (clang 14)

%.bpf.o: %.bpf.c $(BPF_H)
	$(CLANG) $(BPF_FLAGS) -c $< -o $@
	$(STRIP) -g $@

generate-layouts: $(BPF_OBJ) ## write the Go mirrors of the BPF programs' types
	$(GO) run ./internal/agent/bpf/genlayout $(LAYOUT_OF) -- $(BPF_OBJ)

generate-go: ## write the table of system call names
	$(GO) run ./internal/lib/syscalls/gensyscalls

generate-web: web/node_modules/.package-lock.json ## build the page into web/dist
	npm --prefix web run build

generate-dashboards: web/node_modules/.package-lock.json ## write the page's panels as JSON, and as Grafana dashboards
	cd web && node write-dashboards.mjs ../internal/server/dashboards/panels.json ../internal/server/report/questions.json ../internal/server/pagequery/pagequery.json ../internal/server/pagequery/testdata/fill.json
	$(GO) run ./internal/server/dashboards/genmetrics web/src/panels/metrics.json
	$(GO) run ./cmd/teescope dashboards export deploy/grafana/dashboards >/dev/null

# A chart contains only files below its own directory.
CHART := deploy/helm/teescope

generate-chart: generate-dashboards ## copy the dashboards and rules into the Helm chart
	rm -rf $(CHART)/files
	mkdir -p $(CHART)/files/dashboards $(CHART)/files/rules
	cp deploy/grafana/dashboards/*.json $(CHART)/files/dashboards/
	cp rules/*.yaml $(CHART)/files/rules/

generate-probe-cost: $(BPF_OBJ) ## write docs/dev/probe-cost.md with the instructions of the committed objects
	$(GO) run ./bench/probecost docs/dev/probe-cost.md

generate-docs: build ## write docs/user/metrics.md, docs/user/cli.md, docs/user/advisor.md and docs/user/thresholds.md
	$(GO) run ./docs/gen -bin $(BIN)

check-generated: ## write all generated files again and fail when one differs from what is committed
	touch $(BPF_SRC)
	$(MAKE) --no-print-directory generate
	@changed=$$(git status --porcelain -- $(GENERATED)); \
	if [ -n "$$changed" ]; then \
		git --no-pager diff --stat -- $(GENERATED); \
		printf 'generated files differ from the committed ones; run "make generate" and commit:\n%s\n' "$$changed" >&2; \
		exit 1; \
	fi

sbom: build ## write bin/teescope.cdx.json: the modules and npm packages that the binary contains (CycloneDX)
	$(GO) run ./deploy/sbom -bin $(BIN) -lock web/package-lock.json $(BIN).cdx.json

## Checking

.PHONY: lint vulncheck lint-go lint-dead lint-bpf lint-shell lint-web
LINTERS := lint-web lint-go lint-dead lint-arm64 lint-bpf lint-shell

# ESLint keeps its results for each file, until the file changes. A type that it uses may have changed in another file, so
# `make lint` begins without them, and `make check` with them.
lint: $(LINT_TOOLS) web/node_modules/.package-lock.json ## run every linter, two at a time
	rm -f .cache/eslint
	$(MAKE) --no-print-directory -j2 --output-sync=target $(LINTERS)

lint-go: $(TOOLS)/golangci-lint ## golangci-lint (pinned in tools/go.mod)
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...

# A binary for arm64 is released too. The types are checked from the sources, without compiling all modules again.
lint-arm64: $(TOOLS)/typecheck ## the files and types of the other architecture
	GOARCH=arm64 CGO_ENABLED=0 $(TOOLS)/typecheck $(COMMANDS)

# Each command of the module: what none of them reaches is dead, except the functions in tools/dead.txt.
COMMANDS := ./cmd/teescope ./bench/... ./testbed/... ./test/vm/guest ./docs/gen ./deploy/sbom ./internal/agent/bpf/genlayout ./internal/server/dashboards/genmetrics ./internal/lib/syscalls/gensyscalls

lint-dead: $(TOOLS)/deadcode ## functions that no command reaches, compared with tools/dead.txt
	@$(TOOLS)/deadcode -f '{{$$path := .Path}}{{range .Funcs}}{{println (printf "%s.%s" $$path .Name)}}{{end}}' $(COMMANDS) | \
		LC_ALL=C sort | diff -u --label 'may be dead: tools/dead.txt' --label 'dead' tools/dead.txt - || \
		{ echo 'remove the functions that are dead (+), and the entries that are not (-)' >&2; exit 1; }

vulncheck: $(TOOLS)/govulncheck ## known vulnerabilities in code that teescope calls (needs the network)
	tools/vulncheck $(TOOLS)/govulncheck ./...

lint-bpf: ## clang-format on the BPF sources
	$(FORMAT) --dry-run --Werror $(BPF_FMT) $(C_FMT)

lint-shell: ## shellcheck
	shellcheck .ci/run test/all test/fresh test/fuzz tools/setup.sh tools/vulncheck testbed/run test/cases/recorded/record $(wildcard test/e2e/progs/*.sh)

lint-web: web/node_modules/.package-lock.json ## tsc and eslint
	npm --prefix web run types
	npm --prefix web run lint

.PHONY: format
format: $(TOOLS)/golangci-lint ## format Go and BPF sources
	$(TOOLS)/golangci-lint fmt ./...
	$(FORMAT) -i $(BPF_FMT) $(C_FMT)

## Testing

BENCH      ?= .
COUNT      ?= 6
BENCH_PKGS := ./internal/agent/collector ./internal/agent/collector/system ./internal/agent/threads
SOAK       ?= 10m
QUERIES    ?= 1m
SAME_SETS  ?= 200
SAME_DIR   ?=

# `make lint` runs vet on all files, those of the tests with tags included, so tests do not run it again. The limit of time
# only ends what hangs.
GOTEST := $(GO) test -count=1 -vet=off -timeout 60m $(TESTFLAGS)

# The packages whose tests take longest. They are named first, so that they do not run alone at the end.
LONGEST := ./internal/server/prom ./test/cases

# The packages that link no eBPF: their tests need neither root nor a kernel of a certain kind.
# OMIT has the ends of the names of packages to leave out, such as /test/cases.
OMIT ?=
# $(call unit_pkgs,CONDITION) lists them. In the condition, $$exec is set if the tests of a package run programs.
unit_pkgs = $$($(GO) list -f '{{$$ebpf := false}}{{range .Deps}}{{if eq . "github.com/cilium/ebpf"}}{{$$ebpf = true}}{{end}}{{end}}{{$$exec := false}}{{range .TestImports}}{{if eq . "os/exec"}}{{$$exec = true}}{{end}}{{end}}{{range .XTestImports}}{{if eq . "os/exec"}}{{$$exec = true}}{{end}}{{end}}{{if and (not $$ebpf) ($(1))}}{{.ImportPath}}{{end}}' ./...$(if $(OMIT), | grep -v $(patsubst %,-e '%$$',$(OMIT))))

.PHONY: check check-unit check-exec unit fresh
check: build ## run this before each commit, in three minutes: build, linters, tests that need no root
	$(MAKE) --no-print-directory $(LINT_TOOLS) web/node_modules/.package-lock.json
	$(MAKE) --no-print-directory -j2 --output-sync=target lint-web check-unit check-exec test-web $(filter-out lint-web,$(LINTERS))

# Go keeps the results of tests that read only files, until one of these files or the code changes. It does not see what
# programs read that a test runs, so these tests always run.
check-unit:
	$(filter-out -count=1,$(GOTEST)) -short -p 2 $(call unit_pkgs,not $$exec)

check-exec:
	$(GOTEST) -short -p 3 $(call unit_pkgs,$$exec)

unit: ## the Go tests of the packages that load no eBPF, without TestSoak
	$(GOTEST) -short -p 3 $(filter-out $(addprefix %,$(OMIT)),$(LONGEST)) $(call unit_pkgs,true)

fresh: ## the README's commands on a minimal Debian 12 in a directory (needs root)
	test/fresh

.PHONY: test test-packaging cluster cases fuzz test-web e2e vm sgx sgx-machine sgx-product browser browser-shared browser-alone pictures bench bench-estimates bench-profiling bench-statistics bench-healthy bench-same bench-quick bench-sleepers bench-peers bench-sgx probe-cost bench-go bench-fleet bench-nodes bench-judging soak
# The packages whose tests wait for each other, because they attach eBPF. Beside the others, so that none of these waits for them.
# $(call attaching,CONDITION) lists those for which it holds; $$it is set if a package is one of them.
attaching = $$($(GO) list -f '{{$$it := false}}{{range .TestImports}}{{if eq . "github.com/teescope/teescope/internal/lib/privilege/privilegetest"}}{{$$it = true}}{{end}}{{end}}{{if $(1)}}{{.ImportPath}}{{end}}' ./...)

test: ## unit, golden and architecture tests (Go); those of the kernel side need root
	log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(GOTEST) -p 2 $(if $(SUDO),-exec '$(SUDO)') $(call attaching,$$it) >"$$log" 2>&1 & \
	attaching=$$!; others=0; \
	$(GOTEST) -p 2 $(if $(SUDO),-exec '$(SUDO)') $(LONGEST) $(call attaching,not $$it) || others=$$?; \
	wait $$attaching || others=$$?; cat "$$log"; exit $$others

test-packaging: ## the Helm chart (lint, strict decoding, privileges), the container image and the packages: a module of its own
	$(GO) -C deploy/packaging test -count=1 -timeout 60m $(TESTFLAGS) ./...

# Kubernetes is built from its modules, at the version in test/cluster/go.mod. It is none of teescope's dependencies.
CLUSTER    := .cache/cluster
KUBERNETES := kube-apiserver kube-controller-manager kube-scheduler kubelet
CLUSTER_GO := CGO_ENABLED=0 nice -n 15 $(GO) -C test/cluster

$(KUBERNETES:%=$(CLUSTER)/%): $(CLUSTER)/%: test/cluster/go.mod test/cluster/go.sum
	version=$$(awk '$$1 == "k8s.io/kubernetes" {print $$2}' test/cluster/go.mod); \
	$(CLUSTER_GO) build -trimpath -tags grpcnotrace -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$version" -o $(CURDIR)/$@ k8s.io/kubernetes/cmd/$*
	@touch $@

cluster: build bin/testbed $(KUBERNETES:%=$(CLUSTER)/%) ## the chart and the agent in a real Kubernetes (needs root; builds Kubernetes the first time: 10 minutes of CPU time and 6 GB)
	tools/setup.sh --cluster
	$(MAKE) --no-print-directory image PLATFORMS=amd64 ARCHIVE=$(CLUSTER)/teescope.oci.tar
	$(CLUSTER_GO) test -trimpath -tags grpcnotrace -count=1 -vet=off -timeout 60m $(TESTFLAGS) $(if $(SUDO),-exec '$(SUDO)') ./...

cases: ## the diagnosis on every case of test/cases: precision and recall by rule
	$(GO) test -count=1 -v -run 'TestCases$$' ./test/cases | grep -v -e '^=== ' -e '^ *--- PASS'

fuzz: ## fuzz every parser of what others write, two minutes in all, and a server with queries for one; FUZZ=./internal/agent/tee for one package
	GO=$(GO) test/fuzz $(FUZZ)
	$(if $(FUZZ),,$(GOTEST) -tags e2e $(if $(SUDO),-exec '$(SUDO)') -timeout 0 -run TestRandomQueries ./test/e2e -queries $(QUERIES))

test-web: web/node_modules/.package-lock.json ## unit tests of the page
	npm --prefix web test

e2e: build ## the real binary on this kernel with real programs (needs root)
	TEESCOPE_BIN=$(CURDIR)/$(BIN) $(GOTEST) -tags e2e -parallel 6 $(if $(SUDO),-exec '$(SUDO)') ./test/e2e/...

vm: ## the real binary on stock Debian kernels in QEMU
	$(GOTEST) -tags vm ./test/vm/...

sgx: testbed ## the virtual SGX machine, and in it the real binary on the in-tree SGX driver
	$(GOTEST) -tags sgx ./test/sgx/...

# The two parts of sgx, for two processors.
SGX_MACHINE := ^Test(Testbed|FilesAndPorts)$$

sgx-machine: testbed ## of sgx: the machine itself
	$(GOTEST) -tags sgx -run '$(SGX_MACHINE)' ./test/sgx

sgx-product: testbed ## of sgx: the real binary in the machine
	$(GOTEST) -tags sgx -skip '$(SGX_MACHINE)' ./test/sgx/...

BROWSER_TESTS := TEESCOPE_BIN=$(CURDIR)/$(BIN) npm --prefix web run test:browser --

browser: build web/node_modules/.package-lock.json ## the page in headless Chromium, fed by the real binary (needs root)
	$(BROWSER_TESTS)

browser-shared: build web/node_modules/.package-lock.json ## of browser: what may run beside other programs
	$(BROWSER_TESTS) --project '!alone'

browser-alone: build web/node_modules/.package-lock.json ## of browser: what measures time, or needs a processor
	$(BROWSER_TESTS) --project alone

pictures: build web/node_modules/.package-lock.json ## take the pictures of the page in docs/user/img again (8 minutes; needs root, and what sgx needs)
	PICTURES=1 $(BROWSER_TESTS) --project pictures

bench: build ## what watching costs: off, an empty probe, on (about 20 minutes; needs root)
	$(GO) build -o bin/bench ./bench
	$(SUDO) bin/bench -teescope $(BIN) -md bin/bench.md -json bin/bench.json -svg bin/bench.svg $(BENCHFLAGS)

bench-sleepers: build ## CPU time of `up` beside 5,000 processes that sleep (10 minutes; needs root); BENCHFLAGS="-processes 0" at rest
	$(GO) build -o bin/bench ./bench
	$(SUDO) bin/bench sleepers -teescope $(BIN) $(BENCHFLAGS)

bench-go: ## what a scrape allocates and takes in user space, for benchstat; BENCH=REGEX, COUNT=6
	$(GO) test -run '^$$' -bench '$(BENCH)' -count $(COUNT) $(BENCH_PKGS)

bench-estimates: ## simulate ten minutes of mixed load and write how often the intervals of sampled counts hold (a minute)
	SAMPLING_TABLE=2048 $(GO) test -count 1 -v -run TestTableOfEstimates ./internal/agent/sampling

bench-profiling: ## what sampling stacks costs: the eBPF program, the interrupt, reading (3 minutes; needs root)
	PROFILING_COST=1 $(GO) test $(if $(SUDO),-exec '$(SUDO)') -count 1 -v -run 'TestCost$$|TestCostOfAEX$$' ./internal/agent/profiling ./internal/agent/profiling/recording

bench-statistics: ## simulate load without and with changes and write how often intervals hold and findings are wrong (minutes)
	STATISTICS_TABLE=2000 $(GO) test -count 1 -v -timeout 0 -run TestIntervalsOfDependentValues ./internal/lib/stat
	STATISTICS_TABLE=8 $(GO) test -count 1 -v -timeout 0 -run "TestErrorBudget|TestStepsAreFound" ./internal/analysis/anomaly

bench-healthy: ## simulate nine healthy weeks of machines with all healthy programs of test/cases/scenes, and write what each rule finds (HEALTHY_DAYS=63; 30 minutes of CPU time); HEALTHY_SEED=16 for other loads
	HEALTHY_DAYS=$(or $(HEALTHY_DAYS),63) HEALTHY_SEED=$(HEALTHY_SEED) $(GO) test -count 1 -v -timeout 0 -run TestHealthyWeek ./test/cases

bench-same: build ## record one program 3,200 times, and write how often 200 comparisons of its runs show a change (20 minutes on a quiet machine; needs root); SAME_SETS=30 for fewer, SAME_DIR=DIR to go on after an interruption
	SAME_SETS=$(SAME_SETS) SAME_DIR=$(abspath $(SAME_DIR)) TEESCOPE_BIN=$(CURDIR)/$(BIN) $(GOTEST) -v -timeout 0 -tags e2e $(if $(SUDO),-exec '$(SUDO)') -run TestRealRunsOfTheSame ./test/e2e

bench-fleet: build ## what a server of 100,000 series needs: memory, CPU, latency, disk (about 3 minutes)
	$(GO) run ./bench/fleet -teescope $(BIN) $(FLEETFLAGS)

bench-nodes: build ## what a server of 1,000 agents with 300 series and six enclaves each needs; FLEETFLAGS="-interval 60s -database PATH" for another interval, and for a VictoriaMetrics beside it
	$(GO) run ./bench/fleet -teescope $(BIN) -nodes 1000 -interval 15s -rounds 1 $(FLEETFLAGS)

bench-judging: ## CPU time of the analysis of 1,000 machines with 60 workloads each, with its progress (2 minutes of CPU time)
	$(GO) test -run '^$$' -bench 'BenchmarkFleet$$' -benchtime 1x -timeout 0 ./test/cases

soak: ## hours of scraping and compacting within SOAK (10m): memory flat, no sample lost
	TEESCOPE_SOAK=$(SOAK) $(GOTEST) -v -run 'TestSoak$$' -timeout 0 ./internal/server/prom

bench-quick: ## one short round of bench: proves that it runs, measures nothing worth quoting
	$(MAKE) --no-print-directory bench \
		BENCHFLAGS='-quick -modes off,empty,exact,budget,teemon-way,lean -loads redis,nginx,threads'

bench-peers: bin/cadvisor ## install the peers, then all loads under all modes (about 2.5 hours; needs root)
	tools/setup.sh --peers
	$(MAKE) --no-print-directory bench BENCHFLAGS='-modes all -loads all -rounds 6 $(BENCHFLAGS)'

bench-sgx: testbed ## what watching costs a server in an enclave, in the virtual SGX machine (3 minutes), and each program there
	$(GOTEST) -v -tags sgx,bench -run 'TestThroughput$$' ./test/sgx
	$(GO) run ./bench/probecost -virtual bin/sgx-metrics.txt docs/dev/probe-cost.md

probe-cost: build ## measure the nanoseconds in docs/dev/probe-cost.md (20 seconds; needs root and a quiet machine)
	$(GO) build -o bin/probecost ./bench/probecost
	$(SUDO) bin/probecost -measure $(BIN) docs/dev/probe-cost.md

# A module of its own: cAdvisor's dependencies are none of teescope's.
bin/cadvisor: bench/peers/main.go bench/peers/go.mod bench/peers/go.sum
	CGO_ENABLED=0 $(GO) -C bench/peers build -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ .

## The virtual SGX machine

.PHONY: testbed bin/testbed
testbed: bin/testbed ## build the virtual SGX machine: then testbed/run -- CMD
	bin/testbed build

bin/testbed:
	$(GO) build -trimpath -o $@ ./testbed

.PHONY: setup tools test-all ci clean
setup: ## install what the tests need (Debian packages, node modules, linters)
	tools/setup.sh

tools: $(LINT_TOOLS) $(TOOLS)/govulncheck ## build the pinned linters

test-all: ## every step of CI, in its order, with a summary
	test/all --no-setup

ci: ## what CI runs: setup and test-all
	.ci/run

clean: ## remove what was built
	rm -rf bin .cache web/node_modules

$(TOOLS)/golangci-lint: tools/go.mod tools/go.sum
	CGO_ENABLED=0 $(GO) -C tools build -trimpath -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(TOOLS)/deadcode: tools/go.mod tools/go.sum
	CGO_ENABLED=0 $(GO) -C tools build -trimpath -o $(CURDIR)/$@ golang.org/x/tools/cmd/deadcode

$(TOOLS)/typecheck: tools/go.mod tools/go.sum $(wildcard tools/typecheck/*.go)
	CGO_ENABLED=0 $(GO) -C tools build -trimpath -o $(CURDIR)/$@ ./typecheck

$(TOOLS)/govulncheck: tools/go.mod tools/go.sum
	CGO_ENABLED=0 $(GO) -C tools build -trimpath -o $(CURDIR)/$@ golang.org/x/vuln/cmd/govulncheck

web/node_modules/.package-lock.json: web/package-lock.json
	npm --prefix web ci --no-audit --no-fund
	@touch $@
