// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// enterEnclave is the kernel's function that enters enclaves of the in-tree driver (Linux 5.11,
// arch/x86/entry/vdso/vsgx.S). It has one ENCLU, which executes EENTER and is the address at which an AEX ends.
const enterEnclave = "__vdso_sgx_enter_enclave"

// InVDSO returns a function that finds the vDSO's ENCLU in a process. The error is ErrNoVDSO if this kernel has none.
func InVDSO(of host.Processes) (Find, error) {
	offset, err := encluOfVDSO()
	if err != nil {
		return nil, err
	}
	return func(tgid uint32) (Found, error) {
		start, err := of.VDSO(tgid)
		return Found{Addresses: []uint64{start + offset}}, err
	}, nil
}

// ErrNoVDSO means that this kernel has no such function.
var ErrNoVDSO = errors.New("the kernel's vDSO has no " + enterEnclave)

// encluOfVDSO finds the offset of that instruction in the vDSO. It is the same for all 64-bit programs of a
// machine, so it is read from the memory of this process.
func encluOfVDSO() (uint64, error) {
	const most = 64 << 10
	image, err := hostfs.At("/proc").OwnVDSO(most)
	if err != nil {
		return 0, err
	}
	return findENCLU(image)
}

// findENCLU finds the one ENCLU of the function in an image of a vDSO, which is mapped as a whole.
func findENCLU(image []byte) (uint64, error) {
	p, err := executable.Read(bytes.NewReader(image))
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	at, found := uint64(0), ErrNoVDSO
	err = p.Functions(func(f executable.Function) {
		end := f.Address + f.Size
		if name, _, _ := strings.Cut(f.Name, "@"); name != enterEnclave || end < f.Address || end > uint64(len(image)) {
			return
		}
		code := image[f.Address:end]
		if i := bytes.Index(code, executable.ENCLU); i >= 0 && i == bytes.LastIndex(code, executable.ENCLU) {
			at, found = f.Address+uint64(i), nil
		}
	})
	return at, errors.Join(err, found)
}
