// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// statLine returns a line as the kernel writes it: name, state, and ticks of user time, system time and start.
func statLine(name, state string, user, system, start uint64) string {
	return fmt.Sprintf("7 (%s) %s 1 1 1 0 -1 4194560 637 0 0 0 %d %d 0 0 20 0 13 0 %d 54640640 5222\n", name, state, user, system, start)
}

func TestParseStat(t *testing.T) {
	for _, name := range []string{"sh", "", "a) b\n (c", "\xff\xfe (evil) 1", "a) S 1 (b", "new\nline"} {
		line := statLine(name, "D", 12, 3, 4711)
		want := Stat{Comm: name, State: "D", Parent: 1, CPU: 150 * time.Millisecond, Started: 47110 * time.Millisecond, Threads: 13}
		if s, ok := parseStat([]byte(line)); !ok || s != want {
			t.Errorf("%q is %+v, %v; want %+v", line, s, ok, want)
		}
	}
	good := statLine("sh", "S", 12, 3, 400)
	for _, bad := range []string{
		"", "1 (a", ") (", "7 sh) S", "no parenthesis", "1 (sh) S 1 1\n", "1 (a) S 1 2",
		strings.Replace(good, " 12 ", " -12 ", 1), strings.Replace(good, " 400 ", " -1 ", 1), strings.Replace(good, " 3 ", " x ", 1),
		strings.Replace(good, " 400 ", " 9223372036854775807 ", 1), strings.Replace(good, " 400 ", " 18446744073709551615 ", 1),
	} {
		if s, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

// Processes also start on a machine that has been up for years.
func TestStartAfterYears(t *testing.T) {
	const years = 3 * 365 * 24
	s, ok := parseStat([]byte(statLine("sh", "S", 0, 0, years*3600*100)))
	if !ok || s.Started != years*time.Hour {
		t.Errorf("started after %v, %v", s.Started, ok)
	}
}

func TestEnded(t *testing.T) {
	for state, want := range map[string]bool{"Z": true, "X": true, "S": false, "": false} {
		for threads, ended := range map[int]bool{0: want, 1: want, 2: false} { // the others run
			if (Stat{State: state, Threads: threads}).Ended() != ended {
				t.Errorf("%q with %d threads: ended %v", state, threads, !ended)
			}
		}
	}
}

// The stack is field 28, as Linux 6.18 writes it.
func TestStack(t *testing.T) {
	const line = "9 (cat) R 1 9 1 34816 9 4194304 100 0 0 0 0 0 0 0 20 0 1 0 1234 5840896 384 18446744073709551615 94 95 140736213303360 0 0 0\n"
	if s, ok := parseStat([]byte(line)); !ok || s.Stack != 140736213303360 {
		t.Errorf("%+v, %v", s, ok)
	}
}

func TestParseBootTime(t *testing.T) {
	for text, want := range map[string]string{
		"cpu 1\nbtime 1700000000\nprocesses 1\n": "1700000000 true", "cpu 1\n": "0 false", "btime x\n": "0 false", "btime -1\n": "0 false",
	} {
		if got := fmt.Sprint(parseBootTime([]byte(text))); got != want {
			t.Errorf("parseBootTime(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	if run, wait, ok := parseSchedstat([]byte("5 7 1\n")); run != 5 || wait != 7 || !ok {
		t.Errorf("got %v, %v, %v", run, wait, ok)
	}
	for _, bad := range []string{"", "0 0 0\n", "1 2", "-1 2 3", "1 x 3"} {
		if _, _, ok := parseSchedstat([]byte(bad)); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestParseSwitches(t *testing.T) {
	const lines = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"
	if v, i, ok := parseSwitches([]byte(lines)); v != 5 || i != 7 || !ok {
		t.Errorf("got %d, %d, %v", v, i, ok)
	}
	for _, bad := range []string{"", "voluntary_ctxt_switches:\t5\n", "voluntary_ctxt_switches:\t-5\nnonvoluntary_ctxt_switches:\t7\n"} {
		if _, _, ok := parseSwitches([]byte(bad)); ok {
			t.Errorf("%q is complete", bad)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for status, want := range map[string]Memory{
		"Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssFile:\t 4 kB\n": {1 << 20, 4 << 10, 2 << 20},
		"Name:\tkthreadd\n":                                              {},
		"VmRSS:\t1024 kB\n":                                              {},
		"VmHWM:\t1 kB\nVmRSS:\t-1 kB\nRssFile:\t1 kB\n":                  {},
		"VmHWM:\t1 kB\nVmRSS:\t9999999999999999999 kB\nRssFile:\t1 kB\n": {},
	} {
		if m, ok := parseMemory([]byte(status)); ok != (want != Memory{}) || ok && m != want {
			t.Errorf("%q: %+v, %t", status, m, ok)
		}
	}
}

func TestParseWchan(t *testing.T) {
	for text, want := range map[string]string{"0": "", "": "", "ep_poll": "ep_poll", "a.constprop.0.isra.1\n": "a", "\xff": "\uFFFD"} {
		if got := parseWchan([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// getenv(3) returns the first of two variables with the same name.
func TestParseEnvironment(t *testing.T) {
	wanted := map[string]bool{"A": true, "B": true, "EMPTY": true, "C": true}
	got, ok := parseEnvironment([]byte("PATH=/bin\x00A=1\x00B=x=y\x00A=2\x00EMPTY=\x00AA=3\x00"), wanted)
	if want := (map[string]string{"A": "1", "B": "x=y", "EMPTY": ""}); !ok || !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, overwritten := range []string{"", "\x00\x00\x00", "r *:6379\x00\x00\x00", "A=1\x00master process\x00", "A=1\x00\x00B=2\x00"} {
		if got, ok := parseEnvironment([]byte(overwritten), wanted); ok {
			t.Errorf("%q is %q", overwritten, got)
		}
	}
}

func TestParseArgs(t *testing.T) {
	for text, want := range map[string][]string{"a\x00b\x00c\x00": {"a", "b"}, "a": {"a"}, "a\x00\x00": {"a", ""}, "": {""}} {
		if got := parseArgs([]byte(text), 2); !slices.Equal(got, want) {
			t.Errorf("parseArgs(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestParseCgroup(t *testing.T) {
	const hybrid = "12:pids:/\n4:memory:/docker/abc\n3:cpu,cpuacct:/a:b\n1:name=systemd:/x\n0::/unified\n"
	for controller, want := range map[string]string{
		"pids": "/", "memory": "/docker/abc", "cpu": "/a:b", "cpuacct": "/a:b", "": "/unified", "devices": "",
	} {
		if got := parseCgroup([]byte(hybrid), controller); got != want {
			t.Errorf("in the hierarchy %q: %q, want %q", controller, got, want)
		}
	}
	if got := parseCgroup([]byte("0::/system.slice/a:b.service\n"), ""); got != "/system.slice/a:b.service" {
		t.Errorf("in version 2: %q", got)
	}
}

func paths(maps string) (all []string) {
	eachMapping([]byte(maps), func(m Mapping) { all = append(all, string(m.Path)) })
	return all
}

func TestEachMapping(t *testing.T) {
	got := paths("1-2 r-xp 0 00:06 1   /bin/a b (deleted)\n" +
		"3-4 rw-p 0 00:00 0 \n" +
		"4-5 rw-p 0 00:00 0   [heap]\n" +
		"5-6 " + strings.Repeat("x", 64<<10) + "\n" +
		"x-6 r--p 0 00:06 2 /lib/no\n5-6 r--p x 00:06 2 /lib/no\n5 r--p 0 00:06 2 /lib/no\n-6 r--p 0 00:06 2 /lib/no\n" +
		"6-7 r--p 0 00:06 2 /lib/c\\012d\n" +
		"7-8 r--p 0 00:06 2\n" +
		"7-8 r--p 0 00:06 2 /cut sho")
	if want := []string{"/bin/a b (deleted)", "", "[heap]", "/lib/c\\012d", "", "/cut sho"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	m, ok := parseMapping([]byte("7f0000001000-7fFFffffffff r-xs 0002a000 08:01 42                         /usr/lib/libc.so.6"))
	if !ok || m.Start != 0x7f0000001000 || m.End != 0x7fffffffffff || m.Offset != 0x2a000 || !m.Executable || !m.IsFile() {
		t.Errorf("the mapping is %+v, %v", m, ok)
	}
	if m, ok := parseMapping([]byte("0-1 rw-p 0 0:0 0 [stack]")); !ok || m.Executable || m.IsFile() {
		t.Errorf("the stack is %+v, %v", m, ok)
	}
}
