// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

func TestParseDeviceName(t *testing.T) {
	for text, want := range map[string]string{"MAJOR=253\nDEVNAME=dm-0\nDEVTYPE=disk\n": "dm-0", "MAJOR=1\n": ""} {
		if got := parseDeviceName([]byte(text)); got != want {
			t.Errorf("parseDeviceName(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestKubernetesName(t *testing.T) {
	for name, want := range map[string]details{
		"k8s_web_web-0_shop_11111111-2222-3333-4444-555555555555_0": {container: "web", pod: "web-0", namespace: "shop"},
		"k8s_web_web-0_shop": {}, "redis": {}, "": {}, "a_b_c_d_e_f": {},
	} {
		var got details
		if kubernetesName(name, &got); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

// Docker's record of a container that Kubernetes started has its names in labels.
func TestParseDocker(t *testing.T) {
	got, ok := parseDocker([]byte(`{"ID":"x","Name":"/k8s_app","Config":{"Image":"sha256:1","Labels":{
		"io.kubernetes.container.name":"app","io.kubernetes.pod.name":"app-1","io.kubernetes.pod.namespace":"prod"}}}`))
	if want := (details{name: "k8s_app", image: "sha256:1", container: "app", pod: "app-1", namespace: "prod"}); got != want || !ok {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, text := range []string{"", "[]", `{"Name":1}`, `{"Name":`} {
		if got, ok := parseDocker([]byte(text)); ok || got != (details{}) {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
}

// Records without a container of a runtime are ignored. Those of buildah have another text in metadata.
func TestParseStorage(t *testing.T) {
	index := map[string]details{}
	err := parseStorage([]byte(`[{"id":"a","names":["working-container"],"metadata":"{\"image\":{}}"},{"id":"b","metadata":"no JSON"},{"id":"c"}]`), index)
	if got, want := fmt.Sprint(index["a"], index["b"], index["c"], err), "{working-container     } {     } {     } <nil>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Only an ID becomes part of a path.
func TestLookOnlyTakesIDs(t *testing.T) {
	root := t.TempDir()
	hostfstest.Write(t, root, "docker/../secret/config.v2.json", `{"Name":"/secret"}`)
	r := newRuntimes(Options{Docker: root + "/docker"})
	for _, id := range []string{"../secret", "", ".", "web", "0123456789a/../../secret"} {
		if d, ok := r.look(id); ok {
			t.Errorf("%q is not an ID but is found: %+v", id, d)
		}
	}
}

func TestFullID(t *testing.T) {
	long := strings.Repeat("0123456789ab", 5)
	for leaf, want := range map[string]string{"docker-" + long + ".scope": long, "libpod-" + long: long, long: long, "x": long[:12]} {
		if got := fullID(leaf, long[:12]); got != want {
			t.Errorf("%q: %q, want %q", leaf, got, want)
		}
	}
}
