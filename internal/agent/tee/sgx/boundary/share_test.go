// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"os"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// A user whose processes call many functions gets half of the counters, and all calls of another user's new process are counted.
// Calls without a counter are reported for the workload that made them.
func TestAUserLeavesCountersOfCallsForOthers(t *testing.T) {
	o := options(modeOn, 0)
	o.Reads = reader.New(reader.Options{Proc: hostfs.At("/proc"), Cgroup: o.Cgroup, Log: o.Log})
	if group := o.Reads.Tenant(os.Getpid()).Group; group != "" {
		t.Skipf("the users of these programs share the control group %s, which has one share", group)
	}
	b := startWith(t, o)
	const functions, places = 257, 16384
	greedy := sdkApp(t, "sdk-hoards")
	first := readyAs(t, b, 65534, greedy)
	all := []*target{first}
	for range 39 {
		p := runAs(t, 65534, greedy)
		p.do(t, "ecall 0 0 1")
		all = append(all, p)
	}
	look(t, b)
	for _, p := range all {
		p.do(t, "number %d 0 1", functions)
	}
	const lost = "teescope_enclave_calls_lost_total{workload="
	after := scrape(t, b)
	if after[lost+"sdk-hoards}"] < 40*functions-places/2 || after["teescope_transitions_lost_total{what=calls}"] != after[lost+"sdk-hoards}"] {
		t.Errorf("%v calls were lost, of which %v are those of the workload", after["teescope_transitions_lost_total{what=calls}"], after[lost+"sdk-hoards}"])
	}
	modest := readyAs(t, b, 65533, sdkApp(t, "sdk-frugal"))
	before := scrape(t, b)
	modest.do(t, "number %d 0 1", functions)
	now, counted := scrape(t, b), 0.0
	for name, n := range now {
		if strings.HasPrefix(name, "teescope_ecalls_total{") && strings.HasSuffix(name, "workload=sdk-frugal}") {
			counted += n - before[name]
		}
	}
	if counted != functions || now[lost+"sdk-frugal}"] != 0 {
		t.Errorf("%v calls of another user are counted, want %d, and %v were lost", counted, functions, now[lost+"sdk-frugal}"])
	}
}
