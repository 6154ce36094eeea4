// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	operator "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const (
	directory  = "../../helm/teescope"
	kubernetes = "1.34.0"
)

// sets are values for which everything is checked.
var sets = map[string]string{
	"defaults":  "",
	"all nodes": "agent: {nodes: all}",
	"prometheus operator": `
agent: {podMonitor: {enabled: true, namespace: monitoring, labels: {release: kube-prometheus-stack}, relabelings: [{action: labeldrop, regex: endpoint}], metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: go_.*}]}}
dashboards: {enabled: true, namespace: monitoring}
prometheusRule: {enabled: true, namespace: monitoring, labels: {release: kube-prometheus-stack}}`,
	"server": `
server: {enabled: true, targets: ["node1:9750", "https://node2:9750"], podDisruptionBudget: {enabled: true}, serviceMonitor: {enabled: true}, config: {retention: {time: 30d}}}
agent: {hostPort: 9750}`,
	"server that reads pods": `
server: {enabled: true, kubernetesPods: {enabled: true, labels: [team, app.kubernetes.io/name]}}`,
	"server without Kubernetes' API": `
server: {enabled: true, discovery: false, targets: ["node1:9750"]}`,
	"server without a volume": `
server: {enabled: true, targets: ["node1:9750"], persistence: {enabled: false}}
agent: {enabled: false}`,
	"secrets": `
agent: {webConfig: {secretName: agent-web}, podMonitor: {enabled: true, endpoint: {scheme: https, tlsConfig: {insecureSkipVerify: true}}}}
server: {enabled: true, targets: ["https://node1:9750"], webConfig: {secretName: server-web}, targetsConfig: {secretName: agents}, persistence: {storageClass: fast, annotations: {a: b}, whenDeleted: Delete}}`,
	"much": `
nameOverride: tee
commonLabels: {team: confidential}
imagePullSecrets: [{name: registry}]
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
agent: {config: {overhead: {budget: "2%"}, watch: ["comm=^redis-server$"]}, priorityClassName: system-node-critical, nodeSelector: {pool: tee}, podAnnotations: {a: b}, podLabels: {c: d}, podSecurityContext: {fsGroup: 1}, serviceAccount: {create: false, name: existing}, affinity: {nodeAffinity: {}}}
server: {enabled: true, targets: ["node1:9750"], config: {interval: 10s}, affinity: {podAntiAffinity: {}}, tolerations: [{operator: Exists}], nodeSelector: {pool: infra}, priorityClassName: high, podAnnotations: {a: b}, podLabels: {c: d}, service: {annotations: {a: b}}}
networkPolicy: {readers: [{ipBlock: {cidr: 192.0.2.0/24}}], scrapers: []}`,
}

func load(t *testing.T) *helm.Chart {
	t.Helper()
	c, err := loader.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the chart's files for some values, as helm install makes them. It checks the values with the schema.
func render(c *helm.Chart, values, version string) (map[string]string, error) {
	v, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	kube, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kube
	if err := chartutil.ProcessDependenciesWithMerge(c, v); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "demo", Namespace: "observe", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// object is one object of the chart, decoded.
type object struct {
	meta.TypeMeta
	name, namespace string
	labels          map[string]string
	is              any
}

// kinds are the kinds of objects that the chart may make. TestRights says what the roles are for.
var kinds = map[string]func() meta.Object{
	"apps/v1 DaemonSet":                               func() meta.Object { return &apps.DaemonSet{} },
	"apps/v1 StatefulSet":                             func() meta.Object { return &apps.StatefulSet{} },
	"v1 ConfigMap":                                    func() meta.Object { return &core.ConfigMap{} },
	"v1 Pod":                                          func() meta.Object { return &core.Pod{} },
	"v1 Service":                                      func() meta.Object { return &core.Service{} },
	"v1 ServiceAccount":                               func() meta.Object { return &core.ServiceAccount{} },
	"networking.k8s.io/v1 NetworkPolicy":              func() meta.Object { return &networking.NetworkPolicy{} },
	"rbac.authorization.k8s.io/v1 Role":               func() meta.Object { return &rbac.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding":        func() meta.Object { return &rbac.RoleBinding{} },
	"rbac.authorization.k8s.io/v1 ClusterRole":        func() meta.Object { return &rbac.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() meta.Object { return &rbac.ClusterRoleBinding{} },
	"policy/v1 PodDisruptionBudget":                   func() meta.Object { return &policy.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 PodMonitor":             func() meta.Object { return &operator.PodMonitor{} },
	"monitoring.coreos.com/v1 ServiceMonitor":         func() meta.Object { return &operator.ServiceMonitor{} },
	"monitoring.coreos.com/v1 PrometheusRule":         func() meta.Object { return &operator.PrometheusRule{} },
}

// decode decodes as the API server does with strict validation: an unknown or repeated field is an error, and so is one in
// another case. encoding/json, and with it yaml.UnmarshalStrict, takes hostPid for hostPID.
func decode(document string) (*object, error) {
	var o object
	if err := yaml.Unmarshal([]byte(document), &o.TypeMeta); err != nil {
		return nil, err
	}
	create, ok := kinds[o.APIVersion+" "+o.Kind]
	if !ok {
		return nil, fmt.Errorf("%q %q: the chart may not make this kind", o.APIVersion, o.Kind)
	}
	decoded := create()
	data, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Kind, err)
	}
	problems, err := json.UnmarshalStrict(data, decoded)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Kind, err)
	}
	o.is, o.name, o.namespace, o.labels = decoded, decoded.GetName(), decoded.GetNamespace(), decoded.GetLabels()
	return &o, nil
}

// objects renders and decodes.
func objects(t *testing.T, values, version string) []*object {
	t.Helper()
	files, err := render(load(t), values, version)
	if err != nil {
		t.Fatal(err)
	}
	var all []*object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for document := range strings.SplitSeq("\n"+files[name], "\n---") {
			if blank(document) {
				continue
			}
			o, err := decode(document)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			all = append(all, o)
		}
	}
	return all
}

// blank reports whether a document has only comments.
func blank(document string) bool {
	for line := range strings.Lines(document) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// get returns the only object of a type.
func get[T any](t *testing.T, all []*object) *T {
	t.Helper()
	var found *T
	for _, o := range all {
		if is, ok := o.is.(*T); ok {
			if found != nil {
				t.Fatalf("several %T", found)
			}
			found = is
		}
	}
	if found == nil {
		t.Fatalf("no %T", found)
	}
	return found
}
