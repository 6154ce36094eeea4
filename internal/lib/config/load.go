// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/teescope/teescope/internal/lib/text"
)

// Input holds the sources of a configuration.
type Input struct {
	Command Command
	Flags   *pflag.FlagSet // made by [Flags] and parsed; nil for none
	Environ []string       // in the form of os.Environ
	Host    Host
	Open    func(name string) (fs.File, error) // opens the configuration file; nil when none is allowed
	// CheckThreshold checks one value of analysis.thresholds; nil accepts all.
	CheckThreshold func(value string) error
}

// Load reads defaults, file, environment and flags. Each overrides those before it. The returned error is a *[problemsError]
// with every problem that was found.
func Load(in Input) (*Config, error) {
	l := &loader{in: in, table: keys(), cfg: &Config{origins: map[string]origin{}}}
	for _, k := range l.table {
		l.set(k, k.def(in.Host), origin{Kind: "default"})
	}
	if name, from := l.fileName(); name != "" {
		l.file(name, from)
	}
	l.env()
	l.flags()
	l.across()
	if len(l.problems) > 0 {
		return nil, &problemsError{Problems: l.problems}
	}
	return l.cfg, nil
}

type loader struct {
	in       Input
	table    []*key
	cfg      *Config
	problems []problem
}

func (l *loader) problem(o origin, key, format string, args ...any) {
	l.problems = append(l.problems, problem{Origin: o, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (l *loader) set(k *key, values []string, o origin) {
	if o.Kind != "default" && !l.accepts(k, values, o) {
		return
	}
	if err := k.set(l.cfg, values); err != nil {
		for _, one := range each(err) {
			l.problem(o, k.name, "%v", one)
		}
		return
	}
	l.cfg.origins[k.name] = o
}

// accepts checks what needs no other key.
func (l *loader) accepts(k *key, values []string, o origin) bool {
	ok := l.areText(k, values, o)
	if k.name != thresholdsKey || l.in.CheckThreshold == nil {
		return ok
	}
	for _, v := range values {
		if err := l.in.CheckThreshold(v); err != nil {
			l.problem(o, k.name, "%v", err)
			ok = false
		}
	}
	return ok
}

// areText refuses values that no key needs and that could be neither printed nor used as a label.
func (l *loader) areText(k *key, values []string, o origin) bool {
	for _, v := range values {
		if !text.IsLabel(v) {
			l.problem(o, k.name, "%q contains a control character or is not UTF-8", text.WithoutPassword(v))
			return false
		}
	}
	return true
}

// each splits joined errors.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// fileName returns the name of the configuration file, and the origin of that name.
func (l *loader) fileName() (string, origin) {
	if l.in.Flags != nil {
		if f := l.in.Flags.Lookup(configKey); f != nil && f.Changed {
			return f.Value.String(), origin{Kind: "flag", At: "--" + configKey}
		}
	}
	name := envPrefix + strings.ToUpper(configKey)
	for _, kv := range l.in.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, origin{Kind: "env", At: name}
		}
	}
	return "", origin{}
}

func (l *loader) env() {
	byName := make(map[string]*key, len(l.table))
	names := make([]string, 0, len(l.table))
	for _, k := range l.table {
		byName[k.env()] = k
		names = append(names, k.env())
	}
	environ := slices.Sorted(slices.Values(l.in.Environ))
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || name == envPrefix+"CONFIG" {
			continue
		}
		o := origin{Kind: "env", At: name}
		k, ok := byName[name]
		if !ok && fromKubernetes(name, value) {
			l.cfg.Ignored = append(l.cfg.Ignored, name)
			continue
		}
		if !ok {
			l.problem(o, "", "unknown variable%s", suggestion(name, names))
			continue
		}
		l.set(k, k.split(value, k.list()), o)
	}
}

// service matches the variables that Kubernetes sets in every container for a Service whose name begins with teescope, such
// as teescope-agent: NAME_SERVICE_HOST, NAME_SERVICE_PORT[_PORTNAME] and NAME_PORT_9750_TCP[_PROTO|_PORT|_ADDR].
var service = lazy.Regexp(`^TEESCOPE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)$`)

// servicePort matches the address in NAME_PORT, which Kubernetes sets too.
var servicePort = lazy.Regexp(`^(tcp|udp|sctp)://`)

// fromKubernetes reports whether Kubernetes has set a variable. It is not part of the configuration.
func fromKubernetes(name, value string) bool {
	return service().MatchString(name) || strings.HasSuffix(name, "_PORT") && servicePort().MatchString(value)
}

func (l *loader) flags() {
	if l.in.Flags == nil {
		return
	}
	for _, k := range l.table {
		f := l.in.Flags.Lookup(k.name)
		if f == nil || !f.Changed {
			continue
		}
		v, ok := f.Value.(*flagValue)
		if !ok {
			continue
		}
		var values []string
		for _, s := range v.values {
			values = append(values, k.split(s, k.flagSep)...)
		}
		l.set(k, values, origin{Kind: "flag", At: "--" + k.name})
	}
}

// across checks conditions between keys, and between keys and the command.
func (l *loader) across() {
	l.scrapeConfigFiles()
	if l.in.Command&(Up|Server) != 0 && l.in.Command != Any {
		l.withoutPage()
	}
	if l.in.Command == Server && l.cfg.Query.URL != nil {
		l.withoutDatabase()
		return
	}
	if l.in.Command == Server && len(l.cfg.Targets)+len(l.cfg.Discovery)+len(l.cfg.Scrape) == 0 && !l.has("targets") && !l.has("discovery") && !l.has("scrape") && !l.has("query.url") {
		l.problem(origin{Kind: "flag", At: "--targets"}, "targets",
			"the server needs at least one agent to scrape, for example --targets node1:9750")
	}
}

// scrapeConfigFiles checks that each file for an application names one. A wrong name would scrape without credentials.
func (l *loader) scrapeConfigFiles() {
	for _, s := range l.cfg.ScrapeConfigFiles {
		name, _, _ := strings.Cut(s, "=")
		if len(l.cfg.Scrape) == 0 || l.has("scrape") || slices.ContainsFunc(l.cfg.Scrape, func(e Endpoint) bool { return e.Job == name }) {
			continue
		}
		l.problem(l.cfg.origins["scrape-config-file"], "scrape-config-file", "%q: scrape has no application %q", s, name)
	}
}

func (l *loader) has(key string) bool {
	return slices.ContainsFunc(l.problems, func(p problem) bool { return p.Key == key })
}

// split splits the value of a list and drops empty parts.
func (k *key) split(s string, parts bool) []string {
	if !parts {
		return []string{s}
	}
	var out []string
	for _, v := range strings.Split(s, k.sep) {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

func suggestion(s string, names []string) string {
	if near := text.Nearest(s, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
