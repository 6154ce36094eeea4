// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// details describe a container in the files of its runtime.
type details struct {
	name, image string
	// imageID distinguishes images of the same name. It is empty if the runtime does not store it.
	imageID string
	// container, pod and namespace are names of Kubernetes. They are empty for containers that it did not start.
	container, pod, namespace string
}

// runtimes reads the files of container runtimes about their containers, by ID.
type runtimes struct {
	storage            []string
	docker, containerd string

	index   map[string]details   // the containers of containers/storage
	stamps  map[string]fileStamp // the files that the index was read from
	checked bool                 // the files were checked in this scrape
}

// fileStamp detects a change of a file.
type fileStamp struct {
	size, modified int64
}

// Limits of the files.
const (
	maxIndex   = 32 << 20 // index of all containers of containers/storage
	maxDetails = 1 << 20  // file of Docker or containerd about one container
	maxListed  = 64       // number of directories
)

func newRuntimes(o Options) *runtimes {
	return &runtimes{storage: o.Storage, docker: o.Docker, containerd: o.Containerd, index: map[string]details{}, stamps: map[string]fileStamp{}}
}

// look reads the details of a container. It returns false for unknown containers, such as those of
// another user or inside another container.
func (r *runtimes) look(id string) (details, bool) {
	if strings.Trim(id, "0123456789abcdef") != "" || len(id) < 12 {
		return details{}, false // not an ID, and maybe not a safe file name
	}
	if !r.checked {
		r.refresh()
		r.checked = true
	}
	if d, ok := r.index[id]; ok {
		return d, true
	}
	if data, err := hostfs.At(r.docker).ReadWhole(maxDetails, id, "config.v2.json"); err == nil {
		return parseDocker(data)
	}
	for _, namespace := range list(r.containerd) {
		if data, err := hostfs.At(r.containerd).ReadWhole(maxDetails, namespace, id, "config.json"); err == nil {
			return parseBundle(data, id)
		}
	}
	return details{}, false
}

// refresh reads the indexes of containers/storage if one of them has changed. Each
// storage driver has a directory DRIVER-containers.
func (r *runtimes) refresh() {
	stamps := map[string]fileStamp{}
	for _, root := range r.storage {
		for _, dir := range list(root) {
			if !strings.HasSuffix(dir, "-containers") {
				continue
			}
			for _, name := range []string{"containers.json", "volatile-containers.json"} {
				path := filepath.Join(root, dir, name)
				if info, err := os.Stat(path); err == nil {
					stamps[path] = fileStamp{info.Size(), info.ModTime().UnixNano()}
				}
			}
		}
	}
	if maps.Equal(stamps, r.stamps) {
		return
	}
	r.index, r.stamps = map[string]details{}, stamps
	for path := range stamps {
		data, err := hostfs.At(path).ReadWhole(maxIndex)
		if err == nil {
			err = parseStorage(data, r.index)
		}
		if err != nil {
			delete(stamps, path) // the file is being written, so it is read again
		}
	}
}

func list(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	var names []string
	entries, _ := f.ReadDir(maxListed)
	for _, e := range entries {
		if e.Type()&fs.ModeType == fs.ModeDir {
			names = append(names, e.Name())
		}
	}
	return names
}

// parseStorage reads an index of containers/storage into an index by ID. The names and the image are in
// JSON metadata of podman and CRI-O.
func parseStorage(data []byte, into map[string]details) error {
	var all []struct {
		ID       string
		Names    []string
		Image    string
		Metadata string
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, c := range all {
		var m struct {
			Name  string `json:"name"`
			Image string `json:"image-name"`
			Pod   string `json:"pod-name"` // of CRI-O only
		}
		_ = json.Unmarshal([]byte(c.Metadata), &m) // fails for other tools, such as buildah, which have names only
		d := details{name: m.Name, image: m.Image, imageID: c.Image}
		if len(c.Names) > 0 { // when podman renames a container, it changes these and not the metadata
			d.name = c.Names[0]
		}
		if m.Pod != "" {
			kubernetesName(d.name, &d)
		}
		into[c.ID] = d
	}
	return nil
}

// kubernetesName splits a name in the form of Kubernetes' runtimes: k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT.
// The parts contain no underscores.
func kubernetesName(name string, d *details) {
	if parts := strings.Split(name, "_"); len(parts) == 6 && parts[0] == "k8s" {
		d.container, d.pod, d.namespace = parts[1], parts[2], parts[3]
	}
}

// parseDocker reads Docker's configuration of one container.
func parseDocker(data []byte) (details, bool) {
	var c struct {
		Name   string
		Image  string // its ID
		Config struct {
			Image  string
			Labels map[string]string
		}
	}
	if json.Unmarshal(data, &c) != nil {
		return details{}, false
	}
	l := c.Config.Labels
	return details{
		name: strings.TrimPrefix(c.Name, "/"), image: c.Config.Image, imageID: c.Image, container: l["io.kubernetes.container.name"],
		pod: l["io.kubernetes.pod.name"], namespace: l["io.kubernetes.pod.namespace"],
	}, true
}

// sandbox is the name of the container that holds a pod's namespaces. Docker's shim introduced the name, and
// dashboards use it.
const sandbox = "POD"

// parseBundle reads containerd's OCI configuration of a running container.
func parseBundle(data []byte, id string) (details, bool) {
	var c struct{ Annotations map[string]string }
	if json.Unmarshal(data, &c) != nil {
		return details{}, false
	}
	const cri = "io.kubernetes.cri."
	a := c.Annotations
	d := details{
		name: a["nerdctl/name"], image: a[cri+"image-name"], container: a[cri+"container-name"],
		pod: a[cri+"sandbox-name"], namespace: a[cri+"sandbox-namespace"],
	}
	if d.name == "" {
		d.name = id // as in the kubelet's cAdvisor
	}
	if a[cri+"container-type"] == "sandbox" {
		d.container = sandbox
	}
	return d, true
}
