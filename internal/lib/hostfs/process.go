// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the files of one process. The kernel writes less into all files except maps and net/unix.
const (
	maxSmall  = 8 << 10
	maxCgroup = 64 << 10
	maxMaps   = 4 << 20
	maxArgs   = 4 << 10
	maxEnv    = 256 << 10
	maxUnix   = 4 << 20
	maxMounts = 4 << 20
)

// Processes lists the IDs of all processes in ascending order. The root must be /proc.
func (r Root) Processes() ([]int, error) { return r.numbers(0) }

// maxStat bounds /proc/stat, which contains a number for each interrupt.
const maxStat = 1 << 20

// BootTime returns the start of the machine in seconds since 1970. The root must be /proc.
func (r Root) BootTime() (uint64, error) {
	data, err := r.Read(maxStat, "stat")
	if err != nil {
		return 0, err
	}
	seconds, ok := parseBootTime(data)
	if !ok {
		return 0, r.malformed("stat")
	}
	return seconds, nil
}

func (r Root) malformed(elem ...string) error {
	return fmt.Errorf("reading %s: not in the form that proc(5) describes", r.Path(elem...))
}

// Process is the directory of a process or of one of its threads. Processes may end at any time, so an error of any
// method can mean that the process has ended.
type Process struct{ Root }

// Process returns a process of the root, which must be /proc.
func (r Root) Process(pid int) Process { return Process{Root{r.Path(strconv.Itoa(pid))}} }

// Self returns this process.
func (r Root) Self() Process { return Process{Root{r.Path("self")}} }

// initialPIDs is the name of the first PID namespace. The kernel gives it the same number on every machine
// (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const initialPIDs = "pid:[4026531836]"

// SeesAllProcesses reports whether this process is in the PID namespace of the host, and the name of its own. A process in
// another one, as in a container, sees only those in it, and knows them by other IDs than the kernel's eBPF programs. Without
// PID namespaces in the kernel, or without the file, it returns true. The root must be /proc.
func (r Root) SeesAllProcesses() (bool, string) {
	name, err := r.Self().Link("ns", "pid")
	return err != nil || name == initialPIDs, name
}

// MachineRoot returns the directory of the machine's files: "/", or in a container, which has others, the root of the first
// process. For that the container needs the PID namespace of the host. The error means that this process may not read the
// files in the directory, because it lacks CAP_SYS_PTRACE or a security module denies it. The root must be /proc.
func (r Root) MachineRoot() (string, error) {
	first := r.Path("1", "root")
	theirs, err := os.Stat(first + "/.")
	if err != nil {
		if r.sameRoot() {
			return "/", nil
		}
		return first, fmt.Errorf("this process is in a container and cannot read the files of the machine: %w", err)
	}
	if own, err := os.Stat("/"); err != nil || os.SameFile(own, theirs) {
		return "/", nil
	}
	return first, nil
}

// sameRoot compares the file systems of this process and of the first one. Every process may read them. It returns true if one of
// them is not known.
func (r Root) sameRoot() bool {
	var roots [2]string
	for i, p := range []Process{r.Self(), r.Process(1)} {
		data, err := p.Read(maxMounts, "mountinfo")
		if err != nil {
			return true
		}
		roots[i] = parseRootMount(data)
	}
	return roots[0] == roots[1] || roots[0] == "" || roots[1] == ""
}

// Thread returns a thread of the process. It has the same files as a process.
func (p Process) Thread(tid int) Process { return Process{Root{p.Path("task", strconv.Itoa(tid))}} }

// Threads lists the IDs of the first threads in ascending order, at most the given number. With 0 it lists all.
func (p Process) Threads(most int) ([]int, error) { return p.numbers(most, "task") }

// Living returns a process, or one of its threads if the first has ended before them. Then the directory of the process has no program,
// mappings, memory and root directory any more, and those of its threads have. The root must be /proc. It returns an error if there
// is no such process.
func (r Root) Living(pid int) (Process, error) {
	p := r.Process(pid)
	stat, err := p.Thread(pid).Stat()
	if err != nil || !stat.firstEnded() || stat.Ended() {
		return p, err
	}
	tids, _ := p.Threads(2) // the process may end meanwhile
	for _, tid := range tids {
		if tid != pid {
			return p.Thread(tid), nil
		}
	}
	return p, nil
}

// Stat reads the file stat. For a process the kernel adds up the times of all threads, which is slow with thousands of
// threads. The stat of the first thread has the same name and start.
func (p Process) Stat() (Stat, error) {
	data, err := p.Read(maxSmall, "stat")
	if err != nil {
		return Stat{}, err
	}
	s, ok := parseStat(data)
	if !ok {
		return Stat{}, p.malformed("stat")
	}
	return s, nil
}

// Comm returns the name that the process has chosen. It may contain any bytes.
func (p Process) Comm() (string, error) {
	data, err := p.Read(maxSmall, "comm")
	return strings.TrimSuffix(string(data), "\n"), err
}

// Args returns the first arguments, at most the given number.
func (p Process) Args(most int) ([]string, error) {
	data, err := p.Read(maxArgs, "cmdline")
	return parseArgs(data, most), err
}

// Environment returns those variables that the program was started with and whose names are wanted, as getenv(3) finds
// them: the first of each name counts. It returns errTooLong if the environment has more than 256 KiB, because a
// missing variable may then be in the rest, and errOverwritten if the program has overwritten it.
func (p Process) Environment(wanted map[string]bool) (map[string]string, error) {
	data, err := p.ReadWhole(maxEnv, "environ")
	if err != nil {
		return nil, err
	}
	found, ok := parseEnvironment(data, wanted)
	if !ok {
		return nil, &os.PathError{Op: "read", Path: p.Path("environ"), Err: errOverwritten}
	}
	return found, nil
}

// Cgroup returns the path of the control group in one hierarchy: that of a version 1 controller, or version 2 for "".
// The path is empty when the process is not in that hierarchy.
func (p Process) Cgroup(controller string) (string, error) {
	data, err := p.Read(maxCgroup, "cgroup")
	return parseCgroup(data, controller), err
}

// Mappings calls f for each mapping of memory. The path is valid until f returns.
func (p Process) Mappings(f func(Mapping)) error {
	return within(unix.AT_FDCWD, p.Path("maps"), maxMaps, 0, func(data []byte) { eachMapping(data, f) })
}

// UnixSockets calls f for each Unix socket with a name in the network namespace of the process, with the inode that its open
// files name. "@" begins an abstract name. A name may contain any bytes, including line feeds and text that looks like
// further lines. The name is valid until f returns.
func (p Process) UnixSockets(f func(inode uint64, name []byte)) error {
	return within(unix.AT_FDCWD, p.Path("net", "unix"), maxUnix, 0, func(data []byte) { eachUnixSocket(data, f) })
}

// SocketInode returns the inode of a socket from the target of the link of an open file, such as "socket:[7]".
func SocketInode(target string) (inode uint64, ok bool) {
	number, found := strings.CutPrefix(target, "socket:[")
	number, ended := strings.CutSuffix(number, "]")
	inode, err := strconv.ParseUint(number, 10, 64)
	return inode, found && ended && err == nil
}

// Schedstat reads the time on a CPU and the time ready without one. It returns false when the kernel does not account
// them.
func (p Process) Schedstat() (run, wait time.Duration, ok bool) {
	data, err := p.Read(maxSmall, "schedstat")
	if err != nil {
		return 0, 0, false
	}
	return parseSchedstat(data)
}

// Switches reads the number of context switches from the file status.
func (p Process) Switches() (voluntary, involuntary uint64, ok bool) {
	data, err := p.Read(maxSmall, "status")
	if err != nil {
		return 0, 0, false
	}
	return parseSwitches(data)
}

// User returns the real user ID. A process cannot choose it, and a program that runs with another user's rights keeps it.
func (p Process) User() (id uint32, ok bool) {
	data, err := p.Read(maxSmall, "status")
	if err != nil {
		return 0, false
	}
	return parseUser(data)
}

// Memory reads the resident memory from the file status. A kernel thread and an ended process have none.
func (p Process) Memory() (Memory, bool) {
	data, err := p.Read(maxSmall, "status")
	if err != nil {
		return Memory{}, false
	}
	return parseMemory(data)
}

// Size returns the number of mapped pages from the file statm. It is 0 for a kernel thread and for an ended process.
func (p Process) Size() (pages uint64, err error) {
	data, err := p.Read(maxSmall, "statm")
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(data, []byte(" "))
	if pages, err = strconv.ParseUint(string(first), 10, 64); err != nil {
		return 0, p.malformed("statm")
	}
	return pages, nil
}

// AllowedCPUs reads the CPUs that a thread may run on from the file status, in ascending order.
func (p Process) AllowedCPUs() ([]int, bool) {
	const most = 32 << 10 // a machine of 8192 CPUs has 2 KiB of masks and up to 20 KiB of lists
	data, err := p.Read(most, "status")
	if err != nil {
		return nil, false
	}
	return parseAllowed(data)
}

// Allowed returns the lists of CPUs and of memory nodes that a process may use from the file status, as the kernel writes them.
// A list is empty if it is not known.
func (p Process) Allowed() (cpus, nodes string) {
	const most = 64 << 10
	data, err := p.Read(most, "status")
	if err != nil {
		return "", ""
	}
	return statusLine(data, "Cpus_allowed_list"), statusLine(data, "Mems_allowed_list")
}

// NamespacePID returns the ID that the process has in its own PID namespace.
func (p Process) NamespacePID() (pid int, ok bool) {
	const most = 16 << 10
	data, err := p.Read(most, "status")
	if err != nil {
		return 0, false
	}
	return parseNamespacePID(data)
}

// WaitsIn returns the kernel function that a thread sleeps in. It is empty when there is none or the kernel hides it.
func (p Process) WaitsIn() string {
	data, err := p.Read(maxSmall, "wchan")
	if err != nil {
		return ""
	}
	return parseWchan(data)
}

// Executable returns the path of the program as the kernel reports it. The kernel appends " (deleted)" when the file
// was removed.
func (p Process) Executable() (string, error) { return p.Link("exe") }

// Undeleted removes the kernel's note that the file was removed from a path.
func Undeleted(path string) string { return strings.TrimSuffix(path, " (deleted)") }

// FileID identifies a file.
type FileID struct{ Device, Inode uint64 }

// File identifies a file and its version.
type File struct {
	FileID
	Size     int64
	Modified int64 // nanoseconds since 1970
}

// ExecutableFile identifies the file that the process runs, even when its path now names another file. A kernel thread
// has none.
func (p Process) ExecutableFile() (File, error) {
	path := p.Path("exe")
	var info unix.Statx_t
	const wanted = unix.STATX_INO | unix.STATX_SIZE | unix.STATX_MTIME
	// A network file system answers from its cache, because its server may be gone.
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, wanted, &info); err != nil {
		return File{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return File{
		FileID: FileID{unix.Mkdev(info.Dev_major, info.Dev_minor), info.Ino}, Size: int64(info.Size),
		Modified: info.Mtime.Sec*1e9 + int64(info.Mtime.Nsec),
	}, nil
}

// HasOpen reports whether one of the first open files of the process satisfies is. The kernel names sockets and pipes
// too, as "socket:[INODE]".
func (p Process) HasOpen(most int, is func(target string) bool) bool {
	names, _ := p.Names(most, "fd") // on an error the process has ended, or may not be read
	for _, name := range names {
		if target, err := p.Link("fd", name); err == nil && is(target) {
			return true
		}
	}
	return false
}
