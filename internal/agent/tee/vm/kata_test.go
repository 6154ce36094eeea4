// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/agent/workload/pods"
)

// A confidential container of Kata is a virtual machine in the control group of its pod. Its labels are the sandbox, and the
// name and namespace of the pod, also if the pod starts after the agent: the names are then known a little later.
func TestLabelsOfConfidentialContainers(t *testing.T) {
	const uid = "01234567-89ab-cdef-0123-456789abcdef"
	m, _, proc := fake(t)
	logs := t.TempDir()
	names := pods.New(logs)
	if err := names.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.pods = names.Complete
	if err := os.Mkdir(filepath.Join(logs, "shop_checkout-7d4b9c-x2x9z_"+uid), 0o755); err != nil {
		t.Fatal(err)
	}
	process(t, proc, 70, 100, "/kubepods/burstable/pod"+uid+"/kata_"+kata,
		"/opt/kata/bin/qemu-system-x86_64 -name sandbox-"+kata+",debug-threads=on -object sev-snp-guest,id=sev0")
	m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Type: vmSnp, Isa: 2}
	m.kernel.rows[2*1].Exits[exitPageState] = 5
	f := newFamilies()
	emitted := func() map[string]float64 {
		t.Helper()
		if err := m.refresh(time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		return values(t, func(emit func(prometheus.Metric)) { m.emit(f, emit) })
	}
	for name := range emitted() {
		if strings.Contains(name, uid) {
			t.Errorf("before the names of the pod are known: %s", name)
		}
	}
	if err := names.Init(t.Context()); err != nil { // a look that sees the new pod
		t.Fatal(err)
	}
	short := kata[:shortID]
	got := emitted()
	info := `teescope_vm_info{container="` + short + `",namespace="shop",pid="70",pod="checkout-7d4b9c-x2x9z",sandbox="` + short + `",tee="sev-snp",vm="` + short + `",vmm="qemu",workload="` + short + `"}`
	if got[info] != 1 {
		t.Errorf("%s is not among %v", info, slices.Sorted(maps.Keys(got)))
	}
	if exits := `teescope_vm_exits_total{reason="page_state",vm="` + short + `"}`; got[exits] != 5 {
		t.Errorf("%s = %v, want 5", exits, got[exits])
	}
}

// A virtual machine can end before the names of its pod are known. It keeps what was found while its process ran, also if another
// process gets the ID meanwhile.
func TestLabelsOfAMachineThatEndsBeforeItsPodIsKnown(t *testing.T) {
	const uid = "01234567-89ab-cdef-0123-456789abcdef"
	for name, end := range map[string]func(proc string) error{
		"no process": func(proc string) error { return os.RemoveAll(filepath.Join(proc, "70")) },
		"another process": func(proc string) error {
			process(t, proc, 70, 5000, "/", "qemu-system-x86_64 -name guest=other")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, _, proc := fake(t)
			known := false
			m.pods = func(id *workload.Identity) bool {
				if known && id.Pod == uid {
					id.Pod, id.Namespace = "checkout", "shop"
				}
				return known
			}
			process(t, proc, 70, 100, "/kubepods/burstable/pod"+uid+"/kata_"+kata, "/opt/kata/bin/qemu-system-x86_64 -name sandbox-"+kata)
			m.kernel.vms[1] = record{Start: uint64(time.Second), TGID: 70, Ready: 1, Type: vmSnp, Isa: 2}
			f := newFamilies()
			refresh := func(after time.Duration) map[string]float64 {
				t.Helper()
				if err := m.refresh(time.Unix(1e9, 0).Add(after)); err != nil {
					t.Fatal(err)
				}
				return values(t, func(emit func(prometheus.Metric)) { m.emit(f, emit) })
			}
			refresh(0)
			if err := end(proc); err != nil {
				t.Fatal(err)
			}
			if got := refresh(time.Second); len(got) > 0 {
				t.Errorf("before the names of the pod are known: %v", got)
			}
			known = true
			short := kata[:shortID]
			info := `teescope_vm_info{container="` + short + `",namespace="shop",pid="70",pod="checkout",sandbox="` + short + `",tee="sev-snp",vm="` + short + `",vmm="qemu",workload="` + short + `"}`
			if got := refresh(2 * time.Second); got[info] != 1 {
				t.Errorf("%s is not among %v", info, slices.Sorted(maps.Keys(got)))
			}
		})
	}
}
