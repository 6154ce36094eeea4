// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Other users choose a process's name, arguments, mappings and often its control group.

func FuzzStat(f *testing.F) {
	f.Add([]byte(statLine("a) S (", "R", 1, 2, 3)), "sh", uint64(4711))
	f.Add([]byte("7 (sh) S"), "a) b\n (c", uint64(math.MaxUint64))
	f.Add([]byte("7 ()"), "\xff", uint64(math.MaxInt64/tick))
	f.Fuzz(func(t *testing.T, data []byte, name string, start uint64) {
		if s, ok := parseStat(data); ok && (s.CPU < 0 || s.Started < 0 || s.State == "" || !bytes.Contains(data, []byte("("+s.Comm+")"))) {
			t.Errorf("%q is %+v", data, s)
		}
		// The kernel writes any name, and the parser reads it back.
		line := statLine(name, "S", 1, 2, start)
		s, ok := parseStat([]byte(line))
		if fits := start <= uint64(math.MaxInt64/tick); ok != fits {
			t.Errorf("%q: %v, want %v", line, ok, fits)
		}
		if want := (Stat{Comm: name, State: "S", Parent: 1, CPU: 3 * tick, Started: time.Duration(start) * tick, Threads: 13}); ok && s != want {
			t.Errorf("%q is %+v, want %+v", line, s, want)
		}
	})
}

func FuzzBootTime(f *testing.F) {
	f.Add([]byte("cpu 1\nbtime 1700000000\n"))
	f.Add([]byte("btime 18446744073709551615\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, ok := parseBootTime(data); ok && (n > math.MaxInt64 || !bytes.Contains(data, []byte("btime "))) {
			t.Errorf("%q: the machine started at %d", data, n)
		}
	})
}

func FuzzSchedstat(f *testing.F) {
	f.Add([]byte("2500000000 125000000 9\n"))
	f.Add([]byte("0 0 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if run, wait, ok := parseSchedstat(data); ok && (run < 0 || wait < 0) {
			t.Errorf("%q: %v, %v", data, run, wait)
		}
	})
}

func FuzzSwitches(f *testing.F) {
	const lines = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"
	f.Add([]byte("Name:\tx\n" + lines))
	f.Add([]byte("Name:\tvoluntary_ctxt_switches:\\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, alone := parseSwitches(data)
		v, i, ok := parseSwitches([]byte("Name:\t" + strings.ReplaceAll(string(data), "\n", "\\n") + "\n" + lines))
		if !ok || v != 5 || i != 7 {
			t.Errorf("a name changes the numbers: %d, %d, %v", v, i, ok)
		}
		if alone && !bytes.Contains(data, []byte("voluntary_ctxt_switches:")) {
			t.Errorf("%q has numbers", data)
		}
	})
}

// FuzzRootMount: users choose names of directories and file systems. The kernel escapes white space in them.
func FuzzRootMount(f *testing.F) {
	f.Add([]byte("x"))
	f.Add([]byte("1 0 9:9 / / rw"))
	f.Add([]byte("\u00a0/\u00a0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if root := parseRootMount(data); strings.Contains(root, "\n") {
			t.Errorf("%q is a root", root)
		}
		name := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(string(data))
		mounts := "1 0 8:1 / / rw - ext4 d rw\n2 1 0:5 /a" + name + " /b" + name + " rw - t " + name + " rw\n"
		if root := parseRootMount([]byte(mounts)); root != "8:1 /" {
			t.Errorf("a name changes the root to %q", root)
		}
	})
}

// FuzzStatus: a process chooses its name, which is the first line.
func FuzzStatus(f *testing.F) {
	const lines = "Uid:\t1000\t0\t0\t0\nNSpid:\t12\t7\nVmHWM:\t  9 kB\nVmRSS:\t  8 kB\nRssFile:\t  2 kB\nCpus_allowed_list:\t0-3\n"
	f.Add([]byte("x"))
	f.Add([]byte("NSpid:\t9\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if pid, ok := parseNamespacePID(data); ok && pid <= 0 {
			t.Errorf("%q is process %d", data, pid)
		}
		status := []byte("Name:\t" + strings.ReplaceAll(string(data), "\n", "\\n") + "\n" + lines)
		if pid, ok := parseNamespacePID(status); !ok || pid != 7 || statusLine(status, "Cpus_allowed_list") != "0-3" {
			t.Errorf("a name changes the ID to %d, %t", pid, ok)
		}
		if user, ok := parseUser(status); !ok || user != 1000 {
			t.Errorf("a name changes the user to %d, %t", user, ok)
		}
		if m, ok := parseMemory(status); !ok || m != (Memory{Resident: 8 << 10, Files: 2 << 10, Peak: 9 << 10}) {
			t.Errorf("a name changes the memory to %+v, %t", m, ok)
		}
	})
}

func FuzzUnixSockets(f *testing.F) {
	f.Add([]byte("Num       RefCount Protocol Flags    Type St Inode Path\n0000000000000000: 00000002 00000000 00010000 0001 01 31415 @/gramine/7\n"))
	f.Add([]byte("0: 2 0 0 1 1 18446744073709551616 /x\n0: 2 0 0 1 1 9\n 1 2 3"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const line = "0000000000000000: 00000003 00000000 00000000 0001 03     4711 @/a b\n"
		last := uint64(0)
		n := 0
		lines := strings.ReplaceAll(string(data), "\n", "") + "\n" + line
		eachUnixSocket([]byte(lines), func(inode uint64, name []byte) {
			if last = inode; len(name) == 0 || !strings.Contains(lines, string(name)) {
				t.Errorf("%q is not in %q", name, lines)
			}
			n++
		})
		if last != 4711 || n > 2 {
			t.Errorf("%q hides the last line: %d sockets, %d", data, n, last)
		}
		if inode, ok := SocketInode(string(data)); ok && !bytes.HasPrefix(data, []byte("socket:[")) {
			t.Errorf("%q is the socket %d", data, inode)
		}
	})
}

func FuzzWchan(f *testing.F) {
	f.Add([]byte("poll_schedule_timeout.constprop.0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w := parseWchan(data); !utf8.ValidString(w) || strings.Contains(w, ".") {
			t.Errorf("%q sleeps in %q", data, w)
		}
	})
}

func FuzzEnvironment(f *testing.F) {
	f.Add([]byte("A=1\x00B=2\x00A=3\x00"), "A")
	f.Add([]byte("=x\x00A\x00A==\x00"), "A")
	f.Add([]byte("A=1"), "")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		found, ok := parseEnvironment(data, map[string]bool{name: true})
		value, has := found[name]
		if len(found) > 1 || len(found) == 1 && !has || !ok && found != nil {
			t.Fatalf("%q: %q, want only %q", data, found, name)
		}
		if has && !bytes.Contains(append([]byte{0}, data...), []byte("\x00"+name+"="+value)) {
			t.Errorf("%q has no variable %q with the value %q", data, name, value)
		}
	})
}

func FuzzArgs(f *testing.F) {
	f.Add([]byte("a\x00b\x00\x00"), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, most byte) {
		args := parseArgs(data, int(most))
		if len(args) > int(most) || !bytes.HasPrefix(append(data, 0), []byte(strings.Join(args, "\x00"))) {
			t.Errorf("the first %d arguments of %q are %q", most, data, args)
		}
	})
}

func FuzzCgroup(f *testing.F) {
	f.Add([]byte("4:cpu:/a\n0::/a/b\n"), "cpu")
	f.Add([]byte("::\n1:name=x,pids:/y:z\n"), "pids")
	f.Add([]byte("0::/a\x1b"), "")
	f.Fuzz(func(t *testing.T, data []byte, controller string) {
		path := parseCgroup(data, controller)
		if strings.Contains(path, "\n") || path != "" && !bytes.Contains(data, []byte(":"+path)) {
			t.Errorf("%q is not a path of %q", path, data)
		}
	})
}

func FuzzMappings(f *testing.F) {
	f.Add([]byte("7f0000000000-7f0000001000 r-xp 00000000 08:01 42                         /bin/a b (deleted)\n"))
	f.Add([]byte("0-1 r-xp 0 00:06 1 /lib/c\\012d"))
	f.Add([]byte("1-2 rw-p 0 00:00 0 \n2-3 r-xp 0 00:00 0 [vdso]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		eachMapping(data, func(m Mapping) {
			n++
			if bytes.IndexByte(m.Path, '\n') >= 0 || !bytes.Contains(data, m.Path) || bytes.HasPrefix(m.Path, []byte(" ")) {
				t.Errorf("%q is not a path of %q", m.Path, data)
			}
		})
		if n > bytes.Count(data, []byte("\n"))+1 {
			t.Errorf("%d mappings in %q", n, data)
		}
	})
}

// FuzzSmaps: pages of mappings without anonymous memory are dropped. So a mapping must have a line of its own that proves it.
func FuzzSmaps(f *testing.F) {
	f.Add([]byte("00400000-01000000 r-xp 00000000 08:01 42      /a\nAnonymous:             0 kB\nAnonymous:             0 kB\n"))
	f.Add([]byte("1-2 r--p 0 08:01 42 /a\n3-4 r-xp 0 08:01 42 /b\nAnonymous: 0 kB\n1000-2000 r--p 0 08:01 42 /a\nAnonymous: 4 kB\nAnonymous: 0 kB\n"))
	f.Add([]byte("1000-2000 r--p 0 08:01 42 /a\nAnonymous: 00000000000000000000000000000 kB\n 1000-3000 r--p 0 /a\nAnonymous: 0x1 kB\n"))
	if data, err := os.ReadFile("/proc/self/smaps"); err == nil {
		f.Add(data[:min(len(data), 2000)])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = eachSmaps(bytes.NewReader(data), func(m Mapping, anonymous uint64) {
			if !says(string(data), m, anonymous) {
				t.Errorf("%q has no mapping at %x with %d bytes", data, m.Start, anonymous)
			}
		})
	})
}

// says searches for a heading of a mapping after which the first line about anonymous memory has an amount.
func says(smaps string, want Mapping, anonymous uint64) bool {
	inside := false
	for line := range strings.Lines(smaps) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") // as lines are read
		first, _, _ := strings.Cut(line, " ")
		switch amount, is := strings.CutPrefix(line, "Anonymous:"); {
		case !strings.Contains(first, ":"):
			var m Mapping
			eachMapping([]byte(line), func(one Mapping) { m = one })
			inside = m.Start == want.Start && m.End == want.End && m.Writable == want.Writable && bytes.Equal(m.Path, want.Path)
		case is && inside:
			digits := strings.TrimLeft(strings.TrimSuffix(strings.TrimLeft(amount, " "), " kB"), "0")
			if digits == strings.TrimLeft(strconv.FormatUint(anonymous>>10, 10), "0") {
				return true
			}
			inside = false
		}
	}
	return false
}

func FuzzAllowed(f *testing.F) {
	f.Add([]byte("Name:\tx\nCpus_allowed_list:\t0-3,8\n"))
	f.Add([]byte("Cpus_allowed_list:\t0-65535,0-65535\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if cpus, ok := parseAllowed(data); !ok && len(cpus) > 0 || len(cpus) > 1<<17 {
			t.Errorf("%q: %d CPUs, %v", data, len(cpus), ok)
		}
	})
}

func FuzzWholeLines(f *testing.F) {
	f.Add([]byte("a\nbc\nd"), uint16(4))
	f.Fuzz(func(t *testing.T, data []byte, most uint16) {
		whole := WholeLines(data, int(most))
		if len(whole) > int(most) || !bytes.HasPrefix(data, whole) ||
			len(whole) < len(data) && len(whole) > 0 && whole[len(whole)-1] != '\n' {
			t.Errorf("%q are not the lines within the first %d bytes of %q", whole, most, data)
		}
	})
}

func FuzzProcessor(f *testing.F) {
	f.Add([]byte("vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t: 1\nmodel name\t: x\nflags\t: fpu sev\n\nvendor_id\t: y\n"))
	f.Add([]byte("flags : fpu"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := parseProcessor(data)
		if p.Family < -1 || p.Model < -1 {
			t.Errorf("%q: %+v", data, p)
		}
		for _, field := range append(p.Flags, p.Vendor, p.Name, p.Microcode) {
			if !bytes.Contains(data, []byte(field)) {
				t.Errorf("%q does not contain %q", data, field)
			}
		}
	})
}
