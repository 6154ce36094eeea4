// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// FeatureSites returns where the kernel's code tests for a processor feature (a number of the kernel's
// cpufeatures.h), as offsets from the symbol _text. The kernel patches these places once at boot, so that code
// for a missing feature is skipped (arch/x86/include/asm/cpufeature.h, _static_cpu_has).
func (k Kernel) FeatureSites(ctx context.Context, feature uint16) ([]uint64, error) {
	image, err := os.ReadFile(k.image())
	if err != nil {
		return nil, err
	}
	vmlinux, err := decompress(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("unpacking %s: %w", k.image(), err)
	}
	file, err := elf.NewFile(bytes.NewReader(vmlinux))
	if err != nil {
		return nil, err
	}
	text, table := file.Section(".text"), file.Section(".altinstructions")
	if text == nil || table == nil {
		return nil, errors.New("the kernel has no .altinstructions")
	}
	entries, err := table.Data()
	if err != nil {
		return nil, err
	}
	return sites(entries, table.Addr, text.Addr, feature, entrySize(k.Release))
}

// entrySize returns the size of struct alt_instr (arch/x86/include/asm/alternative.h): two relative addresses,
// the feature in 16 bits, from 6.3 flags in 16 more, and the lengths of the instruction and its replacement.
func entrySize(release string) int {
	if strings.HasPrefix(release, "6.1.") {
		return 12
	}
	return 14
}

// sites finds the entries that replace a five-byte jump by nothing if the feature exists.
func sites(entries []byte, table, text uint64, feature uint16, size int) ([]uint64, error) {
	if len(entries)%size != 0 {
		return nil, fmt.Errorf(".altinstructions has %d bytes, no multiple of %d", len(entries), size)
	}
	var list []uint64
	for at := 0; at < len(entries); at += size {
		e := entries[at : at+size]
		if binary.LittleEndian.Uint16(e[8:]) != feature || e[size-2] != 5 || e[size-1] != 0 {
			continue
		}
		site := table + uint64(at) + uint64(int64(int32(binary.LittleEndian.Uint32(e))))
		list = append(list, site-text)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the kernel never checks feature %d", feature)
	}
	return list, nil
}

// decompress returns the vmlinux of a bzImage; its header is described in the kernel's
// Documentation/arch/x86/boot.rst.
func decompress(ctx context.Context, image []byte) ([]byte, error) {
	const setupSects, payloadOffset, payloadLength = 0x1f1, 0x248, 0x24c
	if len(image) < 0x1000 {
		return nil, errors.New("too short for a kernel")
	}
	at := (int(image[setupSects])+1)*512 + int(binary.LittleEndian.Uint32(image[payloadOffset:]))
	end := at + int(binary.LittleEndian.Uint32(image[payloadLength:])) - 4 // the unpacked size
	if at < 0 || end < at || end > len(image) {
		return nil, errors.New("the payload is not within the file")
	}
	payload := image[at:end]
	for _, tool := range []struct{ magic, name string }{{"\xfd7zXZ", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}} {
		if !bytes.HasPrefix(payload, []byte(tool.magic)) {
			continue
		}
		cmd := exec.CommandContext(ctx, tool.name, "-dc")
		cmd.Stdin = bytes.NewReader(payload)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%v: %w", cmd, err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("compressed by neither xz nor zstd: % x", payload[:6])
}
