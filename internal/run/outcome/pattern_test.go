// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	const output = "warm-up: 10 req/s\nresult: 1,234.5 req/s\np99 = 12.5ms, hit 93%\r\nscore -3e2\n"
	for _, c := range []struct {
		spec string
		want Outcome
	}{
		{`rate:req/s=([0-9.,]+) req/s`, Outcome{Name: "rate", Unit: OperationsPerSecond, Value: 1234.5, Better: Higher, Note: "the last of 2 matches"}},
		{`first:req/s=^warm-up: (\d+)`, Outcome{Name: "first", Unit: OperationsPerSecond, Value: 10, Better: Higher}},
		{`p99:ms=p99 = ([0-9.]+)`, Outcome{Name: "p99", Unit: Seconds, Value: 0.0125, Better: Lower}},
		{`hit_ratio:%=hit (\d+)%`, Outcome{Name: "hit_ratio", Unit: Ratio, Value: 0.93, Better: Higher}},
		{`miss_ratio:%=hit (\d+)%`, Outcome{Name: "miss_ratio", Unit: Ratio, Value: 0.93, Better: Lower}},
		{`error_rate=hit (\d+)%`, Outcome{Name: "error_rate", Value: 93, Better: Lower}},
		{`x=hit (\d+)%`, Outcome{Name: "x", Value: 93}},
		{`x::lower=score (?:=)?(\S+)`, Outcome{Name: "x", Value: -300, Better: Lower}},
		{`x:pages/s:higher=score (\S+)`, Outcome{Name: "x", Unit: "pages/s", Value: -300, Better: Higher}},
		{`rate:req/s:lower=(?s)warm-up.*?(\d+) req`, Outcome{Name: "rate", Unit: OperationsPerSecond, Value: 10, Better: Lower}},
	} {
		p, err := Parse(c.spec)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		c.want.From = "regex"
		got, err := p.Find([]byte(output))
		if err != nil || len(got) != 1 || !near(got[0].Value, c.want.Value) {
			t.Errorf("%s finds %v, %v; want %v", c.spec, got, err, c.want)
			continue
		}
		got[0].Value = c.want.Value
		if got[0] != c.want || p.Name() != c.want.Name {
			t.Errorf("%s finds %+v, want %+v", c.spec, got[0], c.want)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for spec, part := range map[string]string{
		"rate": "it has no =", "=(x)": "a name begins with", "a b=(x)": "a name begins with", "a:b:lower:c=(x)": "more than a name",
		"a:b:faster=(x)": "lower or higher", "a=x": "0 groups", "a=(x)(y)": "2 groups", "a=(x": "missing closing", "a:ms here=(x)": "a unit has",
		"a=(" + strings.Repeat("x", 1000) + ")": "more than 1000 bytes",
	} {
		if _, err := Parse(spec); !errors.Is(err, errPattern) || !strings.Contains(err.Error(), part) || len(err.Error()) > 1000 {
			t.Errorf("%.20q: %v, want %q", spec, err, part)
		}
	}
	for _, c := range []struct{ spec, output, part string }{
		{`a=x(\d+)`, "y1", "nothing matches the expression of a"},
		{`a=x(.+)`, "xyz", `finds "yz", which is not a number`},
		{`a=x(.+)`, "x1,5", "not a number"}, // a decimal comma or a thousand
		{`a=x(.+)`, "x1e999", "not a number"},
		{`a=x(.+)`, "xNaN", "not a number"},
		{`a=x|(\d)`, "x", "the group of a is not in its last match"},
		{`a=(1)`, strings.Repeat("1", maxMatches+1), "final figure only"},
	} {
		p, err := Parse(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Find([]byte(c.output)); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s finds %v, %v; want %q", c.spec, got, err, c.part)
		}
	}
}

func TestCapture(t *testing.T) {
	const line = "0123456789abcde\n" // 16 bytes
	for _, size := range []int{1, 16, 1000, 5 << 20} {
		for _, total := range []int{0, 100, maxHead, maxHead + maxTail, maxHead + maxTail + 160, 12 << 20} {
			var c Capture
			whole := strings.Repeat(line, total/len(line))
			if size == 1 && total > 1000 {
				continue // slow
			}
			for rest := whole; rest != ""; {
				n, err := c.Write([]byte(rest[:min(size, len(rest))]))
				if err != nil || n != min(size, len(rest)) {
					t.Fatalf("Write: %d, %v", n, err)
				}
				rest = rest[n:]
			}
			got, over := string(c.Bytes()), max(0, len(whole)-maxHead-maxTail)
			if c.Dropped() != int64(over) {
				t.Errorf("%d bytes by %d: %d dropped, want %d", len(whole), size, c.Dropped(), over)
			}
			if over == 0 && got != whole {
				t.Errorf("%d bytes by %d are not kept", len(whole), size)
			}
			if over > 0 && (!strings.HasPrefix(got, whole[:maxHead]+cutMark) || !strings.HasSuffix(got, "left out]\n"+whole[len(whole)-maxTail+16:])) {
				t.Errorf("%d bytes by %d: the head, the mark and the tail are not kept", len(whole), size)
			}
		}
	}
}

// TestCutBelongsToNoTest has the head of one test and the tail of another.
func TestCutBelongsToNoTest(t *testing.T) {
	var c Capture
	for _, part := range []string{
		"====== SET ======\n  100 requests completed in 0.01 seconds\n", strings.Repeat("noise\n", 1<<20),
		"  throughput summary: 5.00 requests per second\n====== GET ======\n  throughput summary: 7.00 requests per second\n",
	} {
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, Read(c.Bytes()), wanted(t, "SET.operations 100 ops\nGET.throughput 7 /s"), redisTool)
}
