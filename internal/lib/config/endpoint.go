// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/operation"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/text"
)

// Endpoint is a target with Prometheus metrics that is not an agent, such as an application or an exporter.
type Endpoint struct {
	Job string // the label job of its series
	URL *url.URL

	Workload   string // whose metrics these are; empty: not stated
	Machine    string // the label instance of the agent that watches the workload; empty: follows from the targets
	Operations string // PromQL selector of the counter of the workload's operations; empty: a known one, if it is there
	Latency    string // PromQL selector of the histogram of their durations; may be empty
}

// defaultJob is the label job of endpoints without a name.
const defaultJob = "application"

// jobOfAgents is the label job of teescope's own series.
const jobOfAgents = "teescope"

// The properties of an endpoint after its address.
const (
	endpointWorkload   = "workload"
	endpointMachine    = "machine"
	endpointOperations = "operations"
	endpointLatency    = "latency"
)

// maxProperty is the maximum length of a property in bytes.
const maxProperty = 1024

// property is one property of an endpoint.
type property struct {
	name  string
	value *string
	check func(string) error
}

func (e *Endpoint) properties() []property {
	selector := func(s string) error {
		_, _, err := promql.Selector(s)
		return err
	}
	return []property{
		{endpointWorkload, &e.Workload, checkWorkload},
		{endpointMachine, &e.Machine, func(string) error { return nil }},
		{endpointOperations, &e.Operations, selector},
		{endpointLatency, &e.Latency, checkLatency},
	}
}

func checkWorkload(s string) error {
	switch s {
	case "idle", "kernel", "other": // the agent's names for what is not a program
		return fmt.Errorf("%q is not a program: it is the name of idle processors, the kernel or all further workloads", s)
	}
	return nil
}

// checkLatency also needs the unit, which is the last word of the name.
func checkLatency(s string) error {
	name, _, err := promql.Selector(s)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_bucket") {
		return fmt.Errorf("%q: use the name of the histogram, without _bucket", s)
	}
	if operation.Units()[name[strings.LastIndexByte(name, '_')+1:]] == 0 {
		return fmt.Errorf("%q does not end in a unit: _seconds, _milliseconds, _ms, _microseconds, _usec, _us, _nanoseconds or _ns", name)
	}
	return nil
}

// String returns the endpoint as a user writes it: NAME=URL, and the properties that are set.
func (e Endpoint) String() string {
	var b strings.Builder
	b.WriteString(e.Job + "=" + e.URL.String())
	for _, p := range e.properties() {
		if *p.value != "" {
			b.WriteString(" " + p.name + "=" + quoted(*p.value))
		}
	}
	return b.String()
}

// quoted quotes a value that would not be one word.
func quoted(s string) string {
	if words, err := words(s); err != nil || len(words) != 1 || words[0] != s || strings.HasPrefix(s, `"`) {
		return strconv.Quote(s)
	}
	return s
}

// words splits a text at blanks outside quotes and braces.
func words(s string) ([]string, error) {
	var all []string
	var quote byte
	depth, from := 0, 0
	end := func(at int) {
		if from < at {
			all = append(all, s[from:at])
		}
		from = at + 1
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ' ' && depth <= 0:
			end(i)
		}
	}
	if quote != 0 || depth > 0 {
		return nil, errors.New("a quote or a brace is not closed")
	}
	end(len(s))
	return all, nil
}

// parseEndpoint parses [NAME=]URL [PROPERTY=VALUE]... A URL without a path means /metrics, as in Prometheus.
func parseEndpoint(s string) (Endpoint, error) {
	head, rest := s, ""
	if at := strings.Index(s, "://"); at >= 0 {
		if blank := strings.IndexByte(s[at:], ' '); blank >= 0 {
			head, rest = s[:at+blank], s[at+blank:]
		}
	}
	e, err := parseAddress(head)
	if err != nil {
		return Endpoint{}, err
	}
	if err := e.set(rest); err != nil {
		return Endpoint{}, fmt.Errorf("%q: %w", text.WithoutPassword(head), err)
	}
	return e, nil
}

// set sets the properties.
func (e *Endpoint) set(s string) error {
	all, err := words(s)
	if err != nil {
		return err
	}
	known := e.properties()
	var names []string
	for _, p := range known {
		names = append(names, p.name)
	}
	for _, word := range all {
		name, value, found := strings.Cut(word, "=")
		at := slices.Index(names, name)
		if !found || at < 0 {
			return fmt.Errorf("%q is not a property: use %s=NAME%s (NAME=http://host:port/metrics workload=redis-server)",
				word, strings.Join(names, "=, "), suggestion(name, names))
		}
		if strings.HasPrefix(value, `"`) {
			if value, err = strconv.Unquote(value); err != nil {
				return fmt.Errorf("%s: %q is not a quoted text", name, word)
			}
		}
		switch p := known[at]; {
		case *p.value != "":
			return fmt.Errorf("%s is given twice", name)
		case value == "":
			return fmt.Errorf("%s has no value", name)
		case len(value) > maxProperty:
			return fmt.Errorf("%s has %d bytes; the maximum is %d", name, len(value), maxProperty)
		case !text.IsLabel(value):
			return fmt.Errorf("%s: %q contains a control character or is not UTF-8", name, value)
		default:
			if err := p.check(value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			*p.value = value
		}
	}
	if e.Workload == "" && len(all) > 0 {
		return errors.New("operations, latency and machine are those of a workload: add workload=NAME")
	}
	return nil
}

func parseAddress(s string) (Endpoint, error) {
	bad := func(why string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("%q: %s (use NAME=http://host:port/metrics)", text.WithoutPassword(s), why)
	}
	job, address := defaultJob, s
	if name, rest, found := strings.Cut(s, "="); found && !strings.Contains(name, "/") {
		job, address = name, rest
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return bad(errors.Unwrap(err).Error())
	case job == "" || job == jobOfAgents:
		return bad("the name is empty or reserved")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("not an http or https URL")
	case u.Hostname() == "":
		return bad("no host")
	case u.Port() != "" && checkPort(u.Port(), 1) != nil:
		return bad(checkPort(u.Port(), 1).Error())
	case u.User != nil:
		return bad("a password in a URL ends up in logs; put it into a file for scrape-config-file")
	}
	if u.Path == "" {
		u.Path = "/metrics"
	}
	u.Fragment = ""
	return Endpoint{Job: job, URL: u}, nil
}

// endpointFields are the keys of an endpoint that the file has as a mapping.
func endpointFields() []string {
	names := []string{"name", "url"}
	for _, p := range new(Endpoint).properties() {
		names = append(names, p.name)
	}
	return names
}

// endpointText returns the text of an endpoint that the file has as a mapping.
func endpointText(values map[string]string) (string, error) {
	if values["url"] == "" {
		return "", errors.New("url is missing")
	}
	s := values["url"]
	if strings.Contains(s, " ") {
		return "", fmt.Errorf("%q: a URL has no blanks", text.WithoutPassword(s))
	}
	if name := values["name"]; name != "" {
		if strings.ContainsAny(name, "/=") {
			return "", fmt.Errorf("name: %q contains / or =", name)
		}
		s = name + "=" + s
	}
	for _, p := range new(Endpoint).properties() {
		if v, ok := values[p.name]; ok {
			s += " " + p.name + "=" + quoted(v)
		}
	}
	return s, nil
}
