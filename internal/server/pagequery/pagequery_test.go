// SPDX-License-Identifier: Apache-2.0

package pagequery

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestFillAsThePageDoes compares with cases that the page's own code has computed (web/src/report/fill-cases.ts). A change of
// the rules there changes the cases (`make check-generated`), and fails here.
func TestFillAsThePageDoes(t *testing.T) {
	data, err := os.ReadFile("testdata/fill.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Fill []struct {
			Template, Want string
			Workloads      []string
			Step, Scrape   float64
			Age            *float64
		}
		Steps []struct {
			Seconds, Scrape, Want float64
			Points                int
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases.Fill) == 0 || len(cases.Steps) == 0 {
		t.Fatal(len(cases.Fill), len(cases.Steps), err)
	}
	for _, c := range cases.Fill {
		f := Filling{Workloads: c.Workloads, Step: c.Step, Scrape: c.Scrape, Age: c.Age}
		if got, err := f.Fill(c.Template); err != nil || got != c.Want {
			t.Errorf("%s with %+v is\n%s, want\n%s; %v", c.Template, f, got, c.Want, err)
		}
	}
	for _, c := range cases.Steps {
		if got := StepFor(c.Seconds, c.Scrape, c.Points); got != c.Want {
			t.Errorf("%v s every %v s in %d points: %v, want %v", c.Seconds, c.Scrape, c.Points, got, c.Want)
		}
	}
}

func TestUnknownPlaceholder(t *testing.T) {
	if _, err := (Filling{}).Fill("a{$furlongs}"); err == nil || !strings.Contains(err.Error(), "$furlongs") {
		t.Errorf("an unknown placeholder: %v", err)
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
