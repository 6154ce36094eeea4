// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"io"

	"github.com/teescope/teescope/internal/lib/hostfs"
	kernel "github.com/teescope/teescope/internal/lib/symbols"
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
		s, err = findSymbols(r)
		return err
	})
	return s, err
}

// readModule reads the addresses of a module's functions and variables from /proc/kallsyms.
func readModule(proc, module string) (of map[string]uint64, err error) {
	err = withSymbols(proc, func(r io.Reader) error {
		of, err = findModule(r, module)
		return err
	})
	return of, err
}

func withSymbols(proc string, find func(io.Reader) error) error {
	in, err := hostfs.At(proc).Open(maxSymbols, "kallsyms")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // nothing was written
	if err := find(in); err != nil {
		return fmt.Errorf("reading kallsyms: %w", err)
	}
	return nil
}

// maxModule limits the symbols of a module.
const maxModule = 4096

// findModule returns the addresses of a module's symbols by name. An address is 0 if the kernel hides it.
func findModule(r io.Reader, module string) (map[string]uint64, error) {
	of := map[string]uint64{}
	err := kernel.EachKernelLine(r, func(l kernel.KernelLine) bool {
		if string(l.Module) == module {
			of[string(l.Name)] = l.Address
		}
		return len(of) < maxModule
	})
	return of, err
}

// findSymbols finds the addresses. It ignores functions, because sgx_nr_free_pages is one before 5.15.
func findSymbols(r io.Reader) (s symbols, err error) {
	wanted := map[string]*uint64{
		"sgx_nr_free_pages": &s.freePages, "sgx_vm_ops": &s.vmOps, "sgx_encl_fops": &s.fops,
		"sgx_vepc_vm_ops": &s.vepcVMOps, "sgx_vepc_fops": &s.vepcFops,
	}
	err = kernel.EachKernelLine(r, func(l kernel.KernelLine) bool {
		if at := wanted[string(l.Name)]; at != nil && *at == 0 && !l.IsFunction() {
			*at = l.Address
		}
		return true
	})
	return s, err
}
