// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"slices"
	"strings"
	"testing"
)

func TestReadJSONAndGo(t *testing.T) {
	for _, c := range []struct{ file, from, want string }{
		{"hyperfine.json", hyperfineTool, `
true.time_mean 0.0012104935833333334 s
true.time_median 0.0009657310000000001 s
true.time_stdev 0.0006750734040579937 s
true.time_min 0.000744349 s
true.time_max 0.0027145570000000003 s
true.user_time 0.0008853333333333331 s
true.operations 12 ops
true.failed_runs 0 errors
sleep_0.01.time_mean 0.013789679833333334 s
sleep_0.01.time_median 0.0133510955 s
sleep_0.01.time_stdev 0.0024142363090587098 s
sleep_0.01.time_min 0.011384608000000001 s
sleep_0.01.time_max 0.020414247 s
sleep_0.01.user_time 0.0013421666666666666 s
sleep_0.01.system_time 0.0005083333333333333 s
sleep_0.01.operations 12 ops
sleep_0.01.failed_runs 0 errors`},
		{"hyperfine-failed.json", hyperfineTool, `
time_mean 0.0027091078 s
time_median 0.0028413600000000002 s
time_stdev 0.0011293139903333794 s
time_min 0.001554239 s
time_max 0.003957221 s
user_time 0.0010507999999999997 s
system_time 0.00024859999999999997 s
operations 5 ops
failed_runs 5 errors`},
		{"googlebenchmark.json", googleTool, `
BM_Copy/64.time_per_operation 4.0054836326382866e-9 s
BM_Copy/64.cpu_time_per_operation 3.9967499856801472e-9 s
BM_Copy/64.throughput 2.5020329106971273e+08 /s
BM_Copy/64.bytes_throughput 1.6013010628461615e+10 B/s
BM_Copy/64.hits 3.5 - higher
BM_Copy/64.operations 7175353 ops
BM_Copy/8192.time_per_operation 123.75860983907700e-9 s
BM_Copy/8192.cpu_time_per_operation 123.71403874767392e-9 s
BM_Copy/8192.throughput 8.0831570137289856e+06 /s
BM_Copy/8192.bytes_throughput 6.6217222256467850e+10 B/s
BM_Copy/8192.hits 3.5 - higher
BM_Copy/8192.operations 257409 ops
BM_Sleep/real_time.time_per_operation 1.1117349199957971e-3 s
BM_Sleep/real_time.cpu_time_per_operation 3.4446719999999820e-5 s
BM_Sleep/real_time.operations 25 ops
BM_Bad.failed_runs 1 errors`},
		{"googlebenchmark-repeated.json", googleTool, `
time_per_operation 1.1125921999973798e-3 s
cpu_time_per_operation 3.2017399999999981e-5 s
operations 75 ops`},
		{"googlebenchmark-aggregates.json", googleTool, `
time_per_operation 1.1180455600060668e-3 s
cpu_time_per_operation 3.2911759999999998e-5 s`},
		{"memtier.json", memtierTool, `
operations 70845 ops
throughput 35386.81 /s
hits_per_second 2.5 /s neither
misses_per_second 32166.06 /s neither
bytes_throughput 1501.02*1024 B/s
latency_min 0.016e-3 s
latency_max 8.639e-3 s
connection_errors 0 errors
latency_p50 0.095e-3 s
latency_p99 1.279e-3 s
latency_p99_9 3.903e-3 s
Sets.operations 6443 ops
Sets.throughput 3218.25 /s
Sets.hits_per_second 0 /s neither
Sets.misses_per_second 0 /s neither
Sets.bytes_throughput 247.89*1024 B/s
Sets.latency_mean 0.142e-3 s
Sets.latency_min 0.016e-3 s
Sets.latency_max 7.775e-3 s
Sets.connection_errors 0 errors
Sets.latency_p50 0.103e-3 s
Sets.latency_p99 1.247e-3 s
Sets.latency_p99_9 3.647e-3 s
Gets.operations 64402 ops
Gets.throughput 32168.56 /s
Gets.hits_per_second 2.5 /s neither
Gets.misses_per_second 32166.06 /s neither
Gets.bytes_throughput 1253.13*1024 B/s
Gets.latency_mean 0.140e-3 s
Gets.latency_min 0.016e-3 s
Gets.latency_max 8.639e-3 s
Gets.connection_errors 0 errors
Gets.latency_p50 0.095e-3 s
Gets.latency_p99 1.279e-3 s
Gets.latency_p99_9 3.903e-3 s`},
		// memtier_benchmark leaves the latencies of the totals empty after several runs.
		{"memtier-runs.json", memtierTool, `
operations 7500 ops
throughput 27329.03 /s
hits_per_second 0 /s neither
misses_per_second 24814.76 /s neither
bytes_throughput 1160.52*1024 B/s
connection_errors 0 errors
Sets.operations 690 ops
Sets.throughput 2514.27 /s
Sets.hits_per_second 0 /s neither
Sets.misses_per_second 0 /s neither
Sets.bytes_throughput 193.33*1024 B/s
Sets.latency_mean 0.189e-3 s
Sets.latency_min 0.032e-3 s
Sets.latency_max 0.871e-3 s
Sets.connection_errors 0 errors
Sets.latency_p50 0.167e-3 s
Sets.latency_p90 0.303e-3 s
Sets.latency_p99 0.511e-3 s
Sets.latency_p99_9 0.767e-3 s
Sets.latency_p99_99 0.871e-3 s
Gets.operations 6810 ops
Gets.throughput 24814.76 /s
Gets.hits_per_second 0 /s neither
Gets.misses_per_second 24814.76 /s neither
Gets.bytes_throughput 967.19*1024 B/s
Gets.latency_mean 0.18e-3 s
Gets.latency_min 0.032e-3 s
Gets.latency_max 1.127e-3 s
Gets.connection_errors 0 errors
Gets.latency_p50 0.159e-3 s
Gets.latency_p90 0.295e-3 s
Gets.latency_p99 0.463e-3 s
Gets.latency_p99_9 0.807e-3 s
Gets.latency_p99_99 1.119e-3 s`},
		{"go.txt", goTool, `
Copy.time_per_operation 2736e-9 s
Copy.bytes_throughput 1497.25e6 B/s
Copy.bytes_allocated_per_operation 4096 B/op
Copy.allocations_per_operation 1 allocs/op
Copy.operations 22026 ops
Request.time_per_operation 87902e-9 s
Request.hit-ratio 0.5 hit-ratio higher
Request.latency_p99 1135709e-9 s
Request.req_per_second 11299 /s
Request.bytes_allocated_per_operation 25 B/op
Request.allocations_per_operation 0 allocs/op
Request.operations 596 ops
Sub/size=10.time_per_operation 64e-9 s
Sub/size=10.bytes_allocated_per_operation 80 B/op
Sub/size=10.allocations_per_operation 1 allocs/op
Sub/size=10.operations 888349 ops
Sub/size=1000.time_per_operation 4214e-9 s
Sub/size=1000.bytes_allocated_per_operation 8192 B/op
Sub/size=1000.allocations_per_operation 1 allocs/op
Sub/size=1000.operations 13606 ops`},
		// Sorted: 1211, 1402, 1790, 2082, 2650 ns and 1545.43, 1967.24, 2288.64, 2921.51, 3382.99 MB/s.
		{"go-count.txt", goTool, `
time_per_operation 1790e-9 s
bytes_throughput 2288.64e6 B/s
bytes_allocated_per_operation 4096 B/op
allocations_per_operation 1 allocs/op
operations 68062 ops`},
		{"go-failed.txt", goTool, `
Good.time_per_operation 1.085e-9 s
Good.operations 9248126 ops
failed_benchmarks 1 errors`},
	} {
		t.Run(c.file, func(t *testing.T) { compare(t, Read(recording(t, c.file)), wanted(t, c.want), c.from) })
	}
}

func note(t *testing.T, all []Outcome, name string) string {
	t.Helper()
	i := slices.IndexFunc(all, func(o Outcome) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("%s is missing in %v", name, all)
	}
	return all[i].Note
}

func TestNotes(t *testing.T) {
	for _, c := range []struct{ file, name, want string }{
		{"wrk-socket-errors.txt", "socket_errors", "connect 0, read 10, write 0, timeout 0"},
		{"ab-failed.txt", "failed_requests", "Connect: 0, Receive: 0, Length: 80, Exceptions: 0; Length counts answers of another length than the first"},
		{"ab.txt", "latency_p99", resolution},
		{"ab.txt", "throughput", ""},
		{"hey-refused.txt", "throughput", "includes the failed requests"},
		{"pgbench-failed.txt", "latency_mean", "includes failed transactions"},
		{"pgbench-aborted.txt", "aborted_runs", "clients were aborted, so the figures are incomplete"},
		{"go-count.txt", "time_per_operation", "median of 5"},
		{"googlebenchmark-repeated.json", "time_per_operation", "median of 3"},
		{"googlebenchmark-aggregates.json", "time_per_operation", "median of 3"},
		{"googlebenchmark.json", "BM_Bad.failed_runs", "no server"},
		{"hyperfine-failed.txt", "failed_runs", "at least one"},
	} {
		if got := note(t, Read(recording(t, c.file)), c.name); got != c.want {
			t.Errorf("%s, %s: note %q, want %q", c.file, c.name, got, c.want)
		}
	}
}

// TestSeveralBenchmarks reads a script that runs one tool twice, and another.
func TestSeveralBenchmarks(t *testing.T) {
	output := slices.Concat(recording(t, "wrk-errors.txt"), []byte("now measuring\n"), recording(t, "wrk.txt"), recording(t, "redis-benchmark-one.txt"),
		recording(t, "hey.txt"))
	all := Read(output)
	for name, value := range map[string]float64{
		"wrk.throughput": 17396.69, "redis-benchmark.throughput": 31897.93, "hey.throughput": 8740.3222, "wrk.non_2xx": 0, "hey.failed_requests": 0,
		"wrk.latency_p99": -1, "failed_requests": 0, "redis-benchmark.latency_p95": 0.335e-3,
	} {
		i := slices.IndexFunc(all, func(o Outcome) bool { return o.Name == name })
		if name == "hey.failed_requests" || name == "wrk.latency_p99" { // only hey has the first; only the first wrk has the second
			if i >= 0 {
				t.Errorf("%s is there", name)
			}
			continue
		}
		if i < 0 || !near(all[i].Value, value) {
			t.Errorf("%s is not %v", name, value)
		}
	}
	if got := note(t, all, "wrk.throughput"); got != "the last of 2 in the output" {
		t.Errorf("note %q", got)
	}
}

// TestDocumentInText has a text before, between and after documents.
func TestDocumentInText(t *testing.T) {
	output := slices.Concat([]byte("{broken\n"+strings.Repeat("{\"level\": \"info\"}\n", 1000)), recording(t, "wrk.txt"), recording(t, "googlebenchmark-repeated.json"), []byte("done\n{}\n"),
		recording(t, "hyperfine-failed.json"), []byte("{"))
	all := Read(output)
	for name, value := range map[string]float64{
		"throughput": 17396.69, "time_per_operation": 1.1125921999973798e-3, "time_mean": 0.0027091078, "hyperfine.operations": 5,
		"wrk.operations": 35096, "Google benchmark.operations": 75,
	} {
		i := slices.IndexFunc(all, func(o Outcome) bool { return o.Name == clean(name) })
		if i < 0 || !near(all[i].Value, value) {
			t.Errorf("%s is not %v in %v", name, value, all)
		}
	}
}

// TestConnectionErrors has the progress of memtier_benchmark, in which a server refused connections twice.
func TestConnectionErrors(t *testing.T) {
	const refused = "[RUN #1 0%,   0 secs]  1 threads  1 conns:           0 ops,       0 (avg:       0) ops/sec latencyConnection error: Connection refused\n"
	for _, file := range []string{"memtier.txt", "memtier-runs.txt"} {
		output := slices.Concat([]byte("Connection error: Connection refused\n"+refused), recording(t, file))
		all := Read(output)
		i := slices.IndexFunc(all, func(o Outcome) bool { return o.Name == "connection_errors" })
		if i < 0 || all[i].Value != 2 || all[i].Unit != Errors {
			t.Errorf("%s: no 2 connection errors in %v", file, all)
		}
	}
}

func TestNothingToRead(t *testing.T) {
	for _, output := range []string{
		"", "{", "{}", "hello\n", `{"results": []}`, `{"results": [{"command": "x"}]}`, `{"context": {}, "benchmarks": [{"name": "x", "real_time": 0}]}`,
		"SET: fast requests per second\n", "Running 2s test @ http://x\n  unable to connect\n", "Summary:\n  nothing\n", "BenchmarkX-2 12\n",
		"99% 3\nRequests/sec: 12\ntps = 3\n", "======  ======\n",
	} {
		if all := Read([]byte(output)); len(all) != 0 {
			t.Errorf("%q has %v", output, all)
		}
	}
	if _, err := ReadFile("testdata/README.md"); err == nil || !strings.Contains(err.Error(), "regular expression") {
		t.Errorf("a file with no outcomes: %v", err)
	}
	if _, err := ReadFile("testdata/none"); err == nil {
		t.Error("a file that does not exist is read")
	}
}
