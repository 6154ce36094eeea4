// SPDX-License-Identifier: Apache-2.0

// Package pods finds the names of Kubernetes' pods by their UIDs, without credentials: the kubelet makes a directory
// NAMESPACE_POD_UID for the logs of each pod before its first container starts (k8s.io/kubernetes/pkg/kubelet/kuberuntime,
// BuildPodLogsDirectory).
//
// It does not read logs or query the API of Kubernetes.
package pods

import (
	"context"
	"errors"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

const (
	// every is the interval at which the time of the directory is compared. A pod that exists for two seconds is seen.
	every = 500 * time.Millisecond
	// patience is the time that a new UID waits for a scan of the directory. A disk that does not answer must not hide a workload
	// for longer.
	patience = 2 * time.Second
	// memory is the time for which a waiting UID is remembered. All callers that wait ask again within this time, even if nothing
	// is scraped.
	memory = time.Minute
	// maxEntries bounds the entries of one look, and maxPods the pods that are remembered. The kubelet runs 110 pods by default.
	maxEntries = 10_000
	maxPods    = 4096
)

// pod is a pod's name. Both are empty if it is not known.
type pod struct{ namespace, name string }

// Names contains the names of the pods of a machine. It is safe for concurrent use. Only Init and Run read the directory.
type Names struct {
	root string
	now  func() time.Time
	kick chan struct{} // a UID is requested that is not known

	mu     sync.Mutex
	found  map[string]pod       // by UID
	order  []string             // UIDs in found, oldest first
	asked  map[string]time.Time // UIDs that wait for a look
	said   map[string]pod       // answers so far. An answer never changes, because a label that changes ends a series
	looked time.Time            // begin of the last look that ended
}

// New returns the names of the pods with log directories below a root, on a machine with Kubernetes /var/log/pods.
func New(root string) *Names {
	return &Names{
		root: root, now: time.Now, kick: make(chan struct{}, 1),
		found: map[string]pod{}, asked: map[string]time.Time{}, said: map[string]pod{},
	}
}

// Name implements service.Service.
func (*Names) Name() string { return "pods" }

// Init looks once, so that pods that run already have their names from the start. It waits for a second at most.
func (n *Names) Init(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		n.look()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return nil
}

// Run looks again when the directory has changed, or when an unknown pod is requested.
func (n *Names) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.kick:
		case <-tick.C:
			info, err := os.Stat(n.root)
			if err != nil || info.ModTime().Equal(last) {
				continue
			}
			last = info.ModTime()
		}
		n.look()
	}
}

// Complete replaces the UID of a pod in an identity by its name, and adds its namespace. The UID stays if there is no name.
// Complete returns false if this is not known yet: the caller asks again, after two seconds at most. It never blocks. The
// answer for a UID never changes.
func (n *Names) Complete(id *workload.Identity) bool {
	if id.Pod == "" {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	uid := id.Pod
	p, said := n.said[uid]
	if !said {
		var known bool
		if p, known = n.found[uid]; !known && n.waits(uid) {
			return false
		}
		delete(n.asked, uid)
		n.say(uid, p)
	}
	if p.name != "" {
		id.Pod, id.Namespace = p.name, p.namespace
	}
	return true
}

// waits reports whether a UID waits for a look that begins after it was first asked for.
func (n *Names) waits(uid string) bool {
	at, waiting := n.asked[uid]
	if !waiting {
		if len(n.asked) >= maxPods {
			return false
		}
		n.asked[uid] = n.now()
		select {
		case n.kick <- struct{}{}:
		default:
		}
		return true
	}
	return !n.looked.After(at) && n.now().Sub(at) < patience
}

// say remembers an answer. When there are too many, those are forgotten whose pods have no directory.
func (n *Names) say(uid string, p pod) {
	if len(n.said) >= maxPods {
		for old := range n.said {
			if _, there := n.found[old]; !there {
				delete(n.said, old)
			}
		}
	}
	if len(n.said) < 2*maxPods {
		n.said[uid] = p
	}
}

// look reads the names in the directory. Pods whose directory is gone are remembered as long as there is room, because a
// workload may be named after the end of its pod.
func (n *Names) look() {
	began := n.now()
	pods := list(n.root)
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, p := range pods {
		if _, known := n.found[uid]; known {
			continue
		}
		n.found[uid] = p
		n.order = append(n.order, uid)
	}
	for len(n.order) > maxPods {
		delete(n.found, n.order[0])
		n.order = n.order[1:]
	}
	for uid, at := range n.asked {
		if began.Sub(at) > memory {
			delete(n.asked, uid) // it is no longer requested
		}
	}
	n.looked = began
}

// list returns the pods of directories, by UID. It follows no symbolic link.
func list(root string) map[string]pod {
	f, err := os.Open(root)
	if err != nil {
		return nil
	}
	defer f.Close()
	pods := map[string]pod{}
	for read := 0; read < maxEntries; {
		entries, err := f.ReadDir(min(256, maxEntries-read))
		read += len(entries)
		for _, e := range entries {
			if uid, p, ok := parse(e.Name()); ok && e.Type().IsDir() {
				pods[uid] = p
			}
		}
		if err != nil { // also io.EOF
			if !errors.Is(err, io.EOF) {
				return pods
			}
			break
		}
	}
	return pods
}

// The forms of names (k8s.io/apimachinery/pkg/util/validation): a namespace is a label of DNS, a pod a subdomain. The UID of a
// static pod is the hash of its configuration.
var (
	namespaceForm = lazy.Regexp(`^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$`)
	podForm       = lazy.Regexp(`^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$`)
	uidForm       = lazy.Regexp(`^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})$`)
)

const maxPodName = 253

// parse reads the name of a directory: NAMESPACE_POD_UID. No part contains an underscore.
func parse(name string) (uid string, p pod, ok bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || len(parts[1]) > maxPodName ||
		!namespaceForm().MatchString(parts[0]) || !podForm().MatchString(parts[1]) || !uidForm().MatchString(parts[2]) {
		return "", pod{}, false
	}
	return parts[2], pod{parts[0], parts[1]}, true
}
