# make        builds bin/callreel
# make demo   records a small server with one planted slow request, and shows it
# make test   everything: installs what is missing, go vet, all tests
# make test-arm64  tests in an emulated arm64 machine, with Debian's kernel and programs: ARM64PKG, on ARM64CPU, ARM64PAGES KiB a page
# make test-arm64-record  some of the live tests of recording there: ARM64LIVE
# make test-arm64-short   the most important of them, in some three minutes behind test-arm64-prepare; .ci/run does both
# make soak-arm64   recorders come, go and die in real programs there for ARM64SOAK
# make count-arm64 counts there what a call takes in instructions, callreel's and uftrace's: the table of docs/costs.md
# make test-arm64-prepare fetches what the machine is made of, once
# make bench  callreel, its peers and the limit in one run, with ratios
# make programs  records many real programs at work, and prints a table of them
# make soak   recorders come, go and die in all of them for SOAK, while they work; looks for harm
# make lint   gofmt, go vet, staticcheck
# make page   builds viewer/page/dist, which is committed, out of viewer/page/src, by npm's esbuild
# make page-check  tests the page's parts, and that viewer/page/dist is what make page makes
# make cross  builds for the other systems, their tests as well
# make dist   what people install, into dist: tar.gz, .deb and .rpm with manual pages and completions, SHA256SUMS, SBOM;
#             the same commit gives the same bytes
# make fuzz   each fuzz target for FUZZTIME, on one processor; with GUIDED=no without counters of what code is reached

GO         ?= go
FUZZTIME   ?= 10s
GUIDED     ?= yes
SOAK       ?= 30m
PKG        ?= ./...
# The tests that take longest begin first, and the others go on beside them.
LONGEST     = $(if $(filter ./...,$(PKG)),./recorder ./viewer/page ./cmd/callreel ./packaging ./recorder/internal/hostile)
ARM64CPU   ?= max
ARM64PAGES ?= 4
ARM64LIVE  ?= ^TestEveryCallOfEveryThreadIsCounted$$|^TestASlowCallDumpsTheProcessThatItWaitsFor$$|^TestGoAssemblyThatKeepsRegistersIsLeftAlone$$|^TestFunctionsAreSwitchedWhileTheyRun$$/^(.00|--lazy_-m_.)$$|^TestFunctionsThatAreOffOutliveTheRecorder$$|^TestABudgetLeavesOutWhatTheReelSays$$/^.00$$|^TestProgramsEndThePauseAtTheBeginning$$/^.00$$|^TestACommandIsRecordedFromItsBeginningToItsEnd$$/^dynamic$$|^TestFollowedProcessesAreCountedExactly$$/^-f_walk|^TestAGoCommandIsCountedFromItsBeginning$$|^TestGoMarkersMakeDumps$$|^TestArgumentsAreWhatGDBPrints$$/^go$$|^TestCallsByImportsAreWhatTheProgramCounts$$/^lazy$$|^TestEveryShapeOfARM64IsRecorded$$|^TestProgramsThatCheckThemselvesFindNothingWrong$$/^(every_register|every_register,_static|every_register,_lossless_and_without_clock|exceptions)$$|^TestForkedChildrenAreRestoredWithTheirParent$$|WithoutAThreadPointer
ARM64SHORT  = ^(TestEveryCallOfEveryThreadIsCounted|TestAGoCommandIsCountedFromItsBeginning|TestExceptionsPassThroughProbesOfARM64|TestRecordingAgainAfterAKillNeedsNoDetach|TestRedisIsAttachedToAndDetachedFromManyTimes|TestPythonIsAttachedToAndDetachedFromManyTimes|TestEveryShapeOfARM64IsRecorded)$$|^TestProgramsThatCheckThemselvesFindNothingWrong$$/^every_register$$
ARM64SOAK  ?= 20m
ARM64PKG   ?= ./isa ./isa/arm64 ./process/...
VERSION    ?= $(shell git describe --tags --always --abbrev=12 --dirty 2>/dev/null || echo unknown)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The version is put in by the linker, so that the binary depends on nothing
# of the machine that built it.
LDFLAGS = -s -w -X main.version=$(VERSION)

export CGO_ENABLED = 0

.PHONY: all callreel demo vet test test-arm64 test-arm64-record test-arm64-short test-arm64-prepare soak-arm64 count-arm64 bench programs soak fuzz dist lint page page-check cross clean
all: callreel

# Go knows what is out of date.
callreel:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/callreel ./cmd/callreel

demo:
	@scripts/need demo
	@GO="$(GO)" VERSION="$(VERSION)" demo/run

vet:
	$(GO) vet $(PKG)

# Three packages at a time: most of them wait, for processes or for their ends.
# callreel is built once for all of them, and what go vet has looked at isn't
# looked at again.
test: export CALLREEL = $(CURDIR)/bin/callreel
test: vet callreel
	@scripts/need test
	$(GO) test -p 3 -vet=off -timeout 50m $(TESTFLAGS) $(LONGEST) $(PKG)

# What a kernel with pages of 64 KiB takes to be compiled.
NEED64      = $(if $(filter 64,$(ARM64PAGES)),@scripts/need kernel-arm64)

test-arm64:
	@scripts/need test-arm64
	$(NEED64)
	$(GO) run ./internal/guest/run -cpu $(ARM64CPU) -pages $(ARM64PAGES) -short $(ARM64FLAGS) $(ARM64PKG)

test-arm64-record:
	@scripts/need test-arm64
	$(NEED64)
	$(GO) run ./internal/guest/run -cpu $(ARM64CPU) -pages $(ARM64PAGES) $(ARM64FLAGS) -run '$(ARM64LIVE)' ./recorder

test-arm64-prepare:
	@scripts/need test-arm64
	$(GO) run ./internal/guest/run -prepare

soak-arm64:
	@scripts/need test-arm64
	$(NEED64)
	$(GO) run ./internal/guest/run -cpu $(ARM64CPU) -pages $(ARM64PAGES) $(ARM64FLAGS) -memory 4096 -timeout 60m -soak $(ARM64SOAK)

test-arm64-short:
	@scripts/need test-arm64
	$(GO) run ./internal/guest/run -short $(ARM64FLAGS) -run '$(ARM64SHORT)' ./recorder

count-arm64:
	@scripts/need test-arm64
	$(NEED64)
	$(GO) run ./internal/guest/run -cpu $(ARM64CPU) -pages $(ARM64PAGES) -count -v $(ARM64FLAGS) -run '^TestInstructionsOfACall$$' ./recorder

bench: callreel
	@scripts/need bench
	$(GO) run ./bench $(BENCHFLAGS)

programs: callreel
	@scripts/need programs
	$(GO) run ./bench -programs $(BENCHFLAGS)

soak: callreel
	@scripts/need programs
	$(GO) run ./bench -soak $(SOAK) $(BENCHFLAGS)

dist:
	rm -rf dist
	$(GO) run ./packaging -version '$(VERSION)' -o dist

fuzz:
	@GUIDED=$(GUIDED) scripts/fuzz $(FUZZTIME)

lint: vet
	@unformatted=$$(find . -name '*.go' -not -path './.git/*' -print0 | xargs -0 gofmt -l) && \
		if [ -n "$$unformatted" ]; then echo "not gofmt'd:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags man ./cmd/callreel
	$(GO) run $(STATICCHECK) $(PKG)

# What npm installs is locked, and none of its scripts are run.
viewer/page/node_modules: viewer/page/package-lock.json
	@scripts/need test
	cd viewer/page && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

page: viewer/page/node_modules
	cd viewer/page && npm run --silent check && npm run --silent build

page-check: viewer/page/node_modules
	cd viewer/page && npm run --silent check && npm run --silent test
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && node viewer/page/build.mjs --outdir "$$out" && \
		if ! diff -rq "$$out" viewer/page/dist; then echo "viewer/page/dist is not what its source makes: run make page"; exit 1; fi

cross:
	GOOS=linux GOARCH=amd64 $(GO) build $(PKG)
	GOOS=linux GOARCH=arm64 $(GO) vet $(PKG)
	GOOS=darwin GOARCH=arm64 $(GO) vet $(PKG)

clean:
	rm -rf bin dist demo/out
