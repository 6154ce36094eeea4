// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/cpuid/v2"
)

const (
	leaf7  = "this machine, CPUID leaf 7"
	leaf12 = "this machine, CPUID leaf 0x12"
	// leaves is the kernel's device for CPUID of the first processor (cpuid(4)). It needs the module cpuid, and root.
	leaves = "/dev/cpu/0/cpuid"
)

// processor adds what CPUID says of a processor and its SGX.
func (m *Machine) processor(p cpuid.CPUInfo) {
	if p.VendorID != cpuid.Intel {
		return
	}
	m.add(generationFact, generation(p.Family, p.Model), "this machine, CPUID leaf 1")
	m.add(SGX, yesNo(p.SGX.Available), leaf7)
	if !p.SGX.Available {
		return
	}
	m.add(SGX2, yesNo(p.SGX.SGX2Supported), leaf12)
	m.add(RDTSC, yesNo(p.SGX.SGX2Supported), leaf12+": processors with SGX2 allow it")
	m.add(FLC, yesNo(p.SGX.LaunchControl), leaf7)
	if p.SGX.MaxEnclaveSize64 > 1 { // 1 is 2 to the power of 0: not enumerated
		m.add(maxEnclave, strconv.FormatInt(p.SGX.MaxEnclaveSize64, 10), leaf12)
	}
	total, sizes := uint64(0), ""
	for _, section := range p.SGX.EPCSections {
		total += section.EPCSize
		sizes += fmt.Sprintf(" %d", section.EPCSize)
	}
	if total > 0 {
		m.add(epcSections, fmt.Sprintf("%d:%s", len(p.SGX.EPCSections), sizes), leaf12)
		m.add("epc_bytes", strconv.FormatUint(total, 10), leaf12) // kernels before 5.18 do not report it
	}
}

// newer adds the features of SGX that came later: EDECCSSA is bit 11 of EAX of leaf 0x12, and AEX-Notify bit 10 of EAX of its
// subleaf 1 (Intel SDM, volume 3D, Discovering Support for Intel SGX). The device answers at the offset of the leaf, with the
// subleaf in the upper half.
func (m *Machine) newer(device io.ReaderAt) {
	for subleaf, bit := range []struct {
		name  string
		shift uint
	}{{EDECCSSA, 11}, {AEXNotify, 10}} {
		var registers [16]byte
		if n, err := device.ReadAt(registers[:], 0x12+int64(subleaf)<<32); err != nil || n < len(registers) {
			return
		}
		eax := binary.LittleEndian.Uint32(registers[:4])
		m.add(bit.name, yesNo(eax>>bit.shift&1 == 1), fmt.Sprintf("%s, subleaf %d", leaf12, subleaf))
	}
}

// generation returns Intel's name of a design with SGX, or "" (arch/x86/include/asm/intel-family.h).
func generation(family, model int) string {
	if family != 6 {
		return ""
	}
	return map[int]string{
		0x4e: "Skylake", 0x5e: "Skylake", 0x8e: "Kaby Lake, Whiskey Lake or Comet Lake", 0x9e: "Kaby Lake or Coffee Lake", 0x66: "Cannon Lake", 0xa5: "Comet Lake", 0xa6: "Comet Lake", 0x7a: "Gemini Lake",
		0x7d: "Ice Lake (client)", 0x7e: "Ice Lake (client)", 0x6a: "Ice Lake", 0x6c: "Ice Lake", 0x8f: "Sapphire Rapids", 0xcf: "Emerald Rapids",
		0xad: "Granite Rapids", 0xae: "Granite Rapids", 0xaf: "Sierra Forest",
	}[model]
}
