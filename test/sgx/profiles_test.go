// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// profileIn reads a profile that teescope has written.
func profileIn(t *testing.T, dir, name string) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(read(t, filepath.Join(dir, name)))
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, read(t, filepath.Join(dir, "profiles.log")))
	}
	return p
}

// stackOf returns the functions of a sample, the innermost first.
func stackOf(s *profile.Sample) (names []string) {
	for _, l := range s.Location {
		name := ""
		if len(l.Line) > 0 {
			name = l.Line[0].Function.Name
		}
		names = append(names, name)
	}
	return names
}

// leads reports whether functions are on a stack in this order, the innermost first.
func leads(stack []string, functions ...string) bool {
	for _, name := range stack {
		if len(functions) > 0 && functions[0] == name {
			functions = functions[1:]
		}
	}
	return len(functions) == 0
}

// profiled requires that the profiles of profiles.sh lead to the code that leaves enclaves.
func profiled(t *testing.T, dir string) {
	t.Run("OCALLs", func(t *testing.T) { profiledOCALLs(t, dir) })
	t.Run("on demand", func(t *testing.T) { profiledOnDemand(t, dir) })
	t.Run("AEXs", func(t *testing.T) { profiledAEXs(t, dir) })
	t.Run("inside", func(t *testing.T) { profiledInside(t, dir) })
}

// Each OCALL leads to the function that makes it, and to the function of the program that made the ECALL around it. The stub of the ECALL ends with a jump, so it is on no stack.
func profiledOCALLs(t *testing.T, dir string) {
	const want = 50 * 3 * 2
	p := profileIn(t, dir, "ocalls.pb.gz")
	n, all := int64(0), int64(0)
	for _, s := range p.Sample {
		stack := stackOf(s)
		all += s.Value[1]
		if stack[0] == "pingpong_ocall_pong" && leads(stack, "sgx_ecall", "call", "work") {
			n += s.Value[1]
		} else {
			t.Logf("%d: %q", s.Value[1], stack)
		}
	}
	t.Logf("%d of %d OCALLs lead to their function, the program says %s", n, all, read(t, filepath.Join(dir, "calling.json")))
	if n != want || all != want {
		t.Errorf("%d of %d OCALLs lead to their function, want %d", n, all, want)
	}
}

// Each sampled OCALL and ECALL leads to the function of the program, also in a profile of an agent, in which a sample stands for 64 of them.
func profiledOnDemand(t *testing.T, dir string) {
	for event, want := range map[string][]string{"ocalls": {"pingpong_ocall_pong", "sgx_ecall", "call", "work"}, "ecalls": {"sgx_ecall", "call", "work"}} {
		p := profileIn(t, dir, "demanded."+event+".pb.gz")
		n := int64(0)
		for _, s := range p.Sample {
			stack := stackOf(s)
			if stack[0] == want[0] && leads(stack, want...) && slices.Equal(s.Label["process"], []string{"demanded"}) && s.Value[1] == 64*s.Value[0] {
				n += s.Value[0]
			} else {
				t.Errorf("%s: %d, %d of %v: %q", event, s.Value[0], s.Value[1], s.Label, stack)
			}
		}
		t.Logf("%d samples of %s: %v", n, event, p.Comments)
		if n < 20 || p.SampleType[1].Type != event {
			t.Errorf("%d samples of %v lead to the function: %s", n, p.SampleType[1], read(t, filepath.Join(dir, "demanded.log")))
		}
	}
}

// Each page fault in the enclave leads to the ECALL that was entered. An interrupt is also counted if it follows another one, which is
// rare. Interrupts while the kernel handles a page fault of the enclave are not AEXs: there can be more than half as many as page faults.
func profiledAEXs(t *testing.T, dir string) {
	p := profileIn(t, dir, "aex.pb.gz")
	by, led := map[string]float64{}, map[string]float64{}
	for _, s := range p.Sample {
		stack := stackOf(s)
		by[stack[0]] += float64(s.Value[1])
		if len(stack) > 1 && stack[1] == "[in enclave]" && leads(stack, "__vdso_sgx_enter_enclave", "sgx_ecall", "main") {
			led[stack[0]] += float64(s.Value[1])
		}
	}
	before, after := statistics(t, filepath.Join(dir, "stats.exits.before")), statistics(t, filepath.Join(dir, "stats.exits.after"))
	of := map[string]float64{}
	for stat := range after {
		if name, is := strings.CutPrefix(stat, "aex_"); is {
			of[strings.ReplaceAll(name, "_", " ")] = after[stat] - before[stat]
		}
	}
	t.Logf("AEXs by cause %v, that lead to the ECALL %v, the machine %v", by, led, of)
	if of["page fault"] < 500 || by["page fault"] != of["page fault"] || led["page fault"] != of["page fault"] {
		t.Errorf("%v page faults in the enclave, %v lead to the ECALL, the machine has counted %v", by["page fault"], led["page fault"], of["page fault"])
	}
	all := after["aex"] - before["aex"]
	for cause, n := range map[string][2]float64{"timer": {by["timer"], of["timer"]}, "other": {by["other"] + by["reschedule"], all - of["page fault"] - of["timer"] - of["device"]}} {
		if n[0] < n[1]-all/50 || n[0] > n[1]+all/10 {
			t.Errorf("%v AEXs by %s, the machine has counted %v of %v", n[0], cause, n[1], all)
		}
	}
}

// A sample in the enclave has the AEP, the TCS and the enclave.
func profiledInside(t *testing.T, dir string) {
	p := profileIn(t, dir, "inside.pb.gz")
	maps := strings.Fields(string(bytes.SplitN(read(t, filepath.Join(dir, "inside.maps")), []byte("-"), 2)[0]))
	if len(maps) != 1 {
		t.Fatalf("the program has no enclave: %q", maps)
	}
	base, inside, spinning := "0x"+strings.TrimLeft(maps[0], "0"), int64(0), int64(0)
	start, err := strconv.ParseUint(base, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		stack := stackOf(s)
		if s.Label["enclave"] == nil {
			if slices.Contains(stack, "[in enclave]") {
				t.Errorf("%q has no label", stack)
			}
			continue
		}
		inside += s.Value[0]
		tcs, err := strconv.ParseUint(strings.Join(s.Label["tcs"], " "), 0, 64)
		if err != nil || tcs%4096 != 0 || tcs < start || !slices.Equal(s.Label["enclave_base"], []string{base}) {
			t.Errorf("a sample of %v, the enclave is at %s: %v", s.Label, base, err)
		}
		if stack[0] != "[in enclave]" || stack[1] != "__vdso_sgx_enter_enclave" || s.Location[1].Address == 0 {
			t.Errorf("a sample in the enclave is %q", stack)
		}
		if leads(stack, "sgx_ecall", "main") {
			spinning += s.Value[0]
		}
	}
	t.Logf("%d samples in the enclave at %s, %d of them lead to the ECALL", inside, base, spinning)
	if inside < 20 || spinning < inside*9/10 {
		t.Errorf("%d samples are in the enclave, %d of them lead to the ECALL", inside, spinning)
	}
}
