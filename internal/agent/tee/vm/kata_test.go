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
