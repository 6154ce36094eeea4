// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// TestNodesAreAgents reads the metrics of a simulated agent as a server does: about 300 series, with six enclaves.
func TestNodesAreAgents(t *testing.T) {
	families, err := familiesOf()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(families)
	var text bytes.Buffer
	if err := n.WriteText(&text, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for name, f := range all {
		series += len(f.Metric)
		if f.GetHelp() == "" && !strings.HasPrefix(name, "node_") {
			t.Errorf("%s has no HELP", name)
		}
	}
	if series < 290 || series > 310 {
		t.Errorf("%d series, want about 300", series)
	}
	if enclaves := len(all["sgx_enclave_info"].GetMetric()); enclaves != enclavesPerNode {
		t.Errorf("%d enclaves, want %d", enclaves, enclavesPerNode)
	}
	if got, want := fmt.Sprint(combined([]string{"workload", "kind"}, map[string]string{"kind": "a b"}, 2)), "[[shop-2 a] [shop-2 b]]"; got != want {
		t.Errorf("the label values are %s, want %s", got, want)
	}
}
