// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// as returns a client with the token of a service account, and the token.
func as(t *testing.T, namespace, account string) (*kubernetes.Clientset, string) {
	t.Helper()
	answer, err := cluster.clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authentication.TokenRequest{}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster.config)
	config.BearerToken, config.QPS = answer.Status.Token, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, answer.Status.Token
}

// verbs are those of every resource.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "escalate", "bind"}

// rights asks the API server for everything that an account may do: each verb on each resource and subresource, in its own
// namespace, in another one and in the whole cluster.
func rights(t *testing.T, c *kubernetes.Clientset, own string) map[string]bool {
	t.Helper()
	_, lists, err := cluster.clients.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var asked []authorization.ResourceAttributes
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = ""
		}
		for _, r := range list.APIResources {
			name, sub, _ := strings.Cut(r.Name, "/")
			for _, verb := range verbs {
				for _, where := range []string{own, "kube-system", ""} {
					asked = append(asked, authorization.ResourceAttributes{Verb: verb, Group: group, Resource: name, Subresource: sub, Namespace: where})
				}
			}
		}
	}
	if len(asked) < 1000 {
		t.Fatalf("%d questions", len(asked))
	}
	var mu sync.Mutex
	allowed := map[string]bool{}
	questions := make(chan authorization.ResourceAttributes)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for q := range questions {
				review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &q}}
				answer, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(context.Background(), review, meta.CreateOptions{})
				if err != nil {
					t.Error(err)
					continue
				}
				if answer.Status.Allowed {
					mu.Lock()
					allowed[strings.TrimSpace(q.Verb+" "+strings.TrimPrefix(q.Group+"/"+q.Resource, "/")+" "+strings.TrimSuffix("/"+q.Subresource, "/")+" in "+q.Namespace)] = true
					mu.Unlock()
				}
			}
		})
	}
	for _, q := range asked {
		questions <- q
	}
	close(questions)
	all.Wait()
	return allowed
}

// TestRights asks for every right with the tokens of the chart's own accounts. What an account without any role may do too is
// not the chart's.
func TestRights(t *testing.T) {
	const ns = "rights"
	i := install(t, ns, "server: {enabled: true}")
	nobody, _ := as(t, ns, "default")
	base := rights(t, nobody, ns)
	expect := func(account string, want ...string) {
		t.Helper()
		c, _ := as(t, ns, account)
		got := rights(t, c, ns)
		maps.DeleteFunc(got, func(right string, _ bool) bool { return base[right] })
		if has := slices.Sorted(maps.Keys(got)); !slices.Equal(has, want) {
			t.Errorf("%s may %q, want %q", account, has, want)
		}
	}
	expect("demo-teescope-agent")
	expect("demo-teescope-server", "list pods  in rights", "watch pods  in rights")
	i.upgrade("server: {enabled: true, kubernetesPods: {enabled: true}}")
	expect("demo-teescope-server",
		"list nodes  in", "list nodes  in kube-system", "list nodes  in rights", "list pods  in", "list pods  in kube-system", "list pods  in rights",
		"watch nodes  in", "watch nodes  in kube-system", "watch nodes  in rights", "watch pods  in", "watch pods  in kube-system", "watch pods  in rights")
	i.upgrade("server: {enabled: true, discovery: false, targets: [\"node1:9750\"]}")
	expect("demo-teescope-server")
}

// TestRequests sends real requests with the token of the server's account.
func TestRequests(t *testing.T) {
	const ns = "requests"
	install(t, ns, "server: {enabled: true}")
	c, _ := as(t, ns, "demo-teescope-server")
	if _, err := c.CoreV1().Pods(ns).List(t.Context(), meta.ListOptions{}); err != nil {
		t.Errorf("listing pods: %v", err)
	}
	if w, err := c.CoreV1().Pods(ns).Watch(t.Context(), meta.ListOptions{}); err != nil {
		t.Errorf("watching pods: %v", err)
	} else {
		w.Stop()
	}
	for what, request := range map[string]func() error{
		"reading a pod": func() error {
			_, err := c.CoreV1().Pods(ns).Get(t.Context(), "demo-teescope-server-0", meta.GetOptions{})
			return err
		},
		"deleting a pod": func() error {
			return c.CoreV1().Pods(ns).Delete(t.Context(), "demo-teescope-server-0", meta.DeleteOptions{})
		},
		"pods of others": func() error {
			_, err := c.CoreV1().Pods("kube-system").List(t.Context(), meta.ListOptions{})
			return err
		},
		"pods of the cluster":  func() error { _, err := c.CoreV1().Pods("").List(t.Context(), meta.ListOptions{}); return err },
		"secrets":              func() error { _, err := c.CoreV1().Secrets(ns).List(t.Context(), meta.ListOptions{}); return err },
		"configuration":        func() error { _, err := c.CoreV1().ConfigMaps(ns).List(t.Context(), meta.ListOptions{}); return err },
		"nodes of the cluster": func() error { _, err := c.CoreV1().Nodes().List(t.Context(), meta.ListOptions{}); return err },
	} {
		if err := request(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it to be forbidden", what, err)
		}
	}
}
