// SPDX-License-Identifier: Apache-2.0

package hostfs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// The lines are those of arch/x86/kernel/cpu/proc.c.
func TestProcessor(t *testing.T) {
	unknown := hostfs.Processor{Family: -1, Model: -1}
	milan := hostfs.Processor{Vendor: "AuthenticAMD", Name: "AMD EPYC 7763", Microcode: "0xa0011d1", Family: 25, Model: 1, Flags: []string{"fpu", "sev"}}
	first := "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\nmicrocode\t: 0xa0011d1\nflags\t\t: fpu sev\n"
	for text, want := range map[string]hostfs.Processor{
		first:                            milan,
		first + "\nvendor_id\t: other\n": milan, // the second processor
		"cpu family\t: many\nmodel\t: -1\nflags : fpu": unknown, // damaged, and cut
		"":                                   unknown,
		"Processor\t: ARMv8\nFeatures\t: fp": unknown,
	} {
		root := hostfs.At(hostfstest.Tree(t, map[string]string{"cpuinfo": text}))
		if got, err := root.Processor(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	if !milan.Has("sev") || milan.Has("tdx_guest") || unknown.Has("") {
		t.Error("flags are wrong")
	}
	if got, err := hostfs.At(t.TempDir()).Processor(); err == nil || !reflect.DeepEqual(got, unknown) {
		t.Errorf("without the file: %+v, %v", got, err)
	}
	long := hostfs.At(hostfstest.Tree(t, map[string]string{"cpuinfo": "flags : " + strings.Repeat("fpu ", 10_000)}))
	if got, err := long.Processor(); err != nil || len(got.Flags) > 0 {
		t.Errorf("flags without an end: %d, %v", len(got.Flags), err)
	}
}
