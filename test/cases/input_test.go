// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/syscalls"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// ofScrape are labels that a scrape adds.
var ofScrape = []string{"instance", "job"}

// maybeEmpty are labels that an agent may leave empty, which is as if they were absent.
var maybeEmpty = []string{"container", "pod", "namespace", "image", "name", "source", "runtime", "tee", "sandbox", "node"}

// tees are the values of the label tee.
var tees = fmt.Sprintln(teelabel.None, teelabel.SGX, teelabel.TDX, teelabel.SEV)

// runtimes are those of the label runtime.
var runtimes = fmt.Sprintln(teelabel.GramineSGX, teelabel.GramineDirect, teelabel.Occlum, teelabel.SCONE, teelabel.SDK, teelabel.OpenEnclave,
	teelabel.EGo, teelabel.FortanixEDP, teelabel.SGXLKL, teelabel.GrapheneSGX)

// few are the values of labels that have a fixed list of them, by metric and label. TestRecordingsAreEmitted compares them
// with what real agents have emitted.
var few = map[string]map[string]string{
	"teescope_context_switches_total":    {"kind": "voluntary involuntary"},
	"teescope_cpu_seconds_total":         {"mode": "user system"},
	"teescope_page_faults_total":         {"mode": "user kernel", "reason": reasons},
	"teescope_page_faults_handled_total": {"type": "minor major"},
	"teescope_enclave_transitions_total": {"kind": "eenter eexit aex"},
	"teescope_enclave_signals_total":     {"kind": "sync async"},
	"teescope_enclave_aex_total":         {"cause": "page_fault timer device reschedule other"},
	"teescope_ecalls_total":              {"mode": "normal switchless"},
	"teescope_ocalls_total":              {"mode": "normal switchless"},
	"teescope_workload_info":             {"kind": "program unit container", "tee": tees, "runtime": runtimes},
	"teescope_enclave_crossing_seconds":  {"bound": "low high"},
	"sgx_reclaim_seconds_sum":            {"by": "ksgxd direct"},
	"container_cpu_usage_seconds_total":  {"cpu": "total"},
	"node_cpu_seconds_total":             {"mode": "user nice system idle iowait irq softirq steal"},
	"teescope_vm_info":                   {"tee": "none tdx sev sev-es sev-snp"},
}

// reasons are those of page faults in the error code of x86.
const reasons = "no_page_found write_fault write_prot_fault read_prot_fault instr_fetch_fault protection_key sgx rmp other"

// emitted reads which labels each family has from the documentation that is generated from the agent's descriptions.
func emitted(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/user/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	families := make(map[string][]string)
	name := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if heading, is := strings.CutPrefix(line, "## "); is {
			name = heading
			families[name] = nil
		}
		if labels, is := strings.CutPrefix(line, "- labels: "); is && name != "" {
			for _, label := range quoted.FindAllStringSubmatch(labels, -1) {
				families[name] = append(families[name], label[1])
			}
		}
	}
	if len(families) < 300 {
		t.Fatalf("docs/user/metrics.md has only %d families", len(families))
	}
	return families
}

var (
	quoted   = regexp.MustCompile("`([a-zA-Z_0-9]+)`")
	labelled = regexp.MustCompile(`([a-zA-Z_0-9]+)="((?:[^"\\]|\\.)*)"`)
)

// family returns the family of a series, such as that of a bucket.
func family(name string, families map[string][]string) (string, bool) {
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if of, cut := strings.CutSuffix(name, suffix); cut {
			if _, known := families[of]; known {
				return of, suffix == "_bucket"
			}
		}
	}
	return "", false
}

// impossible returns why no agent emits a series, or nothing.
func impossible(name string, labels map[string]string, families map[string][]string) string {
	of, bucket := family(name, families)
	if of == "" {
		return "there is no such metric"
	}
	has := families[of]
	for label, value := range labels {
		switch {
		case slices.Contains(ofScrape, label) || bucket && label == "le":
		case !slices.Contains(has, label):
			return "it has no label " + label
		case few[name][label] != "" && value != "" && !slices.Contains(strings.Fields(few[name][label]), value):
			return label + " is never " + value
		case label == "syscall" && !isCall(value):
			return "there is no system call " + value
		}
	}
	for _, label := range has {
		if labels[label] == "" && !slices.Contains(maybeEmpty, label) {
			return always + label
		}
	}
	return ""
}

const always = "it always has the label "

func isCall(name string) bool {
	return name == "other" || name == "unknown" || slices.Contains(callNames, name)
}

var callNames = func() (all []string) {
	for n := range syscalls.Count {
		all = append(all, syscalls.Name(n))
	}
	return all
}()

// TestInputsAreEmitted: the series of cases are those of a real agent. Otherwise a rule could be right about series that never
// exist.
func TestInputsAreEmitted(t *testing.T) {
	families := emitted(t)
	for _, c := range slices.Concat(loadAll(t), limitCases(t)) {
		for _, s := range c.Input {
			labels := make(map[string]string)
			for _, l := range labelled.FindAllStringSubmatch(s.Series, -1) {
				labels[l[1]] = l[2]
			}
			if why := impossible(metric(s), labels, families); why != "" {
				t.Errorf("%s: %s: %s", c.file, s.Series, why)
			}
		}
	}
}

// TestImpossibleInputs: what no agent emits is found.
func TestImpossibleInputs(t *testing.T) {
	families := emitted(t)
	for _, tt := range []struct {
		name   string
		labels map[string]string
		want   string
	}{
		{"teescope_cpu_seconds_total", map[string]string{"workload": "a", "mode": "user"}, ""},
		{"teescope_cpu_seconds_total", map[string]string{"workload": "a", "mode": "idle"}, "mode is never idle"},
		{"teescope_cpu_seconds_total", map[string]string{"workload": "a"}, "it always has the label mode"},
		{"teescope_cpu_seconds_total", map[string]string{"workload": "a", "mode": "user", "cpu": "0"}, "it has no label cpu"},
		{"teescope_syscalls_total", map[string]string{"workload": "a", "syscall": "fuzex"}, "there is no system call fuzex"},
		{"teescope_cpu_minutes_total", nil, "there is no such metric"},
	} {
		if why := impossible(tt.name, tt.labels, families); why != tt.want {
			t.Errorf("%s%v: %q, want %q", tt.name, tt.labels, why, tt.want)
		}
	}
}

// TestRecordingsAreEmitted: what real agents emitted is possible. So the lists above are complete as far as the recordings go.
func TestRecordingsAreEmitted(t *testing.T) {
	families := emitted(t)
	for _, r := range recorded(t) {
		for _, s := range r.run.Series {
			// Labels without a value are omitted from an exposition.
			if why := impossible(s.Name, s.Labels, families); why != "" && !strings.HasPrefix(why, always) {
				t.Errorf("%s: %s: %s", r.name, s.ID(), why)
			}
		}
	}
}
