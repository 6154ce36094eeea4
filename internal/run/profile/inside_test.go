// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// hosted is a profile as the host sees it: a process spends in an enclave what is said, and 100 ns outside.
func hosted(t *testing.T, samples int, inEnclave map[string]int64) *Profile {
	t.Helper()
	b := NewBuilder("pprof", []ValueType{{"samples", "count"}, {"cpu", "nanoseconds"}}, DefaultLimits())
	frame := func(function, library string) uint32 {
		f, err := b.Frame(Frame{Function: function, Library: library})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for pid, ns := range inEnclave {
		for i := range samples {
			labels := []Label{{PID, pid}, {Thread, fmt.Sprint(i)}}
			if err := b.Add([]uint32{frame("[in enclave]", EnclaveLibrary), frame("enter", "loader"), frame("main", "loader")}, labels, 1, ns); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Add([]uint32{frame("main", "loader")}, []Label{{PID, pid}}, 1, 100); err != nil {
			t.Fatal(err)
		}
	}
	return b.Profile()
}

// enclave is an enclave's own profile of a process: serve 3 of 4 samples, half of which in copy.
func enclave(t *testing.T, pid string) *Profile {
	t.Helper()
	b := NewBuilder("sgx-perf.data", []ValueType{counts}, DefaultLimits())
	for _, one := range []struct {
		stack string
		n     int64
	}{{"copy;serve", 3}, {"serve", 3}, {"idle", 2}} {
		var stack []uint32
		for name := range strings.SplitSeq(one.stack, ";") {
			f, err := b.Frame(Frame{Function: name, Library: "app"})
			if err != nil {
				t.Fatal(err)
			}
			stack = append(stack, f)
		}
		if err := b.Add(stack, []Label{{PID, pid}}, one.n); err != nil {
			t.Fatal(err)
		}
	}
	return b.Profile()
}

// The time in the enclave is divided by 3/8, 3/8 and 1/4, and what calls the enclave stays below. Each of 80 threads has one sample,
// which cannot be divided: together they have the shares too.
func TestJoinEnclave(t *testing.T) {
	for pids, want := range map[string]map[string][2]int64{
		"7":   {"copy;serve;enter;main": {30, 30000}, "serve;enter;main": {30, 30000}, "idle;enter;main": {20, 20000}, "main": {1, 100}},
		"8":   {"copy;serve;enter;main": {30, 30000}, "serve;enter;main": {30, 30000}, "idle;enter;main": {20, 20000}, "main": {1, 100}}, // another namespace
		"7 8": {"copy;serve;enter;main": {30, 30000}, "serve;enter;main": {30, 30000}, "idle;enter;main": {20, 20000}, "main": {2, 200}, "[in enclave];enter;main": {80, 80000}},
	} {
		times := map[string]int64{}
		for pid := range strings.FieldsSeq(pids) {
			times[pid] = 1000
		}
		p, err := JoinEnclave(hosted(t, 80, times), enclave(t, "7"), DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][2]int64{}
		for i := range p.Samples {
			s := &p.Samples[i]
			var names []string
			for _, f := range s.Stack {
				names = append(names, p.Frames[f].Function)
			}
			key := strings.Join(names, ";")
			got[key] = [2]int64{got[key][0] + s.Values[0], got[key][1] + s.Values[1]}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || p.Values[p.Main].Type != "cpu" {
			t.Errorf("%s: %v, want %v", pids, got, want)
		}
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "cpu in the enclave, divided by the shares of 8 samples of its own profile (sgx-perf.data)") {
			t.Errorf("%q", notes)
		}
	}
	if _, err := JoinEnclave(hosted(t, 80, nil), enclave(t, "7"), DefaultLimits()); !errors.Is(err, errNoEnclave) {
		t.Error(err)
	}
	limits := DefaultLimits()
	limits.Stacks = 50
	if _, err := JoinEnclave(hosted(t, 80, map[string]int64{"7": 1000}), enclave(t, "7"), limits); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}
