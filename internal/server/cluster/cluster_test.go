// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/waittest"
)

// answers are what an API server says: a Deployment's pod with EPC, one that has ended, one that has no node yet, a pod
// of nobody, and two nodes.
var answers = map[string]string{
	"/api/v1/pods": `{"metadata":{"resourceVersion":"1"},"items":[
{"metadata":{"uid":"1","namespace":"shop","name":"redis-6d4f-x","labels":{"pod-template-hash":"6d4f","team":"a"},"ownerReferences":[{"kind":"ReplicaSet","name":"redis-6d4f","controller":true}]},
 "spec":{"nodeName":"n1","containers":[{"name":"redis","resources":{"requests":{"sgx.intel.com/epc":"64Mi"},"limits":{"sgx.intel.com/epc":"96Mi","cpu":"1"}}},{"name":"side"}]},"status":{"phase":"Running"}},
{"metadata":{"uid":"2","namespace":"shop","name":"job-1"},"spec":{"nodeName":"n1"},"status":{"phase":"Succeeded"}},
{"metadata":{"uid":"3","namespace":"shop","name":"new"},"spec":{},"status":{"phase":"Pending"}},
{"metadata":{"uid":"4","namespace":"kube-system","name":"etcd"},"spec":{"nodeName":"n2","initContainers":[{"name":"first","resources":{"limits":{"sgx.intel.com/epc":"512Ki"}}}]},"status":{"phase":"Running"}}]}`,
	"/api/v1/nodes": `{"metadata":{"resourceVersion":"1"},"items":[
{"metadata":{"uid":"8","name":"n1"},"status":{"allocatable":{"sgx.intel.com/epc":"98566144"}}},
{"metadata":{"uid":"9","name":"n2"},"status":{"allocatable":{"cpu":"4"}}}]}`,
}

func TestPodsAndNodes(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, answers[r.URL.Path])
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	dir := t.TempDir()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, data := range map[string][]byte{"ca.crt": certificate, "token": []byte("t")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": u.Hostname(), "KUBERNETES_SERVICE_PORT": u.Port()}
	p := New(Options{Labels: []string{"team"}, Getenv: func(s string) string { return env[s] }, Log: slog.New(slog.DiscardHandler), account: dir})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	want := strings.TrimSpace(`
teescope_kubernetes_epc_allocatable_bytes{node=n1} 98566144
teescope_kubernetes_epc_limit_bytes{container=first,namespace=kube-system,node=n2,pod=etcd} 524288
teescope_kubernetes_epc_limit_bytes{container=redis,namespace=shop,node=n1,pod=redis-6d4f-x} 100663296
teescope_kubernetes_epc_request_bytes{container=redis,namespace=shop,node=n1,pod=redis-6d4f-x} 67108864
teescope_kubernetes_failures_total{resource=nodes} 0
teescope_kubernetes_failures_total{resource=pods} 0
teescope_kubernetes_pod_info{namespace=kube-system,node=n2,owner=,owner_kind=,pod=etcd} 1
teescope_kubernetes_pod_info{namespace=shop,node=n1,owner=redis,owner_kind=Deployment,pod=redis-6d4f-x} 1
teescope_kubernetes_pod_label_info{label=team,namespace=shop,pod=redis-6d4f-x,value=a} 1`)
	defer func() {
		if t.Failed() {
			t.Logf("got\n%s\nwant\n%s", exported(t, p), want)
		}
	}()
	waittest.Until(t, "what is exported", func() bool { return exported(t, p) == want })
}

// TestEachOutageIsLogged has the same failure again and again. It is logged once in each outage.
func TestEachOutageIsLogged(t *testing.T) {
	var log bytes.Buffer
	p := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		p.failed("pods")(errors.New("connection refused"))
		p.failed("pods")(errors.New("connection refused"))
		p.set("pods", func() {})
	}
	if n := strings.Count(log.String(), "reading pods of Kubernetes failed"); n != 3 {
		t.Errorf("three outages are logged %d times", n)
	}
}

func exported(t *testing.T, p *Pods) string {
	t.Helper()
	var lines []string
	err := p.Collect(t.Context(), func(m prometheus.Metric) {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, l := range out.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		name := strings.Split(strings.Split(m.Desc().String(), `fqName: "`)[1], `"`)[0]
		lines = append(lines, fmt.Sprintf("%s{%s} %.0f", name, strings.Join(labels, ","), out.GetGauge().GetValue()+out.GetCounter().GetValue()))
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestQuantities(t *testing.T) {
	for s, want := range map[string]float64{"0": 0, "98566144": 98566144, "64Mi": 64 << 20, "512Ki": 512 << 10, "10M": 1e7, "1e6": 1e6, "1500m": 1.5, "2Gi": 2 << 30, "1.5Gi": 3 << 29} {
		if got, ok := quantity(s); !ok || got != want {
			t.Errorf("%s: %v %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "Mi", "-1", "0x10", "NaN", "Inf", "1e999", "1 Mi", "MiMi", "1kk"} {
		if got, ok := quantity(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}
