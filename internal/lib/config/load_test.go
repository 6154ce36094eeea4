// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/pflag"
)

// load reads a configuration from the text of a file (none when empty), variables and arguments.
func load(t *testing.T, cmd Command, file string, environ, args []string) (*Config, error) {
	t.Helper()
	host := Host{UID: 0}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Flags(set, cmd)
	if file != "" {
		args = append([]string{"--config=t.yml"}, args...)
	}
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"t.yml": {Data: []byte(file)}}
	return Load(Input{Command: cmd, Flags: set, Environ: environ, Host: host,
		Open: func(name string) (fs.File, error) { return files.Open(name) }})
}

func TestLayers(t *testing.T) {
	file := "interval: 10s\nretention:\n  time: 30d\nlog: {level: warn}\n"
	environ := []string{"TEESCOPE_RETENTION_TIME=2d", "TEESCOPE_LOG_LEVEL=error", "HOME=/x"}
	c, err := load(t, Up, file, environ, []string{"--log.level", "debug", "--syscalls.time", "--watch=comm=a,b", "--watch=pid=7"})
	if err != nil {
		t.Fatal(err)
	}
	checks := []struct {
		key       string
		got, want any
		origin    string
	}{
		{"listen", c.Listen, "127.0.0.1:9750", "default"},
		{"data-dir", c.DataDir, "/var/lib/teescope", "default"},
		{"interval", c.Interval, 10 * time.Second, "file t.yml:1"},
		{"retention.time", c.Retention.Time, 48 * time.Hour, "env TEESCOPE_RETENTION_TIME"},
		{"retention.size", c.Retention.Size, int64(2 << 30), "default"},
		{"log.level", c.Log.Level.String(), "DEBUG", "flag --log.level"},
		{"syscalls.time", c.Syscalls.Time, true, "flag --syscalls.time"},
		{"watch", watchTexts(c), []string{"comm=a,b", "pid=7"}, "flag --watch"},
	}
	for _, ck := range checks {
		if !reflect.DeepEqual(ck.got, ck.want) {
			t.Errorf("%s = %v, want %v", ck.key, ck.got, ck.want)
		}
		if got := c.origins[ck.key].String(); got != ck.origin {
			t.Errorf("origin of %s = %q, want %q", ck.key, got, ck.origin)
		}
	}
}

func TestLists(t *testing.T) {
	want := []string{"a:1", "b:2"}
	for name, try := range map[string]struct {
		file    string
		environ []string
		args    []string
	}{
		"file":          {file: "targets:\n  - a:1\n  - b:2\n"},
		"file, flow":    {file: "targets: [a:1, 'b:2']\n"},
		"environment":   {environ: []string{"TEESCOPE_TARGETS=a:1, b:2"}},
		"flag":          {args: []string{"--targets=a:1,b:2"}},
		"flag repeated": {args: []string{"--targets=a:1", "--targets", "b:2"}},
	} {
		c, err := load(t, Server, try.file, try.environ, try.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !slices.Equal(c.Targets, want) {
			t.Errorf("%s: targets = %q, want %q", name, c.Targets, want)
		}
	}
	c, err := load(t, Up, "", []string{"TEESCOPE_WATCH=comm=a{1,2};pid=3"}, nil)
	if err != nil || !slices.Equal(watchTexts(c), []string{"comm=a{1,2}", "pid=3"}) {
		t.Errorf("watch of the environment = %v, %v", c, err)
	}
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name    string
		file    string
		environ []string
		args    []string
		want    []string
	}{
		{
			name: "every problem at once, weakest source first",
			file: "intervall: 5s\nretention:\n  tme: 1d\n  size: 5 apples\ndatadir: /x\nwatch:\n  - pid=1\n  - pid=-1\n  - comm=(\n",
			environ: []string{
				"TEESCOPE_INTERVALL=1s", "TEESCOPE_WORKLOADS_MAX=5000",
			},
			args: []string{"--syscalls.time=yes", "--interval=5"},
			want: []string{
				`t.yml:1: unknown key "intervall"; did you mean interval?`,
				`t.yml:3: unknown key "retention.tme"; did you mean retention.time?`,
				`t.yml:4: retention.size: "5 apples" is not a size: use for example 512MB, 2GiB, or 0 for no limit`,
				`t.yml:5: unknown key "datadir"; did you mean data-dir?`,
				`t.yml:8: watch: watch rule "pid=-1": not a process ID (write comm=REGEX, exe=GLOB, cgroup=GLOB, workload=NAME or pid=N)`,
				`t.yml:9: watch: watch rule "comm=(": missing closing ): "(" (write comm=REGEX, exe=GLOB, cgroup=GLOB, workload=NAME or pid=N)`,
				`env TEESCOPE_INTERVALL: unknown variable; did you mean TEESCOPE_INTERVAL?`,
				`env TEESCOPE_WORKLOADS_MAX: workloads.max: 5000 is out of range: use 1 to 1024`,
				`flag --interval: "5" has no unit: use for example 5s`,
				`flag --syscalls.time: "yes" is neither true nor false`,
			},
		},
		{name: "syntax", file: "a: [\n", want: []string{`t.yml:1: not YAML: did not find expected node content`}},
		{name: "no mapping", file: "- a\n", want: []string{`t.yml:1: expected a mapping of keys, for example "interval: 5s"`}},
		{name: "duplicate", file: "interval: 5s\ninterval: 6s\n", want: []string{`t.yml:2: interval: is set already on line 1`}},
		{name: "dotted", file: "retention.time: 5d\nretention:\n  time: 1d\n", want: []string{
			`t.yml:1: "retention.time" is written nested: "retention:" and, indented below it, "time:"`}},
		{name: "no value", file: "listen:\nlog:\n", want: []string{
			`t.yml:1: listen: has no value: give it one or leave the key out`,
			`t.yml:2: log: is a section: its keys come below it, indented: level, format`}},
		{name: "wrong shapes", file: "interval: [1s]\nlisten: {a: b}\ntargets:\n- [x]\n", want: []string{
			`t.yml:1: interval: takes one value, not a list`,
			`t.yml:2: listen: takes a value, not a mapping`,
			`t.yml:4: targets: an item must be a plain value`}},
		{name: "aliases", file: "interval: &a 5s\nlisten: *a\n", want: []string{
			`t.yml:1: interval: aliases and anchors are not supported, write the value`,
			`t.yml:2: listen: aliases and anchors are not supported, write the value`}},
		{name: "two documents", file: "interval: 5s\n---\nlisten: a:1\n", want: []string{
			`t.yml:2: more than one document: only one is read`}},
		{name: "config in the file", file: "config: x\n", want: []string{
			`t.yml:1: unknown key "config": it names this file, as a flag or in the environment`}},
		{name: "too large", file: "#" + strings.Repeat("x", maxFile), want: []string{
			`flag --config: reading t.yml: it is larger than 1 MiB, the limit for this file`}},
		{name: "no such file", environ: []string{"TEESCOPE_CONFIG=no.yml"}, want: []string{
			`env TEESCOPE_CONFIG: config: open no.yml: file does not exist; correct the path, or write the file with "teescope config > no.yml"`}},
		{name: "choices", args: []string{"--log.level=wran", "--log.format=xml"}, want: []string{
			`flag --log.level: "wran" is not one of debug, info, warn, error; did you mean "warn"?`,
			`flag --log.format: "xml" is not one of text, json`}},
		{name: "addresses", args: []string{"--listen=9750", "--targets=http://a:1"}, want: []string{
			`flag --listen: "9750" is not HOST:PORT: use for example 127.0.0.1:9750`,
			`flag --targets: "http://a:1" is a URL: use HOST:PORT, for example node1:9750`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, Up, tt.file, tt.environ, tt.args)
			var e *problemsError
			if !errors.As(err, &e) {
				t.Fatalf("Load() = %v, want an *Error", err)
			}
			var got []string
			for _, p := range e.Problems {
				got = append(got, p.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if len(got) > 1 && !strings.Contains(err.Error(), "problems:\n  "+got[0]) {
				t.Errorf("Error() = %q", err)
			}
		})
	}
}

func TestServerNeedsTargets(t *testing.T) {
	_, err := load(t, Server, "", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "--targets node1:9750") {
		t.Errorf("Load() = %v, want a hint at --targets", err)
	}
	if _, err := load(t, Up, "", nil, nil); err != nil {
		t.Errorf("up without targets: %v", err)
	}
	if _, err := load(t, Server, "scrape: [http://shop:8080]", nil, nil); err != nil {
		t.Errorf("server with an application only: %v", err)
	}
}

func TestKubernetesServiceVariablesAreIgnored(t *testing.T) {
	c, err := load(t, Up, "", []string{
		"TEESCOPE_AGENT_SERVICE_HOST=10.0.0.1", "TEESCOPE_AGENT_PORT=tcp://10.0.0.1:9750", "TEESCOPE_AGENT_PORT_9750_TCP_PROTO=tcp",
		"TEESCOPE_SERVER_SERVICE_PORT_WEB=9750", "TEESCOPE_SERVICE_HOST=10.0.0.1", "TEESCOPE_SERVICE_PORT=9750", "TEESCOPE_SERVICE_PORT_HTTP=9750",
		"TEESCOPE_PORT=tcp://10.0.0.1:9750", "TEESCOPE_PORT_9750_TCP_ADDR=10.0.0.1",
	}, nil)
	if err != nil {
		t.Fatalf("Load() = %v", err)
	}
	if len(c.Ignored) != 9 {
		t.Errorf("ignored are %v, want all 9", c.Ignored)
	}
	for _, mistake := range []string{"TEESCOPE_PORT=9750", "TEESCOPE_AGENT_PORT=9750", "TEESCOPE_INTERVALL=5s"} {
		if _, err := load(t, Up, "", []string{mistake}, nil); err == nil {
			t.Errorf("%s is a mistake that must be reported", mistake)
		}
	}
}

func TestDataDirDefault(t *testing.T) {
	for h, want := range map[Host]string{
		{UID: 0, Home: "/root", StateHome: "/s"}:               "/var/lib/teescope",
		{UID: 1, Home: "/h", StateHome: "/s"}:                  "/s/teescope",
		{UID: 1, Home: "/h", StateHome: "relative/is/invalid"}: "/h/.local/state/teescope",
		{UID: 1}: "/var/lib/teescope", // never below a directory that every user may write
	} {
		c, err := Load(Input{Command: Up, Host: h})
		if err != nil || c.DataDir != want {
			t.Errorf("data-dir for %+v = %+v, %v; want %s", h, c, err, want)
		}
	}
}

func TestFlagsBelongToCommands(t *testing.T) {
	for cmd, want := range map[Command][2]string{Up: {"data-dir", ""}, Agent: {"watch", "data-dir"}, Server: {"data-dir", "watch"}} {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Flags(set, cmd)
		if set.Lookup(want[0]) == nil {
			t.Errorf("command %d has no --%s", cmd, want[0])
		}
		if want[1] != "" && set.Lookup(want[1]) != nil {
			t.Errorf("command %d has --%s", cmd, want[1])
		}
	}
}

// TestWriteReadsBack checks that the output of "teescope config" is a file that gives the same configuration.
func TestWriteReadsBack(t *testing.T) {
	c, err := load(t, Any, "", nil, []string{"--watch=comm=^a: #b$", "--targets=a:1,[::1]:2", "--retention.size=0", "--interval=1m30s"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"listen: 127.0.0.1:9750 # default\n", "interval: 1m30s # flag --interval\n",
		"retention:\n  time: 15d # default\n", "targets: # flag --targets\n  - a:1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	again, err := load(t, Any, out.String(), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !reflect.DeepEqual(c.Values(), again.Values()) {
		t.Errorf("read back:\n%v\nwant:\n%v", again.Values(), c.Values())
	}
}
