// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// errUnsupported reports that the kernel, or the container around the process, does not offer a mechanism.
var errUnsupported = errors.New("not available on this kernel")

// ErrWatches is the reason why a process that watches others is not confined by Landlock. The kernel would refuse it
// /proc/PID/exe, fd and root of every process outside. Neither capabilities nor rules change that (hook_ptrace_access_check
// in security/landlock/task.c).
var ErrWatches = errors.New("Landlock would hide the other processes, which the agent must read")

// The file system rights that a process keeps only below the given directories. All rights to read stay, because kernel
// files, certificates and time zones can be anywhere.
const (
	writing = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg
	handled = writing | ll.AccessFSExecute | ll.AccessFSIoctlDev |
		ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSMakeFifo | ll.AccessFSMakeSock | ll.AccessFSMakeSym
	scopes = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
)

// LandlockVersion returns the version of the kernel's Landlock interface, at least 1. Without Landlock the error wraps
// errUnsupported.
func LandlockVersion() (int, error) {
	v, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, fmt.Errorf("Landlock is %w: it was not enabled at boot (lsm=landlock,...)", errUnsupported)
	case errors.Is(err, unix.ENOSYS):
		return 0, fmt.Errorf("Landlock is %w: the kernel was built without CONFIG_SECURITY_LANDLOCK", errUnsupported)
	case err != nil: // a container's filter of system calls
		return 0, fmt.Errorf("Landlock is %w: %w", errUnsupported, err)
	}
	return v, nil
}

// Landlock confines all threads permanently. They can change files only below the given directories, execute nothing,
// and reach no outside process by signals or abstract sockets. Directories that do not exist are skipped. Older
// versions of Landlock enforce what they support.
func Landlock(r Role, directories []string) error {
	if r != Server {
		return ErrWatches
	}
	if _, err := LandlockVersion(); err != nil {
		return err
	}
	config, err := landlock.NewConfig(landlock.AccessFSSet(handled), landlock.ScopedSet(scopes))
	if err != nil {
		return fmt.Errorf("creating the Landlock ruleset: %w", err)
	}
	data := landlock.PathAccess(writing, directories...).IgnoreIfMissing()
	if err := config.BestEffort().Restrict(data); err != nil {
		return fmt.Errorf("confining the process by Landlock: %w", err)
	}
	return nil
}
