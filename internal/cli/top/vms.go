// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The families of virtual machines. A is the name of the machine, B a reason.
const (
	vmInfo      = "teescope_vm_info"
	vmExits     = "teescope_vm_exits_total"
	vmSeconds   = "teescope_vm_exit_seconds_total"
	vmUserExits = "teescope_vm_userspace_exits_total"
)

// halted is the reason of exits in which a guest has nothing to do.
const halted = "hlt"

// VM is the content of one scrape about a virtual machine.
type VM struct {
	TEE, VMM, Workload, PID string
	Values                  map[Series]float64
}

// addVM records a value about a virtual machine. It reports whether the family is about virtual machines.
func (s *Sample) addVM(family string, labels map[string]string, v float64) bool {
	switch family {
	case vmInfo, vmExits, vmSeconds, vmUserExits:
	default:
		return false
	}
	name := labels["vm"]
	vm := s.VMs[name]
	if vm == nil {
		vm = &VM{Values: map[Series]float64{}}
		s.VMs[name] = vm
	}
	if family == vmInfo {
		vm.TEE, vm.VMM, vm.Workload, vm.PID = labels["tee"], labels["vmm"], labels["workload"], labels["pid"]
	} else {
		vm.Values[Series{family, name, labels["reason"]}] = v
	}
	return true
}

// vmRow is a virtual machine between two samples. Values that were not measured are NaN.
type vmRow struct {
	Name, TEE, VMM, Workload, PID string
	Exits, UserExits              float64 // per second
	Outside, Halted               float64 // seconds per second, of all its CPUs; Outside is without Halted
	Reason                        string  // that took the most time outside, apart from hlt; empty if there is none
	Share                         float64 // of the reason in Outside
}

// compareVMs returns a row for each virtual machine, by time outside and then by exits. before may be nil.
func compareVMs(before, after map[string]*VM, over time.Duration) []vmRow {
	var rows []vmRow
	for name, vm := range after {
		r := vmRow{Name: name, TEE: vm.TEE, VMM: vm.VMM, Workload: vm.Workload, PID: vm.PID, Share: unknown(), Halted: unknown(), Outside: unknown()}
		var all map[Series]float64
		if old := before[name]; old != nil && old.PID == vm.PID {
			all = rates(old.Values, vm.Values, over)
		}
		r.Exits, r.UserExits = sum(all, vmExits), sum(all, vmUserExits)
		reasons := family(all, vmSeconds)
		if v, ok := reasons[Series{vmSeconds, name, halted}]; ok {
			r.Halted = v
			delete(reasons, Series{vmSeconds, name, halted})
		}
		r.Outside = sum(reasons, vmSeconds)
		if list := most(reasons); len(list) > 0 && reasons[list[0]] > 0 {
			r.Reason, r.Share = list[0].B, reasons[list[0]]/r.Outside
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b vmRow) int {
		return cmp.Or(cmp.Compare(b.Outside, a.Outside), cmp.Compare(b.Exits, a.Exits), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// vmTotals shows the virtual machines in a line. It is empty if there are none.
func (sc screen) vmTotals() string {
	all := sc.table.VMs
	if len(all) == 0 {
		return ""
	}
	kinds, exits, user, outside := map[string]int{}, unknown(), unknown(), unknown()
	for _, vm := range all {
		if vm.TEE != "" && vm.TEE != "none" {
			kinds[vm.TEE]++
		}
		exits, user, outside = plus(exits, vm.Exits), plus(user, vm.UserExits), plus(outside, vm.Outside)
	}
	parts := []string{fmt.Sprintf("VMs %d", len(all))}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	if known(exits) {
		parts = append(parts, number(exits)+" exits/s")
	}
	if known(user) {
		parts = append(parts, number(user)+" to the VMM/s")
	}
	if known(outside) {
		parts = append(parts, percent(outside)+" % of a CPU outside, without hlt")
	}
	return fitting(sc.width, parts)
}

// vmLines returns the table of virtual machines.
func (sc screen) vmLines() []string {
	const numbers, spare = 4 * 9, 2
	st := newStyles()
	name := max(min(sc.width-9-8-numbers-spare-18, 40), 12)
	line := func(vm, tee, pid, reason string, values ...string) string {
		text := left(vm, name-1) + " " + left(tee, 8) + left(pid, 9)
		for _, v := range values {
			text += right(v, 9)
		}
		return left(text+spaces(spare)+reason, sc.width)
	}
	lines := []string{st.heading.Render(line("VM", "TEE", "PID", "MAIN REASON", "EXIT/s", "VMM/s", "OUT%", "HLT%"))}
	for i := range sc.table.VMs {
		vm := &sc.table.VMs[i]
		reason := vm.Reason
		if reason != "" {
			reason += fmt.Sprintf(" %.0f%%", vm.Share*100)
		}
		lines = append(lines, line(" "+vm.Name, orDash(vm.TEE), vm.PID, reason,
			number(vm.Exits), number(vm.UserExits), percent(vm.Outside), percent(vm.Halted)))
	}
	return lines
}

// orDash returns what is shown for a word that may not be known.
func orDash(word string) string {
	if strings.TrimSpace(word) == "" {
		return absent
	}
	return word
}

// jsonVM is the JSON of a virtual machine. Values that were not measured are omitted.
type jsonVM struct {
	VM        string             `json:"vm"`
	TEE       string             `json:"tee,omitempty"`
	VMM       string             `json:"vmm,omitempty"`
	Workload  string             `json:"workload,omitempty"`
	PID       string             `json:"pid,omitempty"`
	PerSecond map[string]float64 `json:"per_second"`
	Reason    string             `json:"most_time_outside,omitempty"`
}

func jsonVMs(rows []vmRow) []jsonVM {
	var list []jsonVM
	for _, r := range rows {
		list = append(list, jsonVM{
			VM: r.Name, TEE: r.TEE, VMM: r.VMM, Workload: r.Workload, PID: r.PID, Reason: r.Reason,
			PerSecond: measured(map[string]float64{"exits": r.Exits, "userspace_exits": r.UserExits, "outside_seconds": r.Outside, "halted_seconds": r.Halted}),
		})
	}
	return list
}
