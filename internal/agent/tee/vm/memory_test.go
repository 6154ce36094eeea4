// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

func TestPrivateMemory(t *testing.T) {
	const (
		scope = `/machine.slice/machine-qemu\x2d1\x2dtd.scope`
		pod   = "/kubepods/pod01234567-89ab-cdef-0123-456789abcdef"
	)
	m, _, proc := fake(t)
	process(t, proc, 70, 100, scope+"/libvirt/emulator", "qemu-system-x86_64 -name guest=td") // a threaded group
	process(t, proc, 71, 100, pod, "qemu-system-x86_64 -name guest=snp")
	process(t, proc, 72, 100, "/plain", "qemu-system-x86_64 -name guest=plain")
	process(t, proc, 73, 100, "/shared", "qemu-system-x86_64 -name guest=one")
	process(t, proc, 74, 100, "/shared", "qemu-system-x86_64 -name guest=two")
	process(t, proc, 75, 100, "/", "qemu-system-x86_64 -name guest=root")
	process(t, proc, 76, 100, "/../../outside", "qemu-system-x86_64 -name guest=outside")
	process(t, proc, 77, 100, "/pinned", "qemu-system-x86_64 -name guest=sev")
	kinds := map[uint32]uint32{70: vmTdx, 71: vmSnp, 73: vmTdx, 75: vmTdx, 76: vmTdx, 77: vmSev}
	for i, pid := range []uint32{70, 71, 72, 73, 74, 75, 76, 77} {
		m.kernel.vms[i+1] = record{Start: uint64(time.Second), TGID: pid, Ready: 1, Type: kinds[pid], Isa: 1}
	}
	cgroups := t.TempDir()
	for group, text := range map[string]string{
		scope: "anon 9\nfile 4300000000\nunevictable 4294967296\n", scope + "/libvirt/emulator": "", pod: "unevictable 8192\n",
		"/plain": "unevictable 1\n", "/shared": "unevictable 2\n", "/": "unevictable 3\n", "/pinned": "unevictable 4\n",
	} {
		dir := filepath.Join(cgroups, group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "memory.stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.refresh(time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	emitted := func() map[string]float64 {
		return values(t, func(emit func(prometheus.Metric)) {
			if err := m.emitPrivate(newFamilies(), hostfs.At(cgroups), emit); err != nil {
				t.Error(err)
			}
		})
	}
	want := map[string]float64{`teescope_vm_private_memory_bytes{vm="td"}`: 4294967296, `teescope_vm_private_memory_bytes{vm="snp"}`: 8192}
	if got := emitted(); !maps.Equal(got, want) || !m.anyPrivate() {
		t.Errorf("%v, want %v", got, want)
	}
	// One whose process does not answer has no name yet, but memory in the group.
	process(t, proc, 78, 100, pod, "")
	if err := os.Remove(filepath.Join(proc, "78", "cmdline")); err != nil {
		t.Fatal(err)
	}
	m.kernel.vms[9] = record{Start: uint64(time.Second), TGID: 78, Ready: 1, Type: vmSnp, Isa: 1}
	if err := m.refresh(time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if got := emitted(); m.all[9].label != "" || len(got) != 1 {
		t.Errorf("beside one without a name: %v", got)
	}
	m.all[9].ended = time.Unix(1e9, 0)
	// In version 1 the group of the controller for memory counts, which need not be that of another one.
	v1 := filepath.Join(cgroups, "memory", "limits")
	if err := os.MkdirAll(v1, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v1, "memory.stat"), []byte("unevictable 1\ntotal_unevictable 12288\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "71", "cgroup"), []byte("9:memory:/limits\n0::"+pod+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want[`teescope_vm_private_memory_bytes{vm="snp"}`] = 12288
	if got := emitted(); !maps.Equal(got, want) {
		t.Errorf("version 1: %v, want %v", got, want)
	}
}
