// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tries maps each key to valid values, and to invalid values with the expected errors.
var tries = map[string]struct {
	good []string
	bad  map[string]string
}{
	"listen": {[]string{"[::1]:80", ":0", "unix:/run/teescope/t.sock"}, map[string]string{
		"unix:t.sock": "the path of a socket must be absolute: use for example unix:/run/teescope/teescope.sock",
		"localhost":   `"localhost" is not HOST:PORT: use for example 127.0.0.1:9750`,
		"a/b:1":       `"a/b:1" has no valid host: use for example 127.0.0.1:9750`,
		"a:65536":     `the port "65536" is not a number from 0 to 65535`,
		"a:+1":        `the port "+1" is not a number from 0 to 65535`,
		" ":           "has no value",
	}},
	"web.insecure":   {[]string{"true", "false"}, map[string]string{"yes": `"yes" is neither true nor false`}},
	"web.access-log": {[]string{"queries", "all", "none"}, map[string]string{"yes": `"yes" is not one of none, queries, all`}},
	"web.hosts": {[]string{"node1.example.org", "*.svc"}, map[string]string{
		"node1:9750": `"node1:9750" is not a host name: use for example node1.example.org or *.example.org, without a port`,
		"*":          `"*" is not a host name: use for example node1.example.org or *.example.org, without a port`,
	}},
	"web.socket-mode": {[]string{"0600", "0666"}, map[string]string{
		"rw": `"rw" is not a mode: use for example 0660`, "1777": `"1777" is not a mode: use for example 0660`,
	}},
	"web.socket-group": {[]string{"adm", "4"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"web.config-file":  {[]string{"web.yml", "null"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"web.external-url": {[]string{"https://t.example.org", "http://h:1/tee"}, map[string]string{
		"t.example.org":   `"t.example.org": not an http or https URL (use for example https://teescope.example.org)`,
		"http://u:p@h":    `"http://***@h": a password in a URL ends up in logs; put it into the file with credentials (use for example https://teescope.example.org)`,
		"http://h/?a=b":   `"http://h/?a=b": only scheme, host and path`,
		"http://:1":       `"http://:1": no host (use for example https://teescope.example.org)`,
		"http://h:0":      `"http://h:0": the port "0" is not a number from 1 to 65535 (use for example https://teescope.example.org)`,
		"http://h\x7f/":   `"http://h\x7f/" contains a control character or is not UTF-8`,
		"http://[::1%25]": `"http://[::1%25]": invalid host: ParseAddr("::1%"): zone must be a non-empty string (use for example https://teescope.example.org)`,
	}},
	"rules.files":    {[]string{"/etc/teescope/*.yaml", "a.yml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"rules.default":  {[]string{"true", "false"}, map[string]string{"no": `"no" is neither true nor false`}},
	"rules.interval": {[]string{"100ms", "1h"}, map[string]string{"2h": "2h is out of range: use 100ms to 1h"}},
	"alerting.alertmanagers": {[]string{"http://a:9093", "https://a/alerts"}, map[string]string{
		"a:9093": `"a:9093": not an http or https URL (use for example http://alertmanager:9093)`,
	}},
	"alerting.alertmanager-config-file": {[]string{"am.yml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"alerting.webhooks": {[]string{"http://a/b?c=d", "file:/etc/hook"}, map[string]string{
		"x":     `"x": not an http or https URL (use for example http://host:port/path)`,
		"file:": `"file:" names no file: use for example file:/etc/teescope/webhook`,
	}},
	"alerting.webhook-config-file": {[]string{"wh.yml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"pid-namespace":                {[]string{"any", "host"}, map[string]string{"": "has no value", "none": `"none" is not one of host, any`}},
	"sandbox":                      {[]string{"required"}, map[string]string{"off": `"off" is not one of available, required`}},
	"user":                         {[]string{"teescope", "65521:1", "0"}, map[string]string{"a b": `"a b" is not a user: use a name, UID or UID:GID, for example 65521`}},
	"data-dir":                     {[]string{"/srv/a b"}, map[string]string{"": "has no value", "/\x1b": `"/\x1b" contains a control character or is not UTF-8`}},
	"interval": {[]string{"100ms", "2m"}, map[string]string{
		"10":   `"10" has no unit: use for example 10s`,
		"fast": `"fast" is not a duration: use for example 5s, 90m or 15d`,
		"99ms": "99ms is out of range: use 100ms to 2m",
	}},
	"retention.time": {[]string{"1h", "100y"}, map[string]string{"59m": "59m is out of range: use 1h to 100y"}},
	"retention.size": {[]string{"0", "16MiB", "1TB"}, map[string]string{
		"1MiB":          "1MiB is too small: the minimum is 16MiB, and 0 means no limit",
		"99999999999TB": `"99999999999TB" is out of range: the maximum is 8388607TiB`,
		"2 gigs":        `"2 gigs" is not a size: use for example 512MB, 2GiB, or 0 for no limit`,
	}},
	"targets": {[]string{"node1:9750", "[fe80::1%eth0]:1", "https://node1:9750"}, map[string]string{
		"http://a:1": `"http://a:1" is a URL: use HOST:PORT, for example node1:9750`,
		"a":          `"a" is not HOST:PORT: use for example node1:9750`,
		":1":         `":1" has no valid host: use for example node1:9750`,
		"a:0":        `the port "0" is not a number from 1 to 65535`,
		"u:p@a:1":    `"***@a:1" is not HOST:PORT: use for example node1:9750`,
		"https://a":  `"a" is not HOST:PORT: use for example node1:9750`,
	}},
	"scrape": {[]string{"http://h", "db=https://[::1]:9187/m?a=b", "db=http://h/metrics workload=postgres operations=x_total"}, map[string]string{
		"http://h a=b":   `"http://h": "a=b" is not a property: use workload=, machine=, operations=, latency=NAME (NAME=http://host:port/metrics workload=redis-server)`,
		"ftp://h":        `"ftp://h": not an http or https URL (use NAME=http://host:port/metrics)`,
		"http://h:99999": `"http://h:99999": the port "99999" is not a number from 1 to 65535 (use NAME=http://host:port/metrics)`,
	}},
	"targets-config-file": {[]string{"agents.yml", "*.rack1:9750=rack1.yml", "node[12]:9750=/etc/a=b.yml"}, map[string]string{
		"a\tb":          `"a\tb" contains a control character or is not UTF-8`,
		"[a:9750=a.yml": `"[a:9750=a.yml" is not [PATTERN=]FILE: use for example *.rack1:9750=/etc/teescope/rack1.yml`,
		"=a.yml":        `"=a.yml" is not [PATTERN=]FILE: use for example *.rack1:9750=/etc/teescope/rack1.yml`,
		"a:9750=":       `"a:9750=" is not [PATTERN=]FILE: use for example *.rack1:9750=/etc/teescope/rack1.yml`,
	}},
	"discovery": {[]string{"file=/etc/teescope/*.yml", "kubernetes=observe/app.kubernetes.io/component=agent"}, map[string]string{
		"node1:9750":             `"node1:9750" is not file=PATTERN, http=URL, dns=NAME:PORT or kubernetes=NAMESPACE/SELECTOR`,
		"dns=":                   `"dns=" is not file=PATTERN, http=URL, dns=NAME:PORT or kubernetes=NAMESPACE/SELECTOR`,
		"file=agents.yml":        `file=agents.yml: use the whole name, which begins with /`,
		"http=https://u:p@h/":    `"https://***@h/": a password in a URL ends up in logs; put it into discovery-config-file`,
		"http=h/targets":         `"h/targets" is not an http or https URL`,
		"dns=agents":             `"agents" is not HOST:PORT: use for example node1:9750`,
		"dns=_tee._tcp.lan:97":   `"_tee._tcp.lan:97": SRV records have the port; use dns=_SERVICE._PROTO.NAME`,
		"kubernetes=Observe/a=b": `"Observe/a=b" is not NAMESPACE/SELECTOR: use for example kubernetes=observe/app.kubernetes.io/component=agent`,
	}},
	"remote-write.urls": {[]string{"http://h:9090/api/v1/write"}, map[string]string{
		"h:9090": `"h:9090": not an http or https URL (use for example http://host:9090/api/v1/write)`,
	}},
	"remote-write.config-file": {[]string{"mimir.yml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"remote-write.labels": {[]string{"cluster=eu"}, map[string]string{
		"cluster": `"cluster" is not NAME=VALUE: use for example cluster=eu`, "__a=b": `"__a=b" is not NAME=VALUE: use for example cluster=eu`,
	}},
	"query.url": {[]string{"http://h:9090", "https://mimir/prometheus"}, map[string]string{
		"h:9090": `"h:9090": not an http or https URL (use for example http://prometheus:9090)`,
	}},
	"query.http-config-file": {[]string{"prometheus.yml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"remote-write.protocol":  {[]string{"2.0"}, map[string]string{"3.0": `"3.0" is not one of 1.0, 2.0, otlp; did you mean "1.0"?`}},
	"remote-write.only":      {[]string{"true"}, map[string]string{"yes": `"yes" is neither true nor false`}},
	"kubernetes.pods":        {[]string{"true"}, map[string]string{"yes": `"yes" is neither true nor false`}},
	"kubernetes.pod-labels": {[]string{"team", "app.kubernetes.io/name"}, map[string]string{
		"a b": `"a b" is not the name of a label: use for example app.kubernetes.io/name`,
	}},
	"discovery-config-file": {[]string{"cmdb.yml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"scrape-config-file": {[]string{"db=/etc/db.yml"}, map[string]string{
		"db":  `"db" is not NAME=FILE: use for example redis=/etc/teescope/redis.yml`,
		"db=": `"db=" is not NAME=FILE: use for example redis=/etc/teescope/redis.yml`,
	}},
	"workloads.max": {[]string{"1", "1024"}, map[string]string{
		"many": `"many" is not a whole number: use 1 to 1024`, "0": "0 is out of range: use 1 to 1024",
	}},
	"workloads.settings": {[]string{"off", "GOMAXPROCS", "_x", "KEYS_MAX", "sgx.enclave_size", "loader.log_level", "sgx.profile.enable"}, map[string]string{
		"loader.env.LOG":                    `"loader.env.LOG" is not a key of Gramine's manifests that can be a setting: use loader.log_level, or one that begins with libos, sgx or sys`,
		"fs.mounts":                         `"fs.mounts" is not a key of Gramine's manifests that can be a setting: use loader.log_level, or one that begins with libos, sgx or sys`,
		"sgx.A":                             `"sgx.A" is not a key of Gramine's manifests that can be a setting: use loader.log_level, or one that begins with libos, sgx or sys`,
		"sgx.insecure__protected_files_key": `"sgx.insecure__protected_files_key" looks like the name of a secret, and everyone who can query would see its value`,
		"A-B":                               `"A-B" is not the name of an environment variable: use for example GOMAXPROCS`,
		"DB_PASSWORD":                       `"DB_PASSWORD" looks like the name of a secret, and everyone who can query would see its value`,
		"DATABASE_URL":                      `"DATABASE_URL" looks like the name of a secret, and everyone who can query would see its value`,
		"SSHKEY":                            `"SSHKEY" looks like the name of a secret, and everyone who can query would see its value`,
		"API_KEY":                           `"API_KEY" looks like the name of a secret, and everyone who can query would see its value`,
	}},
	"watch": {[]string{"pid=1", "comm=a|b"}, map[string]string{
		"comm=a)|(b": `watch rule "comm=a)|(b": unexpected ): "a)|(b" (write comm=REGEX, exe=GLOB, cgroup=GLOB, workload=NAME or pid=N)`,
	}},
	"syscalls.time": {[]string{"true", "false"}, map[string]string{"on": `"on" is neither true nor false`}},
	"overhead.budget": {[]string{"1%", "0.5%", "100%"}, map[string]string{
		"1":    `"1" is not a percentage: use for example 1% or 0.5%`,
		"x%":   `"x%" is not a percentage: use for example 1% or 0.5%`,
		"NaN%": `"NaN%" is not a percentage: use for example 1% or 0.5%`,
		"0%":   `0% is out of range: use 0.01% to 100%`,
		"101%": `101% is out of range: use 0.01% to 100%`,
	}},
	"transitions.trace": {
		[]string{"auto", "on", "off"},
		map[string]string{"yes": `"yes" is not one of auto, on, off`, "outo": `"outo" is not one of auto, on, off; did you mean "auto"?`},
	},
	"transitions.budget": {
		[]string{"100", "10000", "1000000"},
		map[string]string{
			"99":      "99 is out of range: use 100 to 1000000",
			"1000001": "1000001 is out of range: use 100 to 1000000",
			"1%":      `"1%" is not a whole number: use 100 to 1000000`,
		},
	},
	"transitions.cost": {
		[]string{"", "4us", "3us-5us", "7.83us", "900ns-1.2us"},
		map[string]string{
			"8000":    `"8000" is neither a time nor a range: use for example 4us or 3us-5us`,
			"3-5us":   `"3-5us" is neither a time nor a range: use for example 4us or 3us-5us`,
			"5us-3us": `"5us-3us" starts with its larger bound: use 3us-5us`,
			"1s":      `"1s" is out of range: use 10ns to 10ms`,
			"-4us":    `"-4us" is neither a time nor a range: use for example 4us or 3us-5us`,
		},
	},
	"probes.file":      {[]string{"probes.yaml"}, map[string]string{"a\tb": `"a\tb" contains a control character or is not UTF-8`}},
	"profiles.enabled": {[]string{"true", "false"}, map[string]string{"yes": `"yes" is neither true nor false`}},
	"control.enabled":  {[]string{"true", "false"}, map[string]string{"yes": `"yes" is neither true nor false`}},
	"control.max-duration": {[]string{"1s", "1h", "1d"}, map[string]string{
		"0s": "0s is out of range: use 1s to 1d", "25h": "25h is out of range: use 1s to 1d", "10": `"10" has no unit: use for example 10s`,
	}},
	"memory.limit": {[]string{"0", "64MiB", "512MiB", "2GB"}, map[string]string{
		"1MiB": "1MiB is too small: the minimum is 64MiB, and 0 means no limit",
		"lots": `"lots" is not a size: use for example 512MB, 2GiB, or 0 for no limit`,
	}},
	"analysis.enabled": {[]string{"true", "false"}, map[string]string{"1": `"1" is neither true nor false`}},
	"analysis.interval": {[]string{"1s", "1m", "1h"}, map[string]string{
		"60":  `"60" has no unit: use for example 60s`,
		"2h":  "2h is out of range: use 1s to 1h",
		"1ms": "1ms is out of range: use 1s to 1h",
	}},
	"analysis.thresholds": {[]string{"lock-contention.calls=5000 workload=~redis-.*"}, map[string]string{
		"a\tb": `"a\tb" contains a control character or is not UTF-8`,
	}},
	"analysis.window": {[]string{"10s", "5m", "1d"}, map[string]string{
		"9s": "9s is out of range: use 10s to 1d",
	}},
	"log.level":  {[]string{"debug", "error"}, map[string]string{"INFO": `"INFO" is not one of debug, info, warn, error`}},
	"log.format": {[]string{"json", "text"}, map[string]string{"jsn": `"jsn" is not one of text, json; did you mean "json"?`}},
}

// nested writes a key as YAML below a comment, and returns the line number of its value.
func nested(name, value string) (file string, line int) {
	section, rest, found := strings.Cut(name, ".")
	if !found {
		return "# the file\n" + name + ": " + value + "\n", 2
	}
	return "# the file\n" + section + ":\n  " + rest + ": " + value + "\n", 3
}

// problems lists the problems of a configuration.
func problems(t *testing.T, err error) []string {
	t.Helper()
	var e *problemsError
	if !errors.As(err, &e) {
		t.Fatalf("Load() = %v, want an *Error", err)
	}
	var all []string
	for _, p := range e.Problems {
		all = append(all, p.String())
	}
	return all
}

// Every key is read from every source, and reports that source as its origin.
func TestGoodValues(t *testing.T) {
	for _, k := range keys() {
		if len(tries[k.name].good) == 0 {
			t.Errorf("%s is not tried", k.name)
		}
		for _, value := range tries[k.name].good {
			file, line := nested(k.name, fmt.Sprintf("%q", value))
			for _, try := range []struct {
				file    string
				environ []string
				args    []string
				origin  string
			}{
				{file, nil, nil, fmt.Sprintf("file t.yml:%d", line)},
				{"", []string{k.env() + "=" + value}, nil, "env " + k.env()},
				{file, []string{k.env() + "=" + value}, []string{"--" + k.name + "=" + value}, "flag --" + k.name},
			} {
				c, err := load(t, Any, try.file, try.environ, try.args)
				if err != nil {
					t.Errorf("%s: %s: %v", try.origin, value, err)
					continue
				}
				if got := c.origins[k.name].String(); got != try.origin {
					t.Errorf("%s comes from %q, want %q", k.name, got, try.origin)
				}
				if got := k.get(c); len(got) != 1 || !strings.HasPrefix(strings.TrimPrefix(got[0], "application="), strings.TrimSuffix(value, "/metrics")) {
					t.Errorf("%s = %q, want %q", k.name, got, value)
				}
			}
		}
	}
}

// Every invalid value of every key is one problem that names the file and line, the variable or the flag.
func TestBadValues(t *testing.T) {
	for _, k := range keys() {
		if len(tries[k.name].bad) == 0 {
			t.Errorf("%s is not tried", k.name)
		}
		for value, text := range tries[k.name].bad {
			file, line := nested(k.name, fmt.Sprintf("%q", value))
			_, err := load(t, Any, file, nil, nil)
			if got, want := problems(t, err), fmt.Sprintf("t.yml:%d: %s: %s", line, k.name, text); !slices.Equal(got, []string{want}) {
				t.Errorf("file: %q, want %q", got, want)
			}
			_, err = load(t, Any, "", []string{k.env() + "=" + value}, nil)
			if got, want := problems(t, err), "env "+k.env()+": "+k.name+": "+text; !slices.Equal(got, []string{want}) {
				t.Errorf("environment: %q, want %q", got, want)
			}
			_, err = load(t, Any, "", nil, []string{"--" + k.name + "=" + value})
			if got, want := problems(t, err), "flag --"+k.name+": "+text; !slices.Equal(got, []string{want}) {
				t.Errorf("flag: %q, want %q", got, want)
			}
		}
	}
}

// For any key, a value of the wrong shape is a problem of the key's line.
func TestWrongShapes(t *testing.T) {
	for _, k := range keys() {
		for value, text := range map[string]string{
			"":          "has no value: give it one or leave the key out",
			"~":         "has no value: give it one or leave the key out",
			"{a: b}":    "takes a value, not a mapping",
			"&x 1":      "aliases and anchors are not supported, write the value",
			"!!str 1":   "tags are not supported, write the value",
			"[[1]]":     "an item must be a plain value",
			"[!!str 1]": "an item must be a plain value",
			"[~]":       "an item must be a plain value",
		} {
			if strings.HasPrefix(value, "[") && !k.list() {
				text = "takes one value, not a list"
			}
			if value == "{a: b}" && k.fields != nil {
				text = `unknown key "a": an item has ` + strings.Join(k.fields, ", ")
			}
			file, line := nested(k.name, value)
			_, err := load(t, Any, file, nil, nil)
			if got, want := problems(t, err), fmt.Sprintf("t.yml:%d: %s: %s", line, k.name, text); !slices.Equal(got, []string{want}) {
				t.Errorf("%q: %q, want %q", value, got, want)
			}
		}
		good := fmt.Sprintf("%q", tries[k.name].good[0])
		file, line := nested(k.name, good)
		last := file[strings.LastIndex(strings.TrimSuffix(file, "\n"), "\n")+1:]
		_, err := load(t, Any, file+last, nil, nil)
		if got, want := problems(t, err), fmt.Sprintf("t.yml:%d: %s: is set already on line %d", line+1, k.name, line); !slices.Equal(got, []string{want}) {
			t.Errorf("twice: %q, want %q", got, want)
		}
	}
}

// Each invalid item of a list is a separate problem, also where a list is on one line.
func TestEveryItemIsReported(t *testing.T) {
	for name, try := range map[string]struct{ items, want []string }{
		"targets":                {[]string{"a:1", "b", "https://a:1"}, []string{`"b" is not HOST:PORT: use for example node1:9750`, `"https://a:1" is listed twice`}},
		"scrape-config-file":     {[]string{"a=b", "c", "a=d"}, []string{`"c" is not NAME=FILE`, `"a=d": a has a file already`}},
		"scrape":                 {[]string{"http://a", "b=http://a/metrics", "x://y"}, []string{`"b=http://a/metrics" is given twice`, `"x://y": not an http or https URL (use NAME=http://host:port/metrics)`}},
		"alerting.alertmanagers": {[]string{"http://a", "x://y", "http://a"}, []string{`"x://y": not an http`, `"http://a" is given twice`}},
		"alerting.webhooks":      {[]string{"file:a", "http://a", "file:a", "b"}, []string{`"file:a" is given twice`, `"b": not an http`}},
		"watch":                  {[]string{"pid=0", "pid=1", "x=y"}, []string{`watch rule "pid=0": not a process ID`, `watch rule "x=y": unknown selector "x"`}},
	} {
		var args []string
		for _, item := range try.items {
			args = append(args, "--"+name+"="+item)
		}
		_, err := load(t, Any, "", nil, args)
		got := problems(t, err)
		if len(got) != len(try.want) {
			t.Errorf("%s: %q, want %q", name, got, try.want)
			continue
		}
		for i, want := range try.want {
			if !strings.HasPrefix(got[i], "flag --"+name+": "+want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

// Names from a file or a variable cannot send control sequences to a terminal.
func TestProblemsAreFitToBePrinted(t *testing.T) {
	_, err := load(t, Any, "\"a\\e[31m\": 1\n\"a\\e[31m\": 2\n", []string{"TEESCOPE_\x1b[31m=1"}, nil)
	for _, p := range problems(t, err) {
		if strings.ContainsAny(p, "\x1b\n") {
			t.Errorf("%q", p)
		}
	}
}
