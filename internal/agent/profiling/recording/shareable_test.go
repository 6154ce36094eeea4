// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"testing"

	pprof "github.com/google/pprof/profile"
)

// A profile for others has offsets in files, no addresses of the kernel, and nothing of the process that is left out.
func TestAShareableProfileHasNoAddressesOfUse(t *testing.T) {
	program := &pprof.Mapping{ID: 1, Start: 0x55d0_1234_5000, Limit: 0x55d0_1234_9000, Offset: 0x2000, File: "/usr/bin/server"}
	kernel := &pprof.Mapping{ID: 2, Start: kernelStart, Limit: ^uint64(0), File: "[kernel.kallsyms]"}
	other := &pprof.Mapping{ID: 3, Start: 0x5600_0000_0000, Limit: 0x5600_0000_1000, File: "/usr/bin/other"}
	functions := []*pprof.Function{{ID: 1, Name: "work"}, {ID: 2, Name: "vfs_read"}, {ID: 3, Name: "vfs_write"}}
	line := func(i int) []pprof.Line { return []pprof.Line{{Function: functions[i]}} }
	locations := []*pprof.Location{
		{ID: 1, Mapping: program, Address: 0x55d0_1234_5678, Line: line(0)},
		{ID: 2, Mapping: kernel, Address: 0xffff_ffff_8123_4567, Line: line(1)},
		{ID: 3, Mapping: kernel, Address: 0xffff_ffff_8123_9999, Line: line(2)},
		{ID: 4, Address: 0x7f00_1111_2222},
		{ID: 5, Mapping: other, Address: 0x5600_0000_0123},
	}
	p := Shareable(&pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}}, Mapping: []*pprof.Mapping{program, kernel, other}, Location: locations, Function: functions,
		Sample: []*pprof.Sample{
			{Location: []*pprof.Location{locations[1], locations[0]}, Value: []int64{3}, Label: map[string][]string{"pid": {"7"}, "tcs": {"0x7f0000001000"}, "enclave_base": {"0x7f0000000000"}, "enclave": {"inside"}}},
			{Location: []*pprof.Location{locations[2], locations[3]}, Value: []int64{4}, Label: map[string][]string{"pid": {"7"}}},
			{Location: []*pprof.Location{locations[4]}, Value: []int64{5}, Label: map[string][]string{"pid": {"8"}}},
		},
	}, 8)
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if len(p.Sample) != 2 || len(p.Location) != 4 || len(p.Mapping) != 2 {
		t.Fatalf("%d samples, %d locations and %d mappings: %v", len(p.Sample), len(p.Location), len(p.Mapping), p)
	}
	for _, l := range p.Location {
		want := uint64(0)
		if l.Mapping != nil && l.Mapping.File == program.File {
			want = 0x2678
		}
		if l.Address != want {
			t.Errorf("%v is at %#x, want %#x", l.Line, l.Address, want)
		}
	}
	if m := p.Mapping[0]; m.Start != m.Offset || m.Limit != 0x6000 {
		t.Errorf("the mapping is %+v", m)
	}
	if s := p.Sample[0]; len(s.Label) != 2 || s.Location[0].Line[0].Function.Name != "vfs_read" {
		t.Errorf("a sample is %+v", s)
	}
	if s := p.Sample[1]; s.Location[0].Line[0].Function.Name != "vfs_write" {
		t.Errorf("a sample is %+v", s)
	}
}
