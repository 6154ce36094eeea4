// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"fmt"
	"os"
)

// VDSO returns the address range of the kernel's vDSO in a process.
func (p Process) VDSO() (start, end uint64, err error) {
	err = p.Mappings(func(m Mapping) {
		if string(m.Path) == "[vdso]" {
			start, end = m.Start, m.End
		}
	})
	if err == nil && end <= start {
		err = fmt.Errorf("%s: no vDSO", p.Path("maps"))
	}
	return start, end, err
}

// OwnVDSO reads the vDSO from the memory of this process. All 64-bit programs of a machine have the same one. The root must be
// /proc. A vDSO of more than most bytes is an error.
func (r Root) OwnVDSO(most uint64) ([]byte, error) {
	self := r.Self()
	start, end, err := self.VDSO()
	if err != nil {
		return nil, err
	}
	if end-start > most {
		return nil, fmt.Errorf("the vDSO has %d bytes, more than %d", end-start, most)
	}
	memory, err := os.Open(self.Path("mem"))
	if err != nil {
		return nil, fmt.Errorf("reading the vDSO: %w", err)
	}
	defer func() { _ = memory.Close() }() // nothing was written
	image := make([]byte, end-start)
	if _, err := memory.ReadAt(image, int64(start)); err != nil {
		return nil, fmt.Errorf("reading the vDSO: %w", err)
	}
	return image, nil
}
