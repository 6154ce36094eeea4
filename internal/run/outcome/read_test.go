// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func recording(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// short are the units as the table below writes them.
var short = map[string]string{
	"s": Seconds, "/s": OperationsPerSecond, "B/s": BytesPerSecond, "ops": Operations, "errors": Errors,
	"B/op": bytesPerOperation, "allocs/op": allocationsPerOperation, "-": "",
}

// want has lines NAME VALUE UNIT and, where the unit does not say it, the direction. The values are read from the
// recordings by eye; a product is written as 1.5*1024.
func wanted(t *testing.T, text string) map[string]Outcome {
	t.Helper()
	all := map[string]Outcome{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fields := strings.Fields(line)
		o := Outcome{Name: fields[0], Value: 1, Unit: fields[2]}
		for factor := range strings.SplitSeq(fields[1], "*") {
			var f float64
			if _, err := fmt.Sscan(factor, &f); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			o.Value *= f
		}
		if unit, known := short[o.Unit]; known {
			o.Unit = unit
		}
		switch o.Unit {
		case OperationsPerSecond, BytesPerSecond:
			o.Better = Higher
		case Seconds, Errors, bytesPerOperation, allocationsPerOperation:
			o.Better = Lower
		}
		if len(fields) > 3 {
			o.Better = Direction(strings.TrimPrefix(fields[3], "neither"))
		}
		all[o.Name] = o
	}
	return all
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) }

func compare(t *testing.T, got []Outcome, want map[string]Outcome, from string) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range got {
		w, expected := want[o.Name]
		if seen[o.Name] = true; !expected {
			t.Errorf("%s: unexpected, %v %s", o.Name, o.Value, o.Unit)
			continue
		}
		if !near(o.Value, w.Value) || o.Unit != w.Unit || o.Better != w.Better || o.From != from {
			t.Errorf("%s is %v %s, better %q, from %s; want %v %s, better %q, from %s",
				o.Name, o.Value, o.Unit, o.Better, o.From, w.Value, w.Unit, w.Better, from)
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestReadRecordings(t *testing.T) {
	for _, c := range recordings {
		t.Run(c.file, func(t *testing.T) {
			want := wanted(t, c.want)
			compare(t, Read(recording(t, c.file)), want, c.from)
			fromFile, err := ReadFile(filepath.Join("testdata", c.file))
			if err != nil {
				t.Error(err)
			}
			compare(t, fromFile, want, c.from)
		})
	}
}

// recordings are the outputs with their figures. Latencies are in milliseconds there unless a factor says otherwise.
var recordings = []struct{ file, from, want string }{
	{"redis-benchmark.txt", redisTool, `
SET.operations 20000 ops
SET.throughput 27434.84 /s
SET.latency_mean 1.209e-3 s
SET.latency_min 0.280e-3 s
SET.latency_p50 1.023e-3 s
SET.latency_p95 2.991e-3 s
SET.latency_p99 5.247e-3 s
SET.latency_max 8.799e-3 s
GET.operations 20000 ops
GET.throughput 19685.04 /s
GET.latency_mean 1.639e-3 s
GET.latency_min 0.192e-3 s
GET.latency_p50 1.135e-3 s
GET.latency_p95 4.751e-3 s
GET.latency_p99 6.703e-3 s
GET.latency_max 12.815e-3 s`},
	{"redis-benchmark-one.txt", redisTool, `
operations 20000 ops
throughput 31897.93 /s
latency_mean 0.202e-3 s
latency_min 0.056e-3 s
latency_p50 0.191e-3 s
latency_p95 0.335e-3 s
latency_p99 0.479e-3 s
latency_max 1.215e-3 s`},
	{"redis-benchmark-quiet.txt", redisTool, `
SET.throughput 25906.73 /s
SET.latency_p50 0.887e-3 s
GET.throughput 19455.25 /s
GET.latency_p50 1.287e-3 s
LPUSH.throughput 20576.13 /s
LPUSH.latency_p50 0.975e-3 s
LPUSH_needed_to_benchmark_LRANGE.throughput 22026.43 /s
LPUSH_needed_to_benchmark_LRANGE.latency_p50 0.999e-3 s
LRANGE_100_first_100_elements.throughput 17482.52 /s
LRANGE_100_first_100_elements.latency_p50 1.599e-3 s
MSET_10_keys.throughput 30303.03 /s
MSET_10_keys.latency_p50 1.047e-3 s`},
	{"redis-benchmark-command.txt", redisTool, `
throughput 13513.51 /s
latency_p50 0.775e-3 s`},
	{"redis-benchmark.csv", redisTool, `
SET.throughput 34965.04 /s
SET.latency_mean 0.916e-3 s
SET.latency_min 0.168e-3 s
SET.latency_p50 0.879e-3 s
SET.latency_p95 1.479e-3 s
SET.latency_p99 1.951e-3 s
SET.latency_max 4.111e-3 s
GET.throughput 32894.74 /s
GET.latency_mean 0.975e-3 s
GET.latency_min 0.088e-3 s
GET.latency_p50 0.959e-3 s
GET.latency_p95 1.519e-3 s
GET.latency_p99 1.807e-3 s
GET.latency_max 3.367e-3 s
LPUSH_needed_to_benchmark_LRANGE.throughput 32467.53 /s
LPUSH_needed_to_benchmark_LRANGE.latency_mean 0.980e-3 s
LPUSH_needed_to_benchmark_LRANGE.latency_min 0.296e-3 s
LPUSH_needed_to_benchmark_LRANGE.latency_p50 0.951e-3 s
LPUSH_needed_to_benchmark_LRANGE.latency_p95 1.439e-3 s
LPUSH_needed_to_benchmark_LRANGE.latency_p99 2.031e-3 s
LPUSH_needed_to_benchmark_LRANGE.latency_max 5.303e-3 s
LRANGE_100_first_100_elements.throughput 23041.47 /s
LRANGE_100_first_100_elements.latency_mean 1.388e-3 s
LRANGE_100_first_100_elements.latency_min 0.392e-3 s
LRANGE_100_first_100_elements.latency_p50 1.271e-3 s
LRANGE_100_first_100_elements.latency_p95 2.431e-3 s
LRANGE_100_first_100_elements.latency_p99 5.767e-3 s
LRANGE_100_first_100_elements.latency_max 6.799e-3 s`},
	{"redis-benchmark-6.txt", redisTool, `
SET.operations 50000 ops
SET.throughput 30883.26 /s
GET.operations 50000 ops
GET.throughput 34293.55 /s`},
	{"memtier.txt", memtierTool, `
operations 70845 ops
throughput 35386.81 /s
hits_per_second 2.50 /s neither
misses_per_second 32166.06 /s neither
latency_mean 0.14086e-3 s
latency_p50 0.095e-3 s
latency_p99 1.279e-3 s
latency_p99_9 3.903e-3 s
bytes_throughput 1501.02*1024 B/s
Sets.throughput 3218.25 /s
Sets.latency_mean 0.14267e-3 s
Sets.latency_p50 0.103e-3 s
Sets.latency_p99 1.247e-3 s
Sets.latency_p99_9 3.647e-3 s
Sets.bytes_throughput 247.89*1024 B/s
Gets.throughput 32168.56 /s
Gets.hits_per_second 2.50 /s neither
Gets.misses_per_second 32166.06 /s neither
Gets.latency_mean 0.14068e-3 s
Gets.latency_p50 0.095e-3 s
Gets.latency_p99 1.279e-3 s
Gets.latency_p99_9 3.903e-3 s
Gets.bytes_throughput 1253.13*1024 B/s`},
	{"memtier-runs.txt", memtierTool, `
throughput 27329.03 /s
hits_per_second 0 /s neither
misses_per_second 24814.76 /s neither
latency_mean 0.18231e-3 s
latency_p50 0.159e-3 s
latency_p90 0.295e-3 s
latency_p99 0.479e-3 s
latency_p99_9 0.855e-3 s
latency_p99_99 1.119e-3 s
bytes_throughput 1160.52*1024 B/s
Sets.throughput 2514.27 /s
Sets.latency_mean 0.19045e-3 s
Sets.latency_p50 0.167e-3 s
Sets.latency_p90 0.303e-3 s
Sets.latency_p99 0.511e-3 s
Sets.latency_p99_9 0.767e-3 s
Sets.latency_p99_99 0.871e-3 s
Sets.bytes_throughput 193.33*1024 B/s
Gets.throughput 24814.76 /s
Gets.hits_per_second 0 /s neither
Gets.misses_per_second 24814.76 /s neither
Gets.latency_mean 0.18149e-3 s
Gets.latency_p50 0.159e-3 s
Gets.latency_p90 0.295e-3 s
Gets.latency_p99 0.463e-3 s
Gets.latency_p99_9 0.807e-3 s
Gets.latency_p99_99 1.119e-3 s
Gets.bytes_throughput 967.19*1024 B/s`},
	{"wrk.txt", wrkTool, `
latency_mean 611.80e-6 s
latency_stdev 1.43e-3 s
latency_max 23.52e-3 s
operations 35096 ops
throughput 17396.69 /s
bytes_throughput 3.98*1048576 B/s
socket_errors 0 errors
non_2xx 0 errors`},
	{"wrk-latency.txt", wrkTool, `
latency_mean 458.41e-6 s
latency_stdev 487.11e-6 s
latency_max 8.19e-3 s
latency_p50 384e-6 s
latency_p75 472e-6 s
latency_p90 564e-6 s
latency_p99 2.83e-3 s
operations 39302 ops
throughput 19541.09 /s
bytes_throughput 4.47*1048576 B/s
socket_errors 0 errors
non_2xx 0 errors`},
	{"wrk-errors.txt", wrkTool, `
latency_mean 560.31e-6 s
latency_stdev 2.30e-3 s
latency_max 24.63e-3 s
latency_p50 167e-6 s
latency_p75 208e-6 s
latency_p90 277e-6 s
latency_p99 14.15e-3 s
operations 34581 ops
throughput 34561.68 /s
bytes_throughput 12.33*1048576 B/s
socket_errors 0 errors
non_2xx 34581 errors`},
	{"wrk-socket-errors.txt", wrkTool, `
latency_mean 223.80e-6 s
latency_stdev 97.46e-6 s
latency_max 361e-6 s
latency_p50 201e-6 s
latency_p75 269e-6 s
latency_p90 361e-6 s
latency_p99 361e-6 s
operations 5 ops
throughput 1.25 /s
bytes_throughput 49.85 B/s
socket_errors 10 errors
non_2xx 0 errors`},
	{"ab.txt", abTool, `
operations 5000 ops
failed_requests 0 errors
non_2xx 0 errors
throughput 7065.31 /s
latency_mean 1.132e-3 s
latency_min 1e-3 s
bytes_throughput 1621.43*1024 B/s
latency_p50 1e-3 s
latency_p66 1e-3 s
latency_p75 1e-3 s
latency_p80 1e-3 s
latency_p90 1e-3 s
latency_p95 2e-3 s
latency_p98 2e-3 s
latency_p99 3e-3 s
latency_max 9e-3 s`},
	{"ab-errors.txt", abTool, `
operations 500 ops
failed_requests 0 errors
non_2xx 500 errors
throughput 7361.82 /s
latency_mean 1.087e-3 s
latency_min 1e-3 s
bytes_throughput 2652.84*1024 B/s
latency_p50 1e-3 s
latency_p66 1e-3 s
latency_p75 1e-3 s
latency_p80 1e-3 s
latency_p90 1e-3 s
latency_p95 1e-3 s
latency_p98 1e-3 s
latency_p99 1e-3 s
latency_max 1e-3 s`},
	{"ab-failed.txt", abTool, `
operations 100 ops
failed_requests 80 errors
non_2xx 25 errors
throughput 3453.99 /s
latency_mean 0.579e-3 s
bytes_throughput 134.92*1024 B/s
latency_p90 1e-3 s
latency_p95 3e-3 s
latency_p98 5e-3 s
latency_p99 6e-3 s
latency_max 6e-3 s`},
	{"hey.txt", heyTool, `
latency_max 0.0203 s
latency_min 0.0001 s
latency_mean 0.0011 s
throughput 8740.3222 /s
latency_p10 0.0003 s
latency_p25 0.0005 s
latency_p50 0.0008 s
latency_p75 0.0013 s
latency_p90 0.0022 s
latency_p95 0.0029 s
latency_p99 0.0056 s
operations 5000 ops
non_2xx 0 errors
failed_requests 0 errors`},
	{"hey-errors.txt", heyTool, `
latency_max 0.0202 s
latency_min 0.0001 s
latency_mean 0.0010 s
throughput 8660.4174 /s
latency_p10 0.0002 s
latency_p25 0.0004 s
latency_p50 0.0008 s
latency_p75 0.0013 s
latency_p90 0.0019 s
latency_p95 0.0023 s
latency_p99 0.0043 s
operations 500 ops
non_2xx 500 errors
failed_requests 0 errors`},
	{"hey-refused.txt", heyTool, `
throughput 4646.8855 /s
operations 0 ops
non_2xx 0 errors
failed_requests 20 errors`},
	{"pgbench.txt", pgbenchTool, `
operations 2763 ops
failed_transactions 0 errors
latency_mean 2.886e-3 s
throughput 1386.001734 /s`},
	{"pgbench-progress.txt", pgbenchTool, `
operations 51308 ops
failed_transactions 0 errors
latency_mean 0.212e-3 s
latency_stdev 0.131e-3 s
throughput 17160.021177 /s`},
	{"pgbench-scripts.txt", pgbenchTool, `
operations 1000 ops
failed_transactions 0 errors
latency_mean 0.615e-3 s
throughput 3250.510330 /s`},
	{"pgbench-failed.txt", pgbenchTool, `
operations 1225 ops
failed_transactions 2746 errors
latency_mean 1.004e-3 s
throughput 1229.342036 /s`},
	{"pgbench-aborted.txt", pgbenchTool, `
operations 0 ops
failed_transactions 0 errors
aborted_runs 1 errors`},
	{"pgbench-13.txt", pgbenchTool, `
operations 10000 ops
latency_mean 19.021e-3 s
throughput 525.914967 /s`},
	{"sysbench-cpu.txt", sysbenchTool, `
throughput 3035.63 /s
operations 6076 ops
latency_min 0.26e-3 s
latency_mean 0.33e-3 s
latency_max 25.03e-3 s
latency_p95 0.40e-3 s`},
	{"sysbench-memory.txt", sysbenchTool, `
throughput 987070.67 /s
bytes_throughput 963.94*1048576 B/s
operations 1115642 ops
latency_max 8.80e-3 s`},
	{"sysbench-fileio.txt", sysbenchTool, `
read_throughput 22628.21 /s
write_throughput 15085.47 /s
fsync_throughput 1510.54 /s
read_bytes_throughput 353.57*1048576 B/s
write_bytes_throughput 235.71*1048576 B/s
operations 39310 ops
latency_mean 0.02e-3 s
latency_max 31.71e-3 s
latency_p95 0.01e-3 s`},
	{"sysbench-oltp.txt", sysbenchTool, `
throughput 202.82 /s
query_throughput 4109.23 /s
ignored_errors 6 errors
reconnects 0 errors
operations 407 ops
latency_min 1.68e-3 s
latency_mean 9.83e-3 s
latency_max 1018.90e-3 s
latency_p95 8.28e-3 s`},
	{"hyperfine.txt", hyperfineTool, `
true.time_mean 1.2e-3 s
true.time_stdev 0.7e-3 s
true.user_time 0.9e-3 s
true.time_min 0.7e-3 s
true.time_max 2.7e-3 s
true.operations 12 ops
sleep_0.01.time_mean 13.8e-3 s
sleep_0.01.time_stdev 2.4e-3 s
sleep_0.01.user_time 1.3e-3 s
sleep_0.01.system_time 0.5e-3 s
sleep_0.01.time_min 11.4e-3 s
sleep_0.01.time_max 20.4e-3 s
sleep_0.01.operations 12 ops`},
	{"hyperfine-failed.txt", hyperfineTool, `
time_mean 2.7e-3 s
time_stdev 1.1e-3 s
user_time 1.1e-3 s
system_time 0.2e-3 s
time_min 1.6e-3 s
time_max 4.0e-3 s
operations 5 ops
failed_runs 1 errors`},
}
