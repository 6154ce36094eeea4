// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

const (
	// maxSmall bounds files with one value, in bytes.
	maxSmall = 4 << 10
	// maxCPUs and maxNodes bound the directories that are read.
	maxCPUs  = 1024
	maxNodes = 256

	memoryName = "memory_bytes"
)

// value reads a file with one value below /sys.
func (h Host) value(elem ...string) string {
	data, err := h.Sys.Read(maxSmall, elem...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// kernel reads a file with one value below /proc/sys.
func (h Host) kernel(elem ...string) string {
	data, err := h.Proc.Read(maxSmall, append([]string{"sys"}, elem...)...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// cpuPath is the directory of the processors below /sys.
const cpuPath = "devices/system/cpu"

// machine adds the conditions of the machine.
func machine(all *list, h Host) {
	all.add(Identity, "kernel", h.kernel("kernel", "osrelease"))
	all.add(Note, "kernel_build", h.kernel("kernel", "version"))
	processor, _ := h.Proc.Processor() // unreadable: not known
	all.add(Identity, "cpu_model", processor.Name)
	all.add(Identity, "microcode", processor.Microcode)
	all.add(Identity, "virtual", virtual(processor))
	all.add(Program, "tee", confidential(h, processor))
	all.add(Note, "hypervisor", hypervisor(h))
	all.add(Identity, "cpus_online", h.value(cpuPath, "online"))
	all.add(Identity, "cpus_isolated", h.value(cpuPath, "isolated"))
	all.add(Identity, "smt", onOff(h.value(cpuPath, "smt", "active"), "1", "0"))
	all.add(Identity, "governor", h.eachCPU("cpufreq", "scaling_governor"))
	all.add(Identity, "frequency_driver", h.eachCPU("cpufreq", "scaling_driver"))
	all.add(Identity, "frequency_max_khz", h.eachCPU("cpufreq", "scaling_max_freq"))
	all.add(Identity, "energy_preference", h.eachCPU("cpufreq", "energy_performance_preference"))
	all.add(Identity, "turbo", turbo(h))
	all.add(Identity, "clock_source", h.value("devices/system/clocksource/clocksource0/current_clocksource"))
	mitigations(all, h)
	memory(all, h)
}

// virtual reports whether a hypervisor has set the flag of its name, or "" if the flags are not known.
func virtual(p hostfs.Processor) string {
	switch {
	case p.Has("hypervisor"):
		return "yes"
	case p.Flags != nil:
		return "no"
	}
	return ""
}

// confidential names the TEE that the whole machine is in. A comparison of two such runs is mostly about the cost of the
// TEE, so it explains no difference away. An SNP guest before Linux 6.12 shows no file and has no value.
func confidential(h Host, p hostfs.Processor) string {
	switch {
	case p.Has("tdx_guest"):
		return "tdx"
	case h.value(cpuPath, "sev", "vmpl") != "": // arch/x86/coco/sev/core.c
		return "sev-snp"
	case h.Sys.Exists("devices/platform/arm-cca-dev"):
		return "cca"
	}
	return ""
}

// hypervisor names the virtual machine, if the firmware has its name.
func hypervisor(h Host) string {
	if kind := h.value("hypervisor/type"); kind != "" {
		return kind
	}
	return strings.TrimSpace(h.value("class/dmi/id/sys_vendor") + " " + h.value("class/dmi/id/product_name"))
}

func onOff(value, on, off string) string {
	switch value {
	case on:
		return "on"
	case off:
		return "off"
	}
	return ""
}

// turbo reads whether frequencies above the nominal one are allowed: by intel_pstate, or by another driver.
func turbo(h Host) string {
	if v := onOff(h.value(cpuPath, "intel_pstate", "no_turbo"), "0", "1"); v != "" {
		return v
	}
	return onOff(h.value(cpuPath, "cpufreq", "boost"), "1", "0")
}

// cpus lists the directories of the first processors in ascending order of their number.
func (h Host) cpus() []string {
	names, _ := h.Sys.Names(4*maxCPUs, cpuPath) // unreadable: none
	var numbers []int
	for _, name := range names {
		if n, err := strconv.ParseUint(strings.TrimPrefix(name, "cpu"), 10, 16); err == nil && strings.HasPrefix(name, "cpu") {
			numbers = append(numbers, int(n))
		}
	}
	slices.Sort(numbers)
	var all []string
	for _, n := range numbers[:min(len(numbers), maxCPUs)] {
		all = append(all, "cpu"+strconv.Itoa(n))
	}
	return all
}

// eachCPU returns the different values of a file of all processors, sorted.
func (h Host) eachCPU(elem ...string) string {
	var values []string
	for _, cpu := range h.cpus() {
		if v := h.value(append([]string{cpuPath, cpu}, elem...)...); v != "" && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return strings.Join(values, ", ")
}

// mitigations adds the state of each vulnerability that the kernel knows.
func mitigations(all *list, h Host) {
	names, _ := h.Sys.Names(200, cpuPath, "vulnerabilities") // unreadable: none
	slices.Sort(names)
	for _, name := range names {
		all.add(Identity, "mitigation."+name, h.value(cpuPath, "vulnerabilities", name))
	}
}

// memory adds the conditions of memory: sizes are in bytes.
func memory(all *list, h Host) {
	info, _ := h.Proc.Read(64<<10, "meminfo") // unreadable: not known
	all.add(Identity, memoryName, parseMeminfo(info, "MemTotal"))
	all.add(Identity, "swap_bytes", parseMeminfo(info, "SwapTotal"))
	all.add(Identity, "swappiness", h.kernel("vm", "swappiness"))
	all.add(Identity, "huge_pages", parseMeminfo(info, "HugePages_Total"))
	all.add(Identity, "transparent_huge_pages", chosen(h.value("kernel/mm/transparent_hugepage/enabled")))
	all.add(Identity, "numa_nodes", h.value("devices/system/node/online"))
	all.add(Identity, "numa_balancing", onOff(h.kernel("kernel", "numa_balancing"), "1", "0"))
	all.add(Identity, "epc_bytes", epc(h))
	all.add(Identity, "sgx", sgx(h))
	all.add(State, "memory_available_bytes", parseMeminfo(info, "MemAvailable"))
	load, _ := h.Proc.Read(maxSmall, "loadavg") // unreadable: not known
	minute, _, _ := strings.Cut(string(load), " ")
	all.add(State, "load_average_1m", minute)
}

// parseMeminfo returns a value of /proc/meminfo, in bytes if it has a unit.
func parseMeminfo(info []byte, name string) string {
	for line := range strings.Lines(string(info)) {
		rest, found := strings.CutPrefix(line, name+":")
		if !found || !strings.HasSuffix(line, "\n") {
			continue
		}
		number, inKB := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		n, err := strconv.ParseUint(number, 10, 53)
		if err != nil {
			return ""
		}
		if inKB {
			n *= 1024
		}
		return strconv.FormatUint(n, 10)
	}
	return ""
}

// chosen returns the word in brackets of "always [madvise] never".
func chosen(options string) string {
	_, rest, _ := strings.Cut(options, "[")
	word, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return word
}

// EmulatedSGX is the value of the condition "sgx" in the virtual SGX machine (testbed/).
const EmulatedSGX = "emulated by the virtual SGX machine"

// sgx says that the enclaves of the machine are emulated. Otherwise it says nothing.
func sgx(h Host) string {
	if h.value("module/swsgx/parameters/free") == "" {
		return ""
	}
	return EmulatedSGX
}

// epc returns the size of the enclave page cache of all nodes in bytes. Kernels before 5.18 do not report it.
func epc(h Host) string {
	names, _ := h.Sys.Names(maxNodes, "devices/system/node") // unreadable: none
	total, known := uint64(0), false
	for _, name := range names {
		if matched, _ := path.Match("node[0-9]*", name); !matched {
			continue
		}
		n, err := strconv.ParseUint(h.value("devices/system/node", name, "x86", "sgx_total_bytes"), 10, 53)
		if err == nil {
			total, known = total+n, true
		}
	}
	if !known {
		return ""
	}
	return fmt.Sprint(total)
}
