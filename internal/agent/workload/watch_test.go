// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
)

func TestParseRule(t *testing.T) {
	p := Process{PID: 42, Comm: "redis-server", Exe: "/usr/bin/redis-check-rdb", Cgroup: "/system.slice/redis.service"}
	for rule, want := range map[string]bool{
		"comm=redis-server": true, "comm=redis": false, "comm=redis.*": true, "comm=a|redis-.*": true,
		"exe=/usr/bin/*": true, "exe=/usr/*": false, "exe=/bin/redis": false,
		"cgroup=/system.slice/*": true, "cgroup=/user.slice/*": false,
		"pid=42": true, "pid=43": false,
	} {
		r, err := ParseRule(rule)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if r.Match(p) != want || r.String() != rule {
			t.Errorf("%s: match %v, want %v", r, r.Match(p), want)
		}
	}
}

func TestParseRuleSaysWhatIsWrong(t *testing.T) {
	for rule, want := range map[string]string{
		"": "no value", "redis": "no value", "comm=": "no value", "comm=(": "missing closing", "comm=a)|(b": "unexpected )",
		"exe=[": "syntax error", "cgroup=[": "syntax error", "pid=0": "not a process ID", "pid=x": "not a process ID",
		"pid=99999999999": "not a process ID", "name=x": `unknown key "name"`,
	} {
		_, err := ParseRule(rule)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "comm=REGEX") {
			t.Errorf("ParseRule(%q) = %v, want %q and how to write it", rule, err, want)
		}
	}
}

func TestLongestCgroup(t *testing.T) {
	const v1 = "12:pids:/\n4:memory:/docker/abc\n1:name=systemd:/x\n0::/\n"
	if got := longestCgroup(v1); got != "/docker/abc" {
		t.Errorf("longestCgroup = %q", got)
	}
	if got := longestCgroup("0::/system.slice/a:b.service\n"); got != "/system.slice/a:b.service" {
		t.Errorf("longestCgroup = %q", got)
	}
}
