// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"fmt"
	"os"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Open reads the headers of a file that probes are attached to. It takes the file, and closes it on an error.
func Open(file *os.File) (*Program, error) {
	program, err := (*Program)(nil), hostfs.CheckFileSystem(int(file.Fd()))
	if err == nil {
		program, err = Read(file)
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return program, nil
}
