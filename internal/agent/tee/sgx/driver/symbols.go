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

// symbols are addresses of the driver's variables. They are 0 if unknown: the kernel shows them only with
// CAP_SYSLOG, and static ones only with CONFIG_KALLSYMS_ALL.
type symbols struct {
	freePages uint64 // sgx_nr_free_pages: a counter from 5.15 on
	vmOps     uint64 // sgx_vm_ops: operations of an enclave's mappings
	fops      uint64 // sgx_encl_fops: operations of the driver's open files
	vepcVMOps uint64 // sgx_vepc_vm_ops and sgx_vepc_fops: the same for virtual EPCs
	vepcFops  uint64

	outsideFree uint64 // sgx_nr_free_pages and sgx_nr_total_epc_pages of the module isgx
	outsideSize uint64
}

// maxSymbols limits how much of /proc/kallsyms is read. It has about 10 MB.
const maxSymbols = 256 << 20

// readSymbols reads the addresses from /proc/kallsyms.
func readSymbols(proc string) (s symbols, err error) {
	err = withSymbols(proc, func(r io.Reader) error {
		s, err = parseSymbols(r)
		return err
	})
	return s, err
}

// readModule reads the addresses of a module's functions and variables from /proc/kallsyms.
func readModule(proc, module string) (of map[string]uint64, err error) {
	err = withSymbols(proc, func(r io.Reader) error {
		of, err = parseModule(r, module)
		return err
	})
	return of, err
}

func withSymbols(proc string, parse func(io.Reader) error) error {
	f, err := os.Open(filepath.Join(proc, "kallsyms"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := parse(io.LimitReader(f, maxSymbols)); err != nil {
		return fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	return nil
}

// maxModule limits the symbols of a module.
const maxModule = 4096

// parseModule returns the addresses of a module's symbols by name. Its lines end in the name of the module in brackets. An
// address is 0 if the kernel hides it.
func parseModule(r io.Reader, module string) (map[string]uint64, error) {
	of := map[string]uint64{}
	lines, suffix := bufio.NewScanner(r), []byte("["+module+"]")
	for lines.Scan() && len(of) < maxModule {
		if !bytes.HasSuffix(lines.Bytes(), suffix) {
			continue
		}
		fields := bytes.Fields(lines.Bytes())
		if len(fields) != 4 {
			continue
		}
		if at, err := strconv.ParseUint(string(fields[0]), 16, 64); err == nil {
			of[string(fields[2])] = at
		}
	}
	return of, lines.Err()
}

// parseSymbols parses lines with an address, a letter for the kind of symbol, and its name. It ignores functions,
// because sgx_nr_free_pages is one before 5.15.
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
			*at, _ = strconv.ParseUint(string(fields[0]), 16, 64) // an invalid number stays 0: unknown
		}
	}
	return s, lines.Err()
}
