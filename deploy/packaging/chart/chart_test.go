// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	operator "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

func TestLint(t *testing.T) {
	kube, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range sets {
		v, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion(directory, v, "observe", kube).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// Every object decodes strictly, belongs to the namespace, and has a valid name and the common labels.
func TestObjectsDecode(t *testing.T) {
	for name, values := range sets {
		for _, version := range []string{"1.27.0", kubernetes} {
			all := objects(t, values, version)
			if len(all) < 3 {
				t.Errorf("%s: %d objects", name, len(all))
			}
			seen := map[string]bool{}
			for _, o := range all {
				id := o.Kind + " " + o.namespace + "/" + o.name
				if seen[id] {
					t.Errorf("%s: %s occurs twice", name, id)
				}
				seen[id] = true
				if errs := validation.IsDNS1123Subdomain(o.name); errs != nil || (o.namespace == "") != strings.HasPrefix(o.Kind, "Cluster") {
					t.Errorf("%s: %s: %v", name, id, errs)
				}
				for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"} {
					if o.labels[label] == "" {
						t.Errorf("%s: %s has no label %s", name, id, label)
					}
				}
				for label, value := range o.labels {
					if errs := append(validation.IsQualifiedName(label), validation.IsValidLabelValue(value)...); errs != nil {
						t.Errorf("%s: %s: label %s=%s: %v", name, id, label, value, errs)
					}
				}
			}
		}
	}
}

// What Kubernetes would refuse or ignore is refused here.
func TestDecodeIsStrict(t *testing.T) {
	for document, want := range map[string]string{
		"apiVersion: v1\nkind: Pod\nspec: {hostPid: true}":                     `unknown field "spec.hostPid"`,
		"apiVersion: v1\nkind: Pod\nspec: {hostPID: yes please}":               "cannot unmarshal string",
		"apiVersion: v1\nkind: Pod\nspec: {}\nspec: {}":                        `"spec" already set`,
		"apiVersion: v1\nkind: Secret":                                         "may not make this kind",
		"apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nspec: {a: 1}": `unknown field "spec.a"`,
	} {
		if _, err := decode(document); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", document, err, want)
		}
	}
}

// Names stay valid and different however long that of the release is: Kubernetes allows 63 characters.
func TestLongNames(t *testing.T) {
	for _, o := range objects(t, "fullnameOverride: "+strings.Repeat("x", 80)+"\nserver: {enabled: true, targets: ['a:1']}", kubernetes) {
		limit := 63
		switch o.is.(type) {
		case *apps.StatefulSet, *apps.DaemonSet: // the controller adds a hash of 11 characters to a label
			limit = 52 + len("-server")
		}
		if len(o.name) > limit {
			t.Errorf("%s %s has %d characters", o.Kind, o.name, len(o.name))
		}
	}
}

func TestWrongValues(t *testing.T) {
	for values, want := range map[string]string{
		"agent: {nodes: some}":                              "at '/agent/nodes': value must be one of 'tee', 'all'",
		"agent: {prot: 9750}":                               "at '/agent': additional properties 'prot' not allowed",
		"agent: {port: 0}":                                  "at '/agent/port': minimum: got 0, want 1",
		"agent: {hostPID: false}":                           "at '/agent/hostPID': value must be true",
		"agent: {securityContext: {privileged: true}}":      "at '/agent/securityContext/privileged': value must be false",
		"agent: {config: {listen: ':1'}}":                   "invalid propertyName 'listen'",
		"agent: {teeLabels: []}":                            "at '/agent/teeLabels': minItems: got 0, want 1",
		"server: {enabled: true, discovery: false}":         "at '/server/targets': minItems: got 0, want 1",
		"server: {targets: [node1]}":                        "at '/server/targets/0': 'node1' does not match pattern",
		"server: {persistence: {size: much}}":               "at '/server/persistence/size': 'much' does not match pattern",
		"server: {memoryLimit: 2Gi}":                        "at '/server/memoryLimit': '2Gi' does not match pattern",
		"server: {replicas: 2}":                             "additional properties 'replicas' not allowed",
		"image: {digest: latest}":                           "at '/image/digest': 'latest' does not match pattern",
		"dashboards: yes please":                            "at '/dashboards': got string, want object",
		"agent: {podMonitor: {enabled: true, interval: 5}}": "at '/agent/podMonitor/interval': got number, want string",
	} {
		if _, err := render(load(t), values, kubernetes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// The default values are complete: the schema has no name that they do not have.
func TestSchemaHasTheValues(t *testing.T) {
	c := load(t)
	var schema map[string]any
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	compareNames(t, "", schema, c.Values)
}

func compareNames(t *testing.T, at string, schema, values map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for name, sub := range properties {
		value, ok := values[name]
		if !ok && at+"/"+name != "/global" { // helm adds it for parent charts
			t.Errorf("values.yaml has no %s/%s", at, name)
		}
		inner, isObject := value.(map[string]any)
		if sub, ok := sub.(map[string]any); ok && isObject && sub["additionalProperties"] == false {
			compareNames(t, at+"/"+name, sub, inner)
		}
	}
}

// productCapabilities are those that the systemd unit gives the agent, which a test boots, and the two by which a process
// that starts as root becomes another user.
func productCapabilities(t *testing.T) []core.Capability {
	t.Helper()
	unit, err := os.ReadFile("../../systemd/teescope-agent.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^AmbientCapabilities=(.*)$`).FindSubmatch(unit)
	if line == nil {
		t.Fatal("the unit gives no capabilities")
	}
	all := []core.Capability{"SETUID", "SETGID"}
	for name := range strings.FieldsSeq(string(line[1])) {
		all = append(all, core.Capability(strings.TrimPrefix(name, "CAP_")))
	}
	slices.Sort(all)
	return all
}

func TestAgentPrivileges(t *testing.T) {
	for name, values := range sets {
		if strings.Contains(values, "agent: {enabled: false}") {
			continue
		}
		pod := get[apps.DaemonSet](t, objects(t, values, kubernetes)).Spec.Template.Spec
		if !pod.HostPID || pod.HostNetwork || pod.HostIPC || *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
			t.Errorf("%s: hostPID %v, hostNetwork %v, hostIPC %v, token %v, links %v", name, pod.HostPID, pod.HostNetwork, pod.HostIPC, *pod.AutomountServiceAccountToken, *pod.EnableServiceLinks)
		}
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				t.Errorf("%s: the agent mounts %s of the node", name, v.HostPath.Path)
			}
		}
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
			t.Fatalf("%s: the pod has other containers", name)
		}
		s := pod.Containers[0].SecurityContext
		if *s.Privileged || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: privileged %v, escalation %v, read-only %v", name, *s.Privileged, *s.AllowPrivilegeEscalation, *s.ReadOnlyRootFilesystem)
		}
		added := slices.Sorted(slices.Values(s.Capabilities.Add))
		if !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || !slices.Equal(added, productCapabilities(t)) {
			t.Errorf("%s: capabilities: drop %v, add %v, want %v", name, s.Capabilities.Drop, added, productCapabilities(t))
		}
		if s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || s.AppArmorProfile.Type != core.AppArmorProfileTypeUnconfined || s.SELinuxOptions.Type != "spc_t" {
			t.Errorf("%s: seccomp %v, AppArmor %v, SELinux %v", name, s.SeccompProfile, s.AppArmorProfile, s.SELinuxOptions)
		}
		if pod.Containers[0].Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: the agent's memory has no limit", name)
		}
	}
}

// Kubernetes before 1.30 has an annotation for AppArmor, and refuses the field.
func TestAppArmorOfOlderKubernetes(t *testing.T) {
	const annotation = "container.apparmor.security.beta.kubernetes.io/agent"
	for values, want := range map[string]string{
		"": "unconfined",
		"agent: {securityContext: {appArmorProfile: {type: RuntimeDefault}}}":                        "runtime/default",
		"agent: {securityContext: {appArmorProfile: {type: Localhost, localhostProfile: teescope}}}": "localhost/teescope",
	} {
		old := get[apps.DaemonSet](t, objects(t, values, "1.29.3")).Spec.Template
		if old.Annotations[annotation] != want || old.Spec.Containers[0].SecurityContext.AppArmorProfile != nil {
			t.Errorf("%q with 1.29: annotation %q, field %v", values, old.Annotations[annotation], old.Spec.Containers[0].SecurityContext.AppArmorProfile)
		}
		now := get[apps.DaemonSet](t, objects(t, values, "1.30.0")).Spec.Template
		if _, ok := now.Annotations[annotation]; ok || now.Spec.Containers[0].SecurityContext.AppArmorProfile == nil {
			t.Errorf("%q with 1.30: annotations %v", values, now.Annotations)
		}
	}
}

// The server and the test meet the policy "restricted" of Kubernetes' Pod Security Standards.
func TestOtherPodsAreRestricted(t *testing.T) {
	for name, values := range sets {
		for _, o := range objects(t, values, kubernetes) {
			var pod core.PodSpec
			switch is := o.is.(type) {
			case *apps.StatefulSet:
				pod = is.Spec.Template.Spec
			case *core.Pod:
				pod = is.Spec
			default:
				continue
			}
			p, s := pod.SecurityContext, pod.Containers[0].SecurityContext
			reads := strings.HasSuffix(o.name, "-server") && !strings.Contains(values, "discovery: false")
			if pod.HostPID || pod.HostNetwork || pod.HostIPC || *pod.AutomountServiceAccountToken != reads || *pod.EnableServiceLinks {
				t.Errorf("%s: %s shares more with the node or the API than it needs", name, o.name)
			}
			if !*p.RunAsNonRoot || *p.RunAsUser == 0 || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: %s: %+v", name, o.name, p)
			}
			// The agent of the node has the user 65521 and must have it alone.
			if *p.RunAsUser == 65521 || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
				t.Errorf("%s: %s: %+v", name, o.name, s)
			}
		}
	}
}

func TestAgentRunsWhereThereIsATEE(t *testing.T) {
	node := func(values string) []string {
		var keys []string
		terms := get[apps.DaemonSet](t, objects(t, values, kubernetes)).Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for _, term := range terms { // one of the terms must match
			e := term.MatchExpressions
			if e[0].Key != "kubernetes.io/os" || e[1].Key != "kubernetes.io/arch" || !slices.Equal(e[1].Values, []string{"amd64"}) {
				t.Errorf("%q: %v", values, e)
			}
			for _, more := range e[2:] {
				if more.Operator != core.NodeSelectorOpIn || !slices.Equal(more.Values, []string{"true"}) {
					t.Errorf("%q: %v", values, more)
				}
				keys = append(keys, more.Key)
			}
		}
		return keys
	}
	if got := node(""); len(got) != 5 || !slices.Contains(got, "feature.node.kubernetes.io/cpu-security.sgx.enabled") || !slices.Contains(got, "intel.feature.node.kubernetes.io/sgx") {
		t.Errorf("with a TEE: %v", got)
	}
	if got := node("agent: {nodes: all}"); len(got) != 0 {
		t.Errorf("all: %v", got)
	}
}

// What is selected is what the chart labels, and nothing else: agents are not servers.
func TestSelectors(t *testing.T) {
	all := objects(t, sets["server"]+"\nnameOverride: other", kubernetes)
	pods := map[string]map[string]string{
		"agent":  get[apps.DaemonSet](t, all).Spec.Template.Labels,
		"server": get[apps.StatefulSet](t, all).Spec.Template.Labels,
		"test":   get[core.Pod](t, all).Labels,
	}
	check := func(what, part string, selector map[string]string) {
		for name, have := range pods {
			if got := labels.SelectorFromSet(selector).Matches(labels.Set(have)); got != (name == part) {
				t.Errorf("%s of %s selects the pods of %s: %v", what, part, name, got)
			}
		}
	}
	check("DaemonSet", "agent", get[apps.DaemonSet](t, all).Spec.Selector.MatchLabels)
	check("StatefulSet", "server", get[apps.StatefulSet](t, all).Spec.Selector.MatchLabels)
	for _, o := range all {
		part := o.labels["app.kubernetes.io/component"]
		switch is := o.is.(type) {
		case *core.Service:
			check("Service", part, is.Spec.Selector)
		case *networking.NetworkPolicy:
			check("NetworkPolicy", part, is.Spec.PodSelector.MatchLabels)
		}
	}
	monitored := get[operator.ServiceMonitor](t, all).Spec.Selector
	selector, err := meta.LabelSelectorAsSelector(&monitored)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if _, ok := o.is.(*core.Service); ok && selector.Matches(labels.Set(o.labels)) != (o.labels["app.kubernetes.io/component"] == "server") {
			t.Errorf("the ServiceMonitor and the Service %s", o.name)
		}
	}
}

// Without a password, other pods are kept out by the policy alone. An agent opens no connections.
func TestNetworkPolicy(t *testing.T) {
	spec := get[networking.NetworkPolicy](t, objects(t, "", kubernetes)).Spec
	if !slices.Contains(spec.PolicyTypes, networking.PolicyTypeEgress) || len(spec.Egress) != 0 {
		t.Error("an agent may connect to others")
	}
	if len(spec.Ingress) != 1 || len(spec.Ingress[0].From) != 3 || len(spec.Ingress[0].Ports) != 1 {
		t.Errorf("ingress is %+v", spec.Ingress)
	}
	for _, from := range spec.Ingress[0].From {
		if from.PodSelector == nil || len(from.PodSelector.MatchLabels) == 0 {
			t.Errorf("everybody may scrape: %+v", from)
		}
	}
}

func TestPodMonitor(t *testing.T) {
	all := objects(t, sets["prometheus operator"], kubernetes)
	m := get[operator.PodMonitor](t, all)
	e := m.Spec.PodMetricsEndpoints[0]
	if e.HonorLabels {
		t.Error("an agent can choose the label instance, and claim what belongs to other machines")
	}
	if r := e.RelabelConfigs[1]; r.Action != "labeldrop" || r.Regex != "pod|namespace|container" {
		t.Errorf("the labels pod and namespace of a workload would be renamed: %+v", r)
	}
	if r := e.RelabelConfigs[0]; r.TargetLabel != "instance" || r.SourceLabels[0] != "__meta_kubernetes_pod_node_name" {
		t.Errorf("instance is not the node: %+v", r)
	}
	// Alerts ask for up{job="teescope"}, also if the chart has another name.
	pod := get[apps.DaemonSet](t, objects(t, "nameOverride: other", kubernetes)).Spec.Template
	if pod.Labels[m.Spec.JobLabel] != "teescope" {
		t.Errorf("the job is %q", pod.Labels[m.Spec.JobLabel])
	}
	if *e.Port != pod.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the port %q is not that of the pod", *e.Port)
	}
}

// The dashboards and the rules are those of the repository, byte by byte and value by value.
func TestDashboardsAndRules(t *testing.T) {
	all := objects(t, sets["prometheus operator"], kubernetes)
	dashboards, rules := map[string]string{}, map[string]*operator.PrometheusRule{}
	for _, o := range all {
		switch is := o.is.(type) {
		case *core.ConfigMap:
			if is.Labels["grafana_dashboard"] != "1" {
				t.Errorf("%s has no label for Grafana's sidecar", o.name)
			}
			for name, content := range is.Data {
				dashboards[name] = content
			}
		case *operator.PrometheusRule:
			rules[strings.TrimPrefix(o.name, "demo-teescope-")] = is
		}
	}
	files := func(pattern string) []string {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 5 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		return names
	}
	names := files("../../grafana/dashboards/*.json")
	for _, file := range names {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := dashboards[filepath.Base(file)]; strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
			t.Errorf("%s differs in the chart: run make generate-chart", file)
		}
	}
	if len(dashboards) != len(names) {
		t.Errorf("%d dashboards, want %d", len(dashboards), len(names))
	}
	names = files("../../../rules/*.yaml")
	for _, file := range names {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want operator.PrometheusRuleSpec
		if err := yaml.UnmarshalStrict(data, &want); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		rule := rules[strings.TrimSuffix(filepath.Base(file), ".yaml")]
		if rule == nil {
			t.Errorf("%s is not in the chart: run make generate-chart", file)
			continue
		}
		a, _ := json.Marshal(rule.Spec)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs in the chart: run make generate-chart", file)
		}
	}
	if len(rules) != len(names) {
		t.Errorf("%d files of rules, want %d", len(rules), len(names))
	}
}

// Helm stores a release, with the chart's files and objects, in one Secret of at most 1 MiB: base64 of gzip of JSON, and
// once more base64 by the API.
func TestReleaseFitsIntoASecret(t *testing.T) {
	files, err := render(load(t), sets["prometheus operator"], kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	release, err := json.Marshal(map[string]any{"chart": load(t), "manifest": files})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(release); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if stored := packed.Len() * 4 / 3; stored > 1<<19 {
		t.Errorf("a release takes %d bytes, more than half of what is allowed", stored)
	} else {
		t.Logf("a release takes %d bytes", stored)
	}
}

func TestNotes(t *testing.T) {
	for values, want := range map[string]string{
		"": "use\n--set agent.nodes=all.",
		"agent: {nodes: all}\nnetworkPolicy: {enabled: false}": "WARNING: every pod of the cluster can read the metrics",
		sets["server"]: "delete persistentvolumeclaim --selector app.kubernetes.io/instance=demo",
	} {
		files, err := render(load(t), values, kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["teescope/templates/NOTES.txt"]
		if !strings.Contains(notes, want) {
			t.Errorf("%q: no %q in\n%s", values, want, notes)
		}
		if unscraped := strings.Contains(notes, "No server of this release scrapes"); unscraped != (values != sets["server"]) {
			t.Errorf("%q: the notes say %t that no server scrapes the agents:\n%s", values, unscraped, notes)
		}
	}
	for values, tested := range map[string]bool{"": true, "agent: {webConfig: {secretName: web}}": false} {
		files, err := render(load(t), values, kubernetes)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(files["teescope/templates/NOTES.txt"], "helm test demo"); said != tested {
			t.Errorf("%q: the notes name the test: %t, want %t", values, said, tested)
		}
	}
}

// The values in the documentation are accepted.
func TestDocumentedValues(t *testing.T) {
	data, err := os.ReadFile("../../../docs/user/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllSubmatch(data, -1) {
		if strings.HasPrefix(string(m[1]), "scrape_configs:") { // of Prometheus
			continue
		}
		examples++
		objects(t, string(m[1]), kubernetes)
	}
	if examples < 3 {
		t.Errorf("%d examples", examples)
	}
}
