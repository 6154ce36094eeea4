// SPDX-License-Identifier: Apache-2.0

package probefile

import (
	"github.com/teescope/teescope/internal/lib/lazy"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/text"
)

var (
	nameForm  = lazy.Regexp(`^[a-z][a-z0-9_]{0,59}$`)
	labelForm = lazy.Regexp(`^[a-zA-Z][a-zA-Z0-9_]{0,59}$`)
	unitForm  = lazy.Regexp(`^[a-z]{1,30}$`)
	pathForm  = lazy.Regexp(`^/[^\x00]*$`)
	eventForm = lazy.Regexp(`^([a-zA-Z0-9_]{1,100})/([a-zA-Z0-9_]{1,100})$`)
	// Compilers add suffixes such as .isra.0 to functions.
	functionForm = lazy.Regexp(`^[a-zA-Z_][a-zA-Z0-9_.]{0,127}$`)
	symbolForm   = lazy.Regexp(`^[^\s]{1,127}$`)
	wordForm     = lazy.Regexp(`^[a-zA-Z_][a-zA-Z0-9_]{0,99}$`)
	filterForm   = lazy.Regexp(`^(\S+?)\s*(==|!=|<=|>=|<|>|&)\s*(\S+)$`)
	truthForm    = lazy.Regexp(`^(true|false)$`)
	argumentForm = lazy.Regexp(`^arg([1-9][0-9]?)$`)
)

// suffixes have a meaning at the end of a family's name.
var suffixes = []string{"_total", "_created", "_count", "_sum", "_bucket", "_info"}

// reserved are labels that teescope, Prometheus or the scrape sets.
var reserved = []string{"workload", "container", "pod", "namespace", "instance", "job", "le", "quantile", "process"}

// one reads a probe.
func (r *reader) one(n *yaml.Node) Probe {
	p := Probe{Line: n.Line, Series: defaultSeries, Value: Value{Scale: 1}}
	var keys, value, only *yaml.Node // read last, because they depend on the mechanism
	fields := map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) { r.name(n, &p) },
		"help": func(n *yaml.Node) { p.Help = r.scalar(n, "help") },
		"keys": func(n *yaml.Node) { keys = n }, "value": func(n *yaml.Node) { value = n }, "only": func(n *yaml.Node) { only = n },
		"series": func(n *yaml.Node) { p.Series = r.number(n, "series", 1, maxSeries) },
	}
	var given []string
	for _, m := range mechanisms {
		fields[string(m)] = func(n *yaml.Node) {
			given = append(given, string(m))
			p.Mechanism = m
			r.target(n, &p)
		}
	}
	before := len(r.problems)
	r.mapping(n, "probe", fields)
	if len(r.problems) > before { // more would follow from these
		return p
	}
	switch {
	case p.Name == "":
		r.problem(n.Line, "it has no name")
	case p.Help == "":
		r.problem(n.Line, "it has no help: say in a sentence what is counted")
	case len(given) == 0:
		r.problem(n.Line, "it has no event: add tracepoint, kprobe, kretprobe, uprobe, uretprobe or usdt")
	case len(given) > 1:
		r.problem(n.Line, "it has several events: %s", strings.Join(given, ", "))
	default:
		r.measures(&p, keys, value, only)
	}
	return p
}

func (r *reader) name(n *yaml.Node, p *Probe) {
	s := r.match(n, "name", nameForm(), "a name of at most 60 lower-case letters, digits and _ that begins with a letter")
	if s == "probe" || strings.HasPrefix(s, "probe_") { // a unit follows the name
		r.problem(n.Line, "name: %q begins with the prefix of teescope's own metrics about probes", s)
		return
	}
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			r.problem(n.Line, "name: %q ends in %s, which has a meaning in names of metrics: leave it out", s, suffix)
			return
		}
	}
	if p.Name = s; s != "" {
		r.probe = s
	}
}

// target reads the event of a probe.
func (r *reader) target(n *yaml.Node, p *Probe) {
	what, t := string(p.Mechanism), &p.Target
	switch p.Mechanism {
	case Tracepoint:
		s := r.match(n, what, eventForm(), "CATEGORY/NAME, for example block/block_rq_issue")
		t.Category, t.Name, _ = strings.Cut(s, "/")
		return
	case Kprobe, Kretprobe:
		t.Name = r.match(n, what, functionForm(), "the name of a function of the kernel")
		return
	}
	fields := map[string]func(*yaml.Node){
		"file": func(n *yaml.Node) { t.File = r.match(n, "file", pathForm(), "an absolute path") },
	}
	if p.Mechanism == USDT {
		fields["provider"] = func(n *yaml.Node) { t.Provider = r.match(n, "provider", symbolForm(), "the name of a provider") }
		fields["name"] = func(n *yaml.Node) { t.Name = r.match(n, "name", symbolForm(), "the name of a probe") }
	} else {
		fields["symbol"] = func(n *yaml.Node) { t.Symbol = r.match(n, "symbol", symbolForm(), "the name of a function") }
		fields["offset"] = func(n *yaml.Node) { t.Offset = r.offset(n) }
	}
	if p.Mechanism == Uretprobe {
		fields["force"] = func(n *yaml.Node) {
			t.Force = r.match(n, "force", truthForm(), "true or false") == "true"
		}
	}
	before := len(r.problems)
	r.mapping(n, what, fields)
	switch {
	case len(r.problems) > before:
	case t.File == "":
		r.problem(n.Line, "%s: it has no file", what)
	case p.Mechanism == USDT && (t.Provider == "" || t.Name == ""):
		r.problem(n.Line, "%s: it needs provider and name", what)
	case p.Mechanism != USDT && (t.Symbol == "") == (t.Offset == 0):
		r.problem(n.Line, "%s: it needs either symbol or offset", what)
	}
}

func (r *reader) offset(n *yaml.Node) uint64 {
	s := r.scalar(n, "offset")
	offset, err := strconv.ParseUint(s, 0, 62)
	if s != "" && (err != nil || offset == 0) {
		r.problem(n.Line, "offset: %q is not a position in a file, for example 0x11d0", text.Short(s, maxName))
	}
	return offset
}

// measures reads which values are counted by which keys.
func (r *reader) measures(p *Probe, keys, value, only *yaml.Node) {
	if keys != nil {
		r.keys(keys, p)
	}
	if value != nil {
		r.value(value, p)
	}
	if only == nil {
		return
	}
	s := r.scalar(only, "only")
	m := filterForm().FindStringSubmatch(s)
	if m == nil {
		if s != "" {
			r.problem(only.Line, "only: %q is not FIELD OPERATOR NUMBER, for example \"bytes >= 4096\"; operators are == != < <= > >= and & (has a bit)", text.Short(s, maxName))
		}
		return
	}
	f := &Filter{Operator: m[2], Field: r.field(only, "only", m[1], p)}
	number, err := strconv.ParseInt(m[3], 0, 64)
	if err != nil {
		r.problem(only.Line, "only: %q is not a whole number", text.Short(m[3], maxName))
	}
	if f.Field.Name == Comm || f.Field.Name == Duration {
		r.problem(only.Line, "only: %s cannot be compared", f.Field.Name)
	}
	f.Number, p.Only = number, f
}

func (r *reader) keys(n *yaml.Node, p *Probe) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		r.problem(n.Line, "keys: expected LABEL: FIELD, for example \"device: dev\"")
		return
	}
	if len(n.Content)/2 > maxKeys {
		r.problem(n.Line, "keys: %d; the maximum is %d", len(n.Content)/2, maxKeys)
		return
	}
	comms := 0
	for i := 0; i+1 < len(n.Content); i += 2 {
		label := r.match(n.Content[i], "keys", labelForm(), "a label: letters, digits and _, beginning with a letter")
		field := r.field(n.Content[i+1], "keys", r.scalar(n.Content[i+1], "keys"), p)
		if field.Name == Comm {
			comms++
		}
		switch {
		case slices.Contains(reserved, label):
			r.problem(n.Content[i].Line, "keys: the label %s is set by teescope or Prometheus: use another one", label)
		case slices.ContainsFunc(p.Keys, func(k Key) bool { return k.Label == label }):
			r.problem(n.Content[i].Line, "keys: %s is there twice", label)
		case field.Name == Duration:
			r.problem(n.Content[i].Line, "keys: duration can be a value, but not a key")
		case comms > 1:
			r.problem(n.Content[i].Line, "keys: comm can be one key only")
		}
		p.Keys = append(p.Keys, Key{label, field})
	}
}

func (r *reader) value(n *yaml.Node, p *Probe) {
	v := &p.Value
	var scaled, bounded bool
	measure := func(kind Kind, what string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			if v.Kind != Events {
				r.problem(n.Line, "value: either sum or histogram, not both")
			}
			v.Kind, v.Field = kind, r.field(n, what, r.scalar(n, what), p)
		}
	}
	before := len(r.problems)
	r.mapping(n, "value", map[string]func(*yaml.Node){
		"sum": measure(Sum, "sum"), "histogram": measure(Histogram, "histogram"),
		"unit": func(n *yaml.Node) {
			v.Unit = r.match(n, "unit", unitForm(), "a base unit, for example bytes or seconds")
		},
		"scale":   func(n *yaml.Node) { scaled = true; v.Scale = r.scale(n) },
		"buckets": func(n *yaml.Node) { bounded = true; r.buckets(n, v) },
	})
	if len(r.problems) > before {
		return
	}
	switch {
	case v.Kind == Events:
		r.problem(n.Line, "value: it needs sum or histogram, with a field; without value the events are counted")
	case v.Field.Name == Comm:
		r.problem(n.Line, "value: comm is not a number")
	case bounded && v.Kind == Sum:
		r.problem(n.Line, "value: a sum has no buckets")
	case slices.Contains(suffixes, "_"+v.Unit):
		r.problem(n.Line, "value: %s is not a unit", v.Unit)
	case v.Field.Name == Duration && (scaled || v.Unit != "" && v.Unit != "seconds"):
		r.problem(n.Line, "value: a duration is in seconds and needs neither unit nor scale")
	}
	if v.Field.Name == Duration {
		v.Unit, v.Scale = "seconds", 1e-9
	}
	if v.Kind == Histogram && !bounded {
		v.First, v.Last = 0, 26
		if v.Field.Name == Duration {
			v.First, v.Last = 10, 34 // 1 us to 17 s
		}
	}
}

func (r *reader) scale(n *yaml.Node) float64 {
	s := r.scalar(n, "scale")
	scale, err := strconv.ParseFloat(s, 64)
	if s != "" && (err != nil || math.IsNaN(scale) || scale < 1e-12 || scale > 1e12) {
		r.problem(n.Line, "scale: %q is not a number from 1e-12 to 1e12", text.Short(s, maxName))
		return 1
	}
	return scale
}

func (r *reader) buckets(n *yaml.Node, v *Value) {
	const most = 62
	given := 0
	r.mapping(n, "buckets", map[string]func(*yaml.Node){
		"from": func(n *yaml.Node) { given++; v.First = r.number(n, "from", 0, most) },
		"to":   func(n *yaml.Node) { given++; v.Last = r.number(n, "to", 0, most) },
	})
	switch {
	case given < 2:
		r.problem(n.Line, "buckets: expected {from: N, to: M}: the bounds are the powers of two from 2^N to 2^M")
	case v.Last < v.First:
		r.problem(n.Line, "buckets: from is larger than to")
	case v.Last-v.First >= maxBuckets:
		r.problem(n.Line, "buckets: %d bounds; the maximum is %d", v.Last-v.First+1, maxBuckets)
	}
}

// types are the types that may be given for arguments and results.
var types = map[string]Field{
	"u8": {Size: 1}, "u16": {Size: 2}, "u32": {Size: 4}, "u64": {Size: 8},
	"s8": {Size: 1, Signed: true}, "s16": {Size: 2, Signed: true}, "s32": {Size: 4, Signed: true}, "s64": {Size: 8, Signed: true},
}

// field reads the name of a field, and the type of an argument or result: "arg1:u32".
func (r *reader) field(n *yaml.Node, what, s string, p *Probe) Field {
	name, kind, typed := strings.Cut(s, ":")
	f, known := types[kind]
	f.Name = name
	argument := argumentForm().FindStringSubmatch(name)
	m := p.Mechanism
	bad := func(format string, args ...any) { r.problem(n.Line, what+": "+format, args...) }
	switch {
	case s == "": // reported already
	case typed && !known:
		bad("%q is not a type: use u8, u16, u32, u64, s8, s16, s32 or s64", text.Short(kind, maxName))
	case name == Comm || name == CPU:
	case m == Tracepoint:
		if !wordForm().MatchString(name) {
			bad("%q is not the name of a field", text.Short(name, maxName))
		}
		if typed {
			bad("a field of a tracepoint has its own type")
		}
		return f
	case m.returns():
		if name != Return && name != Errno && name != Duration {
			bad("%q: where a function returns, there are return, errno, duration, comm and cpu", text.Short(name, maxName))
		}
	case argument == nil:
		bad("%q: this event has arg1, arg2 and so on, comm and cpu", text.Short(name, maxName))
	default:
		most := 6
		if m == USDT {
			most = 12
		}
		if i, _ := strconv.Atoi(argument[1]); i > most { // it has digits only
			bad("%s: there are at most %d arguments", name, most)
		}
	}
	if typed && name != Return && (argument == nil || m == USDT) {
		bad("%s has its own type", name)
	}
	if !typed && m != USDT && (name == Return || argument != nil) {
		f.Size, f.Signed = 8, true
	}
	return f
}
