// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// The virtual SGX machine publishes the instructions that it executed in this file. test/sgx runs these tests
// there.
const executed = "/sys/module/swsgx/parameters/stats"

// driver attaches to the driver of the virtual SGX machine in some of the possible ways.
func driver(t *testing.T, usable func(bpf.Way) bool) *kernelSide {
	t.Helper()
	if _, err := os.Stat(executed); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this is not the virtual SGX machine")
	}
	symbols, err := readSymbols("/proc")
	if err != nil || symbols.freePages == 0 || symbols.vmOps == 0 || symbols.fops == 0 {
		t.Fatalf("symbols %+v, %v", symbols, err)
	}
	cpus, err := bpf.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	k, err := load(sizes{cpus: cpus, groups: 5, controller: int32(cgroup.Naming("/sys/fs/cgroup")), symbols: symbols, usable: usable})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.object.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// truth reads the number of executed instructions.
func truth(t *testing.T) map[string]uint64 {
	t.Helper()
	data, err := os.ReadFile(executed)
	if err != nil {
		t.Fatal(err)
	}
	stats := map[string]uint64{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if stats[name], err = strconv.ParseUint(value, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return stats
}

// waitFreed waits until the driver has freed the pages of an enclave.
func waitFreed(t *testing.T, free uint64) map[string]uint64 {
	t.Helper()
	var stats map[string]uint64
	waittest.Until(t, "the pages of the enclave to be free", func() bool {
		stats = truth(t)
		return stats["free"] == free
	})
	return stats
}

// Each way of attaching counts exactly the executed instructions.
func TestEveryWayCountsExactly(t *testing.T) {
	for _, kind := range []string{"f", "k"} { // fentry and fexit, kprobe and kretprobe
		t.Run(kind, func(t *testing.T) {
			k := driver(t, func(w bpf.Way) bool {
				return strings.HasPrefix(string(w.Mechanism), kind)
			})
			for _, s := range k.status {
				if !s.Attached() {
					t.Errorf("%s is not attached: %s", s.Probe, s.Reason)
				}
			}
			before := truth(t)
			if out, err := exec.Command("paging", "-mib", "4", "-working", "4", "-count", "1").CombinedOutput(); err != nil {
				t.Fatalf("paging: %v\n%s", err, out)
			}
			after, all := waitFreed(t, before["free"]), k.sum()
			for stat, got := range map[string]uint64{
				"ecreate": all.Count[nCreated], "eadd": all.Count[nAdded], "eextend": 16 * all.Count[nMeasured], "einit": all.Count[nInitialized],
				"epa": all.Total[nVersionArrays], "eblock": all.Total[nWritten], "etrack": all.Total[nETRACKCalls], "ewb": all.Count[nEvicted],
				"ewb_failed": all.Total[nEWBFailed], "eldu": all.Count[nLoadedBack], "eremove": all.Total[nRemoved],
			} {
				if want := after[stat] - before[stat]; got != want {
					t.Errorf("%s: %d were seen, %d executed", stat, got, want)
				}
			}
			secs := all.Count[nEvicted] - all.Total[nWritten]
			if all.Count[nEvicted] == 0 || all.Count[nReleased] != 1 || all.Total[nAllocated] != all.Total[nFreed] {
				t.Errorf("%+v", all)
			}
			if faults, busy := all.Count[nFaults], all.Count[nFaultsBusy]; faults < all.Count[nLoadedBack]-secs+busy {
				t.Errorf("%d faults, %d of them without a page, for %d pages that were loaded back", faults, busy, all.Count[nLoadedBack])
			}
		})
	}
}

// If sgx_encl_eldu cannot be hooked, pages that are loaded back are seen when the driver lists them again.
func TestLoadsAreSeenWhereTheyAreListed(t *testing.T) {
	k := driver(t, func(w bpf.Way) bool { return w.Target != "sgx_encl_eldu" })
	before := truth(t)
	if out, err := exec.Command("paging", "-mib", "4", "-working", "4", "-count", "1").CombinedOutput(); err != nil {
		t.Fatalf("paging: %v\n%s", err, out)
	}
	after := waitFreed(t, before["free"])
	secs := after["ewb"] - before["ewb"] - (after["eblock"] - before["eblock"])
	if got, want := k.sum().Count[nLoadedBack], after["eldu"]-before["eldu"]; got > want || got < want-secs || got == 0 {
		t.Errorf("%d pages were seen to be loaded back, want %d but %d SECS", got, want, secs)
	}
}

// guest is a virtual EPC, as a virtual machine has one.
type guest struct {
	fd     int
	memory []byte
	read   byte
}

func openGuest(t *testing.T, touch ...int) *guest {
	t.Helper()
	const length = 70_001
	fd, err := unix.Open("/dev/sgx_vepc", unix.O_RDWR, 0)
	if errors.Is(err, unix.ENOENT) {
		t.Skip("the processor of this machine has no VMX, so the driver serves no guests")
	}
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{fd: fd}
	if g.memory, err = unix.Mmap(fd, 0, length*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	g.touch(touch...)
	return g
}

func (g *guest) touch(pages ...int) {
	for _, page := range pages {
		g.read |= g.memory[page*pageSize]
	}
}

// residents returns the resident pages of each guest, in order.
func (k *kernelSide) residents() (pages []uint32) {
	for i := range k.records {
		if r := &k.records[i]; r.Address != 0 && r.Kind == kindGuest && r.TGID == uint32(os.Getpid()) {
			pages = append(pages, r.Resident)
		}
	}
	slices.Sort(pages)
	return pages
}

// A virtual machine's EPC owns a page from the first access until the EPC is released. EPCs that existed before
// are found by the open file or by the mapping, and their pages are counted at any offset.
func TestGuestPages(t *testing.T) {
	one, few, far := openGuest(t, 0), openGuest(t, 1, 2, 63), openGuest(t, 0, 1, 63, 64, 4095, 4096, 4099, 70_000)
	if err := errors.Join(unix.Munmap(few.memory), unix.Close(far.fd)); err != nil {
		t.Fatal(err)
	}
	k := driver(t, nil)
	if s := k.status[len(k.status)-1]; s.Probe != probeVEPCFound || !s.Attached() {
		t.Errorf("%+v", s)
	}
	want := func(what string, pages ...uint32) {
		t.Helper()
		if got := k.residents(); !slices.Equal(got, pages) {
			t.Errorf("%s: guests of %v pages, want %v (read %d)", what, got, pages, one.read|few.read|far.read)
		}
	}
	want("those of before", 1, 3, 8)
	one.touch(100, 5000)
	far.touch(100)
	want("which go on", 3, 3, 9)

	before := k.sum()
	young := openGuest(t, 0, 1, 2, 3, 4, 5)
	want("and a new one", 3, 3, 6, 9)
	after := k.sum()
	for what, n := range map[int]uint64{nVEPCOpened: 1, nVEPCFaults: 6, nVEPCAllocated: 6, nVEPCReleased: 0} {
		if got := after.Total[what] - before.Total[what]; got != n {
			t.Errorf("total %d grew by %d, want %d (read %d)", what, got, n, young.read)
		}
	}
	if err := errors.Join(unix.Munmap(young.memory), unix.Close(young.fd)); err != nil {
		t.Fatal(err)
	}
	want("which ends", 3, 3, 9)
	ended := k.sum()
	if ended.Total[nVEPCReleased]-after.Total[nVEPCReleased] != 1 || ended.Total[nFreed]-after.Total[nFreed] != 6 {
		t.Errorf("%+v after the guest's end", ended.Total)
	}
	if err := errors.Join(unix.Munmap(one.memory), unix.Close(one.fd), unix.Close(few.fd), unix.Munmap(far.memory)); err != nil {
		t.Fatal(err)
	}
	want("all have ended")
}
