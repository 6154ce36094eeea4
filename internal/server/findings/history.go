// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/anomaly"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/ledger"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

// usualSpan is the time range of the history without parameters.
const usualSpan = 30 * 24 * time.Hour

// archive is the history of an Analyst's findings.
type archive struct {
	*history.Store
	part      time.Duration                // of what is compared before and after an event
	rules     []string                     // their names
	resources map[string]analysis.Resource // by rule
	warnings  []string                     // why earlier findings are missing
}

// openArchive reads the history and compares it with the findings of the ledger. A history that cannot be read does not stop
// the program.
func openArchive(o Options, now time.Time, open []analysis.Finding, closed []ledger.Entry) *archive {
	p := &archive{rules: ruleNames(o.Rules), resources: resources(o.Rules), part: max(leastPart, 4*o.Scrape)}
	var err error
	if p.Store, err = history.Open(o.HistoryFile, o.Log); err != nil {
		o.Log.Error("reading the history of findings failed", "err", err)
		p.warnings = []string{err.Error()}
	}
	if err := p.Begin(now, open, closed); err != nil {
		o.Log.Warn("the history of findings is not written", "err", err)
	}
	return p
}

// serve answers with the findings that were open at any time from ?from to ?to, or in the time ?since before ?to. Other
// parameters are rule, workload, instance, changed and limit.
func (p *archive) serve(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	q, err := readQuestion(r.URL.Query(), now)
	if err == nil {
		err = p.knowsRule(q.Rule)
	}
	if err != nil {
		jsonapi.Refuse(w, http.StatusBadRequest, jsonapi.BadData, err)
		return
	}
	past := p.Ask(q, now)
	past.Warnings = append(past.Warnings, p.warnings...)
	jsonapi.Answer(w, past)
}

func readQuestion(in url.Values, now time.Time) (q history.Question, err error) {
	for name := range in {
		if !slices.Contains([]string{"from", "to", "since", "rule", "workload", "instance", "limit", "changed"}, name) {
			return q, fmt.Errorf("there is no parameter %.40q: use from, to, since, rule, workload, instance, changed or limit", name)
		}
	}
	q = history.Question{To: now, Rule: in.Get("rule"), Workload: in.Get("workload"), Instance: in.Get("instance")}
	if s := in.Get("to"); s != "" {
		if q.To, err = jsonapi.Time("to", s); err != nil {
			return q, err
		}
	}
	q.From = q.To.Add(-usualSpan)
	from, since := in.Get("from"), in.Get("since")
	switch {
	case from != "" && since != "":
		return q, fmt.Errorf("from and since exclude each other")
	case from != "":
		if q.From, err = jsonapi.Time("from", from); err != nil {
			return q, err
		}
	case since != "":
		d, err := model.ParseDuration(since)
		if err != nil || d <= 0 {
			return q, fmt.Errorf("since=%.40q: use a duration such as 12h or 30d", since)
		}
		q.From = q.To.Add(-time.Duration(d))
	}
	if q.From.After(q.To) {
		return q, fmt.Errorf("from=%s is after to=%s", q.From.UTC().Format(time.RFC3339), q.To.UTC().Format(time.RFC3339))
	}
	if s := in.Get("limit"); s != "" {
		if q.Limit, err = strconv.Atoi(s); err != nil || q.Limit < 1 || q.Limit > history.MaxLimit {
			return q, fmt.Errorf("limit=%.40q: use a number from 1 to %d", s, history.MaxLimit)
		}
	}
	if s := in.Get("changed"); s != "" {
		if q.Changed, err = strconv.ParseBool(s); err != nil {
			return q, fmt.Errorf("changed=%.40q: use true or false", s)
		}
	}
	return q, nil
}

// knowsRule returns an error for a rule that neither exists nor has found anything. It is probably misspelled.
func (p *archive) knowsRule(rule string) error {
	names := append(slices.Clone(p.rules), "")
	if slices.Contains(names, rule) || len(p.Select(func(e history.Entry) bool { return e.Rule == rule })) > 0 {
		return nil
	}
	if near := text.Nearest(rule, names); near != "" {
		return fmt.Errorf("there is no rule %.60q; did you mean %s?", rule, near)
	}
	return fmt.Errorf("there is no rule %.60q: docs/runbooks has a page for each", rule)
}

// ruleNames returns the names of the rules, and of those that find what is unusual.
func ruleNames(rules []engine.Rule) []string {
	names := []string{anomaly.BaselineRule, anomaly.ChangeRule}
	for _, rule := range rules {
		names = append(names, rule.Name)
	}
	return names
}
