// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
)

// A finding that was first seen 10 minutes ago links to its last window, and to the window before that which found it first.
func TestFindingsLinkToProfiles(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := Finding{Workload: "web", FirstSeen: now.Add(-10 * time.Minute), LastSeen: now, Code: codelink.New(codelink.CPU, "web")}
	from := time.Time{}
	kept := codelink.CPU
	held := func(event codelink.Event, workload string, start, _ time.Time) bool {
		return event == kept && workload == "web" && !start.Before(from)
	}
	code := f.Linked(5*time.Minute, nil, held)
	if want := "/api/profiles/merged?end=1700000000&format=html&start=1699999700&workload=web"; code.Profile != want {
		t.Errorf("%s, want %s", code.Profile, want)
	}
	if want := "/api/profiles/merged?base.end=1699999100&base.start=1699998800&end=1700000000&format=html&start=1699999700&workload=web"; code.Change != want {
		t.Errorf("%s, want %s", code.Change, want)
	}
	if f.Code.Profile != "" {
		t.Error("the finding itself has changed: it is stored without links")
	}
	from = now.Add(-6 * time.Minute)
	if code := f.Linked(5*time.Minute, nil, held); code.Profile == "" || code.Change != "" {
		t.Errorf("without a profile from before: %+v", code)
	}
	from = now
	found := &codelink.Functions{Samples: 30}
	if code := f.Linked(5*time.Minute, found, held); code.Profile != "" || code.Change != "" || code.Functions != found {
		t.Errorf("without a profile of CPU time: %+v", code)
	}
	f.Code, from = codelink.New(codelink.OCALLs, "web"), time.Time{}
	if code := f.Linked(5*time.Minute, nil, held); strings.Contains(code.Profile, "event=") || code.Profile == "" {
		t.Errorf("with profiles of CPU time only: %+v", code)
	}
	kept = codelink.OCALLs
	code = f.Linked(5*time.Minute, nil, held)
	if want := "/api/profiles/merged?end=1700000000&event=ocalls&format=html&start=1699999700&workload=web"; code.Profile != want || !strings.Contains(code.Change, "&event=ocalls&") {
		t.Errorf("%+v, want %s", code, want)
	}
	if f.Code = nil; f.Linked(5*time.Minute, nil, func(codelink.Event, string, time.Time, time.Time) bool { return true }) != nil {
		t.Error("a finding about no code has a link")
	}
}
