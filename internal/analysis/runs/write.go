// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/stat"
)

// Text writes the result for people.
func (c Correlation) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Runs: %d. Pairs of a setting and an outcome: %d.\n", c.Runs, c.Tests)
	if c.Tests > 0 {
		fmt.Fprint(&b, "rho is Spearman's rank correlation with its 95 % interval; p is corrected for all pairs (Holm); * is p <= 0.05.\n\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "setting\toutcome\trho\t95 %\tp\tn\t \t")
		for _, e := range c.Effects {
			mark := " "
			if e.sure() {
				mark = "*"
			}
			setting := e.Setting
			if len(e.Codes) == 2 {
				setting += " (" + e.Codes[0] + " < " + e.Codes[1] + ")"
			}
			fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f to %.2f\t%.2g\t%d\t%s\t\n", setting, e.Outcome, e.Rho.Value, e.Rho.Low, e.Rho.High, e.P, e.Rho.N, mark)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, pair := range c.Together {
		fmt.Fprintf(&b, "\n%s and %s changed together in these runs: their effects cannot be separated.\n", pair[0], pair[1])
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "\nleft out: %s", n)
	}
	if len(c.Notes) > 0 {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Text writes a forecast for people.
func (f *Forecast) Text(w io.Writer) error {
	var b strings.Builder
	p := f.Prediction
	fmt.Fprintf(&b, "\n%s: %s expected, and a single run between %s and %s (95 %%), by a %s model of %s, n=%d.\n",
		f.Outcome, analysis.Figure(p.Value), analysis.Figure(p.Low), analysis.Figure(p.High), f.Shape, strings.Join(f.Settings, ", "), p.N)
	for _, warning := range f.Warnings {
		fmt.Fprintf(&b, "Note: %s.\n", warning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A spread is an interval in JSON, which has no infinity.
type spread struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Level float64  `json:"level"`
	N     int      `json:"n"`
}

func spreadOf(i stat.Interval) spread {
	return spread{orNull(i.Value), orNull(i.Low), orNull(i.High), i.Level, i.N}
}

func orNull(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// WriteJSON writes the result, and a forecast if there is one, as JSON.
func WriteJSON(w io.Writer, c Correlation, f *Forecast) error {
	type effect struct {
		Setting string   `json:"setting"`
		Outcome string   `json:"outcome"`
		Rho     spread   `json:"rho"`
		P       float64  `json:"p"`
		Sure    bool     `json:"sure"`
		Codes   []string `json:"codes,omitempty"`
	}
	type forecast struct {
		Outcome      string     `json:"outcome"`
		Settings     []string   `json:"settings"`
		Shape        stat.Shape `json:"shape"`
		Parameters   []*float64 `json:"parameters"`
		Scatter      *float64   `json:"scatter"`
		Prediction   spread     `json:"prediction"`
		Extrapolates bool       `json:"extrapolates"`
		Warnings     []string   `json:"warnings"`
	}
	out := struct {
		Runs     int         `json:"runs"`
		Tests    int         `json:"tests"`
		Effects  []effect    `json:"effects"`
		Together [][2]string `json:"together"`
		Notes    []string    `json:"notes"`
		Forecast *forecast   `json:"forecast,omitempty"`
	}{Runs: c.Runs, Tests: c.Tests, Effects: []effect{}, Together: append([][2]string{}, c.Together...), Notes: append([]string{}, c.Notes...)}
	for _, e := range c.Effects {
		out.Effects = append(out.Effects, effect{e.Setting, e.Outcome, spreadOf(e.Rho), e.P, e.sure(), e.Codes})
	}
	if f != nil {
		one := forecast{
			Outcome: f.Outcome, Settings: f.Settings, Shape: f.Shape, Scatter: orNull(f.Scatter), Prediction: spreadOf(f.Prediction.Interval),
			Extrapolates: f.Prediction.Extrapolates, Warnings: append([]string{}, f.Warnings...),
		}
		for _, p := range f.Parameters {
			one.Parameters = append(one.Parameters, orNull(p))
		}
		out.Forecast = &one
	}
	return jsonapi.Print(w, out)
}
