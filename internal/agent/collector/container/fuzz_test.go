// SPDX-License-Identifier: Apache-2.0

package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

const netDevHeading = "Inter-| Receive\n face |bytes\n"

func checkLabel(t *testing.T, v string) {
	t.Helper()
	if !utf8.ValidString(v) || len(v) > maxLabel || strings.ContainsFunc(v, unicode.IsControl) {
		t.Errorf("%q is not a valid label value", v)
	}
}

// FuzzMachine fuzzes names of groups and contents of files, which users, images and processes choose.
func FuzzMachine(f *testing.F) {
	const numbers = "usage_usec 5\nanon 1\ninactive_file 1\n8:0 rbytes=1\n8:1 wbytes=2\nsgx_epc 4096\n"
	docker := "docker-" + id(0) + ".scope"
	f.Add(docker, "lxc.payload.web", []byte(numbers), []byte(`{"Name":"/n","Config":{"Image":"i"}}`))
	f.Add(docker, docker, []byte("100\n"), []byte(`{"Name":"/\u0007\u009b","Config":{"Image":"`+strings.Repeat("i", 2*maxLabel)+`"}}`))
	f.Add("a\x1b\xff.service", "lxc.payload.\xff\n", []byte("DEVNAME=sda\n"), []byte(netDevHeading+"eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"))
	f.Add("machine-\x1b.scope", "machine-x.scope", []byte("1000\n"), []byte("1 (a) S 1 1 1 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 777 1000 100\n"))
	f.Add("a", "b", []byte(netDevHeading+"  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"),
		[]byte(`[{"id":"a","names":["n"],"metadata":"{\"pod-name\":\"p\",\"name\":\"k8s_a_b_c_d_e\"}"}]`))
	f.Add(docker, "b", []byte("1000\n"), []byte(`[{"id":"`+id(0)+`","names":["n"],"metadata":"{\"image-name\":\"i\",\"pod-name\":\"p\",\"name\":\"k8s_a_b_c_d_e\"}"}]`))
	f.Add("a", "b", []byte("btime 1\nDEVNAME=sda\n"), []byte(`{"Name":"/n","Config":{"Image":"i","Labels":{"io.kubernetes.pod.name":"p"}},"annotations":{"nerdctl/name":"n"}}`))
	f.Add("a", "b", []byte("a\x1b\u0085"+strings.Repeat("\xff", maxLabel)), []byte{})

	root := empty(f)
	for name, text := range map[string]string{
		"sys/dev/block/8:0/uevent": "DEVNAME=sda\n", "sys/dev/block/8:1/uevent": "DEVNAME=sda\n",
		"proc/1000/ns/net": "-> net:[2]", "proc/1/ns/net": "-> net:[1]", "proc/1000/net/dev": "", "docker/" + id(0) + "/config.v2.json": "",
		"storage/overlay-containers/containers.json": "",
	} {
		hostfstest.Write(f, root, name, text)
	}
	f.Fuzz(func(t *testing.T, outer, inner string, numbers, other []byte) {
		for _, name := range []string{outer, inner} {
			if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
				t.Skip("not the name of a directory")
			}
		}
		top := filepath.Join(root, "cgroup", outer)
		defer os.RemoveAll(top)
		for _, dir := range []string{top, filepath.Join(top, inner)} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skip("the name of an existing file")
			}
			for _, file := range []string{"cpu.stat", "memory.stat", "memory.current", "io.stat", "misc.current", "cgroup.procs"} {
				if err := os.WriteFile(filepath.Join(dir, file), numbers, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, file := range []string{"docker/" + id(0) + "/config.v2.json", "storage/overlay-containers/containers.json", "proc/1000/net/dev", "proc/1000/stat"} {
			if err := os.WriteFile(filepath.Join(root, file), other, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		families := metrictest.Samples(t, 1000+20*len(numbers)+20*len(other), func(emit func(prometheus.Metric)) {
			if err := fake(root).Collect(t.Context(), emit); err != nil {
				t.Error(err)
			}
		})
		metrictest.NoControls(t, families)
		checkParsers(t, numbers)
		checkParsers(t, other)
	})
}

// checkParsers passes the same bytes to all parsers of this package.
func checkParsers(t *testing.T, data []byte) {
	t.Helper()
	seen := map[string]bool{}
	for _, i := range parseNetDev(data) {
		if seen[i.name] || i.name == "lo" || i.name == "" {
			t.Errorf("the interface %q is duplicate or should be absent", i.name)
		}
		seen[i.name] = true
		checkLabel(t, i.name)
	}
	if len(seen) > maxInterfaces {
		t.Errorf("%d interfaces", len(seen))
	}
	if node := parseDeviceName(data); strings.Contains(node, "\n") {
		t.Errorf("the device is %q", node)
	}
	if d, ok := parseDocker(data); !ok && d != (details{}) {
		t.Errorf("not a container, but described as %+v", d)
	}
	if d, ok := parseBundle(data, "id"); ok && d.name == "" {
		t.Errorf("a container without a name: %+v", d)
	}
	checkLabel(t, labelValue(string(data)))
}
