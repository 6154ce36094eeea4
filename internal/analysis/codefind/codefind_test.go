// SPDX-License-Identifier: Apache-2.0

package codefind

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// recorded adds the profiles in testdata, in an order that differs from that of their events.
func recorded(t *testing.T, asked ...codelink.Key) map[codelink.Key]*codelink.Functions {
	t.Helper()
	f := New(asked, profile.DefaultLimits())
	for _, name := range []string{"syscalls", "off-cpu", "ocalls", "ecalls", "cpu"} {
		p, err := read.Open(filepath.Join("testdata", name+".pb.gz"), read.Options{Offsets: true})
		if err != nil {
			t.Fatal(err)
		}
		f.Add(p)
	}
	return f.Functions()
}

// TestFunctionsOfRecordedCalls: testdata/README.md has the sources of what is expected.
func TestFunctionsOfRecordedCalls(t *testing.T) {
	const even, odd = "codeapp+0x18e9", "codeapp+0x1903"
	key := func(e codelink.Event, workload string) codelink.Key {
		return codelink.Key{Event: e, Workload: workload}
	}
	locks := codelink.Key{Event: codelink.Waits, Workload: "codelocks", Reason: codelink.ForLock}
	ocalls, ecalls, calls := key(codelink.OCALLs, "codeapp"), key(codelink.ECALLs, "codeapp"), key(codelink.Calls, "codelocks")
	found := recorded(t, ocalls, ecalls, calls, locks, key(codelink.AEXs, "codeapp"), key(codelink.CPU, "codeapp"), key(codelink.OCALLs, "codelocks"),
		codelink.Key{Event: codelink.Waits, Workload: "codelocks", Reason: codelink.ForEPC})
	for _, tt := range []struct {
		key   codelink.Key
		names []string
		sites []string // each function is from one of them
		from  []string // functions of the sites; none for the same function
	}{
		{ocalls, []string{"app_ocall_print", "app_ocall_read", "app_ocall_wait"}, []string{even, odd}, []string{"app_ecall_even", "app_ecall_odd"}},
		{ecalls, []string{"app_ecall_even", "app_ecall_odd"}, []string{even, odd}, nil},
		{calls, []string{"worker"}, nil, nil},
		{locks, []string{"worker"}, []string{"codelocks+0x11a8"}, nil},
	} {
		got := found[tt.key]
		if got == nil {
			t.Errorf("%v: nothing is found", tt.key)
			continue
		}
		var names []string
		for _, f := range got.Top {
			if f.Name == "syscall" && f.Share < 0.03 {
				continue // of stacks without worker
			}
			names = append(names, f.Name)
			if want := 1 / float64(len(tt.names)); math.Abs(f.Share-want) > 0.1 {
				t.Errorf("%v: %s has %.2f (%.2f to %.2f), want %.2f", tt.key, f.Name, f.Share, f.Low, f.High, want)
			}
			switch {
			case f.From == nil || f.From.Share < 0.45:
				t.Errorf("%v: %s is from %+v", tt.key, f.Name, f.From)
			case tt.sites != nil && !slices.Contains(tt.sites, f.From.Site) || tt.from != nil && !slices.Contains(tt.from, f.From.Function) || tt.from == nil && f.From.Function != "":
				t.Errorf("%v: %s is from %+v, want one of %v", tt.key, f.Name, *f.From, tt.sites)
			}
		}
		if slices.Sort(names); !slices.Equal(names, tt.names) || got.Event != tt.key.Event || got.Samples < Least || got.Unnamed > 0 {
			t.Errorf("%v: %v of %+v, want %v", tt.key, names, got, tt.names)
		}
	}
	if len(found) != 4 { // no AEX, no OCALL of the other program, no wait for the EPC, and 11 samples of CPU time
		t.Errorf("%v", found)
	}
}

// frames makes a stack of functions, each with its library and line: "write@/lib/libc.so.6:0".
func frames(list ...string) (stack []profile.Frame) {
	for _, one := range list {
		function, library, _ := strings.Cut(one, "@")
		stack = append(stack, profile.Frame{Function: function, Library: library, Kernel: profile.KernelLibrary(library), File: function + ".c", Line: 7})
	}
	return stack
}

// TestWhichFunctionASampleIsOf: functions that pass a call on are not the program's, but are better than nothing.
func TestWhichFunctionASampleIsOf(t *testing.T) {
	for name, tt := range map[string]struct {
		asked, event codelink.Event
		stack        []profile.Frame
		want         string // function and where it is from
	}{
		"CPU time":               {codelink.CPU, codelink.CPU, frames("scan@/bin/db", "query@/bin/db"), "scan query.c:7"},
		"CPU time of the kernel": {codelink.CPU, codelink.CPU, frames("copy@[kernel.kallsyms]", "sys_read@[kernel.kallsyms]", "read@/lib/libc.so.6", "load@/bin/db"), "copy load.c:7"},
		"in an enclave":          {codelink.CPU, codelink.CPU, frames("[in enclave]@[enclave]", "enter@/lib/libsgx_urts.so.2", "main@/bin/app"), "[in enclave] main.c:7"},
		"outside the kernel":     {codelink.Calls, codelink.CPU, frames("scan@/bin/db"), ""},
		"time in the kernel":     {codelink.Calls, codelink.CPU, frames("copy@[kernel.kallsyms]", "__read@/lib/libc.so.6", "load@/bin/db"), "load load.c:7"},
		"system call of Go":      {codelink.Calls, codelink.Calls, frames("read@[system calls]", "syscall.Read@/bin/go", "main.load@/bin/go"), "main.load main.load.c:7"},
		"library alone":          {codelink.Calls, codelink.Calls, frames("futex@[system calls]", "__lll_lock_wait@/lib/libc.so.6"), "__lll_lock_wait __lll_lock_wait.c:7"},
		"AEX":                    {codelink.AEXs, codelink.AEXs, frames("interrupt@[AEX]", "[in enclave]@[enclave]", "enter@/lib/libsgx_urts.so", "ecall_run@/bin/app"), "ecall_run ecall_run.c:7"},
		"only stand-ins":         {codelink.AEXs, codelink.AEXs, frames("interrupt@[AEX]", "[in enclave]@[enclave]"), " "},
	} {
		function, from, counts := split(tt.stack, part{codelink.Key{Event: tt.asked}, tt.event})
		got := ""
		if counts {
			got = function.Function + " " + site(from)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestFunctionsOfOneNameInTwoLibraries: each has its own row and its own place.
func TestFunctionsOfOneNameInTwoLibraries(t *testing.T) {
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	add := func(samples int64, stack []profile.Frame) {
		var at []uint32
		for _, f := range stack {
			i, err := b.Frame(f)
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, i)
		}
		if err := b.Add(at, nil, samples, samples*10); err != nil {
			t.Fatal(err)
		}
	}
	add(50, frames("copy@/lib/a.so", "main@/bin/app"))
	add(30, frames("copy@/lib/b.so", "copy@/lib/a.so"))
	add(20, frames("scan@/bin/app", "main@/bin/app"))
	key := codelink.Key{Event: codelink.CPU}
	f := New([]codelink.Key{key}, profile.DefaultLimits())
	f.Add(b.Profile())
	var got []string
	for _, one := range f.Functions()[key].Top {
		got = append(got, fmt.Sprintf("%s %.1f from %s %s", one.Name, one.Share, one.From.Function, one.From.Site))
	}
	if want := []string{"copy (a.so) 0.5 from main main.c:7", "copy (b.so) 0.3 from copy copy.c:7", "scan 0.2 from main main.c:7"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
