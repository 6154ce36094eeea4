// SPDX-License-Identifier: Apache-2.0

// Package lines writes the lines of a manifest that advice changes, for users who must not see its other lines.
//
// It runs where the program runs: a manifest may have secrets, so it stays there. It does not read a file or send anything.
package lines

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/rules"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// maxLines bounds the diff of one piece of advice in bytes. Advice about a key has some hundred.
	maxLines = 16 << 10
	// asCommand says how else to get the lines.
	asCommand = "sudo teescope advise --live on this machine shows it."
	// maxFindings bounds the findings of a question, and maxQuestion its bytes. An agent reads 64 KiB.
	maxFindings, maxQuestion = 16, 60 << 10
)

// Question requests the lines of the manifest of a program in Gramine.
type Question struct {
	Workload string `json:"workload"`
	Rule     string `json:"rule"`   // of the analysis: advice about its cause comes first
	Judged   bool   `json:"judged"` // an analysis has judged the workload
	// Findings are those about the workload, with what advice uses.
	Findings []analysis.Finding `json:"findings"`
}

// Ask returns a question as JSON, with as many of the findings as an agent reads.
func Ask(workload, rule string, judged bool, findings []analysis.Finding) ([]byte, error) {
	q := Question{Workload: workload, Rule: rule, Judged: judged}
	for _, f := range findings[:min(len(findings), maxFindings)] {
		evidence := slices.Clone(f.Evidence)
		for i := range evidence {
			evidence[i].Query, evidence[i].PerOperation = "", nil
		}
		q.Findings = append(q.Findings, analysis.Finding{
			Rule: f.Rule, Workload: f.Workload, Cause: f.Cause, Severity: f.Severity, Confidence: f.Confidence, Evidence: evidence,
			Advice: f.Advice, Saving: f.Saving, Gain: f.Gain, Explains: f.Explains,
		})
	}
	for {
		body, err := json.Marshal(q)
		if err != nil || len(body) <= maxQuestion || len(q.Findings) == 0 {
			return body, err
		}
		q.Findings = q.Findings[:len(q.Findings)-1]
	}
}

// Of evaluates the rules of teescope advise for a program, and writes the advice as text: first that about the cause of the rule of
// the question, then the other advice. Only lines of a diff begin with a plus or a minus.
func Of(p advise.Program, q Question) (string, error) {
	if p.Error != "" {
		return "", errors.New(p.Error)
	}
	m, err := manifest.Parse(p.Text, manifest.Options{Name: p.Manifest})
	if err != nil {
		return "", err
	}
	facts := &advise.Facts{Manifest: m, Live: &p.Live, Machine: &p.Machine, Gramine: p.Gramine, FindingsOf: "findings", Judged: q.Judged, Findings: q.Findings}
	all := advise.Evaluate(facts, rules.All()).Advice
	slices.SortStableFunc(all, func(a, b advise.Advice) int { return other(a, q.Rule) - other(b, q.Rule) })
	var b strings.Builder
	if m.Signed {
		fmt.Fprintf(&b, "%s is signed: make the changes in the manifest that it was made from, and sign it again.\n", text.Label(m.Name))
	}
	if q.Rule != "" && (len(all) == 0 || other(all[0], q.Rule) == 1) {
		fmt.Fprintf(&b, "No line of %s is about this cause.\n", text.Label(m.Name))
	}
	for i, one := range all {
		if other(one, q.Rule) == 1 && (i == 0 || other(all[i-1], q.Rule) == 0) {
			fmt.Fprintf(&b, "\nOther advice about %s: %d\n", text.Label(m.Name), len(all)-i)
		}
		write(&b, m, one)
	}
	return b.String(), nil
}

// other is 0 for advice about the cause of a rule of the analysis, and 1 for the rest.
func other(a advise.Advice, rule string) int {
	if rule != "" && a.Analyze == rule {
		return 0
	}
	return 1
}

// write writes one piece of advice. Only lines of its diff begin with a plus or a minus.
func write(b *strings.Builder, m *manifest.Manifest, a advise.Advice) {
	fmt.Fprintf(b, "\n%s: %s (%s)\n", a.Severity, a.Title, a.Rule)
	for _, do := range a.Do {
		fmt.Fprintf(b, "• %s\n", text.Label(do))
	}
	diff, none := linesOf(m, a)
	b.WriteString(diff)
	if none != "" {
		fmt.Fprintf(b, "No lines: %s\n", text.Label(none))
	}
	switch {
	case a.Insecure:
		b.WriteString("Not for production.\n")
	case a.Choice && diff != "":
		b.WriteString("This needs a decision.\n")
	}
	if a.Risk != "" {
		fmt.Fprintf(b, "Risk: %s\n", text.Label(a.Risk))
	}
}

// linesOf returns the lines that advice changes, or why they are not shown.
func linesOf(m *manifest.Manifest, a advise.Advice) (diff, none string) {
	if len(a.Changes) == 0 {
		return "", a.NoDiff
	}
	if slices.ContainsFunc(a.Changes, func(c manifest.Change) bool { return strings.HasPrefix(c.Key, "fs.insecure__keys.") }) {
		return "", "one has a key for encryption. " + asCommand
	}
	diff, err := manifest.Lines(m, a.Changes...)
	switch {
	case err != nil:
		return "", err.Error()
	case len(diff) > maxLines:
		return "", fmt.Sprintf("they have more than %d KiB. %s", maxLines>>10, asCommand)
	}
	var clean strings.Builder
	for line := range strings.Lines(diff) {
		clean.WriteString(text.Label(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return clean.String(), ""
}
