// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/teescope/teescope/internal/agent/nested"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

// Nested is the result of a measurement of nested functions.
type Nested struct {
	nested.Times

	Costs  nested.Costs
	Lasted time.Duration
}

// quantiles are those of the time of a call.
var quantiles = []float64{0.5, 0.9, 0.99}

const (
	// mostSubtracted is the share of the root's time that probes may take. Above it, the remaining time is too small a
	// part of the measured time.
	mostSubtracted = 0.5
	// mostUncertain is the share of the root's time that may depend on how much the cost of probes varied.
	mostUncertain = 0.05
)

// notes says what the reader has to know about the figures.
func (n Nested) notes() (all []string) {
	root := n.Functions[0]
	if s := share(root.Probes, root.Total+root.Probes); s > mostSubtracted {
		all = append(all, fmt.Sprintf("%s of the time of %s was the cost of probes: time fewer functions, or functions that are called less often", percent(s), root.Name))
	}
	if u := n.uncertain(); u > mostUncertain {
		all = append(all, fmt.Sprintf("the cost of probes varied while it was measured, because other programs ran: %s of the time of %s depends on that", percent(u), root.Name))
	}
	for _, l := range []struct {
		n    uint64
		what string
	}{
		{n.Lost.Deep, "were too deep: within 16 others of these functions"},
		{n.Lost.Unpaired, "had no known start"},
	} {
		if l.n > 0 {
			all = append(all, fmt.Sprintf("%d calls are in no figure: they %s", l.n, l.what))
		}
	}
	for _, l := range []struct {
		n    uint64
		what string
	}{
		{n.Lost.Unwound, "ended without a return, such as by longjmp"},
		{n.Lost.Open, "had not returned at the end"},
	} {
		if l.n > 0 {
			all = append(all, fmt.Sprintf("%d calls are not counted: they %s. The totals have their time up to the last call or return that was seen in their thread", l.n, l.what))
		}
	}
	return all
}

// share divides two times.
func share(part, whole time.Duration) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

// mean is the average time of a call, in nanoseconds.
func mean(t *nested.Time) float64 {
	if t.Outermost == 0 {
		return math.NaN()
	}
	return float64(t.Finished) / float64(t.Outermost)
}

// callers returns the time of each function by its name.
func (n Nested) callers() map[string]time.Duration {
	total := map[string]time.Duration{}
	for _, f := range n.Functions {
		total[f.Name] = f.Total
	}
	return total
}

// Text writes the figures as text.
func (n Nested) Text(w io.Writer) error {
	root := n.Functions[0]
	fmt.Fprintf(w, "%s of %s in %s. %s of their time was the cost of probes and is left out.\n",
		text.Plural(int(root.Calls), "call", "calls"), name(root.Name), short(float64(n.Lasted)), percent(share(root.Probes, root.Total+root.Probes)))
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "function\tcalls\tmean\tp50\tp90\tp99\ttotal\tshare of root\tshare of caller\town\town share\n")
	total := n.callers()
	for i := range n.Functions {
		f := &n.Functions[i]
		caller := ""
		if f.Caller != "" {
			caller = percent(share(f.Within, total[f.Caller])) + " of " + name(f.Caller)
		}
		fmt.Fprintf(out, "%s\t%d\t%s", name(f.Name), f.Calls, short(mean(f)))
		for _, q := range quantiles {
			fmt.Fprintf(out, "\t%s", short(f.Quantile(q)))
		}
		fmt.Fprintf(out, "\t%s\t%s\t%s\t%s\t%s\n", short(float64(f.Total)), percent(share(f.Total, root.Total)), caller, short(float64(f.Own)), percent(share(f.Own, root.Total)))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	notes(w, n.notes())
	return nil
}

// uncertain is the part of the root's time that depends on how much the measured cost of probes varied, as a share.
func (n Nested) uncertain() float64 {
	root, spread := n.Functions[0], 0.0
	for _, c := range []nested.Cost{n.Costs.Emulated, n.Costs.Stepped} {
		spread = max(spread, share(c.High-c.Low, c.Whole))
	}
	return spread * share(root.Probes, root.Total)
}

// short formats a time in nanoseconds.
func short(ns float64) string {
	if math.IsNaN(ns) {
		return "-"
	}
	return text.Seconds(ns / 1e9)
}

type jsonTime struct {
	Name      string   `json:"name"`
	Calls     uint64   `json:"calls"`
	Outermost uint64   `json:"outermost_calls"`
	Total     float64  `json:"seconds"`
	Own       float64  `json:"own_seconds"`
	Probes    float64  `json:"subtracted_seconds"`
	Mean      *float64 `json:"mean_seconds"`
	P50       *float64 `json:"p50_seconds"`
	P90       *float64 `json:"p90_seconds"`
	P99       *float64 `json:"p99_seconds"`
	OfRoot    *float64 `json:"share_of_root"`
	OwnOfRoot *float64 `json:"own_share_of_root"`
	Caller    string   `json:"caller,omitempty"`
	OfCaller  *float64 `json:"share_of_caller"`
}

type jsonCost struct {
	Inside float64 `json:"inside_seconds"`
	Whole  float64 `json:"whole_seconds"`
	Low    float64 `json:"whole_low_seconds"`
	High   float64 `json:"whole_high_seconds"`
}

type jsonNested struct {
	Seconds float64             `json:"seconds"`
	Costs   map[string]jsonCost `json:"probe_costs"`
	Lost    map[string]uint64   `json:"lost_calls"`
	Parts   []jsonTime          `json:"parts"`
	Notes   []string            `json:"notes"`
}

// JSON writes the figures as JSON.
func (n Nested) JSON(w io.Writer) error {
	out := jsonNested{
		Seconds: n.Lasted.Seconds(), Notes: append([]string{}, n.notes()...),
		Lost:  map[string]uint64{"deep": n.Lost.Deep, "unwound": n.Lost.Unwound, "unpaired": n.Lost.Unpaired, "open": n.Lost.Open},
		Costs: map[string]jsonCost{"emulated": costOf(n.Costs.Emulated), "stepped": costOf(n.Costs.Stepped)},
	}
	seconds := func(ns float64) *float64 { return number(ns / 1e9) }
	root, total := n.Functions[0].Total, n.callers()
	for i := range n.Functions {
		f := &n.Functions[i]
		one := jsonTime{
			Name: f.Name, Calls: f.Calls, Outermost: f.Outermost, Total: f.Total.Seconds(), Own: f.Own.Seconds(), Probes: f.Probes.Seconds(),
			Mean: seconds(mean(f)), P50: seconds(f.Quantile(quantiles[0])), P90: seconds(f.Quantile(quantiles[1])), P99: seconds(f.Quantile(quantiles[2])),
			OfRoot: number(share(f.Total, root)), OwnOfRoot: number(share(f.Own, root)), Caller: f.Caller,
		}
		if f.Caller != "" {
			one.OfCaller = number(share(f.Within, total[f.Caller]))
		}
		out.Parts = append(out.Parts, one)
	}
	return jsonapi.Print(w, out)
}

func costOf(c nested.Cost) jsonCost {
	return jsonCost{c.Inside.Seconds(), c.Whole.Seconds(), c.Low.Seconds(), c.High.Seconds()}
}
