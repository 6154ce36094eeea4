// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"
)

// waitedOutcome is what the program says about its own waits.
const waitedOutcome = "waited:s=waited: ([0-9.]+)"

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// A program that writes to the disk waits as long in fsync as it says, for each operation.
func TestBlameOfFiles(t *testing.T) {
	program, dir := prog(t, "waits", "e2ewaitfiles"), t.TempDir()
	file := func(name, writes string) string {
		return recordPair(t, name, "--outcome", "operations=operations: ([0-9]+)", "--outcome", waitedOutcome, "--", program, "files", filepath.Join(dir, name), writes)
	}
	few, many := file("few", "20"), file("many", "40")
	c := pair(t, "e2ewaitfiles", few, many)
	for i, f := range []string{few, many} {
		operations, got := []float64{20, 40}[i], []float64{c.blamed["in fsync"].Before, c.blamed["in fsync"].After}[i]
		// The program's clock is read outside of the call. A sample may come between the end of the call and that of the program.
		if want := mean(readRunFile(t, f).outcomes["waited"]) / operations; !(got > 0) || math.Abs(got/want-1) > 0.2 && math.Abs(got-want) > 20e-6 {
			t.Errorf("%v s in fsync for each operation, and the program says %v", got, want)
		}
	}
}

// Four processes on one CPU use as much CPU time as one that uses four times as much. What they take longer is waiting for the
// CPU, outside of system calls.
func TestBlameOfACPUThatIsOvercommitted(t *testing.T) {
	program := prog(t, "waits", "e2ewaitcpus")
	file := func(name, processes, ms string) string {
		return recordPair(t, name, "--outcome", "operations=operations: ([0-9]+)", "--outcome", waitedOutcome, "--", program, "cpus", processes, ms)
	}
	alone, crowd := file("alone", "1", "200"), file("crowd", "4", "50")
	c := pair(t, "e2ewaitcpus", alone, crowd)
	user, waiting := c.blamed["what it went to, user CPU time"], c.blamed["what it went to, waiting for a CPU"]
	// Times are divided by the number of threads. The ratio of two times does not depend on it.
	want, got := mean(readRunFile(t, crowd).outcomes["waited"])/0.2, waiting.After/user.After
	if math.Abs(got/want-1) > 0.2 {
		t.Errorf("the crowd waits %.3g times as long for a CPU as it runs, and the program says %.3g: %+v", got, want, c.blamed)
	}
	// Each of four has a quarter of the CPU: it waits three times as long as it runs, and longer if others run too.
	if got < 2.5 {
		t.Errorf("the crowd waits %.3g times as long for a CPU as it runs", got)
	}
}

// A program that reads pages of a file in memory waits for those that are on the disk only, as long as it says, and for no cached one. These
// waits are in no system call.
func TestBlameOfPagesOfFiles(t *testing.T) {
	program, dir := prog(t, "waits", "e2ewaitpages"), t.TempDir()
	const pages = 1000
	file := func(what string) string {
		return recordPair(t, what, "--outcome", "operations=operations: ([0-9]+)", "--outcome", waitedOutcome, "--outcome", "queued:s=queued: ([0-9.]+)", "--",
			program, what, filepath.Join(dir, what), strconv.Itoa(pages))
	}
	cached, cold := file("cached"), file("pages")
	c := pair(t, "e2ewaitpages", cached, cold)
	got, said := c.blamed["what it went to, waiting for pages of files"], readRunFile(t, cold).outcomes
	waited, queued := mean(said["waited"])/pages, mean(said["queued"])/pages
	t.Logf("waiting for pages: %+v; the program says %v s for each, and %v s for a CPU", got, waited, queued)
	// A wait lasts until the thread runs again. What the thread waited for a CPU is after a wait for the disk, or after it was preempted. The
	// program's figure is the rest of three clocks, and has the time in interrupts.
	if !(waited > 0) || got.After < 0.75*waited || got.After > 1.25*(waited+queued) {
		t.Errorf("%v s of waiting for a page, and the program says %v, and %v for a CPU", got.After, waited, queued)
	}
	if got.Before > got.After/20 {
		t.Errorf("%v s of waiting for a page that is cached, and %v for one that is not", got.Before, got.After)
	}
	if call := c.blamed["in fsync"]; !(call.Before > 0) || !(call.After > 0) {
		t.Errorf("the wait for the disk in fsync is not in the call: %+v", call)
	}
}
