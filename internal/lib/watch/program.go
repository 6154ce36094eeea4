// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"path"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

const (
	maxName = 15  // bytes of a process's name (TASK_COMM_LEN without the zero at its end)
	maxPath = 126 // bytes of an argument that names a file; bpf/include/program.h has the same limit
	// maxAncestors is how many processes may lie between the first process of an application and the one that is inspected.
	maxAncestors = 8
)

// Program returns the name of the program that a process runs: usually its comm, which may contain any bytes. All
// processes of Gramine are its loader. For them it is the name of the application, which is in the loader's arguments.
// bpf/include/program.h is the same in the kernel. The pool reads the arguments, because the process can delay that.
func Program(proc hostfs.Root, reads *reader.Pool, pid int) (string, error) {
	comm, err := proc.Process(pid).Comm()
	if err != nil || !MayBeLoader(comm) {
		return comm, err
	}
	name, err := Application(proc, reads, pid)
	if name == "" {
		name = comm
	}
	return name, err
}

// MayBeLoader reports whether a process has the name of Gramine's loader, or of gramine-direct, which executes
// /proc/self/exe.
func MayBeLoader(comm string) bool { return comm == "loader" || comm == "exe" }

// Application returns the name of the application that a loader of Gramine runs. It is empty if the process is not a loader.
// The error is that of [reader.Of].
func Application(proc hostfs.Root, reads *reader.Pool, pid int) (string, error) {
	for range maxAncestors {
		p := proc.Process(pid)
		args, err := reader.Of(reads, pid, func() ([]string, error) {
			args, _ := p.Args(4) // of a process that has ended there are none
			return args, nil
		})
		if err != nil {
			return "", err
		}
		name, child := application(args)
		if !child {
			return name, nil
		}
		stat, err := p.Stat()
		if err != nil || stat.Parent <= 1 {
			return "", nil
		}
		pid = stat.Parent
	}
	return "", nil
}

// application finds the application in the arguments of a loader: LOADER DIRECTORY/libpal.so init APPLICATION. If they are
// those of a process that the application has created (LOADER DIRECTORY/libpal.so child), child is true.
func application(args []string) (name string, child bool) {
	if len(args) < 3 || args[0] == "" || len(args[0]) > maxPath || len(args[1]) > maxPath || !strings.HasSuffix(args[1], "/libpal.so") {
		return "", false
	}
	if args[2] == "child" {
		return "", true
	}
	if args[2] != "init" || len(args) < 4 || len(args[3]) > maxPath || strings.HasSuffix(args[3], "/") || args[3] == "" {
		return "", false
	}
	name = path.Base(args[3])
	return name[:min(len(name), maxName)], false
}
