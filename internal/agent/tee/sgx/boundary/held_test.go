// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/waittest"
)

// While a read of a process does not end, scrapes read the counts of others, and other processes are found. It is counted when it answers.
func TestAProcessThatHoldsAReadDelaysNoOther(t *testing.T) {
	b := start(t, modeOn, 0)
	inode := b.processes.Host.Inode
	if inode == nil {
		t.Skip("this kernel shows the inode in the mappings")
	}
	app := ready(t, b, sdkApp(t, "sdk-goes-on"))
	held := run(t, sdkApp(t, "sdk-held"))
	held.do(t, "ecall 0 0 1") // it is loaded
	began, release, calls := make(chan struct{}), make(chan struct{}), atomic.Int64{}
	b.processes.Host.Inode = func(address uint64) (uint64, error) {
		if calls.Add(1) == 1 { // of the first file that is opened
			close(began)
			<-release
		}
		return inode(address)
	}
	b.patience = 10 * time.Millisecond
	waittest.Until(t, "the process to be read", func() bool {
		glance(t, b)
		select {
		case <-began:
			return true
		default:
			return false
		}
	})
	late := run(t, sdkApp(t, "sdk-later"))
	late.do(t, "ecall 0 0 1")
	// call makes calls in a program, and returns the counters before and after them, and by how much they have to grow.
	call := func(p *target, name, what string) (before, after, want map[string]float64) {
		t.Helper()
		before = scrape(t, b)
		n := numbers(t, p.do(t, what))
		return before, scrape(t, b), ofApp(name, n[0], map[string]float64{"app_ocall_print": n[1], "app_ocall_read": n[2], "app_ocall_wait": n[3]})
	}
	counts := func(p *target, name string) {
		t.Helper()
		before, after, want := call(p, name, "ecall 300 3 4")
		grown(t, before, after, want)
	}
	// found waits until all calls of a program are counted.
	found := func(p *target, name string) {
		t.Helper()
		waittest.Until(t, "the calls of "+name+" to be counted", func() bool {
			glance(t, b)
			before, after, want := call(p, name, "ecall 2 1 1")
			for of, n := range want {
				if after[of]-before[of] != n {
					return false
				}
			}
			return true
		})
	}
	counts(app, "sdk-goes-on")
	found(late, "sdk-later")
	counts(late, "sdk-later")
	if known := b.processes.Known(uint32(held.Process.Pid)); known == nil || !known.Unopened {
		t.Errorf("the process that holds is %+v", known)
	}
	close(release)
	found(held, "sdk-held")
	counts(held, "sdk-held")
}

// A process that ends after it was read and before the result is used is counted for its workload.
func TestAProcessThatEndsAfterItWasReadIsCounted(t *testing.T) {
	const ocall = "brief_print"
	b := start(t, modeOn, 0)
	path := sdkApp(t, "sdk-brief", "-Dapp_ocall_print="+ocall)
	ready(t, b, path)
	before := prints(t, b, ocall)
	brief := run(t, path)
	n := numbers(t, brief.do(t, "ecall 20 2 1"))
	pid := uint32(brief.Process.Pid)
	b.processes.BeginPass()
	if b.processes.Get(pid) != nil || !b.processes.Waits(pid) {
		t.Fatal("the process was read while the lock is held")
	}
	waitForReads(b)
	_ = brief.in.Close()
	_ = brief.Wait()
	if got := prints(t, b, ocall) - before; got != n[1] {
		t.Errorf("%v OCALLs are counted, want %v", got, n[1])
	}
	if p := b.processes.Known(pid); p == nil || p.Workload.Name != "sdk-brief" {
		t.Errorf("the process is %+v", p)
	}
	if look(t, b); b.processes.Known(pid) != nil {
		t.Error("the process is known after its end")
	}
	if got := prints(t, b, ocall) - before; got != n[1] {
		t.Errorf("%v OCALLs are counted in the end, want %v", got, n[1])
	}
}
