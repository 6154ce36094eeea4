// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// folded builds a profile from lines of folded stacks.
func folded(t testing.TB, unit ValueType, lines string) *Profile {
	t.Helper()
	b := NewBuilder("test", []ValueType{unit}, DefaultLimits())
	for line := range strings.Lines(lines) {
		var stack []uint32
		var count int64
		at := strings.LastIndex(line, " ")
		if _, err := fmt.Sscan(line[at:], &count); err != nil {
			t.Fatal(err)
		}
		names := strings.Split(line[:at], ";")
		for i := len(names) - 1; i >= 0; i-- {
			f, err := b.Frame(Frame{Function: NameOf(names[i])})
			if err != nil {
				t.Fatal(err)
			}
			stack = append(stack, f)
		}
		if err := b.Add(stack, nil, count); err != nil {
			t.Fatal(err)
		}
	}
	return b.Profile()
}

var counts = ValueType{"samples", "count"}

func groups(t testing.TB, list ...string) []Group {
	t.Helper()
	var all []Group
	for _, s := range list {
		g, err := ParseGroup(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

func whole(t testing.TB, s string) Whole {
	t.Helper()
	w, err := ParseWhole(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPublishedHandshakes is the table of "Perf Event Diff Arch" (2021-03-15): TLS handshakes take 5 % of a CPU on Intel and
// 20 % on Arm, with shares of 15, 55 and 30 % and of 50, 40 and 10 %.
func TestPublishedHandshakes(t *testing.T) {
	list := groups(t, `ECDH=ecdh|x25519`, `RSA=rsa|bn_mul`)
	intel := folded(t, counts, "main;handshake;ECDH_compute_key;memcpy 100\nmain;x25519_scalar_mult 50\nmain;handshake;RSA_private_decrypt;bn_mul_mont 550\nmain;read 300\n")
	arm := folded(t, counts, "main;handshake;ECDH_compute_key 500\nmain;RSA_private_decrypt 400\nmain;write 100\n")
	before, after := intel.ByGroup(list, whole(t, "5%")), arm.ByGroup(list, whole(t, "20%"))
	for i, want := range []struct{ before, after int64 }{{750e6, 10e9}, {2750e6, 8e9}, {1500e6, 2e9}, {0, 0}} { // billionths of a percent
		if b, a := before.Rows[i].Absolute, after.Rows[i].Absolute; b != want.before || a != want.after {
			t.Errorf("%s: %d and %d, want %d and %d", before.Rows[i].Name, b, a, want.before, want.after)
		}
	}
	d, err := Compare(before, after, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	var part float64
	for _, c := range d.Changes {
		sum += c.Difference
		part += c.Part
	}
	if sum != 15e9 || d.Whole.Difference != 15e9 || math.Abs(part-1) > 1e-12 {
		t.Errorf("changes add up to %d and %v of %d", sum, part, d.Whole.Difference)
	}
	// The change of the rest is 0.5 with a standard deviation of hypot(5*sqrt(.3*.7/1000), 20*sqrt(.1*.9/1000)) = 0.2. The intervals
	// hold for all rows together, so a share of 10 % misses each end of its interval in .05*.1/2 of all cases: 2.8 standard
	// deviations. 0.5 is 2.5 of them.
	for i, sure := range []bool{true, true, false, false} {
		if d.Changes[i].Sure != sure {
			t.Errorf("%s: sure is %v: %+v", d.Changes[i].Name, d.Changes[i].Sure, d.Changes[i].Interval)
		}
	}
}

// TestPublishedThreadCreation is the table of gramine issue 1370's benchmark: cycles of thread creation in an enclave.
func TestPublishedThreadCreation(t *testing.T) {
	p := folded(t, ValueType{"cycles", "count"}, "start;libos_syscall_clone 591840\nstart;libos_syscall_clone;get_new_thread 17006\n"+
		"start;libos_syscall_clone;get_new_thread;create_pollable_event 209513\n"+
		"start;libos_syscall_clone;get_new_thread;create_pollable_event;pal;handshake 2000000\n"+
		"start;libos_syscall_clone;get_new_thread;create_pollable_event;pal;handshake;memcpy 52777\nstart;other 1000000\n")
	names := []string{"libos_syscall_clone", "get_new_thread", "create_pollable_event", "handshake"}
	var patterns []*regexp.Regexp
	for _, n := range names {
		re, err := Pattern(n)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, re)
	}
	b := p.Break(patterns[0], names, patterns[1:], Whole{})
	var own int64
	for i, want := range []struct {
		cycles           int64
		ofRoot, ofParent string
	}{{2871136, "100.00", "NaN"}, {2279296, "79.39", "79.39"}, {2262290, "78.79", "99.25"}, {2052777, "71.50", "90.74"}} {
		q := b.Parts[i]
		own += q.Own
		if got := fmt.Sprintf("%.2f", 100*q.OfRoot); q.Inclusive != want.cycles || got != want.ofRoot || fmt.Sprintf("%.2f", 100*q.OfParent) != want.ofParent {
			t.Errorf("%s: %d, %s %% of the root, %.2f %% of %s; want %+v", q.Name, q.Inclusive, got, 100*q.OfParent, q.Parent, want)
		}
	}
	if own != 2871136 || b.Parts[3].Parent != "create_pollable_event" {
		t.Errorf("own parts add up to %d, the caller of handshake is %s", own, b.Parts[3].Parent)
	}
}

func TestGroupsClaimTheInnermostFrame(t *testing.T) {
	p := folded(t, counts, "main;crypto;memcpy 5\nmain;crypto;copy_out;write 3\nmain;[unknown] 2\nmain;crypto;[unknown] 4\n[unknown];idle 7\nmain;copy_out;crypto 1\n")
	table := p.ByGroup(groups(t, "crypto=^crypto$", "copy=cpy|copy", "all copies=memcpy"), Shares())
	want := map[string][2]int64{"crypto": {5, 13}, "copy": {8, 9}, "all copies": {0, 5}, "rest": {7, -1}, "unresolved": {2, -1}}
	for _, r := range table.Rows {
		if got := [2]int64{r.Self, r.Inclusive}; got != want[r.Name] {
			t.Errorf("%s has %v, want %v", r.Name, got, want[r.Name])
		}
	}
	if table.Broken != 7 || table.Total != 22 {
		t.Errorf("%d of the rest have an unknown caller, total %d", table.Broken, table.Total)
	}
}

func TestFunctions(t *testing.T) {
	p := folded(t, counts, "main;f;f;g 4\nmain;f 3\nmain;[unknown] 2\nmain;h 1\n")
	table := p.By("function", 2, whole(t, "10s"))
	got := ""
	for _, r := range table.Rows {
		got += fmt.Sprintf("%s %d %d %s; ", r.Name, r.Self, r.Inclusive, table.Whole.Format(r.Absolute))
	}
	if want := "g 4 4 4.000 s; f 3 7 3.000 s; rest: 2 others 1 -1 1.000 s; unresolved 2 -1 2.000 s; "; got != want {
		t.Errorf("rows are %s\nwant %s", got, want)
	}
	inside := p.Within(regexp.MustCompile("^f$"))
	if inside.Total() != 7 || len(inside.Samples[0].Stack) != 3 || p.Total() != 10 || len(p.Samples[0].Stack) != 4 {
		t.Errorf("within f: %v", inside.Samples)
	}
}

// TestDivideAddsUp: parts of random amounts add up, and none is further than one unit from its exact value.
func TestDivideAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		weights := make([]int64, 1+r.IntN(20))
		var sum float64
		for i := range weights {
			weights[i] = r.Int64N(1 << r.IntN(57))
			sum += float64(weights[i])
		}
		amount := r.Int64N(1 << (1 + r.IntN(61)))
		var total int64
		parts := Divide(amount, weights)
		for i, part := range parts {
			total += part
			exact := float64(amount) * float64(weights[i]) / sum
			if sum > 0 && math.Abs(float64(part)-exact) > 1+exact*1e-12 {
				t.Fatalf("%d of %d in %d is %d, want %f", weights[i], amount, weights, part, exact)
			}
		}
		if sum > 0 && total != amount {
			t.Fatalf("%d divided by %d gives %d", amount, weights, total)
		}
	}
}

func TestWholes(t *testing.T) {
	for s, want := range map[string]Whole{"5s": {5e9, "ns"}, "1m30s": {90e9, "ns"}, "250us": {250e3, "ns"}, "5%": {5e9, "%"}, "0.75 %": {750e6, "%"}} {
		if got, err := ParseWhole(s); err != nil || got != want {
			t.Errorf("%s is %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "5", "-5s", "0s", "0%", "NaN%", "1e300%", "5 percent"} {
		if got, err := ParseWhole(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
	a, b := folded(t, counts, "f 1\n"), folded(t, counts, "f 1\n")
	if _, err := Compare(a.By("function", 0, whole(t, "5%")), b.By("function", 0, whole(t, "5s")), 0); err == nil {
		t.Error("a time is compared with a percentage")
	}
}

// TestTaken: weights that differ make samples worth less, after Kish. By hand: (1+1+2)^2 / (1+1+4).
func TestTaken(t *testing.T) {
	b := NewBuilder("test", []ValueType{counts, {"cpu", "nanoseconds"}}, DefaultLimits())
	for i, ns := range []int64{10, 10, 20} {
		f, err := b.Frame(Frame{Function: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add([]uint32{f}, nil, 1, ns); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Profile().Taken(); math.Abs(got-16.0/6) > 1e-12 {
		t.Errorf("3 samples count as %v", got)
	}
	if got := folded(t, ValueType{"alloc_space", "bytes"}, "f 1\n").Taken(); got != 0 {
		t.Errorf("a profile that was not sampled has %v samples", got)
	}
}

// TestNoiseIsMarked compares 300 pairs of recordings of the same program, drawn with a fixed seed. At most 5 % may have
// any change that is called sure. A real change of a tenth of 4,000 samples must be found each time.
func TestNoiseIsMarked(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(n int, p ...float64) *Profile {
		lines := map[string]int{}
		for range n {
			x, name := r.Float64(), 0
			for name < len(p)-1 && x > p[name] {
				x -= p[name]
				name++
			}
			lines[fmt.Sprintf("main;f%d", name)]++
		}
		text := ""
		for name, n := range lines {
			text += fmt.Sprintf("%s %d\n", name, n)
		}
		return folded(t, counts, text)
	}
	wrong, missed := 0, 0
	compare := func(a, b *Profile) *Diff {
		d, err := Compare(a.By("function", 0, Whole{5e9, "ns"}), b.By("function", 0, Whole{5e9, "ns"}), 0)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	const pairs = 300
	for range pairs {
		any := false
		for _, c := range compare(draw(400, .5, .3, .15, .05), draw(300, .5, .3, .15, .05)).Changes {
			any = any || c.Sure
		}
		if any {
			wrong++
		}
	}
	for range 50 {
		found := false
		for _, c := range compare(draw(4000, .5, .3, .15, .05), draw(4000, .4, .4, .15, .05)).Changes {
			found = found || c.Sure && c.Name == "f0" && c.Difference < 0
		}
		if !found {
			missed++
		}
	}
	if wrong > pairs/20 || missed > 0 {
		t.Errorf("%d of %d comparisons of the same have a sure change, %d of 50 changes are missed", wrong, pairs, missed)
	}
	t.Logf("%d of %d comparisons of the same have a sure change", wrong, pairs)
}

func TestNames(t *testing.T) {
	for name, resolved := range map[string]bool{"main": true, "added1": true, "deadbeef": true, "[unknown]": false, "0x7f00": false, "7f0012345678": false, "ffffffff81000130": false, "??": false, "": false} {
		if got := (Frame{Function: NameOf(name)}).Resolved(); got != resolved {
			t.Errorf("%q is resolved: %v", name, got)
		}
	}
	for library, kernel := range map[string]bool{"[kernel.kallsyms]": true, "[nf_tables]": true, "/lib/modules/a.ko": true, "[vdso]": false, "/bin/a": false, "": false} {
		if KernelLibrary(library) != kernel {
			t.Errorf("%q is of the kernel: %v", library, !kernel)
		}
	}
}
