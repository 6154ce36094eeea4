// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/profiletest"
)

// pprof returns a profile of one function, with samples of 10 ms.
func pprof(t *testing.T, workload, function string, samples int64) []byte {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	frame, err := b.Frame(profile.Frame{Function: function, Library: "/bin/" + workload})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add([]uint32{frame}, []profile.Label{{Key: profile.Workload, Value: workload}}, samples, samples*10e6); err != nil {
		t.Fatal(err)
	}
	return profiletest.Pprof(t, b.Profile())
}

func about(event codelink.Event, workload string) analysis.Finding {
	return analysis.Finding{Workload: workload, Code: codelink.New(event, workload), LastSeen: time.Unix(1000, 0), FirstSeen: time.Unix(1000, 0)}
}

// A finding in a run file names the functions of the last repetition. Findings about waits and about workloads with too few samples name none.
func TestFunctionsInARunFile(t *testing.T) {
	r := &recorded{Run: &run.Run{Profiles: []run.Profile{
		{Type: "pprof", Repetition: 1, Data: pprof(t, "db", "warm", 90)}, {Type: "pprof", Repetition: 2, Data: pprof(t, "db", "scan", 60)},
		{Type: "pprof", Repetition: 2, Data: pprof(t, "web", "serve", 19)},
	}}}
	found := []analysis.Finding{about(codelink.CPU, "db"), about(codelink.Waits, "db"), about(codelink.CPU, "web"), {Workload: "db"}}
	if warning := linkRecorded(r, found); warning != "" {
		t.Error(warning)
	}
	if lines := found[0].Code.Lines; len(lines) != 1 || !strings.HasPrefix(lines[0], "scan: 100 % of its CPU time (") || !strings.HasSuffix(lines[0], "n=60)") {
		t.Errorf("%q", lines)
	}
	for _, f := range found[1:3] {
		if len(f.Code.Lines) > 0 {
			t.Errorf("%+v", f.Code)
		}
	}
	r.Profiles[1].Data = []byte("none")
	if warning := linkRecorded(r, found); !strings.Contains(warning, "repetition 2") {
		t.Errorf("a damaged profile: %q", warning)
	}
}

// A finding of a server names the functions that the server has found, and each is asked for once.
func TestFunctionsOfAServer(t *testing.T) {
	asked := map[string]int{}
	answer := kept{Profiles: 3, Instance: "host", Functions: &codelink.Functions{Samples: 200, Top: []codelink.Function{{Name: "scan", Share: 0.6, Low: 0.5, High: 0.7}}}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := answer
		if event := r.URL.Query().Get("event"); event == "" {
			one.Functions = nil
		} else {
			asked[event+" "+r.URL.Query().Get("workload")]++
		}
		_ = json.NewEncoder(w).Encode(one)
	}))
	defer web.Close()
	server, err := remote.New("--server", web.URL, remote.Access{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	found := []analysis.Finding{about(codelink.CPU, "db"), about(codelink.CPU, "db"), about(codelink.CPU, "db")}
	found[0].Instance, found[1].Instance, found[2].Instance = "host", "host", "other"
	Analysis{Server: web.URL}.link(t.Context(), server, 5*time.Minute, found)
	for _, f := range found[:2] {
		if len(f.Code.Lines) != 1 || !strings.HasPrefix(f.Code.Lines[0], "scan: 60 %") || f.Code.Profile == "" {
			t.Errorf("%+v", f.Code)
		}
	}
	if code := found[2].Code; len(code.Lines) > 0 || code.Profile != "" {
		t.Errorf("another machine: %+v", code)
	}
	if asked["cpu db"] != 1 {
		t.Errorf("%v", asked)
	}
}

// A finding of a server links to the profiles of its event if the server keeps some of its workload, and else to those of CPU time.
func TestLinksToProfilesOfEvents(t *testing.T) {
	asked := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		answer := kept{Profiles: 1}
		if q := r.URL.Query(); q.Get("workload") == "web" && q.Get("start") == "700" { // not the window before
			answer.Events = map[codelink.Event]int{codelink.Waits: 2, codelink.OCALLs: 1}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer web.Close()
	server, err := remote.New("--server", web.URL, remote.Access{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	found := []analysis.Finding{about(codelink.Waits, "web"), about(codelink.OCALLs, "web"), about(codelink.AEXs, "web"), about(codelink.OCALLs, "db")}
	Analysis{Server: web.URL}.link(t.Context(), server, 5*time.Minute, found)
	for i, want := range []string{"event=off-cpu", "event=ocalls", "", ""} {
		code := found[i].Code
		if code.Profile == "" || want == "" && strings.Contains(code.Profile, "event=") || !strings.Contains(code.Profile, want) {
			t.Errorf("%s of %s: %s, want %q", code.Event, found[i].Workload, code.Profile, want)
		}
		if (code.Change != "") != (want == "") { // no profile of an event is from the window before
			t.Errorf("%s of %s: the change is %q", code.Event, found[i].Workload, code.Change)
		}
	}
	if asked != 6 { // each finding asks for its functions, and each workload once for the window before
		t.Errorf("the server was asked %d times", asked)
	}
}

// TestFunctionsInFiles has profiles of real programs, which a file of internal/analysis/codefind describes.
func TestFunctionsInFiles(t *testing.T) {
	const dir = "../analysis/codefind/testdata/"
	found := []analysis.Finding{about(codelink.ECALLs, "codeapp"), about(codelink.Waits, "codelocks"), about(codelink.AEXs, "codeapp")}
	found[1].Code.Reason = codelink.ForLock
	files, err := readProfiles([]string{dir + "ecalls.pb.gz", dir + "off-cpu.pb.gz"})
	if err != nil {
		t.Fatal(err)
	}
	if warnings := linkNamed(files, found); len(warnings) > 0 {
		t.Errorf("%q", warnings)
	}
	for i, want := range [][]string{
		{"app_ecall_odd: 52 % of its ECALLs (", "n=248), 100 % from codeapp+0x1903"},
		{"worker: 97 % of its time waiting for locks (", "), 100 % from codelocks+0x11a8"},
		nil,
	} {
		lines := strings.Join(found[i].Code.Lines, "\n")
		for _, part := range want {
			if !strings.Contains(lines, part) {
				t.Errorf("%q, want %q", lines, part)
			}
		}
		if want == nil && lines != "" {
			t.Errorf("%q", lines)
		}
	}
	if _, err := readProfiles([]string{dir + "ecalls.pb.gz", dir + "README.md"}); err == nil || !strings.Contains(err.Error(), "--profile: "+dir+"README.md: ") {
		t.Errorf("no profile: %v", err)
	}
}

// TestFilesWithoutFunctionsAreNamed: a file that adds nothing has a warning with the reason.
func TestFilesWithoutFunctionsAreNamed(t *testing.T) {
	const name = "few.pb.gz"
	few := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(few, pprof(t, "web\x1b[31m", "f", 3), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := readProfiles([]string{"../analysis/codefind/testdata/ecalls.pb.gz", few})
	if err != nil {
		t.Fatal(err)
	}
	for want, found := range map[string][]analysis.Finding{
		"ecalls.pb.gz adds no function: its samples are ECALLs of codeapp, and the findings are about ECALLs of other, time waiting for locks of codeapp": {
			about(codelink.ECALLs, "other"), locks(about(codelink.Waits, "codeapp")), about(codelink.ECALLs, "other"),
		},
		"ecalls.pb.gz adds no function: no finding is about code":                           {{}},
		name + " adds no function: it has fewer than 20 samples of what a finding is about": {about(codelink.CPU, "web�[31m")},
		name + " adds no function: its samples are CPU time of web�[31m, and":               {about(codelink.ECALLs, "codeapp")},
	} {
		warnings := strings.Join(linkNamed(files, found), "\n")
		if !strings.Contains(warnings, want) || strings.Contains(warnings, "\x1b") {
			t.Errorf("%q, want %q", warnings, want)
		}
	}
}

func locks(f analysis.Finding) analysis.Finding {
	f.Code.Reason = codelink.ForLock
	return f
}
