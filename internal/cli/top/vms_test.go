// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
)

// The samples are two seconds apart. web made 200 + 2,000 + 600 exits in them, of which the VMM handled 60. It was 0.6 s
// outside for mmio, 0.2 s for msr and 1 s for hlt. Nothing is known of a machine that is new, and of one whose name belongs
// to another process now.
func TestVMs(t *testing.T) {
	got := live(t, "vms-").table.VMs
	want := []vmRow{
		{Name: "web", TEE: "sev-snp", VMM: "qemu", Workload: "qemu", PID: "4711", Exits: 1400, UserExits: 30, Outside: 0.4, Halted: 0.5, Reason: "mmio", Share: 0.75},
		{Name: "build", TEE: "none", VMM: "cloud-hypervisor", Workload: "qemu", PID: "4712", Exits: 5, UserExits: unknown(), Outside: unknown(), Halted: 0.95, Share: unknown()},
		{Name: "again", TEE: "tdx", VMM: "qemu", Workload: "qemu", PID: "4800", Exits: unknown(), UserExits: unknown(), Outside: unknown(), Halted: unknown(), Share: unknown()},
		{Name: "new", VMM: "other", Workload: "qemu", PID: "4714", Exits: unknown(), UserExits: unknown(), Outside: unknown(), Halted: unknown(), Share: unknown()},
	}
	if len(got) != len(want) {
		t.Fatalf("%d machines, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		same := func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-9 }
		if g.Name != w.Name || g.TEE != w.TEE || g.VMM != w.VMM || g.Workload != w.Workload || g.PID != w.PID || g.Reason != w.Reason ||
			!same(g.Exits, w.Exits) || !same(g.UserExits, w.UserExits) || !same(g.Outside, w.Outside) || !same(g.Halted, w.Halted) || !same(g.Share, w.Share) {
			t.Errorf("machine %d is\n%+v, want\n%+v", i, g, w)
		}
	}
}

// What is not known of a machine is absent in JSON.
func TestVMsAsJSON(t *testing.T) {
	var b bytes.Buffer
	if err := writeJSON(&b, "here", live(t, "vms-").table); err != nil {
		t.Fatal(err)
	}
	var out struct {
		VMs []struct {
			VM        string             `json:"vm"`
			PerSecond map[string]float64 `json:"per_second"`
		} `json:"virtual_machines"`
	}
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.VMs) != 4 || out.VMs[0].PerSecond["exits"] != 1400 || len(out.VMs[1].PerSecond) != 2 || len(out.VMs[3].PerSecond) != 0 {
		t.Errorf("the machines are %+v", out.VMs)
	}
}
