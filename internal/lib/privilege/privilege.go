// SPDX-License-Identifier: Apache-2.0

// Package privilege checks for the capabilities that the agent needs before it starts. After the start it gives up what
// is no longer needed: capabilities, files (Landlock) and system calls (seccomp). It does not know what they are used
// for.
package privilege

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// MissingError names the capabilities that the process lacks.
type MissingError struct {
	Missing []cap.Value
	Binary  string // the program that the advice is about
}

// Error names the missing capabilities and the commands that grant them.
func (e *MissingError) Error() string {
	names := make([]string, len(e.Missing))
	for i, v := range e.Missing {
		names[i] = strings.ToUpper(v.String())
	}
	return fmt.Sprintf("loading eBPF programs needs %s, which this process does not have.\n"+
		"Run it as root:\n  sudo %[2]s ...\n"+
		"or grant the binary what it needs:\n  %[3]s",
		strings.Join(names, " and "), e.Binary, Grant(e.Binary))
}

// Grant returns the command that grants a binary all capabilities that the agent can use without root.
func Grant(binary string) string {
	return "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep " + binary
}

// Held reports whether the process has a capability, named as in capabilities(7). It is false for an unknown name.
func Held(name string) bool {
	v, err := cap.FromName(strings.ToLower(name))
	if err != nil {
		return false
	}
	ok, err := cap.GetProc().GetFlag(cap.Effective, v)
	return err == nil && ok
}

// Check returns a MissingError unless the process may load tracing programs. That needs CAP_BPF and CAP_PERFMON, or
// CAP_SYS_ADMIN, which includes both (Linux 5.8, include/uapi/linux/capability.h).
func Check(binary string) error {
	have := cap.GetProc()
	has := func(v cap.Value) bool { ok, err := have.GetFlag(cap.Effective, v); return err == nil && ok }
	if has(cap.SYS_ADMIN) {
		return nil
	}
	var missing []cap.Value
	for _, v := range []cap.Value{cap.BPF, cap.PERFMON} {
		if !has(v) {
			missing = append(missing, v)
		}
	}
	if missing != nil {
		return &MissingError{Missing: missing, Binary: binary}
	}
	return nil
}

// Role is the work of a process after its start. It decides which privileges the process keeps.
type Role int

// The roles.
const (
	Supervisor Role = iota // starts an agent and a server, again if need be
	Agent                  // only watches; it writes no file
	Server                 // only stores; it reads no other process
)

// kept returns the capabilities that a role keeps. CAP_BPF frees slots on kernels before 5.19, which otherwise refuse
// map updates. CAP_SYS_PTRACE reads /proc of other users' processes. CAP_DAC_READ_SEARCH reads files of other users'
// processes, and renewed certificates. A supervisor keeps what an agent and a server need to start.
func (r Role) kept() []cap.Value {
	switch r {
	case Server:
		return []cap.Value{cap.DAC_READ_SEARCH}
	case Supervisor:
		return []cap.Value{cap.BPF, cap.PERFMON, cap.SYS_PTRACE, cap.DAC_READ_SEARCH, cap.NET_BIND_SERVICE}
	}
	return []cap.Value{cap.BPF, cap.SYS_PTRACE, cap.DAC_READ_SEARCH}
}

// uses reports whether a role uses a capability itself. A supervisor only passes the others on, for which they need not be
// effective. It reads its program file, which may be in a directory of another user.
func (r Role) uses(v cap.Value) bool { return r != Supervisor || v == cap.DAC_READ_SEARCH }

// Passed returns the capabilities that a supervisor passes on to the programs that it starts. Programs of root get all
// capabilities anyway.
func Passed() (all []uintptr) {
	if os.Geteuid() == 0 {
		return nil
	}
	have := cap.GetProc()
	for _, v := range Supervisor.kept() {
		if ok, err := have.GetFlag(cap.Permitted, v); err == nil && ok {
			all = append(all, uintptr(v))
		}
	}
	return all
}

// DieWithParent ends the process when the thread that started it ends. A change of the user undoes an earlier call.
func DieWithParent() error {
	if _, err := cap.Prctlw(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)); err != nil {
		return fmt.Errorf("asking for a signal at the end of the parent: %w", err)
	}
	return nil
}

// Drop gives up all other capabilities, in all threads and permanently, and prevents exec from gaining any. More names
// further capabilities to keep, as in capabilities(7). Drop returns the names of the capabilities that are left.
func Drop(r Role, more ...string) ([]string, error) {
	keep := r.kept()
	for _, name := range more {
		v, err := cap.FromName(name)
		if err != nil {
			return nil, fmt.Errorf("keeping %s: %w", name, err)
		}
		keep = append(keep, v)
	}
	before := cap.GetProc()
	after := cap.NewSet()
	var names []string
	for _, v := range keep {
		if ok, err := before.GetFlag(cap.Permitted, v); err != nil || !ok {
			continue
		}
		err := after.SetFlag(cap.Permitted, true, v)
		if err == nil {
			err = after.SetFlag(cap.Effective, r.uses(v), v)
		}
		if err != nil {
			return nil, fmt.Errorf("keeping %s: %w", v, err)
		}
		names = append(names, v.String())
	}
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := setCapabilities(after); err != nil {
		return nil, fmt.Errorf("dropping capabilities: %w", err)
	}
	return names, nil
}
