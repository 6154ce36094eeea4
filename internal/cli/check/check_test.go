// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/goldentest"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

var update = flag.Bool("update", false, "write the golden files again")

// at is the machine below a directory, with all privileges and four probes.
func at(root string) Options {
	return Options{
		Roots:  tee.Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")},
		Cgroup: filepath.Join(root, "cgroup"), Binary: "bin/teescope",
		Held:     func(string) bool { return true },
		Try:      func() ([]probe.Trial, error) { return tried(), nil },
		Landlock: func() (int, error) { return 7, nil },
		Control:  func() (bool, time.Duration, error) { return false, time.Hour, nil },
	}
}

func way(m bpf.Mechanism, target string, err error) bpf.Trial {
	return bpf.Trial{Way: bpf.Way{Program: target, Mechanism: m, Target: target}, Err: err}
}

// tried holds results for four probes: one works, one works by its second way, one has a note, one does not work.
func tried() []probe.Trial {
	absent := errors.New("no such \x1b[31mfunction")
	return []probe.Trial{
		{
			Status: bpf.Status{Probe: "fork", Mechanism: bpf.TypedTracepoint}, Required: true,
			Ways: []bpf.Trial{way(bpf.TypedTracepoint, "sched_process_fork", nil), way(bpf.Kprobe, "sched_process_fork", nil)},
		},
		{
			Status: bpf.Status{Probe: "dirty", Mechanism: bpf.Kprobe},
			Ways:   []bpf.Trial{way(bpf.TypedTracepoint, "dirty", absent), way(bpf.Kprobe, "dirty", nil)},
		},
		{
			Status: bpf.Status{Probe: "access", Mechanism: bpf.Kprobe, Reason: "counts something else"},
			Ways:   []bpf.Trial{way(bpf.Fentry, "accessed", absent), way(bpf.Kprobe, "get_pages", nil)},
		},
		{
			Status: bpf.Status{Probe: "llc_misses", Mechanism: bpf.NotAttached, Reason: "no PMU on this machine"},
			Ways:   []bpf.Trial{way(bpf.PerfEvent, "hardware counter", errors.New("no PMU on this machine"))},
		},
	}
}

func find(t *testing.T, r *Report, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %s", name)
	return Check{}
}

const (
	intel = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: A CPU\nflags\t\t: fpu sgx sgx_lc\n\nprocessor\t: 1\nvendor_id\t: other\n"
	amd   = "vendor_id\t: AuthenticAMD\nflags\t\t: fpu sev sev_es sev_snp\n"
)

func TestHardwareAndDrivers(t *testing.T) {
	for name, tt := range map[string]struct {
		files          map[string]string
		check          string
		status         Status
		detail, advice string
	}{
		"a kernel without preemption": {map[string]string{"proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC", "proc/sys/kernel/osrelease": "6.12.1"}, "preemption", OK, "every event", ""},
		"a kernel with preemption":    {map[string]string{"proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC", "proc/sys/kernel/osrelease": "7.2.1"}, "preemption", Limited, "events of tp_btf can be missed", "preempt=voluntary"},
		"no SGX":                      {map[string]string{"proc/cpuinfo": "vendor_id : GenuineIntel\nflags : fpu\n"}, "sgx", Missing, "no SGX, or it is switched off", "firmware"},
		"SGX of AMD":                  {map[string]string{"proc/cpuinfo": amd}, "sgx", Missing, "only Intel", ""},
		"SGX, no driver":              {map[string]string{"proc/cpuinfo": intel}, "sgx", Missing, "no driver has created a device", "CONFIG_X86_SGX"},
		"SGX, no FLC":                 {map[string]string{"proc/cpuinfo": "vendor_id : GenuineIntel\nflags : sgx\n"}, "sgx", Missing, "no flexible launch control", "legacy isgx"},
		"SGX in tree": {map[string]string{"proc/cpuinfo": intel, "dev/sgx_enclave": "", "sys/devices/system/node/node0/x86/sgx_total_bytes": "134217728\n"},
			"sgx", Limited, "128 MiB of EPC (NUMA nodes: 1); the driver itself reports only the size; 0 of 0 probes watch it", "patch"},
		"SGX, patched": {map[string]string{"dev/isgx": "", "sys/module/isgx/parameters/sgx_nr_free_pages": "1"}, "sgx", OK, "figures from the module parameters of isgx", ""},
		"SGX, sgxtop":  {map[string]string{"dev/isgx": "", "proc/sgx_stats": "1"}, "sgx", OK, "figures from /proc/sgx_stats", ""},

		"no TDX":          {nil, "tdx", Missing, "neither", ""},
		"TDX host":        {map[string]string{"sys/module/kvm_intel/parameters/tdx": "Y\n"}, "tdx", OK, "can run trust domains", ""},
		"TDX host, off":   {map[string]string{"proc/cpuinfo": "flags : tdx_host_platform\n"}, "tdx", Missing, "KVM does not", "tdx=1"},
		"TDX guest":       {map[string]string{"dev/tdx_guest": "", "proc/cpuinfo": "flags : tdx_guest\n"}, "tdx", OK, "is a trust domain", ""},
		"TDX guest, bare": {map[string]string{"proc/cpuinfo": "flags : tdx_guest\n"}, "tdx", Limited, "/dev/tdx_guest is missing", "tdx_guest"},

		"no SEV":    {nil, "sev-snp", Missing, "neither", ""},
		"SEV-SNP":   {map[string]string{"sys/module/kvm_amd/parameters/sev": "Y", "sys/module/kvm_amd/parameters/sev_snp": "Y"}, "sev-snp", OK, "SEV-SNP guests", ""},
		"SEV-ES":    {map[string]string{"sys/module/kvm_amd/parameters/sev": "Y", "sys/module/kvm_amd/parameters/sev_es": "Y", "sys/module/kvm_amd/parameters/sev_snp": "N"}, "sev-snp", Limited, "SEV-ES guests, without SNP", "firmware"},
		"SEV":       {map[string]string{"sys/module/kvm_amd/parameters/sev": "1"}, "sev-snp", Limited, "SEV guests, without SNP", "firmware"},
		"SEV, off":  {map[string]string{"proc/cpuinfo": amd}, "sev-snp", Missing, "KVM does not use it", "sev_snp=1"},
		"SEV guest": {map[string]string{"dev/sev-guest": ""}, "sev-snp", OK, "is an SEV-SNP guest", ""},

		"Nitro":          {map[string]string{"dev/nitro_enclaves": "", "sys/module/nitro_enclaves/parameters/ne_cpus": "1,3\n"}, "nitro", OK, "set aside for them: 1,3", ""},
		"Nitro, no CPUs": {map[string]string{"dev/nitro_enclaves": ""}, "nitro", Limited, "can run", "allocator"},

		"no GPU":          {nil, "gpu", Missing, "no NVIDIA GPU", ""},
		"GPU, no device":  {map[string]string{"sys/module/nvidia/version": "570.1"}, "gpu", Missing, "created no device", "nvidia-smi"},
		"GPU":             {map[string]string{"sys/module/nvidia/version": "570.1\n", "dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""}, "gpu", Unknown, "NVIDIA GPUs: 2, driver 570.1; whether confidential computing is on could not be read", "conf-compute"},
		"GPU, no version": {map[string]string{"dev/nvidia0": ""}, "gpu", Unknown, "of unknown version", "conf-compute"},

		"old kernel":     {map[string]string{"proc/sys/kernel/osrelease": "5.10.0-33-amd64\n"}, "version", Limited, "older than 5.15", "newer kernel"},
		"new kernel":     {map[string]string{"proc/sys/kernel/osrelease": "6.1.0-52-amd64\n"}, "version", OK, "6.1.0-52-amd64", ""},
		"no version":     {map[string]string{"proc/sys/kernel/osrelease": "Linux\n"}, "version", Unknown, `"Linux"`, ""},
		"no BTF":         {nil, "btf", Missing, "no program can be adapted", "CONFIG_DEBUG_INFO_BTF"},
		"BTF":            {map[string]string{"sys/kernel/btf/vmlinux": ""}, "btf", OK, "describes", ""},
		"PMU refused":    {map[string]string{"sys/bus/event_source/devices/cpu_core/type": ""}, "pmu", Missing, "no PMU", "absent"},
		"JIT":            {map[string]string{"proc/sys/net/core/bpf_jit_enable": "1\n"}, "bpf_jit", OK, "compiled", ""},
		"no JIT":         {map[string]string{"proc/sys/net/core/bpf_jit_enable": "0\n"}, "bpf_jit", Limited, "interpreted", "sysctl"},
		"JIT unknown":    {nil, "bpf_jit", Unknown, "cannot be read", ""},
		"cgroup 2":       {map[string]string{"cgroup/cgroup.controllers": ""}, "cgroup", OK, "version 2", ""},
		"cgroup 1":       {map[string]string{"cgroup/memory/cgroup.procs": ""}, "cgroup", OK, "version 1", ""},
		"cgroup 1 and 2": {map[string]string{"cgroup/memory/cgroup.procs": "", "cgroup/unified/cgroup.controllers": ""}, "cgroup", OK, "version 1 and version 2", ""},
		"no cgroup":      {nil, "cgroup", Limited, "no cgroup", "mount"},
		"paranoid":       {map[string]string{"proc/sys/kernel/perf_event_paranoid": "4\n"}, "perf_event_paranoid", OK, "is 4", ""},
		"unprivileged":   {map[string]string{"proc/sys/kernel/unprivileged_bpf_disabled": "2\n"}, "unprivileged_bpf", OK, "is 2", ""},
		"no lockdown":    {nil, "lockdown", OK, "off", ""},
		"integrity":      {map[string]string{"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}, "lockdown", OK, "integrity", ""},
		"Landlock":       {nil, "landlock", OK, "version 7", ""},
		"seccomp":        {map[string]string{"proc/sys/kernel/seccomp/actions_avail": "kill_process trap errno log allow\n"}, "seccomp", OK, "refused", ""},
		"no seccomp":     {nil, "seccomp", Missing, "less confined", "CONFIG_SECCOMP_FILTER"},
		"confidential":   {map[string]string{"sys/kernel/security/lockdown": "none integrity [confidentiality]\n"}, "lockdown", Missing, "may not read", "lockdown=integrity"},
	} {
		c := find(t, Run(at(hostfstest.Tree(t, tt.files))), tt.check)
		if c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) || !strings.Contains(c.Advice, tt.advice) || tt.advice == "" && c.Advice != "" {
			t.Errorf("%s: %+v, want %s, %q and the advice %q", name, c, tt.status, tt.detail, tt.advice)
		}
	}
}

// Only what prevents the agent from running decides the result.
func TestCanRun(t *testing.T) {
	btf := map[string]string{"sys/kernel/btf/vmlinux": ""}
	without := func(names ...string) func(string) bool {
		return func(name string) bool { return !slices.Contains(names, name) }
	}
	for name, tt := range map[string]struct {
		files  map[string]string
		change func(*Options)
		want   string // part of the error; empty when it can run
	}{
		"all well": {btf, func(*Options) {}, ""},
		"no BTF":   {nil, func(*Options) {}, "kernel btf"},
		"lockdown": {map[string]string{
			"sys/kernel/btf/vmlinux": "", "sys/kernel/security/lockdown": "none integrity [confidentiality]\n",
		}, func(*Options) {}, "kernel lockdown"},
		"no privileges": {btf, func(o *Options) {
			o.Held = func(string) bool { return false }
			o.Try = func() ([]probe.Trial, error) { panic("tried without privileges") }
		}, "privilege CAP_BPF, privilege CAP_PERFMON, probe all"},
		"not root":   {btf, func(o *Options) { o.Held = without("CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH") }, ""},
		"old root":   {btf, func(o *Options) { o.Held = without("CAP_BPF", "CAP_PERFMON") }, ""},
		"no PERFMON": {btf, func(o *Options) { o.Held = without("CAP_SYS_ADMIN", "CAP_PERFMON") }, "privilege CAP_PERFMON, probe all"},
		"maps refused": {btf, func(o *Options) {
			o.Try = func() ([]probe.Trial, error) { return nil, errors.New("creating maps: no") }
		}, "probe all"},
		"a required probe": {btf, func(o *Options) {
			o.Try = func() ([]probe.Trial, error) {
				all := tried()
				all[0].Status = bpf.Status{Probe: "fork", Mechanism: bpf.NotAttached, Reason: "refused"}
				return all, nil
			}
		}, "probe fork"},
		"another probe": {btf, func(o *Options) { o.Try = func() ([]probe.Trial, error) { return tried()[:1], nil } }, ""},
	} {
		o := at(hostfstest.Tree(t, tt.files))
		tt.change(&o)
		r := Run(o)
		err := r.Err()
		switch {
		case tt.want == "" && (err != nil || !r.CanRun):
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (r.CanRun || err == nil || !strings.HasSuffix(err.Error(), "because of: "+tt.want)):
			t.Errorf("%s: can run %v, error %v, want %q", name, r.CanRun, err, tt.want)
		}
		for _, c := range r.Checks {
			if c.Required && c.Status != OK && c.Advice == "" {
				t.Errorf("%s: %s is %s and has no advice", name, c.Name, c.Status)
			}
		}
	}
}

func TestNoLandlock(t *testing.T) {
	o := at(hostfstest.Tree(t, nil))
	o.Landlock = func() (int, error) { return 0, errors.New("Landlock is off") }
	if c := find(t, Run(o), "landlock"); c.Status != Missing || c.Required || !strings.HasPrefix(c.Detail, "Landlock is off") {
		t.Errorf("%+v", c)
	}
}

// Both forms of a report. To update them: go test ./internal/cli/check -update
func TestGoldenReports(t *testing.T) {
	r := Run(at(hostfstest.Tree(t, map[string]string{
		"proc/cpuinfo": intel, "proc/sys/kernel/osrelease": "6.1.0-52-amd64\n", "dev/sgx_enclave": "",
		"sys/devices/system/node/node0/x86/sgx_total_bytes": "134217728\n", "sys/kernel/btf/vmlinux": "",
		"proc/sys/net/core/bpf_jit_enable": "1\n", "cgroup/cgroup.controllers": "",
		"proc/sys/kernel/perf_event_paranoid": "3\n", "proc/sys/kernel/unprivileged_bpf_disabled": "1\n",
		"proc/sys/kernel/seccomp/actions_avail": "errno allow\n",
	})))
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report.txt":  func(b *bytes.Buffer) error { return r.Table(b) },
		"report.json": func(b *bytes.Buffer) error { return r.JSON(b) },
	} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		goldentest.Check(t, filepath.Join("testdata", name), got.String(), *update)
		if bytes.ContainsRune(got.Bytes(), 0x1b) {
			t.Errorf("%s can steer a terminal", name)
		}
	}
}

// The report about this machine agrees with the process' privileges and with the collector.
func TestThisMachine(t *testing.T) {
	privileged := privilege.Check("teescope") == nil
	if privileged {
		privilegetest.Alone(t)
	}
	r := Run(Machine("teescope", ""))
	if r.CanRun != privileged {
		t.Errorf("can run: %v, privileged: %v: %v", r.CanRun, privileged, r.Err())
	}
	if r.Kernel == "" || find(t, r, "version").Status == Unknown {
		t.Errorf("the kernel is unknown: %+v", r)
	}
	if privileged && find(t, r, "context_switch").Mechanism == "" {
		t.Errorf("context switches: %+v", find(t, r, "context_switch"))
	}
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(out.Bytes(), &again); err != nil || len(again.Checks) != len(r.Checks) {
		t.Errorf("the JSON is not the report: %v", err)
	}
}

func TestTheInTreeDriverIsWatchedByItsProbes(t *testing.T) {
	seen := probe.Trial{Status: bpf.Status{Probe: "sgx_fault", Mechanism: bpf.Fentry}}
	lost := probe.Trial{Status: bpf.Status{Probe: "sgx_ewb", Mechanism: bpf.NotAttached, Reason: "no such function"}}
	for _, tt := range []struct {
		more   []probe.Trial
		status Status
		detail string
	}{
		{[]probe.Trial{seen}, OK, "watched by eBPF"},
		{[]probe.Trial{seen, lost}, Limited, "1 of 2 probes watch it"},
	} {
		o := at(hostfstest.Tree(t, map[string]string{"proc/cpuinfo": "flags : sgx sgx_lc\n", "dev/sgx_enclave": ""}))
		o.Try = func() ([]probe.Trial, error) { return append(tried(), tt.more...), nil }
		c := find(t, Run(o), "sgx")
		if c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) {
			t.Errorf("%d probes: %+v, want %s and %q", len(tt.more), c, tt.status, tt.detail)
		}
	}
}

// A machine that copies for its devices says how much of its bounce buffers was used; a realm of Arm is recognised.
func TestConfidentialMachine(t *testing.T) {
	pool := func(most string) map[string]string {
		return map[string]string{
			"proc/cmdline": "quiet swiotlb=512,force\n", "sys/kernel/debug/swiotlb/io_tlb_nslabs": "512\n",
			"sys/kernel/debug/swiotlb/io_tlb_used_hiwater": most + "\n",
		}
	}
	if c := find(t, Run(at(hostfstest.Tree(t, pool("100")))), "bounce-pool"); c.Status != OK || !strings.Contains(c.Detail, "1024 KiB of bounce buffers, of which at most 200 were") || c.Advice != "" {
		t.Errorf("%+v", c)
	}
	if c := find(t, Run(at(hostfstest.Tree(t, pool("411")))), "bounce-pool"); c.Status != Limited || !strings.Contains(c.Advice, "larger swiotlb") {
		t.Errorf("%+v", c)
	}
	realm := Run(at(hostfstest.Tree(t, map[string]string{"sys/devices/platform/arm-cca-dev/uevent": ""})))
	if c := find(t, realm, "cca"); c.Status != Limited || !strings.Contains(c.Detail, "realm") {
		t.Errorf("%+v", c)
	}
	if c := find(t, realm, "bounce-pool"); c.Status != Unknown || !strings.Contains(c.Advice, "debugfs") {
		t.Errorf("%+v", c)
	}
	for _, c := range Run(at(hostfstest.Tree(t, nil))).Checks {
		if c.Name == "bounce-pool" || c.Name == "cca" {
			t.Errorf("an ordinary machine has %+v", c)
		}
	}
}

// In a container that may not read the machine's files, the report explains what is missing.
func TestHiddenFiles(t *testing.T) {
	o := at(t.TempDir())
	o.Hidden = errors.New("permission denied")
	c := find(t, Run(o), "files")
	if c.Status != Limited || c.Required || !strings.Contains(c.Detail, "permission denied") || !strings.Contains(c.Advice, "CAP_SYS_PTRACE") {
		t.Errorf("%+v", c)
	}
}
