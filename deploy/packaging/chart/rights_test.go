// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestRights lists everything that the chart lets the server do, for each set of values: agents have no right.
func TestRights(t *testing.T) {
	for name, want := range map[string][]string{
		"defaults": nil, "prometheus operator": nil, "server without Kubernetes' API": nil,
		"server": {"Role list watch pods", "RoleBinding Role demo-teescope-server observe/demo-teescope-server"},
		"server that reads pods": {
			"Role list watch pods", "RoleBinding Role demo-teescope-server observe/demo-teescope-server",
			"ClusterRole list watch pods nodes", "ClusterRoleBinding ClusterRole observe-demo-teescope-server observe/demo-teescope-server",
		},
	} {
		var got []string
		rule := func(kind string, r rbac.PolicyRule) {
			if len(r.APIGroups) != 1 || r.APIGroups[0] != "" || len(r.ResourceNames)+len(r.NonResourceURLs) > 0 {
				t.Errorf("%s: %+v", name, r)
			}
			got = append(got, kind+" "+strings.Join(append(r.Verbs, r.Resources...), " "))
		}
		binding := func(kind string, to rbac.RoleRef, of []rbac.Subject) {
			if len(of) != 1 || of[0].Kind != "ServiceAccount" {
				t.Fatalf("%s: %+v", name, of)
			}
			got = append(got, kind+" "+to.Kind+" "+to.Name+" "+of[0].Namespace+"/"+of[0].Name)
		}
		for _, o := range objects(t, sets[name], kubernetes) {
			switch is := o.is.(type) {
			case *rbac.Role:
				for _, r := range is.Rules {
					rule("Role", r)
				}
			case *rbac.ClusterRole:
				for _, r := range is.Rules {
					rule("ClusterRole", r)
				}
			case *rbac.RoleBinding:
				binding("RoleBinding", is.RoleRef, is.Subjects)
			case *rbac.ClusterRoleBinding:
				binding("ClusterRoleBinding", is.RoleRef, is.Subjects)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestDiscoveryFindsTheAgents compares what the server looks for with the agents' pods.
func TestDiscoveryFindsTheAgents(t *testing.T) {
	all := objects(t, sets["secrets"]+"\nnameOverride: other", kubernetes)
	where := ""
	for _, e := range get[apps.StatefulSet](t, all).Spec.Template.Spec.Containers[0].Env {
		if e.Name == "TEESCOPE_DISCOVERY" {
			where = e.Value
		}
	}
	selector, ok := strings.CutPrefix(where, "kubernetes=observe/")
	if !ok {
		t.Fatalf("TEESCOPE_DISCOVERY is %q", where)
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	agent, server := get[apps.DaemonSet](t, all).Spec.Template, get[apps.StatefulSet](t, all).Spec.Template
	if !parsed.Matches(labels.Set(agent.Labels)) || parsed.Matches(labels.Set(server.Labels)) {
		t.Errorf("%s: agents have %v, servers %v", selector, agent.Labels, server.Labels)
	}
	if agent.Spec.Containers[0].Ports[0].Name != "http" || agent.Annotations["prometheus.io/scheme"] != "https" {
		t.Errorf("the port is %q, the annotations %v", agent.Spec.Containers[0].Ports[0].Name, agent.Annotations)
	}
}
