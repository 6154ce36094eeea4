// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/profiletest"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// published writes the two profiles of a comparison of machines: 5 % of a CPU in shares of 15, 55 and 30 %, and 20 % in shares
// of 50, 40 and 10 %.
func published(t *testing.T) (a, b string) {
	t.Helper()
	dir := t.TempDir()
	a, b = filepath.Join(dir, "a.folded"), filepath.Join(dir, "b.folded")
	for file, counts := range map[string][3]string{a: {"15", "55", "30"}, b: {"50", "40", "10"}} {
		lines := "serve;ecdh_mul " + counts[0] + "\nserve;rsa_sign " + counts[1] + "\nserve;parse " + counts[2] + "\n"
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func TestProfileCommands(t *testing.T) {
	a, b := published(t)
	groups := []string{"--group", "ECDH=ecdh", "--group", "RSA=rsa"}
	for _, tt := range []struct {
		args []string
		want []string // expressions for lines
	}{
		{append([]string{"show", "--cpu-time", "5%", a}, groups...), []string{
			`^ECDH +15 .*15\.00% .* 0\.750 %$`, `^RSA +55 .* 2\.750 %$`, `^rest +30 .* 1\.500 %$`, `^whole +100 .* 5\.000 %$`,
		}},
		{append([]string{"diff", "--cpu-time-a", "5%", "--cpu-time-b", "20%", a, b}, groups...), []string{
			`^ECDH +0\.750 % +10\.000 % +\+9\.250 % .* 61\.67%$`, `^RSA +2\.750 % +8\.000 % +\+5\.250 % .* 35\.00%$`,
			`^rest +1\.500 % +2\.000 % +\+0\.500 % ~ .* 3\.33%$`, `^whole +5\.000 % +20\.000 % +\+15\.000 % +100\.00%$`,
		}},
		{[]string{"breakdown", "--root", "serve", "--child", "rsa_sign", a}, []string{`^serve +100 +100\.00% `, `^rsa_sign +55 +55\.00% `}},
		{[]string{"show", "--within", "rsa", "--by", "library", b}, []string{`^whole +40 +40 +100\.00%`}},
	} {
		out, _, err := execute(t, append([]string{"profile"}, tt.args...)...)
		if err != nil {
			t.Errorf("%v: %v", tt.args, err)
		}
		for _, want := range tt.want {
			if !regexp.MustCompile(`(?m)` + want).MatchString(out) {
				t.Errorf("%v: no line matches %s in\n%s", tt.args, want, out)
			}
		}
	}
	for _, args := range [][]string{{"show", "--json", a}, {"diff", "--json", a, b}, {"breakdown", "--root", "serve", "--child", "parse", "--json", a}} {
		out, _, err := execute(t, append([]string{"profile"}, args...)...)
		if err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%v: %v, no JSON:\n%s", args, err, out)
		}
	}
}

// Each format that can be read again has the same samples, and the pages have all functions.
func TestProfileConverts(t *testing.T) {
	a, _ := published(t)
	want, _, err := execute(t, "profile", "show", a)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.pb.gz", "x.folded"} {
		to := filepath.Join(filepath.Dir(a), name)
		if _, _, err := execute(t, "profile", "convert", a, to); err != nil {
			t.Fatal(err)
		}
		got, _, err := execute(t, "profile", "show", to)
		if rows := func(s string) string { _, s, _ = strings.Cut(s, "\n"); return s }; err != nil || rows(got) != rows(want) {
			t.Errorf("%s: %v\n%swant\n%s", name, err, got, want)
		}
	}
	for _, name := range []string{"x.svg", "x.html", "x.speedscope.json"} {
		to := filepath.Join(filepath.Dir(a), name)
		if _, _, err := execute(t, "profile", "convert", a, to); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		for _, function := range []string{"serve", "ecdh_mul", "rsa_sign", "parse"} {
			if !strings.Contains(string(data), function) {
				t.Errorf("%s does not have %s", name, function)
			}
		}
	}
}

// A profile with times has them after it was converted to formats that have times, and one sample for each stack in the others.
func TestProfileConvertsTimes(t *testing.T) {
	dir := t.TempDir()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}}, profile.DefaultLimits())
	f, err := b.Frame(profile.Frame{Function: "work"})
	for _, at := range []int64{1e18, 1e18 + 5e8} {
		err = errors.Join(err, b.AddAt(at, []uint32{f}, nil, 1))
	}
	last := filepath.Join(dir, "in.pb.gz")
	if err := errors.Join(err, os.WriteFile(last, profiletest.Pprof(t, b.Profile()), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.otlp", "b.pb.gz", "c.otlp"} { // each from the one before
		to := filepath.Join(dir, name)
		if _, _, err := execute(t, "profile", "convert", last, to); err != nil {
			t.Fatal(err)
		}
		last = to
		p, err := read.Open(to, read.Options{Times: true})
		if err != nil || len(p.Samples) != 2 || p.Samples[0].At != 1e18 || p.Samples[1].At != 1e18+5e8 {
			t.Fatalf("%s: %v, %+v", name, err, p)
		}
	}
	text, _, err := execute(t, "profile", "convert", "--format", "speedscope", last, "-")
	if err != nil || !strings.Contains(text, `"samples":[[0]],"weights":[2]`) {
		t.Errorf("%v, %s", err, text)
	}
}

// The shares are those of the published figures: ECDH has 15 % of A and 50 % of B.
func TestProfileDiffIsDrawn(t *testing.T) {
	a, b := published(t)
	for format, begin := range map[string]string{"svg": "<svg ", "html": "<!doctype html>"} {
		out, _, err := execute(t, "profile", "diff", "--format", format, a, b)
		if err != nil || !strings.HasPrefix(out, begin) || !strings.Contains(out, "<title>ecdh_mul, A 15.00 %, B 50.00 %, +35.00 points</title>") {
			t.Errorf("%s: %v\n%.2000s", format, err, out)
		}
	}
}

// The time in the enclave is that of the functions in the enclave's own profile, which the source of Gramine's profiler has written: two
// of six samples in alpha and one in beta. Names need its files, so that its library stands for them here.
func TestProfileJoinsAnEnclave(t *testing.T) {
	const gramine = "../../internal/run/profile/read/perfdata/testdata/gramine-flat.data.gz"
	host := filepath.Join(t.TempDir(), "host.pb.gz")
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	for _, one := range []struct {
		profile.Frame
		n int64
	}{{profile.Frame{Function: "[in enclave]", Library: profile.EnclaveLibrary}, 600}, {profile.Frame{Function: "main", Library: "loader"}, 400}} {
		f, err := b.Frame(one.Frame)
		if err == nil {
			err = b.Add([]uint32{f}, nil, one.n, one.n*1e6)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(host, profiletest.Pprof(t, b.Profile()), 0o600); err != nil {
		t.Fatal(err)
	}
	shown, _, err := execute(t, "profile", "show", "--by", "library", "--enclave", gramine, host)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`^/opt/forks/forks +500000000 +500000000 +50\.00% +0\.500 s`, `libc\.so\.6 +100000000 `, `^loader +400000000 `, `^whole +1000000000 `, `^note: cpu in the enclave, divided by the shares of 6 samples`, `^note: the enclave's own profile: Gramine's profiler wrote this`} {
		if !regexp.MustCompile(`(?m)` + want).MatchString(shown) {
			t.Errorf("no line matches %s in\n%s", want, shown)
		}
	}
	a, _ := published(t)
	for file, want := range map[string]string{a: "no sample was taken in an enclave", host: "none"} {
		enclave := map[bool]string{true: gramine, false: filepath.Join(t.TempDir(), "none")}[file == a]
		if _, _, err := execute(t, "profile", "show", "--enclave", enclave, file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--enclave") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestProfileErrors(t *testing.T) {
	a, b := published(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"show"}, "name a file"},
		{[]string{"show", empty}, "empty"},
		{[]string{"show", "--group", "ECDH", a}, "ECDH"},
		{[]string{"show", "--group", "X=(", a}, "--group"},
		{[]string{"show", "--by", "color", a}, "--by"},
		{[]string{"show", "--top", "-1", a}, "--top"},
		{[]string{"show", "--cpu-time", "fast", a}, "--cpu-time"},
		{[]string{"show", "--within", "rsa_sing", a}, "rsa_sign"},
		{[]string{"diff", "--cpu-time-a", "5%", "--cpu-time-b", "5s", a, b}, "--cpu-time"},
		{[]string{"diff", "--format", "gif", a, b}, "svg or html"},
		{[]string{"diff", "--format", "svg", "--group", "X=x", a, b}, "group"},
		{[]string{"breakdown", "--child", "parse", a}, "--root"},
		{[]string{"breakdown", "--root", "parse"}, "a process with --pid, or a command after --"},
		{[]string{"convert", a, filepath.Join(t.TempDir(), "x.gif")}, "--format"},
	} {
		if _, _, err := execute(t, append([]string{"profile"}, tt.args...)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want an error with %q", tt.args, err, tt.want)
		}
	}
}
