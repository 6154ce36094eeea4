// SPDX-License-Identifier: Apache-2.0

package probefile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/text"
)

const whole = `probes:
  - name: disk
    help: Data of requests.
    tracepoint: block/block_rq_issue
    keys: {device: dev, command: comm}
    value: {sum: nr_sector, unit: bytes, scale: 512}
    only: bytes >= 0x1000
    series: 64
  - name: opens
    help: Opens.
    kretprobe: do_sys_openat2
    keys: {error: errno}
  - name: work
    help: Time of work.
    uretprobe: {file: /bin/app, symbol: work, force: true}
    value: {histogram: duration}
  - name: size
    help: Sizes.
    uprobe: {file: /bin/app, offset: 0x11d0}
    value: {histogram: "arg2:u32", buckets: {from: 4, to: 12}}
  - name: step
    help: Steps.
    usdt: {file: /bin/app, provider: up, name: step}
    value: {sum: arg12}
  - name: reads
    help: Reads.
    kprobe: vfs_read.isra.0
    keys: {cpu: cpu}
`

func TestWholeFile(t *testing.T) {
	got, err := parse("probes.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := []Probe{
		{
			Line: 2, Name: "disk", Help: "Data of requests.", Mechanism: Tracepoint, Target: Target{Category: "block", Name: "block_rq_issue"},
			Keys:  []Key{{"device", Field{Name: "dev"}}, {"command", Field{Name: "comm"}}},
			Value: Value{Kind: Sum, Field: Field{Name: "nr_sector"}, Unit: "bytes", Scale: 512}, Only: &Filter{Field{Name: "bytes"}, ">=", 4096}, Series: 64,
		},
		{
			Line: 9, Name: "opens", Help: "Opens.", Mechanism: Kretprobe, Target: Target{Name: "do_sys_openat2"},
			Keys: []Key{{"error", Field{Name: "errno"}}}, Value: Value{Scale: 1}, Series: 256,
		},
		{
			Line: 13, Name: "work", Help: "Time of work.", Mechanism: Uretprobe, Target: Target{File: "/bin/app", Symbol: "work", Force: true},
			Value: Value{Kind: Histogram, Field: Field{Name: "duration"}, Unit: "seconds", Scale: 1e-9, First: 10, Last: 34}, Series: 256,
		},
		{
			Line: 17, Name: "size", Help: "Sizes.", Mechanism: Uprobe, Target: Target{File: "/bin/app", Offset: 0x11d0},
			Value: Value{Kind: Histogram, Field: Field{Name: "arg2", Size: 4}, Scale: 1, First: 4, Last: 12}, Series: 256,
		},
		{
			Line: 21, Name: "step", Help: "Steps.", Mechanism: USDT, Target: Target{File: "/bin/app", Provider: "up", Name: "step"},
			Value: Value{Kind: Sum, Field: Field{Name: "arg12"}, Scale: 1}, Series: 256,
		},
		{
			Line: 25, Name: "reads", Help: "Reads.", Mechanism: Kprobe, Target: Target{Name: "vfs_read.isra.0"},
			Keys: []Key{{"cpu", Field{Name: "cpu"}}}, Value: Value{Scale: 1}, Series: 256,
		},
	}
	if len(got) != len(want) {
		t.Fatalf("%d probes, want %d", len(got), len(want))
	}
	families := []string{
		"teescope_user_disk_bytes_total", "teescope_user_opens_total", "teescope_user_work_seconds", "teescope_user_size", "teescope_user_step_total", "teescope_user_reads_total",
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
		if got[i].Family() != families[i] {
			t.Errorf("family %s, want %s", got[i].Family(), families[i])
		}
	}
}

// probe returns a file with one probe, whose further lines begin in line 4.
func probe(lines string) string {
	return "probes:\n  - name: a\n    help: A.\n" + lines
}

const tracepoint = "    tracepoint: a/b\n"

func TestProblems(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"", `1: the file is empty: it needs a list "probes:"`},
		{"# nothing\n", `1: the file is empty: it needs a list "probes:"`},
		{"probes:\n\t- a\n", `2: not YAML: found character that cannot start any token`},
		{"- a\n", `1: the file: expected keys with values`},
		{"{}\n", `1: there is no list "probes:"`},
		{"probe: []\n", `1: unknown key "probe": did you mean probes?`},
		{"probes: []\n", `1: probes: expected a list of at least one probe`},
		{"probes: [a]\n", `1: probe 1: probe: expected keys with values`},
		{"probes: [" + strings.Repeat("{},", 16) + "{}]\n", `1: 17 probes; the maximum is 16`},
		{whole + "---\nprobes: []\n", `29: more than one document: only one is read`},
		{whole + whole[8:], `29: probe disk is already in line 2`},
		{"probes:\n  - help: A.\n    kprobe: f\n", `2: probe 1: it has no name`},
		{"probes:\n  - name: a\n    kprobe: f\n", `2: probe a: it has no help: say in a sentence what is counted`},
		{probe(""), `2: probe a: it has no event: add tracepoint, kprobe, kretprobe, uprobe, uretprobe or usdt`},
		{probe(tracepoint + "    kprobe: f\n"), `2: probe a: it has several events: tracepoint, kprobe`},
		{probe("    uretprobe: {file: /a, symbol: f, force: maybe}\n"), `4: probe a: force: "maybe" is not true or false`},
		{probe("    uprobe: {file: /a, symbol: f, force: true}\n"), `4: probe a: unknown key "force": the keys here are file, offset, symbol`},
		{probe("    name: b\n" + tracepoint), `4: probe a: name is there twice`},
		{probe("    serie: 5\n" + tracepoint), `4: probe a: unknown key "serie": did you mean series?`},
		{probe("    nonsense: 5\n" + tracepoint), `4: probe a: unknown key "nonsense": the keys here are help, keys, kprobe, kretprobe, name, only, series, tracepoint, uprobe, uretprobe, usdt, value`},
		{"probes:\n  - name: &x a\n", `2: probe 1: name: anchors and aliases are not allowed`},
		{"probes:\n  - name: A\n", `2: probe 1: name: "A" is not a name of at most 60 lower-case letters, digits and _ that begins with a letter`},
		{"probes:\n  - name: a_total\n", `2: probe 1: name: "a_total" ends in _total, which has a meaning in names of metrics: leave it out`},
		{"probes:\n  - name: probe_a\n", `2: probe 1: name: "probe_a" begins with the prefix of teescope's own metrics about probes`},
		{"probes:\n  - name: probe\n    value: {sum: arg1, unit: events}\n", `2: probe 1: name: "probe" begins with the prefix of teescope's own metrics about probes`},
		{"probes:\n  - name:\n", `2: probe 1: name: expected a value`},
		{"probes:\n  - help: \"a\\e[0m\"\n", `2: probe 1: help: "a\x1b[0m" contains a control character or is not UTF-8`},
		{"probes:\n  - help: " + strings.Repeat("a", 1001) + "\n", `2: probe 1: help: longer than 1000 characters`},
		{probe("    tracepoint: block_rq_issue\n"), `4: probe a: tracepoint: "block_rq_issue" is not CATEGORY/NAME, for example block/block_rq_issue`},
		{probe("    tracepoint: ../../etc\n"), `4: probe a: tracepoint: "../../etc" is not CATEGORY/NAME, for example block/block_rq_issue`},
		{probe("    kprobe: a b\n"), `4: probe a: kprobe: "a b" is not the name of a function of the kernel`},
		{probe("    uprobe: /bin/sh\n"), `4: probe a: uprobe: expected keys with values`},
		{probe("    uprobe: {symbol: f}\n"), `4: probe a: uprobe: it has no file`},
		{probe("    uprobe: {file: bin/sh, symbol: f}\n"), `4: probe a: file: "bin/sh" is not an absolute path`},
		{probe("    uprobe: {file: /bin/sh}\n"), `4: probe a: uprobe: it needs either symbol or offset`},
		{probe("    uprobe: {file: /bin/sh, symbol: f, offset: 5}\n"), `4: probe a: uprobe: it needs either symbol or offset`},
		{probe("    uprobe: {file: /bin/sh, offset: x}\n"), `4: probe a: offset: "x" is not a position in a file, for example 0x11d0`},
		{probe("    uprobe: {file: /bin/sh, name: f}\n"), `4: probe a: unknown key "name": the keys here are file, offset, symbol`},
		{probe("    usdt: {file: /bin/sh, name: f}\n"), `4: probe a: usdt: it needs provider and name`},
		{probe(tracepoint + "    series: 0\n"), `5: probe a: series: "0" is not a whole number from 1 to 2048`},
		{probe(tracepoint + "    only: bytes\n"), `5: probe a: only: "bytes" is not FIELD OPERATOR NUMBER, for example "bytes >= 4096"; operators are == != < <= > >= and & (has a bit)`},
		{probe(tracepoint + "    only: bytes > many\n"), `5: probe a: only: "many" is not a whole number`},
		{probe(tracepoint + "    only: comm == 5\n"), `5: probe a: only: comm cannot be compared`},
		{probe(tracepoint + "    keys: [a]\n"), `5: probe a: keys: expected LABEL: FIELD, for example "device: dev"`},
		{probe(tracepoint + "    keys: {a: a, b: b, c: c, d: d}\n"), `5: probe a: keys: 4; the maximum is 3`},
		{probe(tracepoint + "    keys: {workload: a}\n"), `5: probe a: keys: the label workload is set by teescope or Prometheus: use another one`},
		{probe(tracepoint + "    keys: {a: a, a: b}\n"), `5: probe a: keys: a is there twice`},
		{probe(tracepoint + "    keys: {a-b: a}\n"), `5: probe a: keys: "a-b" is not a label: letters, digits and _, beginning with a letter`},
		{probe(tracepoint + "    keys: {__a: a}\n"), `5: probe a: keys: "__a" is not a label: letters, digits and _, beginning with a letter`},
		{probe(tracepoint + "    keys: {a: comm, b: comm}\n"), `5: probe a: keys: comm can be one key only`},
		{probe(tracepoint + "    keys: {a: a.b}\n"), `5: probe a: keys: "a.b" is not the name of a field`},
		{probe(tracepoint + "    keys: {a: \"a:u32\"}\n"), `5: probe a: keys: a field of a tracepoint has its own type`},
		{probe("    kprobe: f\n    keys: {a: arg7}\n"), `5: probe a: keys: arg7: there are at most 6 arguments`},
		{probe("    kprobe: f\n    keys: {a: \"arg1:int\"}\n"), `5: probe a: keys: "int" is not a type: use u8, u16, u32, u64, s8, s16, s32 or s64`},
		{probe("    kprobe: f\n    keys: {a: return}\n"), `5: probe a: keys: "return": this event has arg1, arg2 and so on, comm and cpu`},
		{probe("    kretprobe: f\n    keys: {a: arg1}\n"), `5: probe a: keys: "arg1": where a function returns, there are return, errno, duration, comm and cpu`},
		{probe("    kretprobe: f\n    keys: {a: duration}\n"), `5: probe a: keys: duration can be a value, but not a key`},
		{probe("    usdt: {file: /a, provider: p, name: n}\n    keys: {a: \"arg1:u32\"}\n"), `5: probe a: keys: arg1 has its own type`},
		{probe("    usdt: {file: /a, provider: p, name: n}\n    keys: {a: arg13}\n"), `5: probe a: keys: arg13: there are at most 12 arguments`},
		{probe(tracepoint + "    value: bytes\n"), `5: probe a: value: expected keys with values`},
		{probe(tracepoint + "    value: {unit: bytes}\n"), `5: probe a: value: it needs sum or histogram, with a field; without value the events are counted`},
		{probe(tracepoint + "    value: {sum: a, histogram: a}\n"), `5: probe a: value: either sum or histogram, not both`},
		{probe(tracepoint + "    value: {sum: comm}\n"), `5: probe a: value: comm is not a number`},
		{probe(tracepoint + "    value: {sum: a, unit: MB}\n"), `5: probe a: unit: "MB" is not a base unit, for example bytes or seconds`},
		{probe(tracepoint + "    value: {sum: a, unit: total}\n"), `5: probe a: value: total is not a unit`},
		{probe(tracepoint + "    value: {sum: a, scale: 0}\n"), `5: probe a: scale: "0" is not a number from 1e-12 to 1e12`},
		{probe(tracepoint + "    value: {sum: a, buckets: {from: 1, to: 2}}\n"), `5: probe a: value: a sum has no buckets`},
		{probe(tracepoint + "    value: {histogram: a, buckets: {from: 1}}\n"), `5: probe a: buckets: expected {from: N, to: M}: the bounds are the powers of two from 2^N to 2^M`},
		{probe(tracepoint + "    value: {histogram: a, buckets: {from: 3, to: 2}}\n"), `5: probe a: buckets: from is larger than to`},
		{probe(tracepoint + "    value: {histogram: a, buckets: {from: 0, to: 33}}\n"), `5: probe a: buckets: 34 bounds; the maximum is 33`},
		{probe("    kretprobe: f\n    value: {histogram: duration, scale: 5}\n"), `5: probe a: value: a duration is in seconds and needs neither unit nor scale`},
		{probe("    kprobe: f\n    value: {histogram: arg1, unit: bytes}\n  - name: a_bytes\n    help: B.\n    kprobe: f\n"), `6: metric teescope_user_a_bytes is already in line 2`},
	} {
		_, err := parse("p.yaml", []byte(tt.file))
		if want := "reading probes: p.yaml:" + tt.want; err == nil || !strings.HasPrefix(err.Error()+"\n", want+"\n") && !strings.Contains(err.Error()+"\n", "  p.yaml:"+tt.want+"\n") {
			t.Errorf("%s\ngot  %v\nwant %s", tt.file, err, want)
		}
	}
}

// All problems are reported together.
func TestSeveralProblems(t *testing.T) {
	_, err := parse("p.yaml", []byte("probes:\n  - name: A\n    help: \"\"\n  - kprobe: f\n    only: 5\n"))
	want := `reading probes: 3 problems:
  p.yaml:2: probe 1: name: "A" is not a name of at most 60 lower-case letters, digits and _ that begins with a letter
  p.yaml:3: probe 1: help: expected a value
  p.yaml:4: probe 2: it has no name`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	if _, err := Read(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := Read(file); err != nil || len(all) != 6 {
		t.Errorf("%d probes, %v", len(all), err)
	}
	if err := os.WriteFile(file, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil {
		t.Error("a file above the limit is read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(probe("    uprobe: {file: /bin/sh, symbol: f, offset: 5}\n")))
	f.Add([]byte("probes: [&a {name: *a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		probes, err := parse("p.yaml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "reading probes: ") || text.Terminal(strings.ReplaceAll(err.Error(), "\n", "")) != strings.ReplaceAll(err.Error(), "\n", "") {
				t.Errorf("%q", err)
			}
			if !strings.Contains(err.Error(), "p.yaml:") || len(err.Error()) > 500_000 {
				t.Errorf("no file and line, or too long: %.200q", err)
			}
			return
		}
		if len(probes) == 0 || len(probes) > maxProbes {
			t.Errorf("%d probes", len(probes))
		}
		names := map[string]bool{}
		for _, p := range probes {
			if names[p.Family()] || !nameForm().MatchString(p.Name) || p.Help == "" || len(p.Keys) > maxKeys || p.Series < 1 || p.Series > maxSeries {
				t.Errorf("%+v", p)
			}
			names[p.Family()] = true
			if v := p.Value; v.Last-v.First >= maxBuckets || v.First > v.Last || v.Last > 62 {
				t.Errorf("%+v", v)
			}
			for _, k := range p.Keys {
				if !labelForm().MatchString(k.Label) {
					t.Errorf("label %q", k.Label)
				}
			}
		}
	})
}
