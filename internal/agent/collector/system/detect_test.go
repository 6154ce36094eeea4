// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// fakeProcess writes a process with or without an enclave below root.
func fakeProcess(t testing.TB, root, pid string, enclave bool) {
	t.Helper()
	maps := ""
	if enclave {
		maps = "7f0000000000-7f0010000000 rw-s 0 00:06 9 /dev/sgx_enclave\n"
	}
	for path, text := range map[string]string{
		"maps": maps, "task/" + pid + "/stat": pid + " (p) S" + strings.Repeat(" 1", 20) + "\n",
	} {
		hostfstest.Write(t, filepath.Join(root, "proc", pid), path, text)
	}
}

// The first process of a container is often a shell whose child has the enclave. A group continues after its first
// process has ended.
func TestTheEnclaveOfAnyProcessOfTheGroupIsFound(t *testing.T) {
	root := t.TempDir()
	c := New(Options{MaxWorkloads: 4, Proc: filepath.Join(root, "proc"), Log: slog.New(slog.DiscardHandler)})
	c.kernel = made(t)
	c.slots = newSlots(c.kernel, 4, nil)
	c.members.detector = tee.NewDetector(tee.Roots{Proc: filepath.Join(root, "proc"), Dev: root, Sys: root}, nil)
	c.kernel.group(slotFirst, 20, "sh", "docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope")
	c.slots.Adopt(time.Now())
	sl := c.slots.Get(slotFirst)
	ask := func() verdict {
		t.Helper()
		c.members.listed = time.Time{}
		c.members.list(c.kernel, time.Now())
		return c.members.detect(c.kernel, sl.Workload, []*slot{sl})
	}
	fakeProcess(t, root, "20", false)
	if v := ask(); v.kind != "none" {
		t.Fatalf("%+v without an enclave", v)
	}
	fakeProcess(t, root, "21", true)
	fakeProcess(t, root, "22", true)
	c.kernel.pids[0].Slot[22] = slotFirst + 1 // of another group
	if v := ask(); v.kind != "none" {
		t.Errorf("%+v, although another group has the enclave", v)
	}
	c.kernel.pids[0].Slot[21] = slotFirst
	if v := ask(); v.kind != "sgx" {
		t.Errorf("%+v, but a child has an enclave", v)
	}
	c.kernel.pids[0].Slot[20] = slotUnknown // ended
	if v := ask(); v.kind != "sgx" {
		t.Errorf("%+v after the first process ended", v)
	}
	c.kernel.pids[0].Slot[21] = slotUnknown
	if v := ask(); v.kind != "sgx" {
		t.Errorf("%+v after the last process ended, which was in SGX", v)
	}
	fakeProcess(t, root, "23", false)
	c.kernel.pids[0].Slot[23] = slotFirst
	if v := ask(); v.kind != "none" {
		t.Errorf("%+v, but the only process has no enclave", v)
	}
}

// Where each start is reported, processes that run on are not listed again.
func TestMembersFollowReportedStarts(t *testing.T) {
	root := t.TempDir()
	k, ring, now := made(t), &changeRing{}, time.Unix(1000, 0)
	m := members{proc: hostfs.At(root), changes: &changeLog{}}
	m.changes.open(ring)
	start := func(tgid uint32, listed, reported bool) {
		k.pids[0].Slot[tgid] = slotFirst
		if listed {
			hostfstest.Write(t, root, fmt.Sprint(tgid, "/comm"), "p\n")
		}
		if reported {
			ring.put(tgid)
		}
	}
	check := func(what string, after time.Duration, want ...uint32) {
		t.Helper()
		now = now.Add(after)
		m.list(k, now)
		if got := m.bySlot[slotFirst]; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	start(20, true, false)
	check("the first list", 0, 20)
	start(21, true, true)
	check("a start is reported", time.Second, 20, 21)
	start(22, true, false)
	check("a process that came otherwise", listAnyway-2*time.Second, 20, 21)
	check("the next list", time.Second, 20, 21, 22)
	start(23, true, true)
	for range ring.TGID {
		start(23, false, true)
	}
	check("more starts than the ring has entries", time.Second, 20, 21, 22)
	check("the list because of them", listEvery, 20, 21, 22, 23)
	full := []uint32{20, 21, 22, 23}
	for len(full) < maxMembers {
		start(23, false, true)
		full = append(full, 23)
	}
	check("as many starts as a slot has members", time.Second, full...)
	start(24, true, true)
	check("another start", time.Second, full...)
	check("the list because it had no room", listEvery, 20, 21, 22, 23, 24)
}

// On the real kernel: a program at the path of gramine-direct's PAL is recognised in the workload of the kernel side.
func TestGramineDirectIsRecognised(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gramine", "direct")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "libpal.so")
	if err := os.Rename(program(t, "pal"), path); err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{})
	converse(t, job(path, "on-line", ""))
	info := func() float64 {
		return sum(scrape(t, c), "teescope_workload_info", "workload", "libpal.so", "runtime", "gramine-direct")
	}
	waittest.Until(t, "a workload libpal.so with the runtime gramine-direct", func() bool { return info() == 1 })
}

func TestProcessMovesOnlyFromWhereItIsThoughtToBe(t *testing.T) {
	k := &kernelSide{pids: make([]pidPage, 1)}
	slots := &k.pids[0].Slot
	slots[6], slots[7], slots[8] = 10, 11, 12
	if !k.moveProcess(7, 11, 20) || !k.moveProcess(6, 10, 30) {
		t.Error("a process that is where it was thought to be was not moved")
	}
	if k.moveProcess(8, 11, 40) {
		t.Error("a process that is elsewhere was moved")
	}
	if got := [3]uint16(slots[6:9]); got != [3]uint16{30, 20, 12} {
		t.Errorf("slots are %v", got)
	}
}
