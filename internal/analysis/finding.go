// SPDX-License-Identifier: Apache-2.0

// Package analysis holds the results of an analysis: findings, with their severity, confidence and evidence.
//
// The packages below it make findings from stored series. It does not depend on how a finding is made, and imports only
// the two packages of its fields: estimate and codelink.
package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// Severity is how much a finding matters to the operator of the workload.
type Severity string

// The severities, in rising order.
const (
	Info   Severity = "info"   // explains something; nothing needs to be done
	Low    Severity = "low"    // gain up to 5 %, or CPU time is saved and nothing shows that the throughput would rise
	Medium Severity = "medium" // gain of at least 5 %
	High   Severity = "high"   // gain of at least 20 %, or the workload is about to fail
)

// A Finding is one cause that slows one workload, while it lasts.
type Finding struct {
	ID         string           `json:"id"`       // of the cause at this workload; stays the same while the finding is open
	Rule       string           `json:"rule"`     // name of the rule
	Title      string           `json:"title"`    // the cause as a noun phrase
	Workload   string           `json:"workload"` // "" is the whole machine
	Instance   string           `json:"instance,omitempty"`
	Cause      string           `json:"cause"` // one sentence with this workload's figures
	Severity   Severity         `json:"severity"`
	Confidence Confidence       `json:"confidence"`
	FirstSeen  time.Time        `json:"first_seen"`
	LastSeen   time.Time        `json:"last_seen"`
	Evidence   []Evidence       `json:"evidence"`
	Advice     []string         `json:"advice"`             // what to change, the most worthwhile first
	Code       *codelink.Code   `json:"code,omitempty"`     // how the code is found that causes it; absent where no code does
	Settings   []string         `json:"settings,omitempty"` // what teescope advise says of the manifest of a program in Gramine
	Saving     *estimate.Saving `json:"saving,omitempty"`
	Gain       *estimate.Gain   `json:"gain,omitempty"`       // absent where nothing shows what limits the throughput
	Throughput *Evidence        `json:"throughput,omitempty"` // of the workload, in operations per second; absent where no application counts them
	Explains   []string         `json:"explains,omitempty"`   // rules that found its consequences; those findings are not listed
	NotWhen    []string         `json:"not_when,omitempty"`   // conditions under which the conclusion is wrong
	Sources    []string         `json:"sources"`              // of the rule and its constants
	Runbook    string           `json:"runbook,omitempty"`    // a file of docs/runbooks
	Thresholds []Replaced       `json:"thresholds,omitempty"` // of the rule that the configuration has replaced
	Silence    *Silenced        `json:"silence,omitempty"`    // covers the finding now

	// Adds has the rules of the workload's other findings to whose saving and gain those of this one can be added.
	Adds []string `json:"adds,omitempty"`
	// Overlaps has the rules of the workload's other findings that claim the same events or the same time. If such a rule is
	// in Adds as well, its part is omitted here. Otherwise the estimates may be about the same time.
	Overlaps []string `json:"overlaps,omitempty"`
	// Preceded has events shortly before the finding began, the last one first. They need not be its cause.
	Preceded []Preceding `json:"preceded,omitempty"`
	// Earlier has the first figure of the evidence a day and a week before the finding began.
	Earlier []Earlier `json:"earlier,omitempty"`
	// Threads has the threads of the workload with the largest figure that the evidence is about, by name, the largest first.
	// Only a server beside the agent of the workload's machine has them.
	Threads []Threads `json:"threads,omitempty"`
	// Unconfirmed is true while only one evaluation has found an open finding. It raises no alert.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// AbsentSince is the time since when an open finding is no longer found. It closes if that lasts.
	AbsentSince time.Time `json:"absent_since,omitzero"`
}

// Confidence is how strongly the evidence supports the conclusion.
type Confidence string

// The confidences.
const (
	Likely   Confidence = "likely"   // consistent with the cause and with few others
	Measured Confidence = "measured" // the cost itself was measured
	Possible Confidence = "possible" // consistent with the cause and with other causes
)

// Evidence is one figure that supports a finding.
type Evidence struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`           // as metric names spell it: "1/s", "bytes", "seconds", "ratio"
	Low   *float64 `json:"low,omitempty"`  // 95 % interval, if there is one
	High  *float64 `json:"high,omitempty"` //
	N     int      `json:"n,omitempty"`    // samples in the window
	Query string   `json:"query"`          // the PromQL that shows it
	// PerOperation is the figure for one operation of the workload, if an application counts them.
	PerOperation *PerOperation `json:"per_operation,omitempty"`
}

// Replaced is a threshold of a rule that the configuration replaces for the workload.
type Replaced struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Default float64 `json:"default"`
	Unit    string  `json:"unit"` // as metric names spell it
}

// ID returns the identifier of a cause at a workload. It is the same in every run.
func ID(rule, workload, instance string) string {
	sum := sha256.Sum256([]byte(rule + "\x00" + workload + "\x00" + instance))
	return hex.EncodeToString(sum[:6])
}
