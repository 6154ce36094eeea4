// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"maps"
	"strings"
	"testing"
)

// The outputs are those of Valgrind 3.19.
func TestCallgrind(t *testing.T) {
	const title = "==%s== Callgrind, a call-graph generating cache profiler\n==%s== Command: ./t\n==%s== \n"
	process := func(pid, events, collected string) string {
		return strings.ReplaceAll(title+"==%s== Events    : "+events+"\n==%s== Collected : "+collected+"\n==%s== \n==%s== I   refs:      130,589\n", "%s", pid)
	}
	for _, c := range []struct {
		what, output string
		want         map[string]float64
		note         string
	}{
		{"one process", process("12", "Ir", "130589"), map[string]float64{"instructions": 130589}, ""},
		{"three processes", process("1", "Ir", "131100") + process("2", "Ir", "131100") + "==3== Events    : Ir\n==3== Collected : 228934\n", map[string]float64{"instructions": 491134}, "of 3 processes"},
		{"branches and caches", process("5407", "Ir Dr Dw I1mr Bc Bcm Bi Bim", "130589 29133 12391 1067 26531 3120 280 146"), map[string]float64{"instructions": 130589, "branches": 26811, "branch_misses": 3266}, ""},
		{"another tool", strings.ReplaceAll(process("12", "Ir", "1"), "Callgrind,", "Memcheck,"), map[string]float64{}, ""},
		{"counts that do not match their events", process("12", "Ir Bc", "1"), map[string]float64{}, ""},
		{"text", process("12", "Ir", "1e400"), map[string]float64{}, ""},
	} {
		got := map[string]float64{}
		for _, o := range Read([]byte(c.output)) {
			got[o.Name] = o.Value
			if o.From != "callgrind" || o.Better != Lower || o.Note != c.note {
				t.Errorf("%s: %+v", c.what, o)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
