// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:9121":                       "application=http://127.0.0.1:9121/metrics",
		"redis=http://127.0.0.1:9121/metrics":         "redis=http://127.0.0.1:9121/metrics",
		"https://host/probe?target=x&module=y":        "application=https://host/probe?target=x&module=y",
		"db=http://[::1]:9187/m#top":                  "db=http://[::1]:9187/m",
		"http://host:1/federate?match[]={__name__=x}": "application=http://host:1/federate?match[]={__name__=x}",
	} {
		e, err := parseEndpoint(text)
		if err != nil || e.String() != want {
			t.Errorf("parseEndpoint(%q) = %s, %v; want %s", text, e, err, want)
			continue
		}
		if again, err := parseEndpoint(e.String()); err != nil || again.String() != want {
			t.Errorf("%s is read back as %v, %v", want, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "not an http", "host:9121": "", "ftp://host/x": "not an http", "http://": "no host", "http:///metrics": "no host",
		"=http://host": "empty or reserved", "teescope=http://host": "empty or reserved", "http://u:p@host": "password", "http://a b": "",
	} {
		_, err := parseEndpoint(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "NAME=http") {
			t.Errorf("parseEndpoint(%q) = %v, want %q and how to write it", text, err, want)
		}
	}
}

func TestParseEndpointOfWorkload(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"redis=http://h:9121 workload=redis-server": {Job: "redis", Workload: "redis-server"},
		"http://h:9121/metrics  machine=node1:9750   workload=nginx.service operations=http_requests_total latency=http_request_duration_seconds": {
			Job: "application", Workload: "nginx.service", Machine: "node1:9750", Operations: "http_requests_total", Latency: "http_request_duration_seconds",
		},
		`http://h:9121 workload="Web Content" operations=http_requests_total{code=~"2.. |3..", path="/a b"}`: {
			Job: "application", Workload: "Web Content", Operations: `http_requests_total{code=~"2.. |3..", path="/a b"}`,
		},
		`http://h:9121 workload="\"" operations={__name__="x y"}`: {Job: "application", Workload: `"`, Operations: `{__name__="x y"}`},
	} {
		e, err := parseEndpoint(text)
		if err != nil {
			t.Errorf("parseEndpoint(%q): %v", text, err)
			continue
		}
		want.URL = e.URL
		if e != want || e.URL.Host != "h:9121" {
			t.Errorf("parseEndpoint(%q) = %+v, want %+v", text, e, want)
		}
		if again, err := parseEndpoint(e.String()); err != nil || again.String() != e.String() {
			t.Errorf("%s is read back as %v, %v", e, again, err)
		}
	}
	for text, want := range map[string]string{
		"http://h:1 redis":                                 `"redis" is not a property`,
		"http://h:1 worklaod=x":                            "did you mean workload?",
		"http://h:1 workload=":                             "workload has no value",
		"http://h:1 workload=a workload=b":                 "workload is given twice",
		"http://h:1 operations=x_total":                    "add workload=NAME",
		"http://h:1 workload=idle":                         `"idle" is not a program: it is the name of idle processors, the kernel or all further workloads`,
		"http://h:1 workload=a operations=rate(x[5m])":     "is not a metric or a PromQL selector",
		`http://h:1 workload=a operations={a="b"}`:         "names no metric",
		`http://h:1 workload=a operations=x{a="b"`:         "not closed",
		"http://h:1 workload=a operations=x[5m]":           "is not a metric",
		"http://h:1 workload=a latency=request_duration":   "does not end in a unit",
		"http://h:1 workload=a latency=x_seconds_bucket":   "without _bucket",
		"http://h:1 workload=" + strings.Repeat("a", 1025): "1025 bytes; the maximum is 1024",
		`http://u:secret@h:1 workload=a`:                   "password",
	} {
		if _, err := parseEndpoint(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("parseEndpoint(%q) = %v, want %q", text, err, want)
		}
	}
}

// TestScrapeAsMapping: an entry of the file may be a mapping. It is the same as the text.
func TestScrapeAsMapping(t *testing.T) {
	c, err := Load(in("t.yml", `
scrape:
  - redis=http://h:1/metrics
  - name: web
    url: http://h:2
    workload: nginx.service
    operations: http_requests_total{code="200"}
    latency: http_request_duration_seconds
  - {url: http://h:3}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.Scrape {
		got = append(got, e.String())
	}
	want := "redis=http://h:1/metrics|web=http://h:2/metrics workload=nginx.service operations=http_requests_total{code=\"200\"} latency=http_request_duration_seconds|application=http://h:3/metrics"
	if strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
	checkWritten(t, c)
	if c, err := Load(in("t.yml", "scrape: {url: http://h:3, workload: a}")); err != nil || len(c.Scrape) != 1 || c.Scrape[0].Workload != "a" {
		t.Errorf("one entry needs no list: %v", err)
	}
	for text, want := range map[string]string{
		"scrape:\n- url: http://h\n  worklaod: x":         `t.yml:3: scrape: unknown key "worklaod": an item has name, url, workload, machine, operations, latency; did you mean workload?`,
		"scrape:\n- url: http://h\n  workload: [x]":       "t.yml:3: scrape: workload takes one plain value",
		"scrape:\n- url: http://h\n  workload:":           "t.yml:3: scrape: workload takes one plain value",
		"scrape:\n- url: http://h\n  url: http://i":       "t.yml:3: scrape: url is set twice",
		"scrape:\n- workload: x":                          "t.yml:2: scrape: url is missing",
		"scrape:\n- {url: http://h, name: a=b}":           `t.yml:2: scrape: name: "a=b" contains / or =`,
		"scrape:\n- {url: 'http://h a=b'}":                "t.yml:2: scrape: \"http://h a=b\": a URL has no blanks",
		"scrape:\n- {url: http://h, operations: x}":       "t.yml:2: scrape: \"http://h\": operations, latency and machine are those of a workload: add workload=NAME",
		"scrape:\n- {url: http://h, workload: \"a\\tb\"}": "contains a control character",
		"watch:\n- {pid: 1}":                              "an item must be a plain value",
	} {
		_, err := Load(in("t.yml", text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n%v\nwant %s", text, err, want)
		}
	}
}
