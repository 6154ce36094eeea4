// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = run(context.Background(), &out, &errs, args)
	return out.String(), errs.String(), err
}

func TestCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.yml")
	if err := os.WriteFile(file, []byte("interval: 7s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		out  []string
	}{
		{[]string{"--version"}, []string{"teescope ", "revision", "linux/"}},
		{[]string{"version"}, []string{"teescope ", "revision", "linux/"}},
		{[]string{"--help"}, []string{"up ", "agent ", "analyze ", "check ", "server ", "config ", "top ", "version ", "completion "}},
		{[]string{"up", "--help"}, []string{"Examples:", "sudo teescope up", "--data-dir directory", "(default /var/lib/teescope for root, else ~/.local/state/teescope)", "(default 127.0.0.1:9750)"}},
		{[]string{"agent", "--help"}, []string{"Examples:", "--watch rule"}},
		{[]string{"top", "--help"}, []string{"Examples:", "sudo teescope top", "--connect URL", "--ca-file file", "--sort column"}},
		{[]string{"server", "--help"}, []string{"Examples:", "--targets host:port,..."}},
		{[]string{"config", "--config", file, "--log.level", "debug"}, []string{"interval: 7s # file " + file + ":1\n", "level: debug # flag --log.level\n", "listen: 127.0.0.1:9750 # default\n"}},
		{[]string{"analyze", "--help"}, []string{"Examples:", "--server URL", "--fail-on severity", "exit status is 0", "(default \"5m\")"}},
		{[]string{"check", "--help"}, []string{"Examples:", "sudo teescope check --json", "exit status is 0"}},
		{[]string{"completion", "bash"}, []string{"bash completion V2 for teescope"}},
	}
	for _, tt := range tests {
		out, errs, err := execute(t, tt.args...)
		if err != nil || errs != "" {
			t.Errorf("%v: error %v, stderr %q", tt.args, err, errs)
		}
		for _, want := range tt.out {
			if !strings.Contains(out, want) {
				t.Errorf("%v: output lacks %q:\n%s", tt.args, want, out)
			}
		}
	}
}

// The shell completes the columns to sort by, and no file names for an address.
func TestCompletion(t *testing.T) {
	for flag, want := range map[string]string{"--sort": "name\nkind\ntee\n", "--connect": ":4\n"} { // 4: no files
		if out, _, err := execute(t, "__complete", "top", flag, ""); err != nil || !strings.HasPrefix(out, want) || !strings.HasSuffix(out, ":4\n") {
			t.Errorf("%s is completed by %q, %v", flag, out, err)
		}
	}
}

// The shell completes what can be muted.
func TestCompletionOfMatchers(t *testing.T) {
	for typed, want := range map[string]string{"": "rule=\nworkload=\ninstance=\n:6\n", "rule=": "\nrule=lock-contention\n"} { // 6: no files, no blank
		if out, _, err := execute(t, "__complete", "findings", "mute", typed); err != nil || !strings.Contains("\n"+out, want) {
			t.Errorf("%q is completed by %q, %v", typed, out, err)
		}
	}
	if out, _, err := execute(t, "__complete", "findings", "mute", "--kind", ""); err != nil || out != "mute\nacknowledged\nworks-as-intended\n:4\n" {
		t.Errorf("--kind is completed by %q, %v", out, err)
	}
}

// TestCheck: the report is written, and the exit status follows from it for any user.
func TestCheck(t *testing.T) {
	out, errs, err := execute(t, "check", "--json")
	var report struct {
		Schema int  `json:"schema"`
		CanRun bool `json:"can_run"`
		Checks []struct{ Group, Name, Status, Detail string }
	}
	if e := json.Unmarshal([]byte(out), &report); e != nil || errs != "" {
		t.Fatalf("%v, stderr %q:\n%s", e, errs, out)
	}
	if report.CanRun != (err == nil) || report.Schema != 1 || len(report.Checks) < 20 {
		t.Errorf("error %v, report %+v", err, report)
	}
	table, _, _ := execute(t, "check")
	for _, c := range report.Checks {
		if !strings.Contains(table, c.Name) {
			t.Errorf("the table lacks %s:\n%s", c.Name, table)
		}
	}
}

// TestErrors checks that errors are returned, for main to print once, and say what to do.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"servr"}, "unknown command \"servr\" for \"teescope\"\n\nDid you mean this?\n\tserver\n"},
		{[]string{"up", "--intervall=1s"}, `unknown flag: --intervall, did you mean --interval?; see "teescope up --help"`},
		{[]string{"agent", "--data-dir=/x"}, `unknown flag: --data-dir`},
		{[]string{"up", "extra"}, `unknown command "extra" for "teescope up"`},
		{[]string{"profile", "recrd", "--for=1s"}, `unknown command "recrd" for "teescope profile", did you mean record?; see "teescope profile --help"`},
		{[]string{"control", "zzzzzzzz"}, `unknown command "zzzzzzzz" for "teescope control"; see "teescope control --help"`},
		{[]string{"profile", "diff", "a"}, "name two profiles, for example: teescope profile diff before.txt after.txt"},
		{[]string{"profile", "convert"}, "name a profile and the file to write, for example: teescope profile convert server.txt server.pb.gz"},
		{[]string{"rules", "export"}, "name the directory to write to, for example: teescope rules export /etc/prometheus/teescope"},
		{[]string{"record", "--repeat=x", "--", "true"}, `--repeat "x" is not a whole number; see "teescope record --help"`},
		{[]string{"server"}, "the server needs at least one agent to scrape"},
		{[]string{"top", "--json"}, "--json prints one table: add --once"},
		{[]string{"top"}, "the live view needs a terminal that can move its cursor: use --once"},
		{[]string{"top", "--once", "--sort=cpus"}, `--sort "cpus" is not a column: use one of name, kind`},
		{[]string{"top", "--once", "--interval=1ms"}, "--interval 1ms is too short: the minimum is 200ms"},
		{[]string{"top", "--once", "--connect=localhost"}, `the address "localhost" is not HOST:PORT`},
		{[]string{"top", "--once", "--connect=127.0.0.1:1"}, "nothing listens on 127.0.0.1:1: start one there with \"sudo teescope up\""},
		{[]string{"top", "--once", "--password-file=x"}, "for the agent that --connect names: add --connect"},
		{[]string{"top", "--conect=x"}, "unknown flag: --conect, did you mean --connect?"},
		{[]string{"analyze", "--server=localhost"}, `the address "localhost" is not HOST:PORT`},
		{[]string{"analyze", "--server=127.0.0.1:1"}, "nothing listens on 127.0.0.1:1: start one there with \"sudo teescope up\", name another with --server URL"},
		{[]string{"analyze", "--format=xml"}, `--format "xml": use one of text, json, markdown`},
		{[]string{"analyze", "--fail-on=huge"}, `--fail-on "huge" is not a severity: use one of info, low, medium, high`},
		{[]string{"analyze", "--window=5"}, `--window "5": use a duration from 10s to 7d`},
		{[]string{"analyze", "--at=noon"}, `--at "noon" is not a time: use for example 2026-01-02T15:04:05Z`},
		{[]string{"analyze", "--limit=0"}, "--limit 0: the minimum is 1; --all lists all findings"},
		{[]string{"analyze", "--all", "--limit=3"}, "--all and --limit exclude each other"},
		{[]string{"analyze", "--timeout=1ms"}, "--timeout 1ms: use a time from 1s to 1h"},
		{[]string{"report", "--from=2030-01-02T15:04:05Z", "--to=2030-01-02T15:04:05Z"}, "it must be before the end, which is 2030-01-02T15:04:05Z"},
		{[]string{"analyze", "a.om", "--server=a:1"}, "--server names a server, but the series are read from a.om"},
		{[]string{"findings", "mute"}, "name what to mute, for example: teescope findings mute --for 2h"},
		{[]string{"findings", "mute", "workload=a", "--for=2h"}, "give a reason with --reason"},
		{[]string{"findings", "mute", "workload=a", "--reason=x"}, "the end is missing: use --for or --until"},
		{[]string{"findings", "mute", "workload=a", "--reason=x", "--for=2"}, `--for "2": use a duration such as 90m, 2h or 7d`},
		{[]string{"findings", "mute", "workload=a", "--reason=x", "--for=2h", "--until=1"}, "--for and --until exclude each other"},
		{[]string{"findings", "mute", "workload=a", "--reason=x", "--until=noon"}, `--until "noon" is not a time`},
		{[]string{"findings", "mute", "workload=a", "--reason=x", "--kind=nap"}, `--kind "nap": use one of mute, acknowledged, works-as-intended`},
		{[]string{"findings", "mute", "redis", "--reason=x", "--for=2h"}, `"redis" is not a matcher: use for example workload=redis-server`},
		{[]string{"findings", "mutes", "--server=127.0.0.1:1"}, "nothing listens on 127.0.0.1:1: start one there with \"sudo teescope up\""},
		{[]string{"findings", "unmute"}, "name the ID of a silence"},
		{[]string{"dashboards", "kept", "/none", "--server=127.0.0.1:1"}, "or name another with --server URL"},
		{[]string{"cardinality", "--connect=127.0.0.1:1"}, "or name another with --connect URL"},
		{[]string{"cardinality", "--server=127.0.0.1:1"}, "or name another with --server URL"},
		{[]string{"rules", "check"}, "name a file, for example: teescope rules check"},
		{[]string{"correlate"}, "name a file, for example: teescope correlate runs.csv"},
		{[]string{"correlate", "a", "b"}, "2 arguments; the maximum is 1"},
		{[]string{"analyze", "/none.om"}, "reading the series: open /none.om: no such file or directory; correct the path, or leave FILE out"},
		{[]string{"analyze", "/dev/null"}, "reading the series: /dev/null is empty; write OpenMetrics text with timestamps"},
		{[]string{"analyze", "--ca-file=/none.pem"}, "open /none.pem: no such file or directory; correct the path, or leave --ca-file out"},
		{[]string{"analyze", "--http-config-file=/none.yml"}, "--http-config-file: open /none.yml: no such file or directory; correct the path, or leave it out"},
		{[]string{"analyze", "--http-config-file=a", "--ca-file=b"}, "--http-config-file excludes --ca-file and --password-file"},
		{[]string{"analyze", "a.om", "--http-config-file=a"}, "--http-config-file names a server, but the series are read from a.om"},
		{[]string{"top", "--once", "--http-config-file=x"}, "for the agent that --connect names: add --connect"},
		{[]string{"correlate", "/none.csv"}, "open /none.csv: no such file or directory; correct the path, or use -"},
		{[]string{"agent", "--workloads.max=0x"}, `"0x" is not a whole number: use 1 to 1024`},
		{[]string{"config", "--interval=5", "--listen=x"}, "2 problems:\n  flag --listen: \"x\" is not HOST:PORT"},
		{[]string{"config", "--config=/none.yml"}, "open /none.yml: no such file or directory; correct the path, or write the file with \"teescope config > /none.yml\""},
	} {
		out, errs, err := execute(t, tt.args...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want %q", tt.args, err, tt.want)
		}
		if out != "" || errs != "" {
			t.Errorf("%v prints %q and %q: main prints the error", tt.args, out, errs)
		}
	}
}

func TestMainIsShort(t *testing.T) {
	data, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte("\n")); n > 40 {
		t.Errorf("main.go has %d lines, the maximum is 40", n)
	}
}
