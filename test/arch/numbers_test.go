// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inWords are the numbers that documents write as words.
var inWords = map[string]string{"two": "2", "three": "3", "four": "4", "six": "6", "eight": "8", "ten": "10"}

// limits are numbers that documents name, with the lines that set them. Each expression has one group.
var limits = []struct{ document, says, source, sets string }{
	{"docs/dev/testing.md", `the first view has at most (\d+) kB`, "web/src/bundle.test.ts", `first: (\d+)_000`},
	{"docs/dev/testing.md", `\| (\d+) kB of the first view`, "web/src/bundle.test.ts", `first: (\d+)_000`},
	{"docs/dev/testing.md", `70 kB, all views (\d+) kB`, "web/src/bundle.test.ts", `views: (\d+)_000`},
	{"docs/dev/testing.md", `view, (\d+) kB of all views`, "web/src/bundle.test.ts", `views: (\d+)_000`},
	{"docs/dev/testing.md", `and the chart library (\d+) kB`, "web/src/bundle.test.ts", `library: (\d+)_000`},
	{"docs/dev/testing.md", `and (\d+) kB of chart library`, "web/src/bundle.test.ts", `library: (\d+)_000`},
	{"web/README.md", `the first view has at most (\d+) kB`, "web/src/bundle.test.ts", `first: (\d+)_000`},
	{"web/README.md", `all views (\d+) kB`, "web/src/bundle.test.ts", `views: (\d+)_000`},
	{"docs/dev/testing.md", `files have at most (\d+) lines`, "test/arch/arch_test.go", `const most = (\d+)`},
	{"docs/dev/testing.md", `and types at most (\d+) methods`, "test/arch/types_test.go", `const mostMethods = (\d+)`},
	{"ARCHITECTURE.md", "`main.go` \\((\\d+) lines at most\\)", "test/arch/arch_test.go", `n > (\d+) \{\n\t\tt.Errorf\("cmd/teescope/main.go`},
	{"docs/dev/testing.md", `waiting tests of .e2e. (\w+)`, "Makefile", `-tags e2e -parallel (\d+)`},
	{"docs/dev/testing.md", `run after all others, (\w+) at a time`, "Makefile", `-tags e2e -parallel (\d+)`},
	{"docs/dev/testing.md", `files of .browser. (\w+),`, "web/vitest.browser.config.ts", `maxWorkers: (\d+)`},
	{"docs/dev/testing.md", `fuzz targets (\w+),`, "test/fuzz", `xargs -P (\d+)`},
	{"docs/dev/testing.md", "`make fuzz` runs (\\w+) targets at a time", "test/fuzz", `xargs -P (\d+)`},
	{"docs/dev/testing.md", `of two minutes and at most (\d+) s`, "test/fuzz", `each < (\d+) `},
	{"README.md", `and Go (\d+\.\d+),`, "go.mod", `(?m)^go (\d+\.\d+)`},
	{"docs/dev/adding.md", `The binary stays\s+below (\d+) MB`, "test/e2e/lifecycle_test.go", `maxBinary = (\d+)_000_000`},
	{"docs/decisions/scale.md", `at most (\d+) a second\. It lists`, "internal/agent/tee/detect.go", `burst, perSecond = \d+, (\d+)`},
	{"docs/decisions/scale.md", `at most\s+(\d+) s, and at most`, "internal/agent/tee/detect.go", `longestWait = time.Second, (\d+) \* time`},
	{"docs/decisions/scale.md", `At most (\d+) threads are followed`, "internal/agent/collector/system/busiest.go", `maxFollowed = (\d+)`},
	{"docs/decisions/analysis.md", `limits of samples \(([\d,]+) for each query`, "internal/analysis/engine/engine.go", `o\.MaxSamples = ([\d_]+)`},
	{"docs/decisions/analysis.md", `and of workloads \(([\d,]+)\)`, "internal/analysis/engine/engine.go", `o\.MaxWorkloads = ([\d_]+)`},
	{"docs/decisions/analysis.md", `at most ([\d,]+) findings and`, "internal/analysis/engine/engine.go", `o\.MaxFindings = ([\d_]+)`},
	{"docs/decisions/containers.md", `At most (\d+) containers`, "internal/agent/collector/container/container.go", `defaultMax = (\d+)`},
	{"docs/decisions/gpus.md", `the agent queries every (\d+) s`, "internal/agent/tee/gpu/gpu.go", `every = (\d+) \* time`},
	{"docs/decisions/sgx-driver.md", `At most (\d+) have series`, "internal/agent/tee/sgx/driver/read.go", `maxEnclaves = (\d+)`},
	{"docs/decisions/starts.md", `contains at most ([\d,]+)\s+created`, "internal/agent/collector/text.go", `maxStarts = ([\d_]+)`},
	{"docs/decisions/storage.md", `(\d+) MiB at most`, "internal/server/prom/reserve.go", `maxReserve = (\d+) << 20`},
	{"docs/decisions/storage.md", `TestBinaryIsSmall. allows (\d+) MB`, "test/e2e/lifecycle_test.go", `maxBinary = (\d+)_000_000`},
	{"docs/decisions/tee-detection.md", `up to (\w+) running processes`, "internal/agent/collector/system/detect.go", `maxPerSlot, maxOfProgram = (\d+)`},
	{"docs/decisions/tee-detection.md", `and (\w+) of a program`, "internal/agent/collector/system/detect.go", `maxPerSlot, maxOfProgram = \d+, (\d+)`},
	{"docs/decisions/tee-detection.md", `between 1 and\s+(\d+) s`, "internal/agent/tee/detect.go", `longestWait = time.Second, (\d+) \* time`},
	{"docs/decisions/tee-detection.md", `checks every (\d+) s`, "internal/agent/tee/detect.go", `checkEvery = (\d+) \* time`},
	{"docs/decisions/threads.md", `at\s+most\s+(\d+), those`, "internal/agent/threads/threads.go", `maxThreads = (\d+)`},
	{"docs/decisions/queries.md", `The limit of (\d+) leaves one`, "internal/server/httpapi/connections.go", `maxConnections = (\d+)`},
	{"docs/dev/processes.md", `It waits at most (\d+) ms`, "internal/lib/hostfs/reader/reader.go", `deadline = (\d+) \* time`},
	{"docs/dev/processes.md", `It abandons at most (\d+) threads`, "internal/lib/hostfs/reader/reader.go", `maxStuck = (\d+)`},
	{"docs/dev/processes.md", `quarantines at most (\d+) processes of one`, "internal/lib/hostfs/reader/reader.go", `maxOfTenant = (\d+)`},
	{"docs/runbooks/processes-not-read.md", `that (\d+) processes do not answer`, "internal/lib/hostfs/reader/reader.go", `maxStuck = (\d+)`},
	{"docs/runbooks/processes-not-read.md", `control group has (\w+) of them`, "internal/lib/hostfs/reader/reader.go", `maxOfTenant = (\d+)`},
	{"docs/runbooks/slow-start.md", `took (\d+) s or more`, "internal/analysis/rules/slow_start.go", `slowStartSeconds = (\d+)`},
	{"docs/runbooks/storage-failing.md", `\((\d+) MiB at most\)`, "internal/server/prom/reserve.go", `maxReserve = (\d+) << 20`},
	{"docs/runbooks/thread-churn.md", `constantly: (\w+) per second`, "internal/analysis/rules/thread_churn.go", `churnStarts\s+= (\d+)`},
	{"docs/decisions/scale.md", `more than ([\d,]+) rows are read on several CPUs`, "internal/agent/collector/system/sums.go", `readersRows = (\d+)`},
}

// TestNumbersInDocumentsAreThoseOfTheSources compares numbers in documents with the constants that they are about.
func TestNumbersInDocumentsAreThoseOfTheSources(t *testing.T) {
	one := func(file, expression string) string {
		found := regexp.MustCompile(expression).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Errorf("%s has nothing that matches %s", file, expression)
			return ""
		}
		if n, word := inWords[found[1]]; word {
			return n
		}
		return strings.NewReplacer(",", "", "_", "").Replace(found[1])
	}
	for _, of := range limits {
		if says, is := one(of.document, of.says), one(of.source, of.sets); says != is {
			t.Errorf("%s says %q (%s), and %s has %q", of.document, says, of.says, of.source, is)
		}
	}
}

// TestStepsAreThoseOfTheScript compares the steps that docs/dev/testing.md explains with those of test/all.
func TestStepsAreThoseOfTheScript(t *testing.T) {
	list := regexp.MustCompile(`(?s)\nall=\((.*?)\)`).FindStringSubmatch(read(t, "test/all"))
	if list == nil {
		t.Fatal("test/all has no list of steps")
	}
	var script []string
	for _, step := range regexp.MustCompile(`[a-z0-9-]+`).FindAllString(list[1], -1) {
		for _, whole := range []string{"sgx", "browser"} { // these have two parts
			if strings.HasPrefix(step, whole+"-") {
				step = whole
			}
		}
		if step != "setup" && step != "build" && !slices.Contains(script, step) {
			script = append(script, step)
		}
	}
	_, table, _ := strings.Cut(read(t, "docs/dev/testing.md"), "| step | what it proves |")
	table, _, _ = strings.Cut(table, "\n\n")
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|").FindAllStringSubmatch(table, -1) {
		explained = append(explained, row[1])
	}
	slices.Sort(script)
	slices.Sort(explained)
	if !slices.Equal(script, explained) {
		t.Errorf("test/all has the steps %q, and docs/dev/testing.md explains %q", script, explained)
	}
}

// TestKernelsAreThoseThatAreBooted compares the kernels that documents name with those of test/vm.
func TestKernelsAreThoseThatAreBooted(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "test/vm/vm_test.go"), "var kernels =")
	list, _, _ = strings.Cut(list, "\n}\n")
	versions := map[string]bool{}
	for _, m := range regexp.MustCompile(`\{"[^"]+", "([0-9.]+)", (\d+)`).FindAllStringSubmatch(list, -1) {
		versions[m[1]] = true
	}
	if len(versions) < 2 {
		t.Fatalf("test/vm has the kernels %v", versions)
	}
	for file, line := range map[string]string{
		"docs/dev/testing.md":       "(?m)^\\| `vm` \\|.*",
		"docs/decisions/kernels.md": `(?m)^\| Debian's .*booted in QEMU.*`,
	} {
		named := map[string]bool{}
		for _, version := range regexp.MustCompile(`\b\d+\.\d+\b`).FindAllString(regexp.MustCompile(line).FindString(read(t, file)), -1) {
			if _, err := strconv.ParseFloat(version, 64); err == nil {
				named[version] = true
			}
		}
		for version := range versions {
			if !named[version] {
				t.Errorf("%s does not name the kernel %s that test/vm boots", file, version)
			}
		}
		for version := range named {
			if !versions[version] {
				t.Errorf("%s names the kernel %s that test/vm does not boot", file, version)
			}
		}
	}
}
