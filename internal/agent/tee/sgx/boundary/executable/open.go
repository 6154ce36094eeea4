// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var errFUSE = errors.New("the file is on a file system in user space, whose server can stop the kernel while it attaches probes")

// Open reads the headers of a file that probes are attached to. It takes the file, and closes it on an error.
func Open(file *os.File) (*Program, error) {
	var fs unix.Statfs_t
	program, err := (*Program)(nil), unix.Fstatfs(int(file.Fd()), &fs)
	if err == nil && fs.Type == unix.FUSE_SUPER_MAGIC {
		err = errFUSE
	}
	if err == nil {
		program, err = Read(file)
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return program, nil
}
