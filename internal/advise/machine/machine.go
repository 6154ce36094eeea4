// SPDX-License-Identifier: Apache-2.0

// Package machine has the facts about a machine that matters to an enclave: processor, EPC, memory, NUMA nodes, kernel. What is
// not known is absent.
package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/condition"
)

const (
	// MaxBytes bounds a file with facts.
	MaxBytes = 1 << 20
	// maxFacts bounds their number, and maxFact their length in bytes.
	maxFacts = 1000
	maxFact  = 400
)

// Names of facts beside those of package condition: "kernel", "cpu_model", "epc_bytes", "memory_bytes" and others.
const (
	SGX       = "sgx"        // "yes" or "no", as all that follow
	SGX2      = "sgx2"       // CPUID leaf 0x12: pages can be added to a running enclave (EDMM)
	EDECCSSA  = "edeccssa"   // CPUID leaf 0x12
	AEXNotify = "aex_notify" // CPUID leaf 0x12
	FLC       = "sgx_lc"     // flexible launch control
	RDTSC     = "rdtsc_in_enclave"
)

// Names of facts that are texts or numbers.
const (
	generationFact = "cpu_generation" // Intel's name of the design
	epcSections    = "epc_sections"   // number and sizes in bytes
	maxEnclave     = "max_enclave_bytes"
)

// A Fact is one property with where it comes from.
type Fact struct {
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Machine has the facts about one machine by name.
type Machine struct {
	Facts map[string]Fact `json:"facts"`
}

// add adds a fact that is known. The first source of a fact counts.
func (m *Machine) add(name, value, source string) {
	if m.Facts == nil {
		m.Facts = make(map[string]Fact)
	}
	name, value = text.Short(text.Label(name), maxFact), text.Short(text.Label(value), maxFact)
	if _, known := m.Facts[name]; !known && value != "" && len(m.Facts) < maxFacts {
		m.Facts[name] = Fact{value, text.Short(text.Label(source), maxFact)}
	}
}

// Merge adds the facts of another source, where they are not known yet.
func (m *Machine) Merge(o Machine) {
	for _, name := range slices.Sorted(maps.Keys(o.Facts)) {
		m.add(name, o.Facts[name].Value, o.Facts[name].Source)
	}
}

// This returns the facts about the machine that the program runs on.
func This(host condition.Host) Machine {
	m := FromConditions(condition.Read(host, condition.Subject{}), "this machine")
	m.processor(cpuid.CPU)
	if cpuid.CPU.SGX.Available {
		if device, err := os.Open(leaves); err == nil { // without the driver or the right to read it, both are not known
			m.newer(device)
			_ = device.Close()
		}
	}
	return m
}

// FromConditions returns the facts that a run file has about its machine.
func FromConditions(all []condition.Condition, source string) Machine {
	var m Machine
	for _, c := range all {
		if c.Kind == condition.Identity || c.Kind == condition.Note {
			m.add(c.Name, c.Value, source)
		}
	}
	return m
}

// Parse reads a file with facts: the output of is-sgx-available, or JSON of teescope advise, either its whole report or the
// object "machine" of it. The error names the file.
func Parse(data []byte, name string) (Machine, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		a, err := read.ParseAvailable(data)
		if err != nil {
			return Machine{}, fmt.Errorf("%s: %w; name its output, or JSON of teescope advise", name, err)
		}
		return fromAvailable(a, name), nil
	}
	var file struct {
		Machine *Machine        `json:"machine"`
		Facts   map[string]Fact `json:"facts"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Machine{}, fmt.Errorf("%s: %s", name, text.Short(text.Terminal(err.Error()), maxFact))
	}
	facts := file.Facts
	if file.Machine != nil {
		facts = file.Machine.Facts
	}
	if len(facts) == 0 || len(facts) > maxFacts {
		return Machine{}, fmt.Errorf("%s: it has %d facts: name the JSON of teescope advise, or the output of is-sgx-available", name, len(facts))
	}
	var m Machine
	for _, k := range slices.Sorted(maps.Keys(facts)) {
		m.add(k, facts[k].Value, name)
	}
	return m, m.check(name)
}

// errFact is the error of a fact with an impossible value.
var errFact = errors.New("its value cannot be used")

// check returns an error if a fact that must be a number is not one.
func (m *Machine) check(name string) error {
	for _, fact := range []string{"epc_bytes", "memory_bytes", "swap_bytes", "frequency_max_khz"} {
		if f, known := m.Facts[fact]; known {
			if _, ok := m.number(fact); !ok {
				return fmt.Errorf("%s: %s is %q: %w; write a whole number", name, fact, text.Terminal(f.Value), errFact)
			}
		}
	}
	return nil
}

func fromAvailable(a read.Available, name string) Machine {
	var m Machine
	source := fmt.Sprintf("%s:%d, is-sgx-available", name, a.Line)
	for fact, value := range map[string]*bool{SGX: a.SGX, SGX2: a.SGX2, EDECCSSA: a.EDECCSSA, AEXNotify: a.AEXNotify, FLC: a.FLC} {
		if value != nil {
			m.add(fact, yesNo(*value), source)
		}
	}
	if a.SGX2 != nil {
		m.add(RDTSC, yesNo(*a.SGX2), source+": processors with SGX2 allow it")
	}
	if a.MaxEnclave != nil {
		m.add(maxEnclave, strconv.FormatUint(*a.MaxEnclave, 10), source)
	}
	if a.EPC != nil && *a.EPC > 0 {
		m.add("epc_bytes", strconv.FormatUint(*a.EPC, 10), source)
	}
	return m
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Is returns a fact that is yes or no.
func (m *Machine) Is(name string) (is, known bool) {
	switch m.value(name) {
	case "yes", "on":
		return true, true
	case "no", "off":
		return false, true
	}
	return false, false
}

func (m *Machine) value(name string) string {
	if m == nil {
		return ""
	}
	return m.Facts[name].Value
}

func (m *Machine) number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(m.value(name), 10, 53)
	return n, err == nil
}

// Source says where a fact comes from.
func (m *Machine) Source(name string) string { return m.Facts[name].Source }

// EPC returns the size of the enclave page cache of all nodes in bytes.
func (m *Machine) EPC() (uint64, bool) { return m.number("epc_bytes") }

// Memory returns RAM and swap in bytes. Without swap it is the RAM.
func (m *Machine) Memory() (uint64, bool) {
	ram, ok := m.number("memory_bytes")
	swap, _ := m.number("swap_bytes")
	return ram + swap, ok && ram > 0
}

// CPUs returns the number of online CPUs, and Nodes the number of NUMA nodes.
func (m *Machine) CPUs() (int, bool) { return count(m.value("cpus_online")) }

// Nodes returns the number of NUMA nodes.
func (m *Machine) Nodes() (int, bool) { return count(m.value("numa_nodes")) }

// count returns the number of elements of a list of the kernel such as "0-3,8".
func count(list string) (int, bool) {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 16)
		last := first
		if ranged && err == nil {
			last, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || last < first {
			return 0, false
		}
		n += int(last-first) + 1
	}
	return n, true
}

// kernelAtLeast reports whether the kernel is of this version or a later one.
func (m *Machine) kernelAtLeast(major, minor int) (is, known bool) {
	var have [2]int
	parts := strings.SplitN(m.value("kernel"), ".", 3)
	if len(parts) < 2 {
		return false, false
	}
	for i := range have {
		digits := strings.IndexFunc(parts[i], func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(parts[i])
		}
		n, err := strconv.Atoi(parts[i][:digits])
		if err != nil {
			return false, false
		}
		have[i] = n
	}
	return have[0] > major || have[0] == major && have[1] >= minor, true
}

// EDMM reports whether Gramine can add memory to a running enclave: it takes SGX2 and Linux 6.0 (manifest syntax, EDMM).
func (m *Machine) EDMM() (can, known bool) {
	sgx2, known1 := m.Is(SGX2)
	kernel, known2 := m.kernelAtLeast(6, 0)
	if known1 && !sgx2 || known2 && !kernel {
		return false, true
	}
	return true, known1 && known2
}

// Clock returns the frequency of the processor for estimates.
func (m *Machine) Clock() cost.Clock {
	khz, ok := m.number("frequency_max_khz")
	if hz := float64(khz) * 1000; ok && hz >= 1e8 && hz <= 1e10 && !math.IsNaN(hz) {
		return cost.Clock{Low: hz, High: hz, Measured: true}
	}
	return cost.UnknownClock
}
