// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/rules"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/text"
)

// ManifestOf returns what the agent of this machine answers about the program in Gramine that a workload is, an [advise.Program] as
// JSON.
type ManifestOf func(ctx context.Context, workload string) ([]byte, error)

const (
	// maxLines bounds the diff of one piece of advice in bytes. Advice about a key has some hundred.
	maxLines = 16 << 10
	// asCommand says how else to get the lines.
	asCommand = "sudo teescope advise --live on the machine of the workload shows it."
)

// advisor answers requests for advice about manifests.
type advisor struct{ *Analyst }

// ServeHTTP answers ?workload=NAME&instance=MACHINE&rule=RULE with advice about the manifest of a program that runs in Gramine on
// the machine of this server, as text for people: first the advice about the cause of the rule, then the other advice. It shows the
// lines to change as diffs, and no other line of the manifest. An error is a text too.
func (a advisor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	answer := func(status int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // fails only when the client has gone
	}
	name, instance := q.Get("workload"), q.Get("instance")
	if name == "" {
		answer(http.StatusBadRequest, "Name the workload: ?workload=NAME.")
		return
	}
	if a.opts.Manifest == nil || instance != "" && instance != a.opts.Instance {
		answer(http.StatusNotFound, "This server is beside no agent of the workload's machine, so it reads no manifest. "+asCommand)
		return
	}
	end, err := a.asking.alone(r.Context())
	if err != nil {
		answer(http.StatusServiceUnavailable, "Reading the manifest: "+err.Error())
		return
	}
	defer end()
	shown, err := a.lines(r.Context(), name, q.Get("rule"))
	if err != nil {
		answer(http.StatusNotFound, "Reading the manifest: "+text.Label(text.Short(err.Error(), 400))+". "+asCommand)
		return
	}
	answer(http.StatusOK, shown)
}

// lines reads the manifest of a workload, evaluates the rules of teescope advise, and writes the advice.
func (a advisor) lines(ctx context.Context, workload, rule string) (string, error) {
	body, err := a.opts.Manifest(ctx, workload)
	if err != nil {
		return "", err
	}
	var p advise.Program
	if err := json.Unmarshal(body, &p); err != nil {
		return "", fmt.Errorf("the agent's answer: %w", err)
	}
	if p.Error != "" {
		return "", errors.New(p.Error)
	}
	m, err := manifest.Parse(p.Text, manifest.Options{Name: p.Manifest})
	if err != nil {
		return "", err
	}
	facts := &advise.Facts{Manifest: m, Live: &p.Live, Machine: &p.Machine, FindingsOf: "findings"}
	if report, none := a.Newest(); none == nil {
		facts.Judged = true
		facts.Findings = slices.DeleteFunc(slices.Clone(report.Findings), func(f analysis.Finding) bool {
			return f.Workload != workload || f.Instance != "" && f.Instance != a.opts.Instance
		})
	}
	all := advise.Evaluate(facts, rules.All()).Advice
	slices.SortStableFunc(all, func(a, b advise.Advice) int { return other(a, rule) - other(b, rule) })
	var b strings.Builder
	if m.Signed {
		fmt.Fprintf(&b, "%s is signed: make the changes in the manifest that it was made from, and sign it again.\n", text.Label(m.Name))
	}
	if rule != "" && (len(all) == 0 || other(all[0], rule) == 1) {
		fmt.Fprintf(&b, "No line of %s is about this cause.\n", text.Label(m.Name))
	}
	for i, one := range all {
		if other(one, rule) == 1 && (i == 0 || other(all[i-1], rule) == 0) {
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
