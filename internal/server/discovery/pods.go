// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/kubernetes"
)

// pods follows the pods of NAMESPACE/SELECTOR. The name of the node becomes the label instance: it stays when the pod is
// replaced.
func (f *Finder) pods(ctx context.Context, where string, found func([]Target, error)) {
	failed := func(err error) { found(nil, err) }
	client, err := kubernetes.Connect(ctx, f.opts.Getenv, cmp.Or(f.opts.account, kubernetes.AccountDir), failed)
	if client == nil {
		if err != nil {
			failed(err)
		}
		return
	}
	namespace, selector, _ := strings.Cut(where, "/")
	kubernetes.Follow(ctx, kubernetes.Follower{
		Client: client, Path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods", Most: maxTargets,
		Query: url.Values{"labelSelector": {selector}}, Failed: failed,
	}, func(pods []kubernetes.Pod) {
		var all []Target
		for _, p := range pods {
			if t, ok := agentOf(p); ok {
				all = append(all, t)
			}
		}
		found(all, nil)
	})
}

// agentOf returns the agent in a pod. A pod without an address has not started, or has ended. One that is being deleted is
// omitted: its successor on the node has the same label instance.
func agentOf(p kubernetes.Pod) (Target, bool) {
	if p.Status.PodIP == "" || p.Spec.NodeName == "" || p.Deleted != "" || p.Ended() || !text.IsLabel(p.Spec.NodeName) {
		return Target{}, false
	}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name != kubernetes.AgentPort {
				continue
			}
			address := net.JoinHostPort(p.Status.PodIP, strconv.Itoa(port.Port))
			return Target{
				Address: address, TLS: p.Annotations.Scheme == "https", Labels: map[string]string{"instance": p.Spec.NodeName},
			}, checkAddress(address) == nil
		}
	}
	return Target{}, false
}
