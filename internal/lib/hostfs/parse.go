// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/text"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on every architecture that Go supports.
const tick = time.Second / 100

// Stat holds the used fields of /proc/PID/stat.
type Stat struct {
	Comm    string        // may contain any bytes
	State   string        // one letter
	Parent  int           // process ID of the parent; 0 for the first process
	CPU     time.Duration // user and system time
	Started time.Duration // time after the start of the machine
	Threads int           // of the process, with the first one until all have ended
	Stack   uint64        // where the stack begins, which differs after execve(2); 0 if it may not be read
}

// Ended reports whether the process has ended and its parent has not yet waited for it. A process ends with its last thread: the
// first one may end before the others.
func (s Stat) Ended() bool { return s.firstEnded() && s.Threads <= 1 }

// firstEnded reports whether the thread of the file has ended.
func (s Stat) firstEnded() bool { return s.State == "Z" || s.State == "X" }

// parseStat parses fields 2, 3, 4, 14, 15, 20, 22 and 28 of proc_pid_stat(5). The name may contain any bytes, including
// parentheses and newlines. A time that overflows Duration is refused.
func parseStat(data []byte) (Stat, bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Stat{}, false
	}
	const first, parent, user, system, threads, start, stack = 3, 4, 14, 15, 20, 22, 28 // first is the field after the name
	fields := bytes.Fields(data[end+1:])
	if len(fields) <= start-first {
		return Stat{}, false
	}
	var times [3]time.Duration
	for i, at := range []int{user, system, start} {
		n, err := strconv.ParseUint(string(fields[at-first]), 10, 64)
		if err != nil || n > uint64(math.MaxInt64/tick) {
			return Stat{}, false
		}
		times[i] = time.Duration(n) * tick
	}
	ppid, err := strconv.ParseInt(string(fields[parent-first]), 10, 32)
	if err != nil || ppid < 0 {
		return Stat{}, false
	}
	s := Stat{
		Comm: string(data[open+1 : end]), State: string(fields[0]), Parent: int(ppid),
		CPU: times[0] + times[1], Started: times[2],
	}
	if s.Threads, err = strconv.Atoi(string(fields[threads-first])); err != nil {
		return Stat{}, false
	}
	if len(fields) > stack-first {
		s.Stack, _ = strconv.ParseUint(string(fields[stack-first]), 10, 64) // 0 if it is malformed
	}
	return s, s.CPU >= 0
}

// parseBootTime parses the line "btime SECONDS" of proc_stat(5).
func parseBootTime(data []byte) (uint64, bool) {
	for line := range bytes.Lines(data) {
		if value, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 63)
			return n, err == nil
		}
	}
	return 0, false
}

// parseSchedstat parses the time on a CPU, the time ready without one, and the number of runs. Kernels without
// CONFIG_SCHED_INFO write zeros (proc_pid_schedstat, fs/proc/base.c).
func parseSchedstat(data []byte) (run, wait time.Duration, ok bool) {
	fields := strings.Fields(string(data))
	if len(fields) != 3 {
		return 0, 0, false
	}
	var n [2]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil || n[i] < 0 {
			return 0, 0, false
		}
	}
	return time.Duration(n[0]), time.Duration(n[1]), fields[2] != "0"
}

// parseSwitches parses the context switches of proc_pid_status(5). A process chooses its name, but the name cannot
// imitate one of the lines: the kernel escapes newlines there.
func parseSwitches(data []byte) (voluntary, involuntary uint64, ok bool) {
	found := 0
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		into := &voluntary
		switch name {
		case "voluntary_ctxt_switches":
		case "nonvoluntary_ctxt_switches":
			into = &involuntary
		default:
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return 0, 0, false
		}
		*into = n
		found++
	}
	return voluntary, involuntary, found == 2
}

// parseUser parses the first number of the line Uid of proc_pid_status(5), the real user ID.
func parseUser(data []byte) (id uint32, ok bool) {
	for line := range strings.Lines(string(data)) {
		if rest, found := strings.CutPrefix(line, "Uid:"); found {
			fields := strings.Fields(rest)
			if len(fields) != 4 {
				return 0, false
			}
			n, err := strconv.ParseUint(fields[0], 10, 32)
			return uint32(n), err == nil
		}
	}
	return 0, false
}

// statusLine returns the value of a line of proc_pid_status(5), or "". A process cannot imitate a line with its name, because
// the kernel escapes newlines there.
func statusLine(status []byte, name string) string {
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name+":"); found && strings.HasSuffix(line, "\n") {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// parseNamespacePID returns the last number of the line NSpid of proc_pid_status(5).
func parseNamespacePID(status []byte) (pid int, ok bool) {
	fields := strings.Fields(statusLine(status, "NSpid"))
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[len(fields)-1], 10, 31)
	return int(n), err == nil && n > 0
}

// parseAllowed parses the line Cpus_allowed_list of proc_pid_status(5).
func parseAllowed(data []byte) ([]int, bool) {
	for line := range strings.Lines(string(data)) {
		if list, found := strings.CutPrefix(line, "Cpus_allowed_list:"); found {
			cpus, err := ParseCPUs(list)
			return cpus, err == nil
		}
	}
	return nil, false
}

// Memory is the resident memory of a process in bytes.
type Memory struct{ Resident, Files, Peak uint64 }

// parseMemory parses VmRSS, RssFile and VmHWM of proc_pid_status(5).
func parseMemory(data []byte) (m Memory, ok bool) {
	found := 0
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		into := &m.Resident
		switch name {
		case "VmRSS":
		case "RssFile":
			into = &m.Files
		case "VmHWM":
			into = &m.Peak
		default:
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54)
		if err != nil {
			return Memory{}, false
		}
		*into = n * 1024
		found++
	}
	return m, found == 3
}

// parseWchan parses the kernel function that a thread sleeps in. "0" means none or hidden. Suffixes added by the
// compiler are removed.
func parseWchan(data []byte) string {
	name, _, _ := strings.Cut(strings.TrimSpace(string(data)), ".")
	if name == "0" {
		return ""
	}
	return text.Label(name)
}

// parseArgs splits a command line at its NUL bytes and returns the first arguments.
func parseArgs(cmdline []byte, most int) []string {
	args := strings.SplitN(strings.TrimSuffix(string(cmdline), "\x00"), "\x00", most+1)
	return args[:min(len(args), most)]
}

// eachUnixSocket parses net/unix: Num RefCount Protocol Flags Type St Inode Path (net/unix/af_unix.c, unix_seq_show).
func eachUnixSocket(data []byte, f func(inode uint64, name []byte)) {
	const before = 6 // fields before the inode
	for line := range bytes.Lines(data) {
		rest := bytes.TrimSuffix(line, []byte("\n"))
		for range before {
			_, rest, _ = bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
		}
		number, name, named := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
		if inode, err := strconv.ParseUint(string(number), 10, 64); err == nil && named && len(name) > 0 {
			f(inode, name)
		}
	}
}

// parseEnvironment finds variables in strings NAME=VALUE that end in a null byte, environ(7). It returns false if there is
// anything else, because the program has overwritten them, or nothing, as for a moment while a program is executed.
func parseEnvironment(data []byte, wanted map[string]bool) (found map[string]string, ok bool) {
	if len(data) == 0 {
		return nil, false
	}
	found = make(map[string]string)
	for entry := range strings.SplitAfterSeq(string(data), "\x00") {
		if entry == "" {
			break // the end
		}
		name, value, is := strings.Cut(strings.TrimSuffix(entry, "\x00"), "=")
		if !is {
			return nil, false
		}
		if _, known := found[name]; wanted[name] && !known {
			found[name] = value
		}
	}
	return found, true
}

// parseCgroup finds the path of one hierarchy in lines ID:CONTROLLERS:PATH, cgroups(7). Version 2 has the ID 0 and no
// controllers. The path may contain colons.
func parseCgroup(data []byte, controller string) string {
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if controller == "" && parts[0] == "0" || controller != "" && slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2]
		}
	}
	return ""
}

// Mapping is one line of /proc/PID/maps.
type Mapping struct {
	Start, End, Offset uint64
	Executable         bool
	Writable           bool
	// File is the mapped file, with the device and inode of the file system that has it. stat(2) may show others: a
	// subvolume of Btrfs has a device of its own.
	File FileID
	// Path is an absolute file name, a name of the kernel such as [heap], or empty. It may contain blanks, and the
	// kernel writes a newline as \012.
	Path []byte
}

// IsFile reports whether the mapping is of a file.
func (m Mapping) IsFile() bool { return len(m.Path) > 0 && m.Path[0] == '/' }

// eachMapping parses proc_pid_maps(5). It skips lines in any other format.
func eachMapping(data []byte, f func(Mapping)) {
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		if m, ok := parseMapping(line); ok {
			f(m)
		}
	}
}

// parseMapping parses START-END RIGHTS OFFSET DEVICE INODE, and PATH if present.
func parseMapping(line []byte) (m Mapping, ok bool) {
	var fields [5][]byte
	for i := range fields {
		var found bool
		if fields[i], line, found = bytes.Cut(line, []byte(" ")); !found && i < len(fields)-1 {
			return Mapping{}, false
		}
	}
	from, to, found := bytes.Cut(fields[0], []byte("-"))
	start, ok1 := parseHex(from)
	end, ok2 := parseHex(to)
	offset, ok3 := parseHex(fields[2])
	file, ok4 := parseFileID(fields[3], fields[4])
	if !found || !ok1 || !ok2 || !ok3 || !ok4 {
		return Mapping{}, false
	}
	rights := fields[1]
	return Mapping{
		Start: start, End: end, Offset: offset, File: file,
		Executable: len(rights) > 2 && rights[2] == 'x', Writable: len(rights) > 1 && rights[1] == 'w', Path: bytes.TrimLeft(line, " "),
	}, true
}

// parseFileID parses MAJOR:MINOR in hexadecimal and an inode in decimal.
func parseFileID(device, inode []byte) (FileID, bool) {
	major, minor, found := bytes.Cut(device, []byte(":"))
	high, ok1 := parseHex(major)
	low, ok2 := parseHex(minor)
	if !found || !ok1 || !ok2 || high > math.MaxUint32 || low > math.MaxUint32 || len(inode) == 0 {
		return FileID{}, false
	}
	id := FileID{Device: unix.Mkdev(uint32(high), uint32(low))}
	for _, c := range inode {
		if c < '0' || c > '9' || id.Inode > (math.MaxUint64-9)/10 {
			return FileID{}, false
		}
		id.Inode = 10*id.Inode + uint64(c-'0')
	}
	return id, true
}

// parseHex parses a number without allocating a string. A process has up to 65,530 mappings.
func parseHex(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 || len(digits) > 16 {
		return 0, false
	}
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}

// parseRootMount reads mountinfo and returns what is mounted at "/": the device and the directory in it. The last mount hides those
// before it. It returns "" if there is none.
func parseRootMount(data []byte) (root string) {
	for line := range bytes.Lines(data) {
		if f := bytes.Split(line, []byte(" ")); len(f) > 5 && string(f[4]) == "/" {
			root = string(f[2]) + " " + string(f[3])
		}
	}
	return root
}
