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
var inWords = map[string]string{"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "eight": "8", "ten": "10"}

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
	{"docs/decisions/storage.md", `(\d+) MiB at most`, "internal/server/prom/reserve.go", `maxReserve = (\d+) ?<< 20`},
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
	{"docs/runbooks/storage-failing.md", `\((\d+) MiB at most\)`, "internal/server/prom/reserve.go", `maxReserve = (\d+) ?<< 20`},
	{"docs/runbooks/thread-churn.md", `constantly: (\w+) per second`, "internal/analysis/rules/thread_churn.go", `churnStarts\s+= (\d+)`},
	{"docs/decisions/scale.md", `more than ([\d,]+) rows are read on several CPUs`, "internal/agent/collector/system/sums.go", `readersRows = (\d+)`},
	{"docs/user/access.md", `sends (\w+) wrong passwords`, "internal/server/httpapi/authenticate.go", `attemptBurst = [\d.]+, (\d+)`},
	{"docs/user/access.md", `YAML or JSON \| after (\d+) s`, "internal/server/discovery/discovery.go", `o\.fileEvery, (\d+)\*time`},
	{"docs/user/access.md", `address of the name \| after (\d+) s`, "internal/server/discovery/discovery.go", `o\.dnsEvery, (\d+)\*time`},
	{"docs/user/access.md", "`http_sd_config` \\| after (\\d+) s", "internal/server/discovery/discovery.go", `o\.httpEvery, (\d+)\*time`},
	{"docs/user/access.md", `together may name ([\d,]+) agents`, "internal/server/discovery/discovery.go", `maxTargets = (\d+)`},
	{"docs/user/access.md", `are cut after (\d+) KiB`, "internal/server/httpapi/accesslog.go", `maxLogged\s+= (\d+) ?<<`},
	{"docs/user/access.md", `At most (\d+) requests per second`, "internal/server/httpapi/accesslog.go", `maxPerSecond\s+= (\d+)`},
	{"docs/user/access.md", `the limit of (\d+) connections`, "internal/server/httpapi/connections.go", `maxConnections = (\d+)`},
	{"docs/user/access.md", `takes nothing for (\d+) s`, "internal/server/httpapi/answer.go", `patience\s+= (\d+) \* time`},
	{"docs/user/access.md", `at least (\d+) ms apart`, "internal/server/httpapi/reserve.go", `leastGap = (\d+) \* time`},
	{"docs/user/access.md", `regular scrapers \| (\w+), two`, "internal/server/httpapi/reserve.go", `maxRegular\s+= (\d+)`},
	{"docs/user/access.md", `wait up to (\d+) s, four`, "internal/server/httpapi/gate.go", `maxDelay = (\d+) \* time`},
	{"docs/user/access.md", `wait up to 2 s, (\w+) of each`, "internal/server/httpapi/gate.go", `maxDelayedOfAClient = (\d+)`},
	{"docs/user/access.md", `the answer 503 after (\d+) s`, "internal/server/httpapi/gate.go", `penalty\s+= (\d+) \* time`},
	{"docs/user/analysis.md", `the (\d+) workloads of a machine`, "internal/analysis/engine/limiter.go", `mostLimits = (\d+)`},
	{"docs/user/analysis.md", `and (\d+) in total`, "internal/analysis/engine/limiter.go", `mostLimitsOfAll = (\d+)`},
	{"docs/user/compare.md", `At most (\w+) parts are`, "internal/run/compare/table.go", `mostParts = (\d+)`},
	{"docs/user/compare.md", `server keeps (\d+) runs`, "internal/server/runs/store.go", `maxRuns\s+= (\d+)`},
	{"docs/user/compare.md", `each up to (\d+) MiB and`, "internal/server/runs/store.go", `MaxFile\s+= (\d+) ?<<`},
	{"docs/user/compare.md", `values, and (\d+) MiB in all`, "internal/server/runs/store.go", `maxTotal = (\d+) ?<<`},
	{"docs/user/compare.md", `compares up to (\d+),`, "internal/server/runs/comparison.go", `mostCompared = (\d+)`},
	{"docs/user/compare.md", `A group has at most (\d+) repetitions`, "internal/run/compare/extract.go", `maxObservations = (\d+)`},
	{"docs/user/configuration.md", `manifests, that become .{1,60}, at most (\d+);`, "internal/lib/config/settings.go", `maxSettings = (\d+)`},
	{"docs/user/configuration.md", "pod_label_info`, at most (\\d+)", "internal/lib/config/discovery.go", `maxPodLabels = (\d+)`},
	{"docs/user/configuration.md", "MATCHER\\]\\.\\.\\.`, at most (\\d+)", "internal/lib/config/analysis.go", `maxThresholds = (\d+)`},
	{"docs/user/configuration.md", `body, decompressed \| (\d+) MB`, "internal/server/prom/scrape.go", `\n\tbodyLimit\s+= (\d+) ?<<`},
	{"docs/user/configuration.md", `body, decompressed \| 16 MB \| (\d+) MB`, "internal/server/prom/scrape.go", `agentBodyLimit\s+= (\d+) ?<<`},
	{"docs/user/configuration.md", `\| samples \| ([\d,]+) \|`, "internal/server/prom/scrape.go", `\tsampleLimit\s+= ([\d_]+)`},
	{"docs/user/configuration.md", `\| samples \| 100,000 \| ([\d,]+) \|`, "internal/server/prom/scrape.go", `agentSampleLimit = ([\d_]+)`},
	{"docs/user/configuration.md", `labels of a series \| (\d+)`, "internal/server/prom/scrape.go", `labelLimit\s+= (\d+)`},
	{"docs/user/configuration.md", `its value \| (\d+) and`, "internal/server/prom/scrape.go", `labelNameLimit\s+= (\d+)`},
	{"docs/user/configuration.md", `its value \| 512 and ([\d,]+) bytes`, "internal/server/prom/scrape.go", `labelValueLimit = (\d+)`},
	{"docs/user/configuration.md", "below `/api/v1` at once \\| (\\d+),", "internal/server/prom/overload.go", `maxRunning = (\d+)`},
	{"docs/user/configuration.md", `up to (\d+) wait, 10 s`, "internal/server/prom/overload.go", `maxWaiting = (\d+)`},
	{"docs/user/configuration.md", `up to 64 wait, (\d+) s`, "internal/server/prom/overload.go", `maxWait\s+= (\d+) \* time`},
	{"docs/user/configuration.md", `text of a query \| (\d+) KiB`, "internal/server/prom/bound/text.go", `MaxText = (\d+) ?<<`},
	{"docs/user/configuration.md", `nesting of a query \| (\d+) brackets`, "internal/server/prom/bound/nesting.go", `maxBrackets = (\d+)`},
	{"docs/user/configuration.md", "such as `--`, ([\\d,]+) operators", "internal/server/prom/bound/nesting.go", `maxDepth = (\d+)`},
	{"docs/user/configuration.md", "format_query` \\| ([\\d,]+)", "internal/server/prom/bound/nesting.go", `maxFormat = ([\d_]+)`},
	{"docs/user/configuration.md", "parse_query` \\| ([\\d,]+)", "internal/server/prom/bound/nesting.go", `maxTree = ([\d_]+)`},
	{"docs/user/configuration.md", `of a query together \| ([\d,]+)`, "internal/server/prom/bound/bound.go", `maxSteps = ([\d_]+)`},
	{"docs/user/configuration.md", `again for each step \| ([\d,]+)`, "internal/server/prom/bound/bound.go", `maxReads = ([\d_]+)`},
	{"docs/user/configuration.md", `repetitions written out \| ([\d,]+)`, "internal/server/prom/bound/text.go", `maxRegexp = ([\d_]+)`},
	{"docs/user/configuration.md", `besides its samples \| (\d+) MiB`, "internal/server/prom/budget.go", `maxQueryBytes = (\d+) ?<<`},
	{"docs/user/configuration.md", `query holds at once \| ([\d,]+)`, "internal/server/prom/prom.go", `maxSamples\s+= ([\d_]+)`},
	{"docs/user/control.md", `at the same time \| (\d+)`, "internal/agent/ondemand/ondemand.go", `maxChanges = (\d+)`},
	{"docs/user/control.md", `begin within a minute \| (\d+)`, "internal/agent/ondemand/ondemand.go", `maxBegun = (\d+)`},
	{"docs/user/control.md", `of a reason \| (\d+) bytes`, "internal/agent/ondemand/ondemand.go", `maxRule\s+= (\d+)`},
	{"docs/user/fleet.md", `\(machines, at most ([\d,]+)\)`, "internal/server/fleet/fleet.go", `maxNodes\s+= \d+, ([\d_]+)`},
	{"docs/user/fleet.md", `other list, at most (\d+)`, "internal/server/fleet/fleet.go", `maxRows\s+= \d+, (\d+)`},
	{"docs/user/fleet.md", `beside each pod, at most (\d+)`, "internal/server/fleet/fleet.go", `maxColumns = \d+, (\d+)`},
	{"docs/user/fleet.md", `answer may have (\d+) MiB and`, "internal/server/elsewhere/elsewhere.go", `maxAnswer = (\d+) ?<<`},
	{"docs/user/fleet.md", `MiB and take (\d+) s`, "internal/app/elsewhere.go", `elsewhereWithin = (\d+) \* time`},
	{"docs/user/fleet.md", `All receivers, at most (\w+), share`, "internal/lib/config/remotewrite.go", `maxReceivers = (\d+)`},
	{"docs/user/history.md", `the last ([\d,]+) findings`, "internal/analysis/history/history.go", `maxEntries = ([\d_]+)`},
	{"docs/user/history.md", `findings, in at most (\d+) MiB`, "internal/analysis/history/history.go", `maxBytes\s+= (\d+) ?<<`},
	{"docs/user/history.md", `of rows, (\d+) by default`, "internal/analysis/history/answer.go", `UsualLimit = (\d+)`},
	{"docs/user/history.md", `200 by default, at most ([\d,]+)`, "internal/analysis/history/answer.go", `MaxLimit\s+= (\d+)`},
	{"docs/user/history.md", `at least (\w+) parts on each side`, "internal/analysis/events/change.go", `leastParts = (\d+)`},
	{"docs/user/nitro.md", `\| limit \| (\d+) addresses`, "internal/agent/tee/nitro/families.go", `At most (\d+) peers have series`},
	{"docs/user/operations.md", `more than (\d+) series of the counter`, "internal/server/prom/operations.go", `mostCounters\s+= (\d+)`},
	{"docs/user/operations.md", `or ([\d,]+) of the histogram`, "internal/server/prom/operations.go", `mostHistogram = (\d+)`},
	{"docs/user/page.md", `keeps at most (\d+) MiB of dashboards`, "internal/server/dashboards/own/store.go", `maxFile\s+= (\d+) ?<<`},
	{"docs/user/probes.md", `at most (\d+) more labels`, "internal/agent/userprobe/probefile/probefile.go", `maxKeys\s+= (\d+)`},
	{"docs/user/probes.md", `together: (\d+) by default`, "internal/agent/userprobe/probefile/probefile.go", `maxSeries = (\d+), \d+`},
	{"docs/user/probes.md", `256 by default, at most ([\d,]+)`, "internal/agent/userprobe/probefile/probefile.go", `maxSeries = \d+, (\d+)`},
	{"docs/user/probes.md", `A file has at most (\d+) probes`, "internal/agent/userprobe/probefile/probefile.go", `maxProbes\s+= (\d+)`},
	{"docs/user/profile.md", `at most (\d+) of them, which is`, "internal/server/profiles/serve.go", `maxMerged = (\d+)`},
	{"docs/user/profile.md", `has at most (\d+) threads, 240`, "internal/server/profiles/threads.go", `maxThreads = (\d+)`},
	{"docs/user/profile.md", `60 threads, (\d+) buckets`, "internal/server/profiles/threads.go", `maxBuckets = (\d+)`},
	{"docs/user/profile.md", `240 buckets and (\d+) states`, "internal/server/profiles/threads.go", `maxStates\s+= (\d+)`},
	{"docs/user/profile.md", `there are more than ([\d,]+), or`, "internal/agent/profiling/recording/times.go", `maxBuckets = (\d+)`},
	{"docs/user/report.md", `keeps its (\d+) greatest series`, "internal/server/report/record.go", `maxSeries = (\d+)`},
	{"docs/user/rules.md", `At most ([\d,]+) alerts fire`, "internal/server/notify/hub.go", `maxOpen = (\d+)`},
	{"docs/user/statistics.md", `change more than (\d+) times in an hour`, "internal/agent/collector/settings/changes.go", `mostChanges = (\d+)`},
	{"docs/user/statistics.md", `fewer than (\d+) observations`, "internal/analysis/window/window.go", `leastObservations = (\d+)`},
	{"docs/user/statistics.md", `more than (\d+) workloads on a machine`, "internal/analysis/window/window.go", `windowWorkloads = (\d+)`},
	{"docs/user/top.md", `With more than (\d+) threads`, "internal/agent/threads/threads.go", `maxThreads = (\d+)`},
	{"docs/user/transitions.md", `\| (\d+) files of a process`, "internal/agent/tee/sgx/boundary/breakpoint/own.go", `maxMapped\s+= (\d+)`},
	{"docs/user/transitions.md", `files of a process; ([\d,]+) files`, "internal/agent/tee/sgx/boundary/breakpoint/own.go", `maxFiles\s+= (\d+)`},
	{"docs/user/transitions.md", `and ([\d,]+) breakpoints of the machine`, "internal/agent/tee/sgx/boundary/breakpoint/breakpoint.go", `maxAll = (\d+)`},
	{"docs/user/transitions.md", `process with more than (\d+)\s+threads`, "internal/agent/tee/sgx/boundary/breakpoint/tree.go", `maxPoints = (\d+)`},
	{"docs/user/transitions.md", `has (\d+) functions of each kind`, "internal/agent/tee/sgx/boundary/count/counts.go", `maxTimed = (\d+)`},
	{"docs/user/transitions.md", `answer has the (\d+) most frequent`, "internal/agent/tee/sgx/boundary/transition/pairs.go", `maxPairs = (\d+)`},
	{"docs/user/transitions.md", `\[(\d+) files are probed at most\]`, "internal/agent/tee/sgx/boundary/window/layout.go", `maxFiles = (\d+)`},
	{"docs/runbooks/not-probed.md", `probes at most (\d+) files`, "internal/agent/tee/sgx/boundary/window/layout.go", `maxFiles = (\d+)`},
	{"docs/runbooks/not-probed.md", `files and ([\d,]+) functions`, "internal/agent/tee/sgx/boundary/functions/file.go", `maxSites = (\d+)`},
	{"docs/runbooks/not-probed.md", `watches at most ([\d,]+) processes`, "internal/agent/tee/sgx/boundary/process/process.go", `maxProcesses = (\d+)`},
	{"docs/runbooks/not-probed.md", `remembers ([\d,]+) files`, "internal/agent/tee/sgx/boundary/breakpoint/own.go", `maxFiles\s+= (\d+)`},
	{"docs/runbooks/epc-thrashing.md", `finding needs (\d+) pages`, "internal/analysis/rules/epc_thrashing.go", `pagingPages = (\d+)`},
	{"docs/runbooks/epc-thrashing.md", `per second, or (\d+) where`, "internal/analysis/rules/epc_thrashing.go", `shortPages = (\d+)`},
	{"docs/runbooks/epc-thrashing.md", `Below ([\d,]+) per`, "internal/analysis/rules/epc_thrashing.go", `thrashPages = (\d+)`},
	{"docs/runbooks/growth-to-limit.md", `forecast uses (\d+) values`, "internal/analysis/engine/trend.go", `trendSteps = (\d+)`},
	{"docs/decisions/diagnosis.md", `evaluation\*\*, of (\d+) steps`, "internal/analysis/engine/trend.go", `trendSteps = (\d+)`},
	{"docs/runbooks/events-lost.md", `More than ([\d,]+) were in flight`, "internal/agent/collector/system/system.h", `REQUESTS_IN_FLIGHT = (\d+)`},
	{"docs/runbooks/aex-storm.md", `lowest cost, ([\d,]+) cycles`, "internal/analysis/cost/cost.go", `"an asynchronous exit", Low: (\d+)`},
	{"docs/runbooks/aex-rate.md", `more than ([\d,]+) times per second`, "rules/boundary.yaml", `cpu_seconds_total\[5m\]\)\) > (\d+)`},
	{"docs/runbooks/epc-thrashing.md", `A page costs ([\d,]+) to`, "internal/analysis/cost/cost.go", `written out and loaded back", Low: (\d+)`},
	{"docs/decisions/timing.md", `The table has ([\d,]+) starts`, "internal/agent/collector/system/system.h", `RESTARTED_CALLS = (\d+)`},
	{"docs/decisions/timing.md", `A distribution has (\d+) buckets`, "internal/agent/collector/system/system.h", `\n\t\t(\d+), /\* of system calls: below 256`},
	{"docs/decisions/timing.md", `So there are (\d+) for all`, "internal/agent/collector/system/system.h", `\n\t\t(\d+), /\* twice the watched`},
	{"docs/decisions/timing.md", `word with the number (\d+),`, "internal/agent/collector/system/system.h", `CALL_IO_WAIT = (\d+)`},
	{"docs/decisions/diagnosis.md", `\*\*Bounds\*\*: (\d+) silences`, "internal/analysis/silence/store.go", `maxLive\s+= (\d+)`},
	{"docs/decisions/diagnosis.md", `not ended, (\d+) that have`, "internal/analysis/silence/store.go", `maxExpired = (\d+)`},
	{"docs/decisions/diagnosis.md", `that have, (\d+) matchers`, "internal/analysis/silence/silence.go", `maxMatchers = (\d+)`},
	{"docs/decisions/diagnosis.md", `each, (\d+) bytes for a value`, "internal/analysis/silence/silence.go", `maxValue\s+= (\d+)`},
	{"docs/decisions/diagnosis.md", `for a value, ([\d,]+) instructions`, "internal/analysis/silence/silence.go", `maxProgram = (\d+)`},
	{"docs/user/analysis.md", `There are at most (\d+) silences`, "internal/analysis/silence/store.go", `maxLive\s+= (\d+)`},
	{"docs/decisions/profiling.md", `process, at most (\d+) times`, "internal/agent/profiling/layout.go", `maxFrames\s+= (\d+)`},
	{"docs/decisions/statistics.md", `At most (\d+) workloads of a machine`, "internal/analysis/window/window.go", `windowWorkloads = (\d+)`},
	{"docs/user/vms.md", `\| limit \| (\d+) virtual machines`, "internal/agent/tee/vm/families.go", `At most (\d+) virtual machines have series`},
	{"docs/decisions/transitions.md", `waits at most (\d+) ms for these reads`, "internal/agent/tee/sgx/boundary/boundary.go", `readPatience = (\d+) \* time`},
	{"docs/decisions/transitions.md", `A scrape waits (\d+) s\s+for it`, "internal/agent/tee/sgx/boundary/boundary.go", `scrapeWaits\s+= (\d+) \* time`},
	{"docs/decisions/transitions.md", `younger than (\d+) s, and`, "internal/agent/tee/sgx/boundary/boundary.go", `scrapeRepeat = (\d+) \* time`},
	{"docs/dev/processes.md", `waits (\d+) ms for such reads`, "internal/agent/tee/sgx/boundary/boundary.go", `readPatience = (\d+) \* time`},
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
