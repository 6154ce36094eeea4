// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// follow makes a detector use the changes that the test puts into the returned list.
func follow(d *Detector) (reported *[]uint32, complete *bool) {
	var tgids []uint32
	all := true
	d.Follow(func() ([]uint32, bool) {
		now := tgids
		tgids = nil
		return now, all
	})
	return &tgids, &all
}

// ask queries the due processes, or all, and returns how many of them were read.
func ask(d *Detector, now time.Time, all []uint32) (reads int) {
	tgids, complete := d.Due()
	if !complete {
		tgids = all
	}
	d.Workload(tgids)
	for _, s := range d.seen {
		if s.checked.Equal(now) {
			reads++
		}
	}
	return reads
}

// Idle processes cost one rare look each, however often the detector is queried.
func TestProcessesThatDoNothingAreRarelyRead(t *testing.T) {
	root := t.TempDir()
	r := Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}
	const processes, step = 100, 2 * time.Second
	var tgids []uint32
	for i := 1; i <= processes; i++ {
		pid := strconv.Itoa(i)
		stat(t, root, pid, "idle", 1)
		hostfstest.Write(t, root, "proc/"+pid+"/maps", "")
		tgids = append(tgids, uint32(i))
	}
	d, now := clocked(r)
	follow(d)
	hour := func() (reads, most int) {
		for range time.Hour / step {
			*now = now.Add(step)
			n := ask(d, *now, tgids)
			reads, most = reads+n, max(most, n)
		}
		return reads, most
	}
	hour()
	reads, most := hour()
	if looks := processes * int(time.Hour/longestWait+1); reads > looks || reads < looks/2 {
		t.Errorf("%d reads of %d processes in an hour, want one each %s, or %d", reads, processes, longestWait, looks)
	}
	if most > burst {
		t.Errorf("%d reads at once, want at most %d", most, burst)
	}
}

// Where each start of a program is reported, an inspection does not find out again which program a process runs.
func TestAnInspectionDoesNotIdentifyAKnownProcess(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/maps": ""})
	root := filepath.Dir(r.Proc)
	d, now := clocked(r)
	follow(d)
	ask(d, *now, []uint32{7}) // there was no report before
	known := d.seen[7]
	stat(t, root, "7", "another", 8_000_000) // a reader would think that the process is another one
	hostfstest.Write(t, root, "proc/7/maps", enclaveMap)
	*now = now.Add(24 * time.Hour)
	if n := ask(d, *now, nil); n != 1 || d.seen[7] != known || !known.found.enclave {
		t.Errorf("%d inspections, of the same process: %v, found: %+v", n, d.seen[7] == known, known.found)
	}
	if err := os.RemoveAll(filepath.Join(r.Proc, "7")); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(24 * time.Hour)
	if ask(d, *now, nil); d.seen[7] != nil {
		t.Error("the process is remembered after its end")
	}
}

func TestAReportedProcessIsLookedAtAtOnce(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/maps": ""})
	root := filepath.Dir(r.Proc)
	d, now := clocked(r)
	reported, complete := follow(d)
	*now = now.Add(24 * time.Hour)
	is := func(want teelabel.Kind, when string) {
		t.Helper()
		*now = now.Add(time.Second)
		ask(d, *now, []uint32{7})
		if kind, _ := d.Workload([]uint32{7}); kind != want {
			t.Errorf("the process is in %q %s, want %q", kind, when, want)
		}
	}
	is("none", "at first")
	hostfstest.Write(t, root, "proc/7/maps", enclaveMap)
	is("none", "before a report")
	*reported = []uint32{7} // the same name and start: only the report shows that another program runs
	is("sgx", "after an exec")
	*now = now.Add(24 * time.Hour)
	is("sgx", "a day later")
	hostfstest.Write(t, root, "proc/7/maps", "")
	is("sgx", "before it is due")
	*complete = false
	if tgids, all := d.Due(); all {
		t.Errorf("%d changes are all of them, although some were missed", len(tgids))
	}
	is("none", "after missed changes")
}

func TestDueNamesNewProcessesFirst(t *testing.T) {
	d, now := clocked(machine(t, nil))
	reported, _ := follow(d)
	d.Due()
	for tgid := range uint32(2 * burst) {
		d.seen[1000+tgid] = &seen{}
	}
	*now = now.Add(time.Second)
	*reported = []uint32{7, 8}
	tgids, complete := d.Due()
	first := slices.Sorted(slices.Values(tgids[:2]))
	if !complete || !slices.Equal(first, []uint32{7, 8}) || len(tgids) > burst {
		t.Errorf("%d are due, %d first, complete: %v", len(tgids), first, complete)
	}
	// While the enclave boundary is not traced, no caller queries which processes are due.
	for tgid := range uint32(2 * maxSeen) {
		*reported = append(*reported, tgid)
	}
	d.Workload(nil)
	if len(d.news.waiting) > maxSeen {
		t.Errorf("%d changes wait for nobody", len(d.news.waiting))
	}
	if _, complete := d.Due(); complete {
		t.Error("forgotten changes are not missed")
	}
}

// The mappings of a process are not read again while it maps nothing. Its open files are.
func TestMappingsAreReadAgainWhenTheirSizeHasChanged(t *testing.T) {
	r := machine(t, map[string]string{"dev/sgx_enclave": "", "proc/7/maps": "", "proc/7/statm": "100 9 8 7 0 6 0\n", "proc/7/fd/0": "-> /dev/null"})
	root := filepath.Dir(r.Proc)
	d, now := clocked(r)
	reported, _ := follow(d)
	ask(d, *now, []uint32{7}) // there was no report before
	is := func(want teelabel.Kind, when string) {
		t.Helper()
		*now = now.Add(longestWait)
		if kind, _ := d.Workload([]uint32{7}); kind != want {
			t.Errorf("the process is in %q %s, want %q", kind, when, want)
		}
	}
	hostfstest.Write(t, root, "proc/7/maps", enclaveMap) // which the kernel does not do without another size
	is("none", "while the size is the same")
	hostfstest.Write(t, root, "proc/7/statm", "101 9 8 7 0 6 0\n")
	is("sgx", "with another size")
	hostfstest.Write(t, root, "proc/7/maps", "")
	is("sgx", "before the size has changed again")
	*reported = []uint32{7}
	is("none", "after an exec of a program of the same size")
	hostfstest.Write(t, root, "proc/7/fd/5", "-> /dev/sgx_enclave")
	is("sgx", "after it has opened the device")
	if err := os.Remove(filepath.Join(r.Proc, "7/fd/5")); err != nil {
		t.Fatal(err)
	}
	is("none", "after it has closed the device")
	hostfstest.Write(t, root, "proc/7/maps", enclaveMap)
	for range mostAgain {
		d.Workload([]uint32{7})
		*now = now.Add(longestWait)
	}
	is("sgx", "after many inspections")
	hostfstest.Write(t, root, "proc/7/statm", "0 0 0 0 0 0 0\n")
	hostfstest.Write(t, root, "proc/7/maps", "")
	is("none", "after the first thread has ended")
}

// Without reports of programs that start, the mappings are read each time.
func TestMappingsAreReadEachTimeWithoutReports(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/maps": "", "proc/7/statm": "100 9 8 7 0 6 0\n"})
	d, now := clocked(r)
	d.Workload([]uint32{7})
	hostfstest.Write(t, filepath.Dir(r.Proc), "proc/7/maps", enclaveMap)
	*now = now.Add(longestWait)
	if kind, _ := d.Workload([]uint32{7}); kind != "sgx" {
		t.Errorf("the process is in %q", kind)
	}
}

func TestMappingsThatCouldNotBeReadAreReadAgain(t *testing.T) {
	r := machine(t, map[string]string{"proc/7/statm": "100 9 8 7 0 6 0\n"}) // reading the mappings fails
	if _, same := r.lookAgain(7, r.look(7).mapped); same {
		t.Error("mappings that were not read count as known")
	}
}
