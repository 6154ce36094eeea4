// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"strings"
	"testing"
)

// Throughputs of several tests do not say how many operations there were. The error says what to do.
func TestNoOperations(t *testing.T) {
	r := &Record{File: "a.tsrun", outcomes: map[string]Metric{"SET.throughput": {}, "GET.throughput": {}, "cpu_time": {}}}
	const want = "a.tsrun: figures per operation need the number of operations: GET.throughput, SET.throughput do not say how long each test took"
	if err := noOperations(r, ""); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := noOperations(&Record{File: "a.tsrun", outcomes: map[string]Metric{"throughput": {}}}, ""); !strings.Contains(err.Error(), "the outcome throughput is missing, zero or negative") {
		t.Errorf("a throughput of zero: %v", err)
	}
	delete(r.outcomes, "GET.throughput")
	if err := noOperations(r, ""); strings.Contains(err.Error(), "throughput do") {
		t.Errorf("one throughput: %v", err)
	}
}
