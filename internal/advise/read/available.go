// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"strconv"
	"strings"
)

// Available is the output of Gramine's is-sgx-available (print_detailed_info in is_sgx_available.cpp, 1.0 to 1.9). What a
// version does not print is nil.
type Available struct {
	SGX, SGX1, SGX2, FLC, EDECCSSA, AEXNotify, Driver *bool
	EPC, MaxEnclave                                   *uint64 // bytes
	Line                                              int     // of the first known line
}

// ParseAvailable reads the output of is-sgx-available. Without SGX it ends after the first line.
func ParseAvailable(data []byte) (Available, error) {
	var a Available
	flags := map[string]**bool{
		"SGX supported by CPU": &a.SGX, "SGX1 (": &a.SGX1, "SGX2 (": &a.SGX2, "Flexible Launch Control (": &a.FLC,
		"EDECCSSA instruction": &a.EDECCSSA, "AEX-Notify": &a.AEXNotify, "SGX driver loaded": &a.Driver,
	}
	sizes := map[string]**uint64{"EPC size": &a.EPC, "Max enclave size (64-bit)": &a.MaxEnclave}
	for n, line := range lines(string(data)) {
		cut := strings.LastIndex(line, ": ")
		if cut < 0 {
			if line == "Not an Intel CPU" || strings.HasPrefix(line, "`cpuid` instruction not available") {
				no := false
				a.SGX, a.Line = &no, n
			}
			continue
		}
		name, value := line[:cut], strings.TrimSpace(line[cut+2:])
		for prefix, to := range flags {
			if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(prefix, "(") && name != prefix {
				continue
			}
			b, err := strconv.ParseBool(value)
			if err != nil || value != "true" && value != "false" {
				return Available{}, fmt.Errorf("line %d: %s is neither true nor false", n, prefix)
			}
			*to = &b
		}
		if to, known := sizes[name]; known {
			size, err := strconv.ParseUint(value, 0, 64)
			if err != nil || !strings.HasPrefix(value, "0x") {
				return Available{}, fmt.Errorf("line %d: %s is not a hexadecimal number", n, name)
			}
			*to = &size
		}
		if a.Line == 0 && a.SGX != nil {
			a.Line = n
		}
	}
	if a.SGX == nil {
		return Available{}, fmt.Errorf("%w: is-sgx-available begins with \"SGX supported by CPU\"", errNothing)
	}
	return a, nil
}
