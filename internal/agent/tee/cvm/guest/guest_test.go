// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

var update = flag.Bool("update", false, "write the golden files again")

// The object contains every program that a probe names.
func TestEveryWayHasItsProgram(t *testing.T) {
	obj, err := bpf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, kind := range []teelabel.Kind{teelabel.TDX, teelabel.SEV} {
		for _, p := range probes(kind, func(string) bool { return true }) {
			named = append(named, p.Ways[0].Program)
		}
	}
	programs := obj.Programs()
	slices.Sort(named)
	named = slices.Compact(named)
	slices.Sort(programs)
	if !slices.Equal(programs, named) {
		t.Errorf("the object has %v, the probes name %v", programs, named)
	}
}

// Probes for features of a TEE are tried on every kernel, and their status reports a kernel that lacks them. Other probes are
// tried only where their functions exist.
func TestProbesOfKernels(t *testing.T) {
	lacks := func(string) bool { return false }
	for _, tt := range []struct {
		kind teelabel.Kind
		has  func(string) bool
		want []string
	}{
		{teelabel.None, lacks, []string{probeBounced, probeIdle}},
		{teelabel.CCA, lacks, []string{probeBounced, probeIdle}},
		{teelabel.TDX, lacks, []string{probeBounced, probeIdle, probeVE, probeConvert, probeConverted}},
		{teelabel.SEV, lacks, []string{probeBounced, probeIdle, probeVC, probeConvert, probeConverted}},
		{teelabel.SEV, func(f string) bool { return f == "accept_memory" }, []string{probeBounced, probeIdle, probeVC, probeConvert, probeConverted, probeAccept, probeAccepted}},
	} {
		var got []string
		for _, p := range probes(tt.kind, tt.has) {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.kind, got, tt.want)
		}
	}
}

func TestForced(t *testing.T) {
	for line, want := range map[string]bool{
		"console=ttyS0 swiotlb=force quiet": true,
		"swiotlb=512,force":                 true,
		"swiotlb=512,2,force\n":             true,
		"swiotlb=any,force":                 true,
		"swiotlb=noforce":                   false,
		"swiotlb=65536":                     false,
		"":                                  false,
		"myswiotlb=force BOOT_IMAGE=swiotlbforce": false,
	} {
		if forced(line) != want {
			t.Errorf("%q: %t, want %t", line, forced(line), want)
		}
	}
}

// machine is a fake machine with these files.
func machine(t testing.TB, files map[string]string) tee.Roots {
	t.Helper()
	dir := hostfstest.Tree(t, files)
	return tee.Roots{Proc: filepath.Join(dir, "proc"), Dev: filepath.Join(dir, "dev"), Sys: filepath.Join(dir, "sys")}
}

func TestWhichMachinesCopy(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"bare":   {map[string]string{"proc/cmdline": "quiet\n"}, false},
		"forced": {map[string]string{"proc/cmdline": "swiotlb=force\n"}, true},
		"tdx":    {map[string]string{"proc/cmdline": "quiet\n", "dev/tdx_guest": ""}, true},
		"snp":    {map[string]string{"dev/sev-guest": ""}, true},
		"empty":  {nil, false},
	} {
		if got := Copies(machine(t, tt.files)); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestOnAnOrdinaryMachineNothingIsLoaded(t *testing.T) {
	b := New(Options{Roots: machine(t, nil), Log: slog.New(slog.DiscardHandler)})
	if err := b.Init(t.Context()); err != nil || b.kernel != nil {
		t.Errorf("Init: %v, %v", err, b.kernel)
	}
	if got := told(t, b); got != "" {
		t.Errorf("it says %s", got)
	}
	if err := errors.Join(b.tend(time.Now()), b.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestAFailedStartIsReported(t *testing.T) {
	b := New(Options{Log: slog.New(slog.DiscardHandler)})
	b.failed = errors.New("no BTF")
	if err := b.Collect(t.Context(), func(prometheus.Metric) {}); !errors.Is(err, b.failed) {
		t.Errorf("it says %v", err)
	}
}

// told returns what a backend emits, as text.
func told(t *testing.T, b *Backend) string {
	t.Helper()
	return string(metrictest.Text(t, func(emit func(prometheus.Metric)) {
		if err := b.Collect(t.Context(), emit); err != nil {
			t.Error(err)
		}
	}))
}

// table and queue are fakes of the maps of keys and of free numbers. queue records the freed numbers.
type table struct{}

func (table) Update(any, any, attribution.Flags) error { return nil }
func (table) Delete(any) error                         { return nil }

type queue struct{ freed []uint32 }

func (q *queue) Update(_, number any, _ attribution.Flags) error {
	q.freed = append(q.freed, number.(uint32))
	return nil
}
func (*queue) LookupAndDelete(any, any) error { return errors.ErrUnsupported }

// fake is a backend with a kernel side without programs: 2 CPUs, a program in a unit, and one in none.
func fake(roots tee.Roots) (*Backend, *queue) {
	free := &queue{}
	k := &kernelSide{
		object: &bpf.Object{}, machine: make([]totals, 2), uses: make([]groupUse, 4),
		groups: &attribution.Kernel{First: 1, Records: make([]attribution.Record, 4), Keys: table{}, Free: free},
		status: []bpf.Status{{Probe: probeBounced, Mechanism: bpf.Fexit, Program: "bounced"}},
	}
	for _, p := range []string{probeIdle, probeVE, probeConvert, probeConverted, probeAccept, probeAccepted} {
		k.status = append(k.status, bpf.Status{Probe: p, Mechanism: bpf.Fentry, Program: p})
	}
	for i := range machineCounts {
		k.machine[0].Count[i], k.machine[1].Count[i] = uint64(1000+i), uint64(100*i)
	}
	k.machine[0].Exceptions[causeCpuid*modes+modeUser], k.machine[1].Exceptions[causeCpuid*modes+modeUser] = 5, 6
	k.machine[1].Exceptions[causeMsrWrite*modes+modeKernel] = 7
	k.machine[0].Works, k.machine[1].Works = [works]uint64{2, 3, 4}, [works]uint64{10, 20, 30}
	k.machine[0].NS, k.machine[1].NS = [works]uint64{1e9, 2e9, 3e9}, [works]uint64{5e8, 5e8, 5e8}
	k.machine[0].Pages = [works]uint64{256, 1, 0}
	k.machine[0].Idle, k.machine[1].Idle = 40, 2
	for i, name := range []string{"postgres", "dd"} {
		r := &k.groups.Records[i+1]
		*r = attribution.Record{Cgroup: uint64(100 + i), Ready: 1}
		copy(r.Comm[:], name)
	}
	k.groups.Records[1].Depth = 1
	copy(k.groups.Records[1].Path[0][:], "postgresql.service")
	k.uses[1].Count = [groupCounts]uint64{nMappings: 70, nBytes: 286_720, nFailures: 3}
	k.uses[2].Count = [groupCounts]uint64{exceptionsAt + causeCpuid*modes + modeUser: 11, nMappings: 8, nBytes: 4096, classAccelerator*nBounces + nMappings: 2, classAccelerator*nBounces + nBytes: 999}
	b := New(Options{Roots: roots, MaxWorkloads: 8, Log: slog.New(slog.DiscardHandler)})
	b.kernel, b.owners, b.guest, b.halts = k, newOwners(k, 8, nil), teelabel.TDX, "direct"
	return b, free
}

// Write it again with: go test ./internal/agent/tee/cvm/guest -update
func TestAMachineThatCopies(t *testing.T) {
	b, _ := fake(machine(t, map[string]string{
		"sys/kernel/debug/swiotlb/io_tlb_nslabs": "32768\n", "sys/kernel/debug/swiotlb/io_tlb_used": "12\n", "sys/kernel/debug/swiotlb/io_tlb_used_hiwater": "516\n",
		"sys/devices/system/cpu/cpuidle/current_driver": "haltpoll\n", "sys/devices/system/cpu/present": "0-1\n",
		"sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n", "sys/devices/system/cpu/cpu0/cpuidle/state0/time": "1500000\n",
		"sys/devices/system/cpu/cpu1/cpuidle/state0/time": "250000\n",
		"proc/interrupts": "           CPU0       CPU1\n  0:   9  9  IO-APIC  timer\nRES:   5   6   Rescheduling interrupts\nCAL:   70   8   Function call interrupts\nTLB:  1  0  TLB shootdowns\n",
		"proc/cpuinfo":    "processor: 0\nvendor_id: AuthenticAMD\ncpu family: 25\nmodel: 1\nflags: adx avx2 bmi2 rdseed sha_ni vaes vpclmulqdq\n\nprocessor: 1\n",
	}))
	metrictest.Golden(t, filepath.Join("testdata", "exposition.golden"), []byte(told(t, b)), *update)
}

func TestWhatIsNotMeasuredIsAbsent(t *testing.T) {
	b, _ := fake(machine(t, map[string]string{
		"sys/kernel/debug/swiotlb/io_tlb_nslabs": "512\n", "sys/kernel/debug/swiotlb/io_tlb_used": "18446744073709551611\n",
	}))
	for i := range b.kernel.status {
		if name := b.kernel.status[i].Probe; name != probeConverted { // without its beginning, its end is not counted
			b.kernel.status[i] = bpf.Status{Probe: name, Mechanism: bpf.NotAttached, Reason: "no such function"}
		}
	}
	got := told(t, b)
	if want := "teescope_bounce_pool_bytes 1.048576e+06\n"; !strings.Contains(got, want) {
		t.Errorf("the exposition lacks %s:\n%s", want, got)
	}
	for _, not := range []string{"_used_", "_mappings_", "bounce_bytes", "_failures_", "exceptions_total", "conver", "accept", "idle_entries", "idle_poll", "ipis", "missing"} {
		if not == "conver" || not == "accept" {
			not = "teescope_memory_" + not
		}
		if strings.Contains(got, not) {
			t.Errorf("the exposition has %s", not)
		}
	}
}

// Only a confidential machine can lack features. Another machine that copies its data (swiotlb=force) is not judged.
func TestFeaturesOfAnotherMachine(t *testing.T) {
	b, _ := fake(machine(t, map[string]string{"proc/cpuinfo": "vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 1\nflags: fpu\n"}))
	for guest, want := range map[teelabel.Kind]bool{teelabel.TDX: true, teelabel.SEV: true, teelabel.None: false} {
		if b.guest = guest; strings.Contains(told(t, b), "feature_missing{") != want {
			t.Errorf("%s: features are missing: %t, want %t", guest, !want, want)
		}
	}
}

func TestPolling(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	for name, tt := range map[string]struct {
		files map[string]string
		want  time.Duration
	}{
		"two CPUs":       {map[string]string{cpu + "cpu0/cpuidle/state0/name": "POLL\n", cpu + "cpu0/cpuidle/state0/time": "7\n", cpu + "cpu1/cpuidle/state0/time": "3\n"}, 10 * time.Microsecond},
		"another state":  {map[string]string{cpu + "cpu0/cpuidle/state0/name": "C1\n", cpu + "cpu0/cpuidle/state0/time": "7\n", cpu + "cpu1/cpuidle/state0/time": "3\n"}, -1},
		"no cpuidle":     {nil, -1},
		"one CPU lacks":  {map[string]string{cpu + "cpu0/cpuidle/state0/name": "POLL\n", cpu + "cpu0/cpuidle/state0/time": "7\n"}, -1},
		"no number":      {map[string]string{cpu + "cpu0/cpuidle/state0/name": "POLL\n", cpu + "cpu0/cpuidle/state0/time": "7\n", cpu + "cpu1/cpuidle/state0/time": "-3\n"}, -1},
		"a large number": {map[string]string{cpu + "cpu0/cpuidle/state0/name": "POLL\n", cpu + "cpu0/cpuidle/state0/time": "7\n", cpu + "cpu1/cpuidle/state0/time": "18446744073709551615\n"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{cpu + "present": "0-1\n"}
			maps.Copy(files, tt.files)
			got, ok := polling(hostfs.At(machine(t, files).Sys))
			if ok != (tt.want >= 0) || ok && got != tt.want {
				t.Errorf("CPUs have polled for %v, %t, want %v", got, ok, tt.want)
			}
		})
	}
}

// A group whose processes do nothing for a while gives its number back, and its workload keeps the counts.
func TestAQuietGroupKeepsItsCounts(t *testing.T) {
	b, free := fake(machine(t, nil))
	began := time.Unix(1000, 0)
	postgres := func() uint64 {
		for w, n := range b.owners.Totals() {
			if strings.Contains(w.Name, "postgres") {
				return n[nBytes]
			}
		}
		return 0
	}
	for _, after := range []time.Duration{0, quiet - time.Second, quiet, quiet + attribution.IdleBeforeFree} {
		if err := b.refresh(began.Add(after)); err != nil {
			t.Fatal(err)
		}
		if got := postgres(); got != 286_720 {
			t.Errorf("after %v it has %d bytes", after, got)
		}
		if after < quiet && len(free.freed) > 0 {
			t.Errorf("after %v the numbers %v are free", after, free.freed)
		}
	}
	if err := b.refresh(began.Add(quiet + 2*attribution.IdleBeforeFree)); err != nil {
		t.Fatal(err)
	}
	if len(free.freed) != 2 || postgres() != 286_720 {
		t.Errorf("the numbers %v are free, and it has %d bytes", free.freed, postgres())
	}
}

// A kernel that has only the handler of another TEE counts no exceptions. The counter is then absent, not zero.
func TestExceptionsOfTheOtherTEE(t *testing.T) {
	b, _ := fake(machine(t, nil))
	for guest, want := range map[teelabel.Kind]bool{teelabel.TDX: true, teelabel.SEV: false, teelabel.None: true} {
		if b.guest = guest; strings.Contains(told(t, b), "guest_exceptions_total") != want {
			t.Errorf("%s: exceptions are known: %t, want %t", guest, !want, want)
		}
	}
}

func TestHalts(t *testing.T) {
	for _, tt := range []struct {
		guest teelabel.Kind
		fixed bool
		want  string
	}{{teelabel.TDX, true, "direct"}, {teelabel.TDX, false, "exception"}, {teelabel.SEV, true, ""}, {teelabel.None, false, ""}} {
		if got := haltsBy(tt.guest, func(f string) bool { return tt.fixed && f == "tdx_halt" }); got != tt.want {
			t.Errorf("%s, %t: %q, want %q", tt.guest, tt.fixed, got, tt.want)
		}
	}
}

func TestMissingFeatures(t *testing.T) {
	const milan = "adx aes avx2 bmi2 pclmulqdq sha_ni vaes vpclmulqdq" // and rdseed, which Linux can switch off
	for _, tt := range []struct{ cpu, want string }{
		{"vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nflags : fpu " + milan + "\n", ""},
		{"vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\nflags : " + milan + "\n", "avx512f avx512_bf16 avx512_vnni gfni"},
		{"vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\nflags : " + milan + " avx512f avx512_vnni gfni amx_bf16 amx_int8 amx_tile avx512_bf16\n", "avx_vnni"},
		{"vendor_id : GenuineIntel\ncpu family : 15\nmodel : 143\nflags : fpu\n", ""},       // another family
		{"vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nflags : fpu", ""},           // cut
		{"vendor_id : AuthenticAMD\ncpu family : many\nmodel : -1\nflags : fpu sse2\n", ""}, // damaged
		{"", ""},
	} {
		cpu, err := hostfs.At(hostfstest.Tree(t, map[string]string{"cpuinfo": tt.cpu})).Processor()
		if got := strings.Join(missing(cpu), " "); err != nil || got != tt.want {
			t.Errorf("%q lacks %q, %v; want %q", tt.cpu, got, err, tt.want)
		}
	}
}

// FuzzPool writes arbitrary content into the files of the pool.
func FuzzPool(f *testing.F) {
	f.Add([]byte("32768\n"), []byte("12\n"), []byte("516\n"))
	f.Add([]byte("-1"), []byte(""), []byte("\x1b[31m"))
	f.Add([]byte("18446744073709551615"), []byte("1e9"), bytes.Repeat([]byte("9"), 100))
	f.Add([]byte("CAL: 1 2 x\nRES:\nCAL: 9\nvendor_id: AuthenticAMD\ncpu family: 25\nmodel: 1\nflags: fpu\n"), []byte("1"), []byte("1"))
	f.Fuzz(func(t *testing.T, size, used, most []byte) {
		kinds := map[string]bool{}
		parseIPIs(size, func(kind string, _ uint64) {
			if kinds[kind] {
				t.Errorf("%s occurs twice", kind)
			}
			kinds[kind] = true
		})
		roots := machine(t, map[string]string{
			"sys/kernel/debug/swiotlb/io_tlb_nslabs": string(size), "sys/kernel/debug/swiotlb/io_tlb_used": string(used), "sys/kernel/debug/swiotlb/io_tlb_used_hiwater": string(most),
		})
		var all float64
		families := metrictest.Samples(t, 3, func(emit func(prometheus.Metric)) {
			if err := emitPool(roots.Sys, newFamilies(), emit); err != nil && !strings.Contains(err.Error(), roots.Sys) {
				t.Errorf("the error names no file: %v", err)
			}
		})
		metrictest.NoControls(t, families)
		for _, family := range families {
			v := family.GetMetric()[0].GetGauge().GetValue()
			if family.GetName() == "teescope_bounce_pool_bytes" {
				all = v
			}
		}
		for _, family := range families {
			if v := family.GetMetric()[0].GetGauge().GetValue(); v < 0 || v > all {
				t.Errorf("%s is %v of %v", family.GetName(), v, all)
			}
		}
	})
}
