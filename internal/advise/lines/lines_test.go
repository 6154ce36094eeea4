// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// secret is in lines of manifests that no client may see.
const secret = "hunter2-of-the-database"

// program is a program in Gramine with a manifest.
func program(manifest string) advise.Program {
	return advise.Program{Manifest: "/app/redis.manifest", Text: []byte(manifest), Live: advise.Live{Runtime: "gramine-sgx", App: "redis", Processes: []advise.Process{{PID: 7, Threads: 9}}}}
}

// found returns a finding about redis.
func found(rule string) analysis.Finding {
	return analysis.Finding{
		Rule: rule, Workload: "redis", Cause: "the cause", Severity: analysis.Medium, Confidence: analysis.Likely, Advice: []string{"batch"},
		Evidence: []analysis.Evidence{{Name: "exits", Value: 9, Unit: "1/s", Query: "rate(x[1m])"}}, Saving: estimate.Saves(0.1, 0.2),
	}
}

// asked returns a question as an agent reads it.
func asked(t *testing.T, rule string, findings ...analysis.Finding) Question {
	t.Helper()
	body, err := Ask("redis", rule, true, findings)
	var q Question
	if err != nil || json.Unmarshal(body, &q) != nil || len(body) > maxQuestion {
		t.Fatalf("%d bytes: %v", len(body), err)
	}
	return q
}

// The lines to change are shown, first those about the cause that was requested, and no other line of the manifest.
func TestOf(t *testing.T) {
	p := program("loader.env.PASSWORD = \"" + secret + "\"\nsgx.max_threads = 9\nloader.env.TOKEN = \"" + secret + "\"\nsgx.insecure__protected_files_key = \"" + secret + "\"\n")
	body, err := Of(p, asked(t, judged.OCALLBound, found(judged.OCALLBound)))
	if err != nil || strings.Contains(body, secret) {
		t.Fatalf("%v, or a secret is shown:\n%s", err, body)
	}
	cause, others, _ := strings.Cut(body, "Other advice about /app/redis.manifest: ")
	for text, in := range map[string]string{
		"enclave exits take much of the time (ocalls)\n• batch\n": cause,
		"(thread-slots)\n• ": others,
		"\n--- /app/redis.manifest\n+++ /app/redis.manifest.advised\n@@ -2,1 +2,1 @@\n-sgx.max_threads = 9\n+sgx.max_threads = 18\n": others,
		"No lines: one has a key for encryption. ": others,
	} {
		if !strings.Contains(in, text) {
			t.Errorf("%q is not there:\n%s\nothers\n%s", text, cause, others)
		}
	}
	for line := range strings.Lines(body) {
		changed := strings.Contains(line, "max_threads = ") || strings.Contains(line, "/app/redis.manifest") || strings.Contains(line, " = ")
		if (line[0] == '+' || line[0] == '-') && !changed {
			t.Errorf("%q looks like a changed line", line)
		}
	}
	if body, _ := Of(p, asked(t, "")); !strings.HasPrefix(body, "\nOther advice about /app/redis.manifest") || strings.Contains(body, "(ocalls)") {
		t.Errorf("without a cause:\n%s", body)
	}
	if body, _ := Of(p, asked(t, "none")); !strings.HasPrefix(body, "No line of /app/redis.manifest is about this cause.\n\nOther advice") {
		t.Errorf("for another cause:\n%s", body)
	}
}

func TestOfRefuses(t *testing.T) {
	unread := program("sgx.max_threads = 9\n")
	unread.Error = "it is not a regular file"
	for want, p := range map[string]advise.Program{unread.Error: unread, "/app/redis.manifest": program("a = [[[[")} {
		if body, err := Of(p, asked(t, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", body, err, want)
		}
	}
}

// A question is not larger than what an agent reads, also if the findings are long.
func TestAskIsBounded(t *testing.T) {
	var all []analysis.Finding
	for i := range 100 {
		f := found(fmt.Sprint("rule-", i))
		f.Cause = strings.Repeat("c", 10_000)
		all = append(all, f)
	}
	q := asked(t, "", all...)
	if len(q.Findings) != 5 || q.Findings[0].Rule != "rule-0" || q.Findings[0].Evidence[0].Query != "" || q.Findings[0].Saving.High != 0.2 {
		t.Errorf("%d findings, %+v", len(q.Findings), q.Findings[0])
	}
	if len(asked(t, "", found("a")).Findings) != 1 || all[0].Evidence[0].Query == "" {
		t.Error("a finding is lost, or those of the caller are changed")
	}
}
