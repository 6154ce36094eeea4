// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stream is an open file of the tree that is too long to be held in memory, or is opened before privileges are dropped. It
// ends after a bound.
type Stream struct {
	file       *os.File
	most, left int64
}

// Open opens a file, of which at most the given number of bytes can be read.
func (r Root) Open(most int64, elem ...string) (*Stream, error) {
	f, err := os.OpenFile(r.Path(elem...), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // os adds O_CLOEXEC
	if err != nil {
		return nil, err
	}
	return &Stream{file: f, most: most, left: most}, nil
}

// Read implements io.Reader.
func (s *Stream) Read(buf []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	n, err := s.file.Read(buf[:min(int64(len(buf)), s.left)])
	s.left -= int64(n)
	return n, err
}

// Rewind begins at the start of the file again, with the whole bound.
func (s *Stream) Rewind() error {
	s.left = s.most
	_, err := s.file.Seek(0, io.SeekStart)
	return err
}

// Close implements io.Closer.
func (s *Stream) Close() error { return s.file.Close() }

// DescriptorPath returns a path that leads to the file of a descriptor of this process, even if its name leads to another.
func DescriptorPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// Reopen opens the file of a descriptor that cannot be read, as [Process.Locate] returns one, for reading. Name is that of
// the result. It does not wait for another process that has a lease of the file.
func Reopen(fd int, name string) (*os.File, error) {
	opened, err := unix.Open(DescriptorPath(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(opened), name), nil
}
