// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
)

func TestParse(t *testing.T) {
	p := Process{PID: 42, Comm: "redis-server", Exe: "/usr/bin/redis-check-rdb", Cgroup: "/system.slice/redis.service", Workload: "redis.service"}
	for rule, want := range map[string]bool{
		"comm=redis-server": true, "comm=redis": false, "comm=redis.*": true, "comm=a|redis-.*": true,
		"exe=/usr/bin/*": true, "exe=/usr/*": false, "exe=/bin/redis": false,
		"cgroup=/system.slice/*": true, "cgroup=/user.slice/*": false,
		"pid=42": true, "pid=43": false,
		"workload=redis.service": true, "workload=redis.*": false, "workload=redis-server": false,
	} {
		r, err := Parse(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if r.Match(p) != want || r.String() != rule {
			t.Errorf("%s: match %v, want %v", r, r.Match(p), want)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for rule, want := range map[string]string{
		"": "no value", "redis": "no value", "comm=": "no value", "comm=(": "missing closing", "comm=a)|(b": "unexpected )",
		"exe=[": "syntax error", "cgroup=[": "syntax error", "pid=0": "not a process ID", "pid=x": "not a process ID",
		"workload=": "no value", "workload=kernel": "no process", "workload=idle": "no process", "workload=other": "no process",
		"pid=99999999999": "not a process ID", "name=x": `unknown selector "name"`,
	} {
		_, err := Parse(rule)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "comm=REGEX") {
			t.Errorf("Parse(%q) = %v, want %q and the syntax", rule, err, want)
		}
	}
}

// A rule compares the group that names the workload. On a machine with version 1, a process is often in the root of
// some hierarchies.
func TestLook(t *testing.T) {
	const v1 = "12:freezer:/\n4:memory:/docker/abc\n1:name=systemd:/x\n0::/\n"
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, "7"), 0o755), os.Symlink("/usr/bin/x (deleted)", filepath.Join(dir, "7/exe")),
		os.WriteFile(filepath.Join(dir, "7/comm"), []byte("a\n\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "cgroup")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "memory"), 0o755), os.WriteFile(filepath.Join(root, "memory/cgroup.procs"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		names         cgroup.Hierarchy
		cgroups, want string
	}{
		{cgroup.Naming(root), v1, "/docker/abc"},
		{cgroup.Unified, v1, "/"},
		{cgroup.Unified, "0::/system.slice/a:b.service\n", "/system.slice/a:b.service"},
		{cgroup.Unified, "", ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "7/cgroup"), []byte(tt.cgroups), 0o644); err != nil {
			t.Fatal(err)
		}
		want := Process{PID: 7, Comm: "a\n", Exe: "/usr/bin/x", Cgroup: tt.want}
		if p, ok := Look(hostfs.At(dir), tt.names, nil, 7); !ok || p != want {
			t.Errorf("%q: %+v, %v; want %+v", tt.cgroups, p, ok, want)
		}
	}
	if p, ok := Look(hostfs.At(dir), cgroup.Unified, nil, 8); ok {
		t.Errorf("there is no process, but %+v", p)
	}
}

func TestMatches(t *testing.T) {
	rule, err := Parse("pid=7")
	if err != nil {
		t.Fatal(err)
	}
	if Matches(nil, Process{PID: 7}) || Matches([]Rule{rule}, Process{PID: 8}) || !Matches([]Rule{rule}, Process{PID: 7}) {
		t.Error("not the process of the rule")
	}
}

// FuzzParse: a rule is in a file or on a command line, and other users choose the process's properties.
func FuzzParse(f *testing.F) {
	f.Add("comm=redis-.*", "redis", "/system.slice")
	f.Add("pid=42", "other", "")
	f.Add("exe=/usr/bin/*", "\xff", "a\x00.service")
	f.Add("cgroup=/system.slice/[a-z]*", "nginx.service", "/system.slice/nginx.service")
	f.Fuzz(func(t *testing.T, text, program, group string) {
		p := Process{Comm: program, Exe: program, Cgroup: group}
		rule, err := Parse(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) || !utf8.ValidString(err.Error()) {
				t.Errorf("the error %q is not printable", err)
			}
			return
		}
		if rule.String() != text {
			t.Errorf("%q is given back as %q", text, rule)
		}
		matches := rule.Match(p)
		if value, ok := strings.CutPrefix(text, "comm="); ok {
			re, err := regexp.Compile(value)
			if err != nil {
				t.Errorf("%q was accepted: %v", text, err)
				return
			}
			re.Longest()
			if whole := re.FindString(p.Comm) == p.Comm; whole && re.MatchString(p.Comm) && !matches {
				t.Errorf("%q does not match all of %q", text, p.Comm)
			}
		}
	})
}
