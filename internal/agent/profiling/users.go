// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// fileUsers asks the kernel which processes map a file.
type fileUsers struct {
	entries []uint64 // shared with the program
	call    func() error
	refused error // why the kernel does not run the program, as those before 5.17
}

// ErrNotReported means that this kernel never reports which processes map a file.
var ErrNotReported = errors.New("the kernel does not report which processes map a file")

// errUsers are the errors of the program.
var errUsers = map[uint64]error{
	usersChanged: errors.New("the mappings of the file change"),
	usersMany:    errors.New("the file is mapped too often"),
	usersUnknown: fmt.Errorf("%w: it has no memory control groups", ErrNotReported),
}

// loadUsers loads the program that finds them. Without it, nothing else is missing.
func loadUsers(s *Sampler) error {
	entries, err := bpf.View[uint64](s.object, "file_users")
	if err != nil {
		return err
	}
	call, refused := s.object.Call("mapped_by")
	s.users = &fileUsers{entries, call, refused}
	return nil
}

// MappedBy returns the other processes that map the file that this process has mapped at an address. It waits for no process, also not
// for one that holds the lock of its memory. Two equal answers are required, because mappings can change while the kernel's tree of them is
// read.
func MappedBy(s *Sampler, address uint64) (pids []int, err error) {
	if err := s.users.refused; err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReported, err)
	}
	const attempts = 8
	var before []int
	known := false
	for range attempts {
		pids, err = s.users.ask(address)
		switch {
		case err != nil:
			known = false
		case known && slices.Equal(pids, before):
			return pids, nil
		default:
			before, known = pids, true
		}
	}
	if err == nil {
		err = errUsers[usersChanged]
	}
	return nil, err
}

func (u *fileUsers) ask(address uint64) ([]int, error) {
	u.entries[usersAddress], u.entries[usersError], u.entries[usersN] = address, usersUnknown, 0
	if err := u.call(); err != nil {
		return nil, err
	}
	if code := u.entries[usersError]; int64(code) < 0 {
		return nil, fmt.Errorf("asking for the processes that map a file: %w", unix.Errno(-int64(code)))
	} else if code != 0 {
		return nil, errUsers[code]
	}
	var pids []int
	for _, pid := range u.entries[usersFirst:][:u.entries[usersN]] {
		pids = append(pids, int(pid))
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}
