// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// operatorGroup is the API group of the Prometheus operator. testdata/operator has its definitions of the types that the chart uses,
// unchanged: example/prometheus-operator-crd of github.com/prometheus-operator/prometheus-operator v0.93.0 (Apache-2.0).
const operatorGroup = "monitoring.coreos.com/v1"

// operatorValues makes all objects of the chart for the operator, with every part that the values may add.
const operatorValues = `
agent:
  nodes: all
  podMonitor:
    enabled: true
    labels: {release: kube-prometheus-stack}
    endpoint: {scheme: https, tlsConfig: {insecureSkipVerify: true}, basicAuth: {username: {name: scrape, key: user}, password: {name: scrape, key: password}}}
    relabelings: [{action: labeldrop, regex: endpoint}]
    metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: go_.*}]
server: {enabled: true, persistence: {enabled: false}, serviceMonitor: {enabled: true, labels: {release: kube-prometheus-stack}, endpoint: {scheme: https, tlsConfig: {insecureSkipVerify: true}}}}
prometheusRule: {enabled: true, labels: {release: kube-prometheus-stack}}`

// defineOperator installs the definitions, and waits until the API server serves the types.
func defineOperator(ctx context.Context) error {
	files, err := filepath.Glob("testdata/operator/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		d := document{text: string(text)}
		if err := yaml.Unmarshal(text, &d); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := apply(ctx, d, false); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return within(startWithin, cluster.api, func(context.Context) error {
		served, err := cluster.clients.Discovery().ServerResourcesForGroupVersion(operatorGroup)
		if err == nil && (len(files) == 0 || len(served.APIResources) < len(files)) {
			err = fmt.Errorf("%d types of %d definitions", len(served.APIResources), len(files))
		}
		return err
	})
}

// TestOperatorObjects installs the objects for the Prometheus operator. The API server stores them with the operator's own
// definitions, and refuses each with an unknown field or a wrong interval.
func TestOperatorObjects(t *testing.T) {
	const ns = "operator"
	i := install(t, ns, operatorValues)
	kinds := map[string]int{}
	for _, d := range i.documents() {
		if d.APIVersion != operatorGroup {
			continue
		}
		kinds[d.Kind]++
		if err := apply(t.Context(), d, true); err != nil {
			t.Errorf("%s %s: %v", d.Kind, d.Metadata.Name, err)
		}
		for _, wrong := range []struct{ old, text, reason string }{
			{"\nspec:", "\nspec:\n  unknownOfTest: 1", "unknownOfTest"},
			{"interval: ", "interval: often # ", "interval"},
		} {
			d := d
			if d.text = strings.Replace(d.text, wrong.old, wrong.text, 1); !strings.Contains(d.text, wrong.text) {
				continue // a rule group without an interval
			}
			if err := apply(t.Context(), d, true); err == nil || !strings.Contains(err.Error(), wrong.reason) {
				t.Errorf("%s %s with %q: %v, want an error about %s", d.Kind, d.Metadata.Name, wrong.text, err, wrong.reason)
			}
		}
	}
	if kinds["PodMonitor"] != 1 || kinds["ServiceMonitor"] != 1 || kinds["PrometheusRule"] == 0 {
		t.Errorf("the chart has %v", kinds)
	}
}
