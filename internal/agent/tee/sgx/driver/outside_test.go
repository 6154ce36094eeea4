// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// standIns is the directory of modules with the functions of isgx and of DCAP's driver. test/vm runs this test where they
// can be loaded.
var standIns = os.Getenv("SGX_STAND_INS")

// module loads and unloads a stand-in.
type module struct{ name string }

func (m module) load(t *testing.T) {
	t.Helper()
	f, err := os.Open(filepath.Join(standIns, m.name+".ko"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		t.Fatal(err)
	}
}

func (m module) unload(t *testing.T) {
	t.Helper()
	if err := unix.DeleteModule(m.name, unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
}

// fire calls each function of the module n times its known number.
func (m module) fire(t *testing.T, n int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/sys/module", m.name, "parameters/fire"), fmt.Append(nil, n), 0); err != nil {
		t.Fatal(err)
	}
}

// fired returns the samples of a module after fire with n, and with this number of free pages.
func (m module) fired(n, free int) map[string]int {
	want := map[string]int{
		"sgx_enclaves_created_total": 2 * n, "sgx_enclaves_initialized_total": 3 * n,
		"sgx_epc_pages_allocated_total": 11 * n, "sgx_epc_faults_total": 13 * n, `sgx_source_info{source="kprobe"}`: 1,
	}
	if m.name == moduleISGX {
		for name, value := range map[string]int{
			"sgx_enclaves_released_total": n, "sgx_epc_pages_added_total": 7 * n, "sgx_epc_pages_augmented_total": 5 * n,
			"sgx_epc_pages_freed_total": 4 * n, "sgx_reclaim_pages_written_total": 6 * n, "sgx_epc_pages_loaded_back_total": 8 * n,
			"sgx_epc_free_bytes": free * pageSize, `sgx_epc_size_bytes{node=""}`: 8192 * pageSize,
			`sgx_count_difference_pages{what="allocated"}`: 0,
		} {
			want[name] = value
		}
	}
	return want
}

// exactly requires these samples, and no other sample about the driver.
func exactly(t *testing.T, b *Backend, want map[string]int) {
	t.Helper()
	found := 0
	for line := range strings.Lines(told(t, b)) {
		var value float64
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, "sgx_") {
			continue
		}
		if _, err := fmt.Sscan(text, &value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		n, known := want[name]
		if !known || float64(n) != value {
			t.Errorf("%s is %v, want %v (%v)", name, value, n, known)
		}
		found++
	}
	if found != len(want) {
		t.Errorf("%d samples, want %d", found, len(want))
	}
}

// Calls of a driver that is a module are counted exactly: loaded after the agent, and loaded again.
func TestModulesAreCountedExactly(t *testing.T) {
	if standIns == "" {
		t.Skip("there are no modules that stand in for drivers")
	}
	o := Options{Roots: tee.Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}, Cgroup: "/sys/fs/cgroup", MaxWorkloads: 8, Log: slog.Default()}
	start := func(t *testing.T) *Backend {
		t.Helper()
		b := New(o)
		if err := b.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
		return b
	}
	follow := func(t *testing.T, b *Backend) {
		t.Helper()
		if err := b.tend(time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, s := range b.outside.side().status {
			t.Logf("%s by %s %s", s.Probe, s.Mechanism, s.Reason)
			if !s.Attached() {
				t.Errorf("%s is not attached: %s", s.Probe, s.Reason)
			}
		}
	}
	for _, m := range []module{{moduleISGX}, {moduleDCAP}} {
		t.Run(m.name, func(t *testing.T) {
			b := start(t)
			exactly(t, b, nil)
			m.load(t)
			m.fire(t, 1) // before the agent looks: not counted
			follow(t, b)
			exactly(t, b, m.fired(0, 8000-7))
			m.fire(t, 3)
			exactly(t, b, m.fired(3, 8000-4*7))
			m.fire(t, 50)
			exactly(t, b, m.fired(53, 8000-54*7))
			if m.name == moduleISGX { // once is enough: it takes seconds in an emulated machine
				m.unload(t)
				m.load(t) // the same name, and other functions
				follow(t, b)
				m.fire(t, 2)
				exactly(t, b, m.fired(2, 8000-2*7))
			}
			m.unload(t)
			if err := b.tend(time.Now()); err != nil {
				t.Fatal(err)
			}
			exactly(t, b, nil)
		})
	}
}

// fakeModule returns a machine with a module and the device of the in-tree driver, which DCAP's driver has too.
func fakeModule(t *testing.T, module, kallsyms string) tee.Roots {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"proc", "dev/sgx_enclave", "sys/module/" + module} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "proc/kallsyms"), []byte(kallsyms), 0o644); err != nil {
		t.Fatal(err)
	}
	return rootsAt(root)
}

// The functions of the in-tree driver exist in the kernel also while a module drives the machine. They are never called, and
// their counts are not zero but absent. The reason is a label.
func TestTheInTreeDriverIsNotWatchedBesideAModule(t *testing.T) {
	for kallsyms, reason := range map[string]string{
		"":                                   "CAP_SYSLOG is missing",
		"ffffffff81000010 t sgx_vma_fault\n": "CAP_SYSLOG is missing",
		"0000000000000000 t sgx_vma_fault\t[intel_sgx]\n":   "CAP_SYSLOG is missing",
		"zzzz t sgx_vma_fault\t[intel_sgx]\nffff\t[i]\n \n": "CAP_SYSLOG is missing",
	} {
		b := reader(fakeModule(t, moduleDCAP, kallsyms))
		if err := b.Init(t.Context()); err != nil || b.watch.kernel != nil || b.failed != nil {
			t.Fatalf("Init: %v, %v, %v", err, b.watch.kernel, b.failed)
		}
		exactly(t, b, nil)
		if text := told(t, b); !strings.Contains(text, `mechanism="none",probe="sgx_page_allocated"`) || !strings.Contains(text, reason) {
			t.Errorf("the exposition does not say why nothing is counted: %s", text)
		}
		if err := b.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The numbers of free and of all pages come from variables whose bytes are read from the kernel. Here two tables of the kernel,
// which the files also contain, replace these variables.
func TestVariablesOfAModuleAreRead(t *testing.T) {
	privilegetest.Alone(t)
	var at [2]uint64
	err := withSymbols("/proc", func(r io.Reader) error {
		for lines := bufio.NewScanner(r); lines.Scan(); {
			for i, name := range []string{" __start_notes", " __start_BTF"} {
				if text, ok := strings.CutSuffix(lines.Text(), name); ok {
					_, _ = fmt.Sscanf(text, "%x", &at[i])
				}
			}
		}
		return nil
	})
	if err != nil || at[0] == 0 || at[1] == 0 {
		t.Skipf("no addresses of the tables: %x, %v", at, err)
	}
	const buildID = 16 // bytes from the start of the notes
	k, err := prepare(sizes{cpus: 1, groups: 5, symbols: symbols{outsideFree: at[0] + buildID, outsideSize: at[1]}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.object.Close()
	look, err := k.object.Call("outside_pages")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := bpf.View[outsidePages](k.object, "outside_state")
	if err != nil {
		t.Fatal(err)
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	number := func(file string, from int) uint64 {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return uint64(binary.LittleEndian.Uint32(data[from:]))
	}
	want := outsidePages{Free: number("/sys/kernel/notes", buildID), Size: number("/sys/kernel/btf/vmlinux", 0), Read: 1}
	if pages[0] != want {
		t.Errorf("%x were read, want %x", pages[0], want)
	}
}

func TestPagesOfAModule(t *testing.T) {
	k := newFake(1)
	k.detach(probeAdded, probeLoadedBack, probeFault, probeRelease, probeRequest)
	o := &outside{module: moduleISGX, kernel: k.kernelSide, pages: []outsidePages{{Free: 7000, Size: 8192, Read: 1}}, look: func() error { return nil }}
	o.start = o.allocated(k.sum())
	k.machine[0].Total[nAllocated], k.machine[1].Total[nFreed], o.pages[0].Free = 50, 8, 7000-42
	want := map[string]int{
		"sgx_epc_pages_allocated_total": 50, "sgx_epc_pages_freed_total": 8, "sgx_epc_free_bytes": 6958 * pageSize,
		`sgx_epc_size_bytes{node=""}`: 8192 * pageSize, `sgx_count_difference_pages{what="allocated"}`: 0, `sgx_source_info{source="kprobe"}`: 1,
	}
	b := reader(rootsAt(t.TempDir()))
	b.outside = o
	exactly(t, b, want)
	o.pages[0].Free -= 3 // allocations that were not seen
	want["sgx_epc_free_bytes"], want[`sgx_count_difference_pages{what="allocated"}`] = 6955*pageSize, 3
	exactly(t, b, want)
	o.pages[0].Read = 0 // the kernel hides its variables
	exactly(t, b, map[string]int{"sgx_epc_pages_allocated_total": 50, "sgx_epc_pages_freed_total": 8, `sgx_source_info{source="kprobe"}`: 1})
}

// No way works on this machine, and each probe reports why.
func TestTryingAModule(t *testing.T) {
	privilegetest.Alone(t)
	trials, err := Try(Options{Roots: fakeModule(t, moduleISGX, "0000000000000001 t sgx_vma_fault\t[isgx]\n"), Cgroup: "/sys/fs/cgroup", MaxWorkloads: 8})
	if err != nil || len(trials) != len(hooksOf(moduleISGX)) {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, trial := range trials {
		if trial.Attached() || trial.Reason == "" || len(trial.Ways) != 0 && trial.Probe != probeFault {
			t.Errorf("%+v", trial)
		}
	}
}

func TestSymbolsOfAModule(t *testing.T) {
	of, err := findModule(strings.NewReader("ffffffff81000010 t sgx_vma_fault\nffffffffc0000010 t sgx_vma_fault\t[isgx]\n"+
		"ffffffffc0000020 T sgx_eldu\t[isgx]\nffffffffc0000030 b sgx_nr_free_pages\t[isgx]\nffffffffc0000040 t sgx_ioctl\t[intel_sgx]\n"), moduleISGX)
	if err != nil || len(of) != 3 || of["sgx_vma_fault"] != 0xffffffffc0000010 || of["sgx_nr_free_pages"] != 0xffffffffc0000030 {
		t.Errorf("%x, %v", of, err)
	}
	probes := probesAt(moduleISGX, of)
	attachable := 0
	for _, p := range probes {
		attachable += len(p.Ways)
	}
	if len(probes) != 10 || attachable != 2 {
		t.Errorf("%d probes, %d of them have a function", len(probes), attachable)
	}
	if err := withSymbols(t.TempDir(), nil); err == nil {
		t.Error("no error without the file")
	}
}
