// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// symbols are addresses of the driver's own, 0 where they are not known: the kernel does not tell them
// without CAP_SYSLOG, and static ones only with CONFIG_KALLSYMS_ALL.
type symbols struct {
	freePages uint64 // sgx_nr_free_pages: a counter from 5.15 on
	vmOps     uint64 // sgx_vm_ops: what mappings of an enclave have
	fops      uint64 // sgx_encl_fops: what open files of the driver have
	vepcVMOps uint64 // sgx_vepc_vm_ops and sgx_vepc_fops: the same for what is handed to guests
	vepcFops  uint64
}

// maxSymbols bounds what is read of /proc/kallsyms, which has about 10 MB.
const maxSymbols = 256 << 20

// readSymbols looks for the addresses in /proc/kallsyms.
func readSymbols(proc string) (symbols, error) {
	f, err := os.Open(filepath.Join(proc, "kallsyms"))
	if err != nil {
		return symbols{}, err
	}
	defer f.Close()
	s, err := parseSymbols(io.LimitReader(f, maxSymbols))
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	return s, nil
}

// parseSymbols reads lines of an address, a letter for the kind of symbol and its name. Functions are not
// looked at: before 5.15, sgx_nr_free_pages is one.
func parseSymbols(r io.Reader) (s symbols, err error) {
	wanted := map[string]*uint64{
		"sgx_nr_free_pages": &s.freePages, "sgx_vm_ops": &s.vmOps, "sgx_encl_fops": &s.fops,
		"sgx_vepc_vm_ops": &s.vepcVMOps, "sgx_vepc_fops": &s.vepcFops,
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Bytes()
		if !bytes.Contains(line, []byte(" sgx_")) {
			continue
		}
		fields := bytes.Fields(line)
		if len(fields) < 3 || bytes.ContainsAny(fields[1], "tT") {
			continue
		}
		if at := wanted[string(fields[2])]; at != nil && *at == 0 {
			*at, _ = strconv.ParseUint(string(fields[0]), 16, 64) // what is no number stays 0: unknown
		}
	}
	return s, lines.Err()
}
