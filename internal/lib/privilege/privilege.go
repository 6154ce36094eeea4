// SPDX-License-Identifier: Apache-2.0

// Package privilege checks for the capabilities that the agent needs before it starts, and gives up what
// it does not need afterwards: capabilities, files (Landlock) and system calls (seccomp). It knows
// nothing of what they are used for.
package privilege

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// MissingError names the capabilities that the process lacks.
type MissingError struct {
	Missing []cap.Value
	Binary  string // what the advice is about
}

// Error says what is missing and the commands that grant it.
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

// Grant is the command that grants a binary all that the agent can make use of without being root.
func Grant(binary string) string {
	return "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep " + binary
}

// Held tells whether the process may make use of a capability, named as in capabilities(7). An unknown
// one is not held.
func Held(name string) bool {
	v, err := cap.FromName(strings.ToLower(name))
	if err != nil {
		return false
	}
	ok, err := cap.GetProc().GetFlag(cap.Effective, v)
	return err == nil && ok
}

// Check returns a MissingError unless the process may load tracing programs: CAP_BPF and CAP_PERFMON,
// or CAP_SYS_ADMIN, which includes both (Linux 5.8, include/uapi/linux/capability.h).
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

// Role is what a process does once it has started, and so what it goes on to need.
type Role int

// The roles.
const (
	Up     Role = iota // watches the machine and stores
	Agent              // only watches: it writes no file
	Server             // only stores: it looks at no other process
)

// kept are the capabilities that a role goes on with: CAP_BPF to free slots on kernels before 5.19,
// which else refuse map updates; CAP_SYS_PTRACE to read /proc of other users' processes. With
// CAP_DAC_READ_SEARCH files of others can be read: of processes, and certificates that are renewed.
func (r Role) kept() []cap.Value {
	if r == Server {
		return []cap.Value{cap.DAC_READ_SEARCH}
	}
	return []cap.Value{cap.BPF, cap.SYS_PTRACE, cap.DAC_READ_SEARCH}
}

// Drop gives up every other capability, in all threads and for good, and forbids to gain any by exec. More
// are kept by name, as in capabilities(7). It returns the names of those that are left.
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
		for _, flag := range []cap.Flag{cap.Permitted, cap.Effective} {
			if err := after.SetFlag(flag, true, v); err != nil {
				return nil, fmt.Errorf("keeping %s: %w", v, err)
			}
		}
		names = append(names, v.String())
	}
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := after.SetProc(); err != nil {
		return nil, fmt.Errorf("dropping capabilities: %w", err)
	}
	return names, nil
}
