// SPDX-License-Identifier: Apache-2.0

// Package analysis holds what an analysis says: findings, with their severity, confidence, evidence and gain.
//
// The packages below it make findings from stored series. It refuses to know how a finding is made: it imports none of
// them.
package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Severity says how much a finding matters to whoever runs the workload.
type Severity string

// The severities, from what is merely worth knowing to what costs most of the throughput.
const (
	Info   Severity = "info"   // explains something; nothing needs to be done
	Low    Severity = "low"    // gain up to 5 %
	Medium Severity = "medium" // gain of 5 to 20 %
	High   Severity = "high"   // gain of 20 % or more, or the workload is about to fail
)

// A Finding is one cause that slows one workload, while it lasts.
type Finding struct {
	ID         string     `json:"id"`       // of the cause at this workload: the same from first to last seen
	Rule       string     `json:"rule"`     // name of the rule
	Title      string     `json:"title"`    // the cause as a noun phrase
	Workload   string     `json:"workload"` // "" is the whole machine
	Instance   string     `json:"instance,omitempty"`
	Cause      string     `json:"cause"` // one sentence with this workload's figures
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	FirstSeen  time.Time  `json:"first_seen"`
	LastSeen   time.Time  `json:"last_seen"`
	Evidence   []Evidence `json:"evidence"`
	Advice     []string   `json:"advice"` // what to change, the most worthwhile first
	Gain       *Gain      `json:"gain,omitempty"`
	Explains   []string   `json:"explains,omitempty"` // rules that found its consequences, which are not listed
	NotWhen    []string   `json:"not_when,omitempty"` // conditions under which the conclusion does not hold
	Sources    []string   `json:"sources"`            // where the rule and its constants come from
	Runbook    string     `json:"runbook,omitempty"`  // a file of docs/runbooks
}

// Confidence says how far the evidence carries the conclusion.
type Confidence string

// The confidences.
const (
	Likely   Confidence = "likely"   // consistent with the cause and with little else
	Measured Confidence = "measured" // the cost itself was measured
	Possible Confidence = "possible" // consistent with the cause, and with others
)

// Evidence is one number that a finding rests on.
type Evidence struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`           // as metric names spell it: "1/s", "bytes", "seconds", "ratio"
	Low   *float64 `json:"low,omitempty"`  // 95 % interval, where there is one
	High  *float64 `json:"high,omitempty"` //
	N     int      `json:"n,omitempty"`    // samples in the window
	Query string   `json:"query"`          // the PromQL that shows it
}

// Gain is how much more the workload would do per second without the cause, as a ratio: 0.2 is 20 % more. It is an
// interval and its upper end is never more than Amdahl's law allows for the time that the cause can take.
type Gain struct {
	Low         float64  `json:"low"`
	High        float64  `json:"high"`
	Assumptions []string `json:"assumptions"`
}

// ID names a cause at a workload, the same in every run.
func ID(rule, workload, instance string) string {
	sum := sha256.Sum256([]byte(rule + "\x00" + workload + "\x00" + instance))
	return hex.EncodeToString(sum[:6])
}
