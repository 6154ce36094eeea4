// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestHostileOutputsTakeBoundedTime reads large outputs. It stops a run-away: what takes less than a second
// would take hours if the work grew with the square of the size.
func TestHostileOutputsTakeBoundedTime(t *testing.T) {
	var fields, rows strings.Builder
	const large = 1 << 20
	for i := range 50_000 {
		fmt.Fprintf(&fields, `,"c%d":1`, i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&rows, `,"r%d":{"Ops/sec":1,"Count":1}`, i)
	}
	for name, output := range map[string]string{
		"lines":      strings.Repeat("a\n", large/2),
		"titles":     strings.Repeat("Benchmark 1: x\nTime (mean): 1 ms\n", large/33),
		"tests":      strings.Repeat("a: 1 requests per second\n", large/25),
		"tables":     strings.Repeat("\"test\",\"rps\"\n\"a\",\"1\"\n", large/21),
		"benchmarks": strings.Repeat("BenchmarkA 1 1 x\n", large/17),
		"pairs":      "BenchmarkA 1" + strings.Repeat(" 1 x", large/4),
		"counters":   `{"context":{},"benchmarks":[{"name":"a"` + fields.String() + `}]}`,
		"rows":       `{"ALL STATS":{"Totals":{"Ops/sec":1}` + rows.String() + `}}`,
		"nested":     `{"results":` + strings.Repeat("[", large-20),
	} {
		start := time.Now()
		all := Read([]byte(output))
		if took := time.Since(start); took > 30*time.Second || len(all) > maxOutcomes {
			t.Errorf("%s: %d outcomes after %v", name, len(all), took)
		} else {
			t.Logf("%s: %d outcomes after %v", name, len(all), took)
		}
	}
}
