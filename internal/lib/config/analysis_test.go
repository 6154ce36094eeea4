// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Thresholds are checked by who knows the rules. Each problem has the line of its item.
func TestThresholdsAreChecked(t *testing.T) {
	text := "analysis:\n  thresholds:\n    - good.a=1\n    - bad.b=2 workload=x\n    - bad.c=3\n"
	in := Input{
		Command: Up, Host: Host{},
		Open: func(string) (fs.File, error) { return fstest.MapFS{"t.yml": {Data: []byte(text)}}.Open("t.yml") },
		CheckThreshold: func(s string) error {
			if strings.HasPrefix(s, "bad") {
				return fmt.Errorf("%s is wrong", s)
			}
			return nil
		},
		Environ: []string{"TEESCOPE_CONFIG=t.yml"},
	}
	_, err := Load(in)
	var all *problemsError
	if want := "t.yml:4: analysis.thresholds: bad.b=2 workload=x is wrong|t.yml:5: analysis.thresholds: bad.c=3 is wrong"; !errors.As(err, &all) || lines(all) != want {
		t.Errorf("%v, want %s", err, want)
	}
	text = "analysis: {thresholds: [good.a=1]}"
	in.Environ = append(in.Environ, "TEESCOPE_ANALYSIS_THRESHOLDS=good.a=1; bad.b=2")
	if _, err := Load(in); !errors.As(err, &all) || lines(all) != "env TEESCOPE_ANALYSIS_THRESHOLDS: analysis.thresholds: bad.b=2 is wrong" {
		t.Errorf("%v", err)
	}
	in.Environ = in.Environ[:1]
	if c, err := Load(in); err != nil || len(c.Analysis.Thresholds) != 1 || c.Analysis.Thresholds[0] != "good.a=1" {
		t.Errorf("%+v, %v", c, err)
	}
	text = "analysis: {thresholds: [" + strings.Repeat("good.a=1,", maxThresholds+1) + "]}"
	if _, err := Load(in); err == nil || !strings.Contains(err.Error(), "201 thresholds; the maximum is 200") {
		t.Errorf("%v", err)
	}
}

func lines(e *problemsError) string {
	var all []string
	for _, p := range e.Problems {
		all = append(all, p.String())
	}
	return strings.Join(all, "|")
}
