// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/teescope/teescope/testbed/machine"
)

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{
		"-epc", "16,32", "-port", "9750", "-port", "8080:80", "-in", "a", "-in", "b:/c", "-kvm", "-disk", "32", "-module", "veth", "--", "prog", "-v",
	}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if !o.kvm || o.disk != 32 || !slices.Equal(o.epc, sizes{16, 32}) || !slices.Equal(o.in, list{"a", "b:/c"}) || !slices.Equal(o.modules, list{"veth"}) || !slices.Equal(o.argv, []string{"prog", "-v"}) ||
		!slices.Equal(o.ports, forwards{{Host: 9750, Guest: 9750}, {Host: 8080, Guest: 80}}) {
		t.Errorf("read %+v", o)
	}
	for _, bad := range [][]string{{}, {"-epc", "0", "x"}, {"-epc", "16,", "x"}, {"-port", "70000", "x"}, {"-port", "1:", "x"}, {"-disk", "-1", "x"}, {"-tap", "t", "-port", "80", "x"}, {"-nonsense", "x"}} {
		if o, err := parseOptions(bad, &bytes.Buffer{}); err == nil {
			t.Errorf("%q was read as %+v", bad, o)
		}
	}
}

func TestParams(t *testing.T) {
	got := params([]machine.Region{{Phys: 0x20000000, MiB: 16}, {Phys: 0x41000000, MiB: 64, Node: 1}})
	if want := "phys=0x20000000,0x41000000 mb=16,64 nid=0,1"; got != want {
		t.Errorf("params %q, want %q", got, want)
	}
}
