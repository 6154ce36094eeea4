// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// in returns the input of one file with any name.
func in(name, text string) Input {
	return Input{
		Command: Any, Environ: []string{"TEESCOPE_CONFIG=" + name},
		Open: func(string) (fs.File, error) { return fstest.MapFS{"f": {Data: []byte(text)}}.Open("f") },
	}
}

// FuzzFile: a file is accepted and can be written and read again, or every problem names its position.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"", "interval: 5s", "retention: {time: 1d, size: 0}", "watch: [pid=1, 'comm=(']", "a: &a [*a]", "? [a]\n: b", "targets: [a:1]\n---\n",
		"\"inter\\x1bval\": 1\n\"inter\\x1bval\": 1\n", "listen: !!binary aGk6MQ==\n", "web: {config-file: 'null'}", "scrape: [http://a, http://a, 'http://b:0']",
		"scrape: [{url: http://a, workload: 'a b', operations: 'x{a=\"}\"}'}, 'n=http://b workload=\"\\\"\" latency=x_seconds']",
		"data-dir: \"a\\u0085b\"", "targets: [\"a\\e:1\", 'b:+2']", "log: {level: \"\\x1b\"}", "retention:\n  size: \"9999999999\\n GiB\"",
	} {
		f.Add(s, "t.yml")
	}
	f.Add("interval: 10s # x", "a\nlisten: x:1 #")
	f.Fuzz(func(t *testing.T, text, name string) {
		if name == "" || strings.Contains(name, "\x00") {
			t.Skip("no name of a file")
		}
		c, err := Load(in(name, text))
		if (c == nil) == (err == nil) {
			t.Fatalf("Load() = %v, %v: exactly one must be nil", c, err)
		}
		if err != nil {
			checkProblems(t, err, regexp.MustCompile(`:\d+: |^env TEESCOPE_CONFIG: `))
			return
		}
		checkWritten(t, c)
	})
}

// checkProblems: each problem is one printable line and names its position.
func checkProblems(t *testing.T, err error, where *regexp.Regexp) {
	t.Helper()
	var e *problemsError
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		t.Fatalf("%v is not a list of problems", err)
	}
	for _, p := range e.Problems {
		s := p.String()
		if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("%q is not a printable line", s)
		}
		if !where.MatchString(s) || p.Text == "" {
			t.Errorf("%q has no position", s)
		}
	}
}

// checkWritten: the output of Write is a file that gives the same configuration, repeatedly.
func checkWritten(t *testing.T, c *Config) {
	t.Helper()
	var out bytes.Buffer
	if err := c.Write(&out); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !utf8.ValidString(s) || strings.ContainsFunc(strings.ReplaceAll(s, "\n", ""), unicode.IsControl) {
		t.Errorf("%q is not printable", s)
	}
	again, err := Load(in("t.yml", out.String()))
	if err != nil {
		t.Fatalf("what Write printed is not accepted: %v\n%s", err, out.String())
	}
	if got, want := again.Values(), c.Values(); !reflect.DeepEqual(got, want) {
		t.Fatalf("read back:\n%q\nwant:\n%q\n%s", got, want, out.String())
	}
	var twice bytes.Buffer
	if err := again.Write(&twice); err != nil {
		t.Fatal(err)
	}
	third, err := Load(in("t.yml", twice.String()))
	if err != nil || !reflect.DeepEqual(third.Values(), again.Values()) {
		t.Errorf("read back twice: %v\n%s", err, twice.String())
	}
}

// FuzzValue: one value means the same in the file, the environment and a flag.
func FuzzValue(f *testing.F) {
	table := keys()
	for i, values := range [][]string{
		{"127.0.0.1:9750", "[::1]:0", ":+1", "a\x1b:1", "a\xff:1"}, {"web.yml", "null", "~", " x ", "a\n# b: c", "\xff", "- a", "\ufeff"},
		{"/var/lib/x", "relative\x7f", "\xff/"}, {"5s", "1m30s", "100ms"}, {"15d", "1y", "99999999999y"}, {"0", "2GiB", "9223372036854775807B", "9999999999\n GiB"},
		{"a:1", "[fe80::1%eth0]:2", "a\x00:1", "a:1,a:1"}, {"x=http://h:1/m?a=b", "http://h:99999", "\x1b=http://h", "http://h/%00#f", "http://h?;"},
		{"1", "1024", "+5"}, {"comm=a)|(b", "pid=1", "exe=/a\x1b*", "cgroup=[\xff]"}, {"true", "yes"}, {"info", "INFO"}, {"json", "jsn"},
	} {
		for _, v := range values {
			f.Add(byte(i), v)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, value string) {
		k := table[int(which)%len(table)]
		if strings.Contains(value, "\x00") {
			t.Skip("neither arguments nor variables hold this")
		}
		env, err := Load(Input{Command: Any, Environ: []string{k.env() + "=" + value}})
		if err != nil {
			checkProblems(t, err, regexp.MustCompile(`^env `+k.env()+`: `+regexp.QuoteMeta(k.name)+`: `))
		} else {
			checkWritten(t, env)
		}
		if k.list() && (strings.Contains(value, k.sep) || strings.TrimSpace(value) != value || value == "") {
			return // there it is split
		}
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		Flags(set, Any)
		if err := set.Parse([]string{"--" + k.name + "=" + value}); err != nil {
			t.Fatal(err)
		}
		flag, flagErr := Load(Input{Command: Any, Flags: set})
		if flagErr != nil {
			checkProblems(t, flagErr, regexp.MustCompile(`^flag --`+regexp.QuoteMeta(k.name)+`: `))
		}
		if (flagErr == nil) != (err == nil) || err == nil && !reflect.DeepEqual(flag.Values(), env.Values()) {
			t.Errorf("%s = %q: the flag gives %v, the variable %v", k.name, value, flagErr, err)
		}
		if !utf8.ValidString(value) {
			return // a file is text
		}
		file, fileErr := Load(in("t.yml", asFile(t, k.name, value)))
		if (fileErr == nil) != (err == nil) || err == nil && !reflect.DeepEqual(file.Values(), env.Values()) {
			t.Errorf("%s = %q: the file gives %v, the variable %v", k.name, value, fileErr, err)
		}
	})
}

// asFile writes one key as YAML, its value in quotes.
func asFile(t *testing.T, name, value string) string {
	t.Helper()
	node := &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: value}
	words := strings.Split(name, ".")
	for i := len(words) - 1; i >= 0; i-- {
		node = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: words[i]}, node}}
	}
	out, err := yaml.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
