// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

const (
	// maxMapped is the number of mapped files, and maxUses that of pairs of a process and a file. If there are more, no probe is set,
	// because it is not known which processes the kernel would wait for.
	maxMapped, maxUses = 1 << 16, 1 << 20
	// maxUnread is the number of processes whose mappings are not known, in the same way.
	maxUnread = 1 << 10
)

// users are the processes that map each file ([host.ErrUnsafe]).
type users struct {
	host    host.Processes
	now     scan
	before  scan
	carried map[int]bool // processes of before that did not answer this time
	unread  []unread     // processes whose mappings are not known
	unknown error        // why any process may be missing; nil if none is
}

// scan has the mapped files of all processes at one time.
type scan struct {
	of    map[hostfs.FileID][]int // by file as mappings show it
	uses  int                     // in of
	noted map[int]execution       // the processes in of
}

func newScan() scan { return scan{of: map[hostfs.FileID][]int{}, noted: map[int]execution{}} }

// execution identifies the program that a process runs without asking the process. It is part of host.Program.
type execution struct {
	start time.Duration
	stack uint64
}

// unread is a process that did not answer and has not answered before.
type unread struct {
	pid   int
	owner tenant.Tenant
	root  string // its mount namespace; empty if it is not known
	err   error
}

func newUsers(h host.Processes) *users { return &users{host: h, now: newScan(), before: newScan()} }

// begin begins a scan of all processes.
func (u *users) begin() {
	u.before, u.now, u.carried, u.unread, u.unknown = u.now, newScan(), map[int]bool{}, nil, nil
}

// incomplete notes that any process may be missing.
func (u *users) incomplete(why error) { u.unknown = why }

// note notes which files a process maps. The rights of the mappings do not matter: the kernel also takes the lock of a process that
// can only read a file, but could make the mapping executable (valid_vma in kernel/events/uprobes.c).
func (u *users) note(pid int, program host.Program, maps []hostfs.Mapping) {
	u.now.noted[pid] = execution{program.Start, program.Stack}
	for _, m := range maps {
		if !u.use(pid, m.File) {
			return
		}
	}
}

func (u *users) use(pid int, file hostfs.FileID) bool {
	of := u.now.of[file]
	if len(of) > 0 && of[len(of)-1] == pid {
		return true
	}
	if u.now.uses >= maxUses || of == nil && len(u.now.of) >= maxMapped {
		u.incomplete(errors.New("the processes of the machine map too many files"))
		return false
	}
	u.now.of[file] = append(of, pid)
	u.now.uses++
	return true
}

// silent notes that the mappings of a process could not be read. If it has not ended, it maps what it mapped at the scan before, or
// it is not known what.
func (u *users) silent(pid int, err error) {
	if !reader.Unanswered(err) {
		return
	}
	process := u.host.Of(uint32(pid))
	if before, noted := u.before.noted[pid]; noted {
		if stat, err := process.Thread(pid).Stat(); err == nil && before == (execution{stat.Started, stat.Stack}) {
			u.now.noted[pid], u.carried[pid] = before, true // finish adds its files
			return
		}
	}
	if len(u.unread) >= maxUnread {
		u.incomplete(fmt.Errorf("more than %d processes do not answer", maxUnread))
		return
	}
	root, _ := process.Link("ns", "mnt") // it does not need the lock of the memory
	u.unread = append(u.unread, unread{pid, u.host.Reads.Tenant(pid), root, err})
}

// finish ends a scan.
func (u *users) finish() {
	if len(u.carried) == 0 {
		return
	}
	for file, of := range u.before.of {
		for _, pid := range of {
			if u.carried[pid] && !u.use(pid, file) {
				return
			}
		}
	}
}

// answer returns an error if a process that maps a file holds the lock of its memory, or may do so. mappedBy returns the processes that
// map it. On kernels that never report them those of the scan count, and a process with unknown mappings may be one of them. Another
// error is one of this time: the scan does not know processes that have ended and whose memory is still held.
func (u *users) answer(file hostfs.FileID, mappedBy func() ([]int, error)) error {
	of := u.now.of[file]
	switch all, err := mappedBy(); {
	case err == nil:
		of = slices.Concat(of, all)
	case !errors.Is(err, profiling.ErrNotReported):
		return fmt.Errorf("%w: %w", host.ErrUnsafe, err)
	case u.unknown != nil:
		return fmt.Errorf("%w: %w", host.ErrUnsafe, u.unknown)
	default:
		if one := u.mayMap(of); one != nil {
			return fmt.Errorf("%w: process %d: %w", host.ErrUnsafe, one.pid, one.err)
		}
	}
	for _, pid := range of {
		if err := u.host.Answers(uint32(pid)); err != nil {
			return fmt.Errorf("%w: process %d: %w", host.ErrUnsafe, pid, err)
		}
	}
	return nil
}

// mayMap returns a process with unknown mappings that may map a file of these processes, or nil. One of another tenant in another mount
// namespace, such as another container, has other files.
func (u *users) mayMap(of []int) *unread {
	if len(u.unread) == 0 {
		return nil
	}
	roots, owners := map[string]bool{}, map[tenant.Tenant]bool{}
	for _, pid := range of {
		root, _ := u.host.Of(uint32(pid)).Link("ns", "mnt")
		roots[root], owners[u.host.Reads.Tenant(pid)] = true, true
	}
	for i := range u.unread {
		if one := &u.unread[i]; len(of) == 0 || one.root == "" || roots[""] || roots[one.root] || owners[one.owner] {
			return one
		}
	}
	return nil
}
