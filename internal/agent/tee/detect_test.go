// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// clocked returns a detector and its clock, which the test sets. The fake processes start one second after the
// machine. The clock begins at that time.
func clocked(r Roots) (*Detector, *time.Time) {
	d, boot := NewDetector(r, nil), time.Unix(1000, 0)
	now := boot.Add(time.Second)
	d.now = func() time.Time { return now }
	d.boot = func() time.Duration { return now.Sub(boot) }
	return d, &now
}

// looks counts how often a process is inspected if it is queried once a second.
func looks(d *Detector, now *time.Time, seconds int) (n int) {
	last := time.Time{}
	for range seconds {
		d.Workload([]uint32{7})
		if s := d.seen[7]; s.next != last {
			n, last = n+1, s.next
		}
		*now = now.Add(time.Second)
	}
	return n
}

func TestAProcessIsLookedAtLessAndLessOften(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/maps": ""})
	d, now := clocked(r)
	if n := looks(d, now, 60); n < 6 || n > 8 { // at 0, 1, 2, 4, ... s
		t.Errorf("%d looks in its first minute, want about 7", n)
	}
	if n := looks(d, now, 3600); n < 12 || n > 18 {
		t.Errorf("%d looks in the hour after, want about 16", n)
	}
	d, now = clocked(r)
	*now = now.Add(24 * time.Hour)
	if n := looks(d, now, 60); n != 1 {
		t.Errorf("a process that has run for a day was inspected %d times in a minute", n)
	}
}

func TestAnEnclaveThatComesLaterIsFound(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/maps": ""})
	d, now := clocked(r)
	if kind, _ := d.Workload([]uint32{7}); kind != "none" {
		t.Fatalf("the process is in %q before it has an enclave", kind)
	}
	hostfstest.Write(t, filepath.Dir(r.Proc), "proc/7/maps", enclaveMap)
	*now = now.Add(firstWait)
	if kind, _ := d.Workload([]uint32{7}); kind != "sgx" {
		t.Errorf("the process is in %q a second after it mapped an enclave", kind)
	}
}

func TestAnotherProgramIsLookedAtSoon(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/maps": enclaveMap})
	root := filepath.Dir(r.Proc)
	d, now := clocked(r)
	*now = now.Add(24 * time.Hour)
	is := func(want teelabel.Kind, when string) {
		t.Helper()
		if kind, _ := d.Workload([]uint32{7}); kind != want {
			t.Errorf("the process is in %q %s, want %q", kind, when, want)
		}
		*now = now.Add(checkEvery)
	}
	is("sgx", "at first")
	hostfstest.Write(t, root, "proc/7/maps", "")
	is("sgx", "before it is inspected again")
	stat(t, root, "7", "another", 100)
	is("none", "after exec")
	hostfstest.Write(t, root, "proc/7/maps", enclaveMap)
	is("sgx", "seconds after exec, when it has made an enclave")
	hostfstest.Write(t, root, "proc/7/maps", "")
	stat(t, root, "7", "another", 8_000_000)
	is("none", "after the process ID was used again")
	hostfstest.Write(t, root, "proc/7/maps", enclaveMap)
	stat(t, root, "7", "a third", 8_000_000)
	is("sgx", "after exec again")
	if err := os.RemoveAll(filepath.Join(r.Proc, "7")); err != nil {
		t.Fatal(err)
	}
	is("none", "after its end")
	if len(d.seen) != 0 {
		t.Errorf("%d processes are remembered after their end", len(d.seen))
	}
}

func TestLooksAndMemoryAreBounded(t *testing.T) {
	root := t.TempDir()
	r := Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}
	const processes = 2 * burst
	var tgids []uint32
	for i := 1; i <= processes; i++ {
		pid := strconv.Itoa(i)
		stat(t, root, pid, "many", 1)
		hostfstest.Write(t, root, "proc/"+pid+"/maps", enclaveMap)
		tgids = append(tgids, uint32(i))
	}
	d, now := clocked(r)
	found := func() (n int) {
		d.Workload(tgids)
		for _, s := range d.seen {
			if s.found.enclave {
				n++
			}
		}
		return n
	}
	if n := found(); n != burst {
		t.Errorf("%d looks at once, want %d", n, burst)
	}
	for range burst/perSecond + 5 {
		*now = now.Add(checkEvery) // the processes that were inspected are due again
		found()
	}
	if n := found(); n != processes {
		t.Errorf("%d of %d were inspected in the end", n, processes)
	}
	for tgid := range uint32(maxSeen) {
		if d.seen[tgid] == nil {
			d.seen[tgid] = &seen{asked: *now}
			if err := d.places.Take(tenant.Tenant{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stat(t, root, "9999", "one too many", 1)
	if d.Workload([]uint32{9999}); d.seen[9999] != nil || len(d.seen) > maxSeen {
		t.Error("more processes are remembered than the bound")
	}
	*now = now.Add(forgetAfter)
	if d.Workload([]uint32{9999}); d.seen[9999] == nil || len(d.seen) != 1 {
		t.Errorf("%d processes are remembered that are no longer queried", len(d.seen)-1)
	}
}

// This process is found on the real machine, and a second query costs little.
func TestThisProcess(t *testing.T) {
	r := Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}
	d := NewDetector(r, nil)
	self := []uint32{uint32(os.Getpid())}
	if kind, runtime := d.Workload(self); kind != GuestOf(r) || runtime != "" {
		t.Errorf("this test is in %q under %q", kind, runtime)
	}
	s := d.seen[self[0]]
	if s == nil || s.comm == "" || s.started == 0 {
		t.Fatalf("this process was not found: %+v", s)
	}
	seen := 0
	if err := r.of(self[0]).Mappings(func(m hostfs.Mapping) {
		if exe, err := os.Executable(); err == nil && string(m.Path) == exe {
			seen++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("this program is not among its mappings")
	}
}

func BenchmarkAsk(b *testing.B) {
	d := NewDetector(Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}, nil)
	self := []uint32{uint32(os.Getpid())}
	for b.Loop() {
		d.Workload(self)
	}
}

func BenchmarkLook(b *testing.B) {
	r := Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}
	for b.Loop() {
		r.look(uint32(os.Getpid()))
	}
}

func BenchmarkLookAgain(b *testing.B) {
	r := Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}
	self := uint32(os.Getpid())
	pages, err := r.of(self).Size()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.lookAgain(self, image{pages: pages})
	}
}
