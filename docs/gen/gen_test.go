// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/rules"
	diagnosis "github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/lib/metric"
)

func TestMetrics(t *testing.T) {
	text := string(metrics([]*metric.Desc{
		metric.New(metric.Desc{Name: "b_total", Kind: metric.Counter, Unit: "calls", Help: "Calls.", Labels: []string{"x", "y"}, Source: metric.Kernel, Origin: "sys_enter"}),
		metric.New(metric.Desc{Name: "a_info", Kind: metric.Info, Help: "Always one.", Source: metric.Agent}),
	}))
	for _, want := range []string{
		"| [`b_total`](#b_total) | counter | calls |",
		"- labels: `x`, `y`\n",
		"- read from: sys_enter\n",
		"- labels: none\n- type: gauge (always 1); unit: none; who can forge it: agent",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text holds no %q:\n%s", want, text)
		}
	}
	if strings.Index(text, "## a_info") > strings.Index(text, "## b_total") {
		t.Error("the families are not sorted")
	}
}

func described(t *testing.T) []*metric.Desc {
	t.Helper()
	all, err := families("../..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The kernel of a confidential virtual machine is inside its trust boundary. What the host chooses or counts is not.
func TestGuestsCountForThemselves(t *testing.T) {
	inside := regexp.MustCompile(`^teescope_(workload_)?(bounce|guest|memory_(accept|conver)|idle_|ipis)`)
	for _, d := range described(t) {
		want := inside.MatchString(d.Name) && d.Name != "teescope_guest_cpu_feature_missing"
		if (d.Source == metric.Guest) != want {
			t.Errorf("%s can be forged by the %s", d.Name, d.Source)
		}
	}
}

// Hardware for these backends was not at hand, so each family says what was run in its place.
func TestFamiliesOfTEEsSayHowFarTheyAreProven(t *testing.T) {
	unseen := regexp.MustCompile(`^teescope_((workload_)?(bounce|guest)_|memory_(accept|conver)|idle_|ipis_|vm_|gpu_|vsock_|nitro_|user_cuda_)`)
	level := regexp.MustCompile(`run (in an emulated machine|on emulated hardware|on a stand-in)|decoded from (injected events|files|(the kernel's |the )?sources)`)
	n := 0
	for _, d := range described(t) {
		if !unseen.MatchString(d.Name) {
			if d.Proven != "" {
				t.Errorf("%s says how far it is proven, and is not among the families that must", d.Name)
			}
			continue
		}
		if n++; !level.MatchString(d.Proven) || !strings.Contains(d.Proven, "not ") && !strings.Contains(d.Proven, "Not ") && !strings.Contains(d.Proven, "plain virtual machines") {
			t.Errorf("%s does not say how far it is proven: %q", d.Name, d.Proven)
		}
	}
	if n < 50 {
		t.Errorf("only %d families are known", n)
	}
}

// The committed reference must match the descriptions.
func TestMetricsDocumentIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile("../user/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(metrics(described(t))) != string(committed) {
		t.Error("docs/user/metrics.md is not what the descriptions give: run make generate-docs")
	}
}

// The committed table of rules must match the rules.
func TestAdviceRulesDocumentIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile("../user/advisor.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(adviceRules(rules.All(), manifest.Successors())) != string(committed) {
		t.Error("docs/user/advisor.md is not what the rules give: run make generate-docs")
	}
}

// The committed table of thresholds must match the rules.
func TestThresholdsDocumentIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile("../user/thresholds.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(thresholds(diagnosis.All())) != string(committed) {
		t.Error("docs/user/thresholds.md is not what the rules give: run make generate-docs")
	}
}

// A reader needs these to trust a number: a sentence, a unit, and where it is read.
func TestDescriptionsAreComplete(t *testing.T) {
	for _, d := range described(t) {
		if !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: the help is not a sentence: %q", d.Name, d.Help)
		}
		if d.Kind == metric.Counter != strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%s is a %s: counters and only they end in _total", d.Name, d.Kind)
		}
		if d.Source != metric.Agent && d.Origin == "" {
			t.Errorf("%s comes from a kernel and does not say where from", d.Name)
		}
		if d.Kind == metric.Counter && d.Unit == "" {
			t.Errorf("%s counts and does not say what", d.Name)
		}
	}
}
