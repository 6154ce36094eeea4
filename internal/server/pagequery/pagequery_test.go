// SPDX-License-Identifier: Apache-2.0

package pagequery

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestFillAsThePageDoes reads its cases from a file that the page's tests also read.
func TestFillAsThePageDoes(t *testing.T) {
	data, err := os.ReadFile("testdata/fill.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Template, Want string
		Filling        Filling
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		if got, err := c.Filling.Fill(c.Template); err != nil || got != c.Want {
			t.Errorf("%s is\n%s, want\n%s; %v", c.Template, got, c.Want, err)
		}
	}
	if _, err := (Filling{}).Fill("a{$furlongs}"); err == nil || !strings.Contains(err.Error(), "$furlongs") {
		t.Errorf("an unknown placeholder: %v", err)
	}
}

func TestStepsAreThePages(t *testing.T) {
	for _, c := range []struct {
		seconds, scrape float64
		points          int
		want            float64
	}{{300, 5, 240, 5}, {900, 5, 240, 5}, {3600, 5, 240, 15}, {604800, 5, 240, 3600}, {300, 1, 60, 5}, {1e8, 5, 40, 29 * 86400}} {
		if got := StepFor(c.seconds, c.scrape, c.points); got != c.want {
			t.Errorf("%v s every %v s in %d points: %v, want %v", c.seconds, c.scrape, c.points, got, c.want)
		}
	}
}

func TestReplaceKeepsWhatHasNoValue(t *testing.T) {
	values := map[string]string{"nodes": "", "window": "$__rate_interval"}
	for expr, want := range map[string]string{
		`rate(a{b="c",$nodes}[$window]) $containers`: `rate(a{b="c"}[$__rate_interval]) $containers`,
		`a{$nodes} / $windows`:                       `a / $windows`,
	} {
		if got := Replace(expr, values); got != want {
			t.Errorf("%s is %s, want %s", expr, got, want)
		}
	}
}
