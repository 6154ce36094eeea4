// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// prints adds up the OCALLs of a name, over all workloads. Other programs on the machine have enclaves too, so the name is that of the test.
func prints(t *testing.T, b *Backend, ocall string) (n float64) {
	t.Helper()
	for name, value := range scrape(t, b) {
		if strings.HasPrefix(name, "teescope_ocalls_total{mode=normal,ocall="+ocall+",") {
			n += value
		}
	}
	return n
}

// A process that runs another program is forgotten while it calls. A process without a place is not known while it calls. Its counters in
// the kernel stay until it has ended, so that each call is counted once.
func TestCountersOfARunningProcessStay(t *testing.T) {
	const ocall = "stay_print"
	b := start(t, modeOn, 0)
	path := sdkApp(t, "sdk-stay", "-Dapp_ocall_print="+ocall)
	app := ready(t, b, path)
	app.do(t, "ecall 10 2 1")
	want, remembered := prints(t, b, ocall), b.functions.Remembered()
	want += numbers(t, app.do(t, "ecall 10 2 1"))[1] // not read when it is forgotten
	if err := b.functions.Forget(b.processes.Known(uint32(app.Process.Pid))); err != nil {
		t.Error(err)
	}
	b.processes.Places = tenant.NewQuota(0)
	other := run(t, path)
	for range 3 {
		want += numbers(t, app.do(t, "ecall 10 2 1"))[1] + numbers(t, other.do(t, "ecall 20 2 1"))[1]
		glance(t, b)
	}
	if n := b.functions.Remembered(); n <= remembered {
		t.Errorf("%d are remembered, as before the second process: %d", n, remembered)
	}
	_ = other.in.Close()
	_ = other.Wait()
	look(t, b)
	if n := prints(t, b, ocall); n != want {
		t.Errorf("%v OCALLs are counted, want %v", n, want)
	}
	if n := b.functions.Remembered(); n != remembered {
		t.Errorf("%d are remembered after its end, want %d", n, remembered)
	}
}

// A process that has run another program and is not known ends after calls that were not read. Then Read removes its calls. Its durations
// go too: other processes need their places.
func TestDurationsOfUnknownProcessesAreForgotten(t *testing.T) {
	const name = "sdk-gone"
	b := startWith(t, watching(t, modeOn, 0, name))
	app := ready(t, b, sdkApp(t, name))
	app.do(t, "ecall 10 3 1")
	look(t, b)
	pid := uint32(app.Process.Pid)
	if err := b.functions.Forget(b.processes.Known(pid)); err != nil {
		t.Error(err)
	}
	b.processes = process.NewTable(b.processes.Host, 1, b.now)
	b.functions.Processes, b.processes.Places = b.processes, tenant.NewQuota(0)
	app.do(t, "ecall 10 3 1")
	_ = app.in.Close()
	_ = app.Wait()
	look(t, b)
	err := bpf.Each(b.object.Map("durations"), func(key [3]uint32, _ [27]uint64) {
		if key[0] == pid {
			t.Errorf("the durations of %v are kept", key)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// A process that runs another program, calls, and ends before it is forgotten has calls that were not read. They are counted.
func TestLastCallsOfAnotherProgramAreCounted(t *testing.T) {
	const ocall = "last_print"
	b := start(t, modeOn, 0)
	app := ready(t, b, sdkApp(t, "sdk-last", "-Dapp_ocall_print="+ocall))
	app.do(t, "ecall 10 2 1")
	look(t, b)
	p := b.processes.Known(uint32(app.Process.Pid))
	want := numbers(t, app.do(t, "ecall 20 2 1"))[1]
	_ = app.in.Close()
	_ = app.Wait()
	if err := b.functions.Forget(p); err != nil {
		t.Error(err)
	}
	b.processes = process.NewTable(b.processes.Host, 1, b.now) // without counts
	b.functions.Processes = b.processes
	look(t, b)
	if n := prints(t, b, ocall); n != want {
		t.Errorf("%v OCALLs are counted, want %v", n, want)
	}
}

// The kernel cannot always determine which inode is mapped. The file is then not treated as a different one, because it would be
// probed twice.
func TestAFileIsProbedOnceWhenItsInodeIsNotKnown(t *testing.T) {
	b := start(t, modeOn, 0)
	path := sdkApp(t, "sdk-inode")
	app := ready(t, b, path)
	files, inode := b.files.Len(), b.processes.Host.Inode
	if inode == nil {
		t.Skip("this kernel shows the inode in the mappings")
	}
	b.processes.Host.Inode = func(uint64) (uint64, error) { return 0, errNoInode }
	other := run(t, path)
	other.do(t, "ecall 30 3 1")
	waittest.Until(t, "the other process to be known", func() bool {
		glance(t, b)
		return b.processes.Known(uint32(other.Process.Pid)) != nil
	})
	if b.files.Len() != files {
		t.Errorf("%d files are probed, want %d", b.files.Len(), files)
	}
	b.processes.Host.Inode = inode
	now := b.now
	b.now = func() time.Time { return now().Add(time.Minute) }
	look(t, b)
	before, n := scrape(t, b), make([]float64, 4)
	for _, p := range []*target{app, other} {
		for i, more := range numbers(t, p.do(t, "ecall 30 3 1")) {
			n[i] += more
		}
	}
	grown(t, before, scrape(t, b), ofApp("sdk-inode", n[0], map[string]float64{"app_ocall_print": n[1], "app_ocall_read": n[2], "app_ocall_wait": n[3]}))
}

// A process ends with its last thread. Its first thread can end before, and then its directory in /proc has no program and no mappings.
func TestAProcessWhoseFirstThreadHasEndedIsCounted(t *testing.T) {
	b := start(t, modeOn, 0)
	path := sdkApp(t, "sdk-leave")
	app := ready(t, b, path)
	late := run(t, path)
	late.do(t, "leave 0 0 1\necall 0 0 1") // before the first look
	for _, p := range []*target{app, late} {
		p.do(t, "leave 0 0 1\necall 1 0 1")
		waittest.Until(t, "the end of the first thread", func() bool {
			stat, err := b.processes.Host.Of(uint32(p.Process.Pid)).Stat()
			return err == nil && stat.State == "Z"
		})
		look(t, b)
		p.do(t, "ecall 1 0 1")
		look(t, b)
	}
	known := b.processes.Known(uint32(app.Process.Pid))
	for i, p := range []*target{app, late} {
		before := scrape(t, b)
		n := numbers(t, p.do(t, "ecall 40 3 1"))
		grown(t, before, scrape(t, b), ofApp("sdk-leave", n[0], map[string]float64{"app_ocall_print": n[1], "app_ocall_read": n[2], "app_ocall_wait": n[3]}))
		look(t, b)
		if now := b.processes.Known(uint32(p.Process.Pid)); now == nil || i == 0 && now != known {
			t.Errorf("process %d is known as %v", i, now)
		}
	}
	if app.in.Close() != nil || app.Wait() != nil {
		t.Error("the program did not end well")
	}
	if look(t, b); b.processes.Known(uint32(app.Process.Pid)) != nil {
		t.Error("the process is known after its last thread")
	}
}
