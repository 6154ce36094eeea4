// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/cpuid/v2"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/run/condition"
)

func with(facts ...string) Machine {
	var m Machine
	for i := 0; i < len(facts); i += 2 {
		m.add(facts[i], facts[i+1], "test")
	}
	return m
}

func TestFacts(t *testing.T) {
	m := with("cpus_online", "0-3,8", "numa_nodes", "0", "kernel", "6.1.0-52-amd64", SGX2, "yes", "memory_bytes", "1024", "swap_bytes", "1", "frequency_max_khz", "3500000")
	if n, ok := m.CPUs(); n != 5 || !ok {
		t.Errorf("%d CPUs, %v", n, ok)
	}
	if n, ok := m.Nodes(); n != 1 || !ok {
		t.Errorf("%d nodes, %v", n, ok)
	}
	if n, ok := m.Memory(); n != 1025 || !ok {
		t.Errorf("%d bytes, %v", n, ok)
	}
	if can, known := m.EDMM(); !can || !known {
		t.Errorf("EDMM %v, %v", can, known)
	}
	if c := m.Clock(); c.Low != 3.5e9 || c.High != 3.5e9 || !c.Measured {
		t.Errorf("%+v", c)
	}
	if _, ok := m.EPC(); ok {
		t.Error("an EPC that was not measured")
	}
	for _, c := range []struct {
		facts      []string
		can, known bool
	}{
		{nil, true, false},
		{[]string{SGX2, "no"}, false, true},
		{[]string{"kernel", "5.15.0"}, false, true},
		{[]string{"kernel", "6.0"}, true, false},
		{[]string{"kernel", "x"}, true, false},
	} {
		m := with(c.facts...)
		if can, known := m.EDMM(); can != c.can || known != c.known {
			t.Errorf("%q: %v, %v", c.facts, can, known)
		}
	}
	var none *Machine
	if _, ok := none.EPC(); ok || none.Clock() != cost.UnknownClock {
		t.Error("no machine has an EPC or a clock")
	}
}

func TestParse(t *testing.T) {
	m, err := Parse([]byte("SGX supported by CPU: true\nSGX2 (EAUG, EACCEPT, EMODPR, ...): true\nEPC size: 0x8000000\n"), "sgx.txt")
	if err != nil {
		t.Fatal(err)
	}
	if epc, _ := m.EPC(); epc != 128<<20 || m.Source("epc_bytes") != "sgx.txt:1, is-sgx-available" {
		t.Errorf("%+v", m)
	}
	data, err := json.Marshal(map[string]any{"machine": m})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(data, "machine.json")
	if err != nil {
		t.Fatal(err)
	}
	if epc, _ := again.EPC(); epc != 128<<20 || again.Source("epc_bytes") != "machine.json" {
		t.Errorf("%+v", again)
	}
	for text, want := range map[string]string{
		"{":     "x: unexpected end",
		"{}":    "x: it has 0 facts",
		"hello": "x: the content is not recognized",
		`{"facts":{"epc_bytes":{"value":"many"}}}`: `x: epc_bytes is "many"`,
	} {
		if _, err := Parse([]byte(text), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The facts of this machine are those of package condition, and say where they come from.
func TestThis(t *testing.T) {
	m := This(condition.ThisHost())
	if n, ok := m.CPUs(); !ok || n < 1 {
		t.Errorf("%d CPUs, %v", n, ok)
	}
	if _, known := m.kernelAtLeast(5, 0); !known || m.Source("kernel") != "this machine" {
		t.Errorf("%+v", m.Facts["kernel"])
	}
}

// leafDevice answers as /dev/cpu/0/cpuid does.
type leafDevice map[int64]uint32

func (d leafDevice) ReadAt(p []byte, at int64) (int, error) {
	eax, known := d[at]
	if !known {
		return 0, io.ErrUnexpectedEOF
	}
	binary.LittleEndian.PutUint32(p, eax)
	return len(p), nil
}

func TestProcessor(t *testing.T) {
	p := cpuid.CPUInfo{VendorID: cpuid.Intel, Family: 6, Model: 0x6a}
	p.SGX = cpuid.SGXSupport{Available: true, SGX2Supported: true, LaunchControl: true, MaxEnclaveSize64: 1 << 36, EPCSections: []cpuid.SGXEPCSection{{EPCSize: 64 << 20}, {EPCSize: 32 << 20}}}
	var m Machine
	m.processor(p)
	m.newer(leafDevice{0x12: 1<<11 | 3, 0x12 + 1<<32: 0x36})
	for name, want := range map[string]string{
		generationFact: "Ice Lake", SGX: "yes", SGX2: "yes", RDTSC: "yes", FLC: "yes", EDECCSSA: "yes", AEXNotify: "no", maxEnclave: "68719476736",
		epcSections: "2: 67108864 33554432", "epc_bytes": "100663296",
	} {
		if got := m.value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	var none Machine
	none.processor(cpuid.CPUInfo{VendorID: cpuid.Intel, Family: 6, Model: 0x55})
	if none.newer(leafDevice{}); len(none.Facts) != 1 || none.value(SGX) != "no" {
		t.Errorf("%+v", none.Facts)
	}
	var other Machine
	if other.processor(cpuid.CPUInfo{VendorID: cpuid.AMD}); len(other.Facts) > 0 {
		t.Errorf("%+v", other.Facts)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"facts":{"epc_bytes":{"value":"1"},"kernel":{"value":"6.1"},"cpus_online":{"value":"0-3"}}}`))
	f.Add([]byte("SGX supported by CPU: true\nEPC size: 0x8000000\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data, "x")
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("not printable: %q", err)
			}
			return
		}
		m.EDMM()
		if n, ok := m.CPUs(); ok && (n < 1 || n > 1<<30) {
			t.Errorf("%d CPUs", n)
		}
		if c := m.Clock(); c.Low < 1e8 || c.High > 1e10 {
			t.Errorf("%+v", c)
		}
		if len(m.Facts) > maxFacts {
			t.Errorf("%d facts", len(m.Facts))
		}
	})
}
