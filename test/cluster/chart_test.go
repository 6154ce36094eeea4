// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// sets are values with which the chart is installed.
var sets = map[string]string{
	"defaults": "",
	"server":   "server: {enabled: true, podDisruptionBudget: {enabled: true}, config: {retention: {time: 30d}}}\nagent: {hostPort: 9750}",
	"pods of the cluster": `server: {enabled: true, kubernetesPods: {enabled: true, labels: [team]}, persistence: {whenDeleted: Delete}}
agent: {nodes: all}`,
	"secrets": `
agent: {webConfig: {secretName: agent-web}}
server: {enabled: true, targets: ["https://node1:9750"], webConfig: {secretName: server-web}, targetsConfig: {secretName: agents}, persistence: {enabled: false}}`,
	"dashboards": "dashboards: {enabled: true}",
	"operator":   operatorValues,
	"much": `
nameOverride: tee
commonLabels: {team: confidential}
imagePullSecrets: [{name: registry}]
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
agent: {config: {overhead: {budget: "2%"}, watch: ["comm=^redis-server$"]}, priorityClassName: system-node-critical, nodeSelector: {pool: tee}, podAnnotations: {a: b}, podLabels: {c: d}, podSecurityContext: {fsGroup: 1}}
server: {enabled: true, targets: ["node1:9750"], config: {interval: 10s}, affinity: {podAntiAffinity: {}}, tolerations: [{operator: Exists}], nodeSelector: {pool: infra}, podAnnotations: {a: b}, podLabels: {c: d}, service: {annotations: {a: b}}}
networkPolicy: {readers: [{ipBlock: {cidr: 192.0.2.0/24}}], scrapers: []}`,
}

// apply sends an object to the API server, which validates it strictly and stores it unless dry is set.
func apply(ctx context.Context, d document, dry bool) error {
	groups, err := restmapper.GetAPIGroupResources(cluster.clients.Discovery())
	if err != nil {
		return err
	}
	kind := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	data, err := yaml.YAMLToJSON([]byte(d.text))
	if err != nil {
		return err
	}
	force := true
	options := meta.PatchOptions{FieldManager: "test", FieldValidation: meta.FieldValidationStrict, Force: &force}
	if dry {
		options.DryRun = []string{meta.DryRunAll}
	}
	_, err = cluster.dynamic.Resource(mapping.Resource).Namespace(d.Metadata.Namespace).Patch(ctx, d.Metadata.Name, types.ApplyPatchType, data, options)
	return err
}

// TestInstallAndUninstall installs the chart with several sets of values. The API server knows every field of every object, the
// controllers accept the workloads, and after the removal the cluster has the objects that it had before.
func TestInstallAndUninstall(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		t.Run(name, func(t *testing.T) {
			ns := "install-" + strings.ReplaceAll(name, " ", "-")
			namespace(t, ns)
			i := helm(t, ns)
			eventually(t, "the namespace's certificate", func(ctx context.Context) error {
				_, err := cluster.clients.CoreV1().ConfigMaps(ns).Get(ctx, "kube-root-ca.crt", meta.GetOptions{})
				return err
			})
			before, err := everything(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i.install(sets[name])
			for _, d := range i.documents() {
				if err := apply(t.Context(), d, true); err != nil {
					t.Errorf("%s %s: %v", d.Kind, d.Metadata.Name, err)
				}
			}
			i.observed()
			volumes := i.volumes()
			i.uninstall()
			eventually(t, "everything to be removed", func(ctx context.Context) error {
				after, err := everything(ctx)
				if err != nil {
					return err
				}
				var left []string
				for object := range after {
					if !before[object] && !slices.Contains(volumes, object) {
						left = append(left, object)
					}
				}
				if len(left) > 0 {
					return fmt.Errorf("left: %q", left)
				}
				return nil
			})
			after, err := everything(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for object := range before {
				if !after[object] {
					t.Errorf("helm uninstall removed %s, which was there before", object)
				}
			}
			for _, volume := range volumes {
				if !after[volume] {
					t.Errorf("helm uninstall removed %s, which should stay", volume)
				}
			}
		})
	}
}

// observed waits until the controllers have seen the workloads of the release, and made what they can without a node.
func (i *installation) observed() {
	i.t.Helper()
	for _, d := range i.documents() {
		switch d.Kind {
		case "DaemonSet":
			eventually(i.t, "the DaemonSet", func(ctx context.Context) error {
				set, err := cluster.clients.AppsV1().DaemonSets(i.namespace).Get(ctx, d.Metadata.Name, meta.GetOptions{})
				if err == nil && set.Status.ObservedGeneration != set.Generation {
					err = fmt.Errorf("generation %d of %d is observed", set.Status.ObservedGeneration, set.Generation)
				}
				return err
			})
		case "StatefulSet":
			eventually(i.t, "the pod of the StatefulSet", func(ctx context.Context) error {
				_, err := cluster.clients.CoreV1().Pods(i.namespace).Get(ctx, d.Metadata.Name+"-0", meta.GetOptions{})
				return err
			})
		}
	}
}

// volumes returns the claims of the release that stay, as docs/user/kubernetes.md says: those without whenDeleted: Delete.
func (i *installation) volumes() []string {
	i.t.Helper()
	sets, err := cluster.clients.AppsV1().StatefulSets(i.namespace).List(i.t.Context(), meta.ListOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	var stay []string
	for _, set := range sets.Items {
		for _, claim := range set.Spec.VolumeClaimTemplates {
			if set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted != "Delete" {
				stay = append(stay, "persistentvolumeclaims "+i.namespace+"/"+claim.Name+"-"+set.Name+"-0")
			}
		}
	}
	return stay
}

// TestUpgrade changes values of a release: what is new appears, what is not wanted any more disappears, and the pods are
// replaced exactly when their configuration changes.
func TestUpgrade(t *testing.T) {
	const ns = "upgrade"
	i := install(t, ns, "agent: {config: {overhead: {budget: 2%}}}")
	daemons := cluster.clients.AppsV1().DaemonSets(ns)
	generation := func() int64 {
		t.Helper()
		set, err := daemons.Get(t.Context(), "demo-teescope-agent", meta.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return set.Generation
	}
	first := generation()
	i.upgrade("agent: {config: {overhead: {budget: 2%}}}")
	if got := generation(); got != first {
		t.Errorf("an upgrade with the same values makes generation %d of %d", got, first)
	}
	i.upgrade("agent: {config: {overhead: {budget: 3%}}}\nserver: {enabled: true, kubernetesPods: {enabled: true}}\ndashboards: {enabled: true}")
	if got := generation(); got != first+1 {
		t.Errorf("an upgrade with another configuration makes generation %d of %d", got, first)
	}
	i.observed()
	configs := func() (all []core.ConfigMap) {
		t.Helper()
		list, err := cluster.clients.CoreV1().ConfigMaps(ns).List(t.Context(), meta.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + releaseName})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	dashboards := 0
	for _, m := range configs() {
		if m.Labels["grafana_dashboard"] == "1" {
			dashboards++
		} else if strings.TrimSpace(m.Data["teescope.yml"]) != "overhead:\n  budget: 3%" {
			t.Errorf("the configuration is %q", m.Data)
		}
	}
	if dashboards == 0 {
		t.Error("no dashboard was added")
	}
	// Everything that may not be changed in place must stay the same: the StatefulSet's claims and selectors.
	i.upgrade("agent: {hostPort: 9750}\nserver: {enabled: true, config: {retention: {time: 7d}}, resources: {limits: {memory: 3Gi}}}")
	i.observed()
	if all := configs(); len(all) != 1 || all[0].Name != "demo-teescope-server" {
		t.Errorf("without dashboards and the agent's configuration there are %d ConfigMaps", len(all))
	}
	if _, err := cluster.clients.RbacV1().ClusterRoles().Get(t.Context(), ns+"-demo-teescope-server", meta.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without kubernetesPods the ClusterRole: %v", err)
	}
	i.upgrade("server: {enabled: false}")
	gone(t, "the server's pod", func(ctx context.Context) error {
		_, err := cluster.clients.CoreV1().Pods(ns).Get(ctx, "demo-teescope-server-0", meta.GetOptions{})
		return err
	})
}
