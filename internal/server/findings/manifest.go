// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise/lines"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/text"
)

// AskLines asks the agent of a machine a question of [lines.Question] as JSON. The machine is named by the label instance; "" is that
// of this server. It returns the agent's text.
type AskLines func(ctx context.Context, instance string, question []byte) ([]byte, error)

// advisor answers requests for advice about manifests.
type advisor struct{ *Analyst }

// ServeHTTP answers ?workload=NAME&instance=MACHINE&rule=RULE with advice about the manifest of a program that runs in Gramine, as
// text for people: first the advice about the cause of the rule, then the other advice. The agent of the machine reads the manifest
// and writes the text. It has the lines to change as diffs, and no other line of the manifest. An error is a text too.
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
	asCommand := ". Run this on " + machineOf(instance) + ": sudo teescope advise --live"
	if a.opts.Lines == nil {
		answer(http.StatusNotFound, "This server reaches no agent"+asCommand)
		return
	}
	end, err := alone(r, a.asking)
	if err != nil {
		answer(http.StatusServiceUnavailable, "Reading the manifest: "+err.Error())
		return
	}
	defer end()
	shown, err := a.lines(r.Context(), name, instance, q.Get("rule"))
	if err != nil {
		answer(http.StatusNotFound, "Reading the manifest: "+text.Label(text.Short(err.Error(), 400))+asCommand)
		return
	}
	answer(http.StatusOK, shown)
}

// machineOf names the machine of an instance for a sentence.
func machineOf(instance string) string {
	if instance == "" {
		return "the machine of the workload"
	}
	return text.Label(text.Cut(query.Host(instance), 100))
}

// lines asks the agent of a workload for the lines. The agent of another machine may answer anything, so control characters are
// replaced.
func (a advisor) lines(ctx context.Context, workload, instance, rule string) (string, error) {
	if instance == a.opts.Instance {
		instance = ""
	}
	var about []analysis.Finding
	report, none := a.Newest()
	if none == nil {
		about = slices.DeleteFunc(slices.Clone(report.Findings), func(f analysis.Finding) bool {
			of := f.Instance
			if of == a.opts.Instance {
				of = ""
			}
			return f.Workload != workload || of != instance
		})
	}
	question, err := lines.Ask(workload, rule, none == nil, about)
	if err != nil {
		return "", err
	}
	body, err := a.opts.Lines(ctx, instance, question)
	if err != nil {
		return "", err
	}
	var clean strings.Builder
	for line := range strings.Lines(string(body)) {
		clean.WriteString(text.Label(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return clean.String(), nil
}
