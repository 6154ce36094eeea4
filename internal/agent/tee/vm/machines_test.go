// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// deleted is a fake of the map of numbers.
type deleted map[vmKey]bool

func (d deleted) Delete(key any) error { d[key.(vmKey)] = true; return nil }

// fake is a kernel side without a kernel, and a directory instead of /proc.
func fake(t testing.TB) (*machines, *[]uint32, string) {
	t.Helper()
	root := t.TempDir()
	var freed []uint32
	k := &kernelSide{
		cpus: 2, rows: make([]counts, 2*maxVms), vms: make([]record, maxVms), numbers: deleted{},
		free: pushes(func(n uint32) error { freed = append(freed, n); return nil }),
	}
	m := newMachines(Options{Roots: tee.Roots{Proc: root}, Cgroup: filepath.Join(root, "none"), Log: slog.New(slog.DiscardHandler)}, k)
	return m, &freed, root
}

func process(t testing.TB, proc string, pid, ticks int, group, args string) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"stat": fmt.Sprintf("%d (qemu) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid, ticks),
		"comm": "qemu\n", "cgroup": "0::" + group + "\n", "cmdline": strings.ReplaceAll(args, " ", "\x00") + "\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// values returns the samples as NAME{label="value",...}.
func values(t *testing.T, collect func(emit func(prometheus.Metric))) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	collect(func(m prometheus.Metric) {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		var labels []string
		for _, l := range out.Label {
			labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		key := name + "{" + strings.Join(labels, ",") + "}"
		if _, twice := all[key]; twice {
			t.Errorf("%s is emitted twice", key)
		}
		all[key] = out.GetCounter().GetValue() + out.GetGauge().GetValue()
	})
	return all
}

func TestLifeOfAMachine(t *testing.T) {
	m, freed, proc := fake(t)
	f := newFamilies()
	emitted := func() map[string]float64 { return values(t, func(emit func(prometheus.Metric)) { m.emit(f, emit) }) }
	now := time.Unix(1e9, 0)

	process(t, proc, 70, 100, `/machine.slice/machine-qemu\x2d1\x2dweb.scope`, "qemu-system-x86_64 -name guest=web")
	process(t, proc, 71, 200, "/kubepods/pod01234567-89ab-cdef-0123-456789abcdef/"+kata, "/firecracker --id web")
	m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Type: vmTdx, Isa: 1}
	m.kernel.vms[2] = record{Start: uint64(2*time.Second + 9*time.Millisecond), TGID: 71, Ready: 1, Isa: 2}
	m.kernel.vms[3] = record{Start: 5, TGID: 72} // not complete
	m.kernel.rows[2*1].Exits[exitCpuid], m.kernel.rows[2*1+1].Exits[exitCpuid] = 3, 4
	m.kernel.rows[2*1+1].NS[exitCpuid] = 2_500_000_000
	m.kernel.rows[2*2].UserExits[userIo] = 9
	if err := m.refresh(now); err != nil {
		t.Fatal(err)
	}
	got := emitted()
	for name, want := range map[string]float64{
		`teescope_vm_info{container="web",namespace="",pid="70",pod="",sandbox="",tee="tdx",vm="web",vmm="qemu",workload="web"}`: -1,
		`teescope_vm_exits_total{reason="cpuid",vm="web"}`:                                                                       7,
		`teescope_vm_exits_total{reason="private_fault",vm="web"}`:                                                               0,
		`teescope_vm_exit_seconds_total{reason="cpuid",vm="web"}`:                                                                2.5,
		`teescope_vm_userspace_exits_total{reason="io",vm="web:71"}`:                                                             9,
		`teescope_vm_userspace_exits_total{reason="mmio",vm="web:71"}`:                                                           0,
	} {
		if v, ok := got[name]; want >= 0 && (!ok || v != want) {
			t.Errorf("%s = %v (%t), want %v", name, v, ok, want)
		}
	}
	infos := 0
	for name := range got {
		if strings.HasPrefix(name, "teescope_vm_info") {
			infos++
			if strings.Contains(name, `pid="71"`) && (!strings.Contains(name, `tee="none"`) || !strings.Contains(name, `pod="01234567-89ab-cdef-0123-456789abcdef"`)) {
				t.Error(name)
			}
			if strings.Contains(name, `pid="70"`) && (!strings.Contains(name, `tee="tdx"`) || !strings.Contains(name, `vmm="qemu"`)) {
				t.Error(name)
			}
		}
	}
	if _, ok := got[`teescope_vm_exits_total{reason="private_fault",vm="web:71"}`]; ok || infos != 2 {
		t.Errorf("%d machines, and a plain one has a reason of a TEE: %v", infos, slices.Sorted(maps.Keys(got)))
	}

	// Another process gets the ID of the first.
	process(t, proc, 70, 5000, "/", "sh")
	for _, step := range []struct {
		after time.Duration
		shown bool
	}{{time.Second, true}, {lasting, true}, {lasting + 2*time.Second, false}} {
		if err := m.refresh(now.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		if _, ok := emitted()[`teescope_vm_exits_total{reason="cpuid",vm="web"}`]; ok != step.shown {
			t.Errorf("after %v: shown is %t", step.after, ok)
		}
	}
	if !slices.Equal(*freed, []uint32{1}) || m.kernel.sum(1) != (counts{}) || m.kernel.vms[1] != (record{}) {
		t.Errorf("freed %v; %+v", *freed, m.kernel.vms[1])
	}
	if d, ok := m.kernel.numbers.(deleted); !ok || !d[vmKey{Start: uint64(time.Second), TGID: 70}] || len(d) != 1 {
		t.Errorf("deleted %v", m.kernel.numbers)
	}
}

// A process that ended before it was read is named by its ID.
func TestEndedBeforeItWasRead(t *testing.T) {
	m, _, _ := fake(t)
	m.kernel.vms[1] = record{Start: 1, TGID: 99, Ready: 1}
	if err := m.refresh(time.Now()); err != nil {
		t.Fatal(err)
	}
	if v := m.all[1]; v.label != "99" || v.ended.IsZero() {
		t.Errorf("%+v", v)
	}
	for name := range values(t, func(emit func(prometheus.Metric)) { m.emit(newFamilies(), emit) }) {
		if strings.HasPrefix(name, "teescope_vm_exit") { // no exit was seen, so they are not counted here
			t.Error(name)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		r    record
		want string
	}{
		{record{}, ""},
		{record{Isa: 2, Type: vmTypeUnknown}, ""},
		{record{Isa: 2, Type: vmTypeUnknown, Sev: sevActive | sevEsActive}, "sev-es"},
		{record{Isa: 2}, "none"},
		{record{Isa: 1, Type: 1}, "none"}, // KVM_X86_SW_PROTECTED_VM
		{record{Isa: 2, Sev: sevActive}, "sev"},
		{record{Isa: 2, Sev: sevActive | sevEsActive}, "sev-es"},
		{record{Isa: 2, Type: vmSev, Sev: sevActive}, "sev"},
		{record{Isa: 2, Type: vmSevEs, Sev: sevActive | sevEsActive}, "sev-es"},
		{record{Isa: 2, Type: vmSnp, Sev: sevActive | sevEsActive}, "sev-snp"},
		{record{Isa: 1, Type: vmTdx}, "tdx"},
	} {
		if got := tt.r.kindOf(); got != tt.want {
			t.Errorf("%+v is %q, want %q", tt.r, got, tt.want)
		}
	}
}

// The types of KVM in three kernels, as their sources have them.
type known map[string]int

func (k known) Offset(structure string, path ...string) (int, bool) {
	at, ok := k[structure+"."+strings.Join(path, ".")]
	return at, ok
}

func TestOffsets(t *testing.T) {
	const regs = 100
	amd := offsetsOf(known{"kvm_vcpu.kvm": 0, "kvm.arch.vm_type": 9, "vcpu_svm.vmcb": 7, "kvm_svm.sev_info.active": 3, "kvm_svm.sev_info.es_active": 4, "kvm_vcpu.arch.regs": regs})
	if amd.Vmcb != 7 || amd.SevActive != 3 || amd.SevEsActive != 4 || amd.VmType != 9 || amd.VmxReason != -1 || amd.TdxReason != -1 {
		t.Errorf("AMD: %+v", amd)
	}
	newer := offsetsOf(known{
		"kvm_vcpu.kvm": 0, "kvm_vcpu.arch.regs": regs, "vcpu_vmx.vt.exit_reason": 5, "vcpu_tdx.vt.exit_reason": 5,
		"vcpu_tdx.vp_enter_args.r8": 20, "vcpu_tdx.vp_enter_args.r10": 30, "vcpu_tdx.vp_enter_args.r11": 40,
	})
	if newer.VmxReason != 5 || newer.TdxReason != 5 || newer.TdxR8 != 20 || newer.TdxR10 != 30 || newer.TdxR11 != 40 || newer.Vmcb != -1 || newer.VmType != -1 {
		t.Errorf("6.16: %+v", newer)
	}
	older := offsetsOf(known{"kvm_vcpu.kvm": 0, "kvm_vcpu.arch.regs": regs, "vcpu_vmx.exit_reason": 5, "vcpu_tdx.exit_reason": 6})
	if older.VmxReason != 5 || older.TdxReason != 6 || older.TdxR8 != regs+64 || older.TdxR10 != regs+80 || older.TdxR11 != regs+88 {
		t.Errorf("before 6.16: %+v", older)
	}
	if none := offsetsOf(known{}); none.Kvm != -1 {
		t.Errorf("no KVM: %+v", none)
	}
}

func TestKeys(t *testing.T) {
	f := newFamilies()
	for name, files := range map[string]map[string]string{
		"version 2": {"misc.capacity": "sev 410\nsev_es 99\n", "misc.current": "sev 3\nsev_es 2\nother 7\n"},
		"version 1": {"misc/misc.capacity": "tdx 48\n", "misc/misc.current": "tdx 5\n"},
		"empty":     {"misc.capacity": "", "misc.current": ""},
	} {
		root := hostfstest.Tree(t, files)
		got := values(t, func(emit func(prometheus.Metric)) {
			if err := f.emitKeys(root, emit); err != nil {
				t.Error(err)
			}
		})
		want := map[string]map[string]float64{
			"version 2": {
				`teescope_vm_keys{kind="sev"}`: 3, `teescope_vm_keys{kind="sev_es"}`: 2,
				`teescope_vm_keys_limit{kind="sev"}`: 410, `teescope_vm_keys_limit{kind="sev_es"}`: 99,
			},
			"version 1": {`teescope_vm_keys{kind="tdx"}`: 5, `teescope_vm_keys_limit{kind="tdx"}`: 48},
			"empty":     {},
		}[name]
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestWhichMachinesCanVirtualize(t *testing.T) {
	for _, tt := range []struct {
		cpuinfo string
		modules []string
		can, is bool
	}{
		{"processor : 0\nflags\t\t: fpu vme svm npt\nflags : vmx\n", nil, true, false},
		{"flags : fpu vmxoff\n", nil, false, false},
		{"flags : fpu vmx\n", []string{"kvm"}, true, false}, // its part for the processor is not loaded yet
		{"", []string{"kvm", "kvm_amd"}, true, true},
		{"", nil, false, false},
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "cpuinfo"), []byte(tt.cpuinfo), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, name := range tt.modules {
			if err := os.MkdirAll(filepath.Join(root, "module", name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		r := tee.Roots{Proc: root, Sys: root}
		if can, is := canVirtualize(r), hasKVM(r); can != tt.can || is != tt.is {
			t.Errorf("%q with %v: %t, %t, want %t, %t", tt.cpuinfo, tt.modules, can, is, tt.can, tt.is)
		}
	}
}

func TestStatistics(t *testing.T) {
	m, _, root := fake(t)
	process(t, root, 70, 100, "/", "/firecracker --id a")
	process(t, root, 80, 100, "/", "/firecracker --id b")
	for _, dir := range []string{"70/task/70", "70/task/75", "80/task/80"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Isa: 2}
	m.kernel.vms[2] = record{Start: uint64(time.Second), TGID: 80, Ready: 1, Isa: 2}
	if err := m.refresh(time.Now()); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"75-11/pages_4k": "7\n", "75-11/halt_poll_fail_ns": "1500000000\n", "75-12/pages_4k": "5\n", // of one process
		"80-9/pages_2m": "3\n", "80-9/pages_1g": "many\n", "99-1/pages_4k": "1\n", "exits": "5\n", "../x-1/pages_4k": "1\n",
	} {
		hostfstest.Write(t, filepath.Join(root, "sys/kernel/debug/kvm"), file, text)
	}
	sys := hostfs.At(filepath.Join(root, "sys"))
	got := values(t, func(emit func(prometheus.Metric)) { m.emitStatistics(newFamilies(), sys, emit) })
	want := map[string]float64{
		`teescope_vm_pages{size="4k",vm="a"}`: 12, `teescope_vm_halt_poll_seconds_total{result="fail",vm="a"}`: 1.5, `teescope_vm_pages{size="2m",vm="b"}`: 3,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	none := hostfs.At(filepath.Join(root, "none"))
	if got := values(t, func(emit func(prometheus.Metric)) { m.emitStatistics(newFamilies(), none, emit) }); len(got) > 0 {
		t.Errorf("without debugfs: %v", got)
	}
}

// A machine whose first thread has ended continues while another thread lives.
func TestAMachineEndsWithItsLastThread(t *testing.T) {
	m, freed, proc := fake(t)
	now := time.Unix(1e9, 0)
	process(t, proc, 70, 100, "/", "qemu-system-x86_64 -name guest=web")
	m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Isa: 1}
	m.kernel.rows[2].Exits[exitCpuid] = 5
	stat := filepath.Join(proc, "70", "stat")
	text, err := os.ReadFile(stat)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Replace(string(text), ") S ", ") Z ", 1)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(stat, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(first, " 20 0 1 ", " 20 0 2 ", 1)) // the second thread lives
	refresh := func(after time.Duration) {
		t.Helper()
		if err := m.refresh(now.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	refresh(0)
	refresh(time.Hour)
	if len(*freed) != 0 || m.all[1] == nil || !m.all[1].ended.IsZero() {
		t.Fatalf("freed %v", *freed)
	}
	write(first)
	before := m.kernel.spent()
	refresh(time.Hour)
	refresh(time.Hour + 2*lasting)
	if !slices.Equal(*freed, []uint32{1}) {
		t.Errorf("freed %v", *freed)
	}
	if after := m.kernel.spent(); before != 5*costOfExit || after != before {
		t.Errorf("spent %v, and %v after the end", before, after)
	}
}

// No two machines have the same label, also if one is named like another with its process ID.
func TestLabelsOfMachinesDiffer(t *testing.T) {
	m, _, proc := fake(t)
	for i, name := range []string{"web", "web:72", "web"} {
		process(t, proc, 70+i, 100, "/", "qemu-system-x86_64 -name guest="+name)
		m.kernel.vms[1+i] = record{Start: uint64(time.Second), TGID: uint32(70 + i), Ready: 1, Isa: 1}
	}
	if err := m.refresh(time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	labels := map[string]bool{}
	for _, v := range m.all {
		labels[v.label] = true
	}
	if len(labels) != 3 || !labels["web"] || !labels["web:72"] || !labels["web:72:2"] {
		t.Errorf("%v", labels)
	}
}

// The name of a process that got the ID of an ended machine's process is not that of the machine.
func TestANewProcessGivesNoName(t *testing.T) {
	m, _, proc := fake(t)
	process(t, proc, 70, 5000, `/machine.slice/machine-qemu\x2d1\x2dother.scope`, "qemu-system-x86_64 -name guest=other")
	m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Isa: 1}
	if err := m.refresh(time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if v := m.all[1]; v.label != "70" || v.name != "" || v.workload != workload.Identify(nil, "") {
		t.Errorf("%+v", v)
	}
}

// Faults of the RMP are those of SEV-SNP guests, where the kernel shows them.
func TestRMPOfMachines(t *testing.T) {
	m, _, proc := fake(t)
	process(t, proc, 70, 100, "/", "qemu-system-x86_64 -name guest=snp")
	process(t, proc, 71, 100, "/", "qemu-system-x86_64 -name guest=plain")
	m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Type: vmSnp, Isa: 2}
	m.kernel.vms[2] = record{Start: uint64(time.Second), TGID: 71, Ready: 1, Isa: 2}
	m.kernel.rows[2*1].RMP[rmpSplit], m.kernel.rows[2*1+1].RMP[rmpSplit] = 3, 4
	if err := m.refresh(time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	for _, attached := range []bool{false, true} {
		if attached {
			m.kernel.status = []bpf.Status{{Probe: "vm_rmp_fault", Program: "kvm_rmp_fault", Mechanism: bpf.RawTracepoint}}
		}
		got := values(t, func(emit func(prometheus.Metric)) { m.emit(newFamilies(), emit) })
		if v, ok := got[`teescope_vm_rmp_faults_total{result="split",vm="snp"}`]; ok != attached || attached && v != 7 {
			t.Errorf("attached %t: %v, %t", attached, v, ok)
		}
		if _, ok := got[`teescope_vm_rmp_faults_total{result="split",vm="plain"}`]; ok {
			t.Error("a plain virtual machine has faults of the RMP")
		}
	}
}
