// SPDX-License-Identifier: Apache-2.0

package analysis

// A Rule finds one cause. Each lives in a file of its own in the room analysis/rules.
type Rule struct {
	Name    string // kebab-case, stable: part of a finding's ID
	Title   string // the cause as a noun phrase
	Signals []Signal
	// Judge looks at one workload. It returns nil when the cause is not there, and when it cannot know.
	Judge   func(Workload) *Verdict
	NotWhen []string
	Sources []string
}

// A Signal is a query whose result a rule reads by name. "$window" in it is the time range that is looked at, such as
// "5m". A result without the label workload belongs to the machine and is seen by every workload.
type Signal struct {
	Name  string
	Query string
	Unit  string
	Help  string
}

// A Verdict is what a rule says of one workload.
type Verdict struct {
	Severity   Severity // empty: by the gain
	Confidence Confidence
	Cause      string   // one sentence with figures
	Evidence   []string // names of the signals that show it, the most telling first
	Advice     []string
	Gain       *Gain
	Supersedes []string // rules whose finding at the same workload this one explains
}

// A Workload is what the signals say of one workload in one window.
type Workload struct {
	Name     string
	Instance string
	Window   float64 // seconds
	values   map[string][]Sample
}

// Samples are those of one signal. What was not measured has none: absent is never zero.
func (w Workload) Samples(signal string) []Sample { return w.values[signal] }

// Value is the sum of a signal's samples, and whether there was any.
func (w Workload) Value(signal string) (sum float64, measured bool) {
	for _, s := range w.values[signal] {
		sum += s.Value
	}
	return sum, len(w.values[signal]) > 0
}

// By maps the values of one label to a signal's samples, summed.
func (w Workload) By(signal, label string) map[string]float64 {
	by := make(map[string]float64)
	for _, s := range w.values[signal] {
		by[s.Labels[label]] += s.Value
	}
	return by
}
