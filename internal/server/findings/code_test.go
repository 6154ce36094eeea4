// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// kept are profiles with samples of one workload.
type kept struct {
	workload string
	asked    []codelink.Key
	from, to time.Time
}

func (k *kept) Held(event codelink.Event, workload string, _, _ time.Time) bool {
	return event == codelink.CPU && workload == k.workload
}

func (k *kept) Functions(_ context.Context, asked []codelink.Key, start, end time.Time) map[codelink.Key]*codelink.Functions {
	k.asked, k.from, k.to = asked, start, end
	return map[codelink.Key]*codelink.Functions{{Event: codelink.CPU, Workload: k.workload}: {Samples: 100, Unnamed: 0.5}}
}

// Only findings about the machine of the server's agent link to the profiles that the server keeps, and only those of the last
// analysis have functions.
func TestFindingsOfThisMachineHaveCode(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	profiles := &kept{workload: "db"}
	c := newCode(Options{Instance: own, Window: time.Minute, Profiles: profiles})
	found := []analysis.Finding{findingOf("cpu", "db", own), findingOf("cpu", "db", "node2:9750"), findingOf("cpu", "web", own), findingOf("other", "db", own), findingOf("plain", "db", own)}
	for i := range found[:4] {
		found[i].Code = codelink.New(codelink.CPU, found[i].Workload)
		found[i].LastSeen = now
	}
	found[3].LastSeen = now.Add(-time.Minute) // it is absent in the last analysis
	c.look(t.Context(), engine.Result{At: now, Findings: found})
	want := []codelink.Key{{Event: codelink.CPU, Workload: "db"}, {Event: codelink.CPU, Workload: "web"}}
	if !slices.Equal(profiles.asked, want) || !profiles.from.Equal(now.Add(-time.Minute)) || !profiles.to.Equal(now) {
		t.Errorf("asked for %v from %s to %s", profiles.asked, profiles.from, profiles.to)
	}
	for i, f := range c.linked(found) {
		if i == 4 {
			if f.Code != nil {
				t.Error("a finding about no code has code")
			}
			continue
		}
		if linked, named := f.Code.Profile != "", f.Code.Functions != nil; linked != (i == 0 || i == 3) || named != (i == 0) {
			t.Errorf("%s of %s at %s: %+v", f.Rule, f.Workload, f.Instance, f.Code)
		}
	}
	if lines := found[0].Code.Lines; !slices.Equal(lines, []string{"50 % without a name"}) {
		t.Errorf("the functions in words: %q", lines)
	}
	if none := newCode(Options{Instance: own}); none.linked(found[:1])[0].Code == nil {
		t.Error("without profiles the command is lost")
	}
}
