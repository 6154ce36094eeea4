// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// ErrRoot is the reason why a process stays root.
var ErrRoot = errors.New("the configuration says that it stays root")

// Account is the user and group of a process.
type Account struct{ UID, GID int }

// Own returns the account of this process.
func Own() Account { return Account{os.Geteuid(), os.Getegid()} }

// FindAccount returns the account of a user, given as a name, UID or UID:GID. A UID needs no entry in the list of users.
// Without an entry its group has the same number.
func FindAccount(s string) (Account, error) {
	id, group, paired := strings.Cut(s, ":")
	uid, notNumber := strconv.Atoi(id)
	if gid, err := strconv.Atoi(group); paired && notNumber == nil && err == nil {
		return Account{uid, gid}, nil
	}
	find := user.LookupId
	if notNumber != nil {
		find = user.Lookup
	}
	u, err := find(id)
	switch {
	case err != nil && notNumber == nil:
		return Account{uid, uid}, nil
	case err != nil:
		return Account{}, fmt.Errorf("finding the user %s: %w; create it, or give a UID with --user", s, err)
	}
	var a Account
	if a.UID, err = strconv.Atoi(u.Uid); err == nil {
		a.GID, err = strconv.Atoi(u.Gid)
	}
	if err != nil {
		return Account{}, fmt.Errorf("reading the user %s: %w", s, err)
	}
	return a, nil
}

// Become makes root the given account, in all threads and permanently. The capabilities stay until [Drop]. Other users
// than root keep their account.
func Become(a Account) error {
	switch {
	case os.Geteuid() != 0:
		return nil
	case a.UID == 0:
		return ErrRoot
	}
	unlimitThreads()
	// The kernel otherwise clears the effective capabilities, and a collector that runs at that moment would fail.
	const bits = cap.SecbitNoRoot | cap.SecbitNoRootLocked | cap.SecbitNoSetUIDFixup | cap.SecbitNoSetUIDFixupLocked
	if _, err := cap.Prctlw(unix.PR_SET_SECUREBITS, uintptr(bits)); err != nil {
		// Without CAP_SETPCAP the permitted capabilities can be kept, and are made effective again below.
		if _, err := cap.Prctlw(unix.PR_SET_KEEPCAPS, 1); err != nil {
			return fmt.Errorf("keeping the capabilities of root: %w", err)
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("leaving the groups of root: %w (it needs CAP_SETGID)", err)
	}
	if err := syscall.Setresgid(a.GID, a.GID, a.GID); err != nil {
		return fmt.Errorf("changing to the group %d: %w (it needs CAP_SETGID)", a.GID, err)
	}
	if err := syscall.Setresuid(a.UID, a.UID, a.UID); err != nil {
		return fmt.Errorf("changing to the user %d: %w (it needs CAP_SETUID)", a.UID, err)
	}
	have := cap.GetProc()
	if err := have.FillFlag(cap.Effective, have, cap.Permitted); err != nil {
		return fmt.Errorf("keeping the capabilities of root: %w", err)
	}
	if err := setCapabilities(have); err != nil {
		return fmt.Errorf("keeping the capabilities of root: %w", err)
	}
	return nil
}

// unlimitThreads removes the limit of the number of threads of the user, as far as the process may. The kernel counts all
// threads of a UID on the machine. Processes with the same UID, in a container for example, could otherwise use up the limit.
// Go's runtime ends the process when it cannot create a thread. An error changes nothing: the limit stays as it was.
func unlimitThreads() {
	if unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}) == nil {
		return
	}
	var now unix.Rlimit // without CAP_SYS_RESOURCE, the hard limit stays
	if unix.Getrlimit(unix.RLIMIT_NPROC, &now) == nil {
		_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: now.Max, Max: now.Max}) // see above
	}
}
