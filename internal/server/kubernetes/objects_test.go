// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestLargePods decodes the largest pod that etcd stores, with as many ports or containers as fit. Only the first ones that are used are
// kept: a cluster has thousands of pods.
func TestLargePods(t *testing.T) {
	const size = 1 << 20
	many := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", size/len(one)), ",") }
	if err := decode([]byte(`{"metadata":{},"spec":{"containers":[{"ports":[{}]}]}}`), new(Pod)); err != nil { // makes what encoding/json keeps for a type
		t.Fatal(err)
	}
	for what, spec := range map[string]string{
		"ports":      `{"containers":[{"name":"a","ports":[` + many(`{"containerPort":1}`) + `,{"name":"http","containerPort":1}]}]}`,
		"containers": `{"containers":[` + many(`{"name":"a"}`) + `,{"name":"a","ports":[{"name":"http"}]}],"initContainers":null}`,
		"both":       `{"containers":[` + many(`{"name":"a","ports":[`+strings.Repeat(`{"name":"http","containerPort":1},`, 99)+`{"name":"http"}]}`) + `]}`,
		"agents":     `{"containers":[` + many(`{"name":"a","ports":[{"name":"http","containerPort":1}],"resources":{"limits":{"sgx.intel.com/epc":"1"}}}`) + `]}`,
		"resources":  `{"containers":[{"resources":{"limits":{` + many(`"a":"1"`) + `,"sgx.intel.com/epc":"1"}}}]}`,
	} {
		owners := `[` + strings.Repeat(`{"kind":"ConfigMap","name":"a"},`, 1000) + `{"kind":"ReplicaSet","name":"b","controller":true}]`
		data := []byte(`{"metadata":{"ownerReferences":` + owners + `},"spec":` + spec + `,"status":{"podIP":"192.0.2.1"}}`)
		var before, after runtime.MemStats
		var p Pod
		runtime.GC()
		runtime.ReadMemStats(&before)
		err := decode(data, &p)
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		if n := len(p.Spec.Containers); err != nil || kept > 64<<10 || n == 0 || n > maxContainers || len(p.Spec.Containers[0].Ports) > 1 || p.Status.PodIP == "" || len(p.Owners) != 1 || p.Owners[0].Name != "b" {
			t.Errorf("%s: %d containers, %d bytes, %v", what, n, kept, err)
		}
		runtime.KeepAlive(data)
		runtime.KeepAlive(&p)
	}
}

// TestConnectWaitsForCredentials starts before Kubernetes has put the certificate into the pod.
func TestConnectWaitsForCredentials(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "443"}
	getenv := func(name string) string { return env[name] }
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	tried := 0
	c, err := Connect(t.Context(), getenv, dir, func(err error) {
		if tried++; !errors.Is(err, os.ErrNotExist) {
			t.Errorf("failed with %v", err)
		}
		write(t, filepath.Join(dir, "ca.crt"), certificate(server))
	})
	if c == nil || err != nil || tried != 1 {
		t.Errorf("%v, %v, after %d failures", c, err, tried)
	}
	if _, err := Connect(t.Context(), func(string) string { return "" }, dir, func(error) {}); !errors.Is(err, errOutside) {
		t.Errorf("outside a pod: %v", err)
	}
}
