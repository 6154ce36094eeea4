// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// releaseName is the name of all releases. Each has a namespace of its own.
const releaseName = "demo"

// installation is a release of the chart.
type installation struct {
	t         *testing.T
	namespace string
	config    *action.Configuration
	last      *release.Release
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "deploy", "helm", "teescope"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func values(t *testing.T, text string) chartutil.Values {
	t.Helper()
	v, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// namespace makes a namespace that admits what agents need, and removes it with all its objects after the test.
func namespace(t *testing.T, name string) {
	t.Helper()
	_, err := cluster.clients.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.clients.CoreV1().Namespaces().Delete(context.Background(), name, meta.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		gone(t, "namespace "+name, func(ctx context.Context) error {
			_, err := cluster.clients.CoreV1().Namespaces().Get(ctx, name, meta.GetOptions{})
			return err
		})
	})
	eventually(t, "the account of the namespace", func(ctx context.Context) error {
		_, err := cluster.clients.CoreV1().ServiceAccounts(name).Get(ctx, "default", meta.GetOptions{})
		return err
	})
}

// gone waits until an object is not found.
func gone(t *testing.T, what string, get func(context.Context) error) {
	t.Helper()
	eventually(t, what+" to be removed", func(ctx context.Context) error {
		switch err := get(ctx); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("%s is still there", what)
	})
}

// eventually waits until a condition holds. The limit of time only ends what hangs.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	if err := within(startWithin, nil, condition); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// helm prepares a release in a namespace.
func helm(t *testing.T, namespace string) *installation {
	t.Helper()
	i := &installation{t: t, namespace: namespace, config: new(action.Configuration)}
	flags := genericclioptions.NewConfigFlags(false)
	file := cluster.pki.path("admin.conf")
	flags.KubeConfig, flags.Namespace = &file, &i.namespace
	if err := i.config.Init(flags, namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.uninstall)
	return i
}

// install installs the chart into a new namespace.
func install(t *testing.T, name, text string) *installation {
	t.Helper()
	namespace(t, name)
	i := helm(t, name)
	i.install(text)
	return i
}

func (i *installation) install(text string) {
	i.t.Helper()
	run := action.NewInstall(i.config)
	run.ReleaseName, run.Namespace, run.Timeout = releaseName, i.namespace, startWithin
	var err error
	if i.last, err = run.Run(loadChart(i.t), values(i.t, text)); err != nil {
		i.t.Fatalf("helm install: %v", err)
	}
}

func (i *installation) upgrade(text string) {
	i.t.Helper()
	run := action.NewUpgrade(i.config)
	run.Namespace, run.Timeout = i.namespace, startWithin
	var err error
	if i.last, err = run.Run(releaseName, loadChart(i.t), values(i.t, text)); err != nil {
		i.t.Fatalf("helm upgrade: %v", err)
	}
}

// test runs the tests of the release, as helm test does.
func (i *installation) test() {
	i.t.Helper()
	run := action.NewReleaseTesting(i.config)
	run.Namespace, run.Timeout = i.namespace, startWithin
	tested, err := run.Run(releaseName)
	if err != nil {
		var logs strings.Builder
		i.t.Fatalf("helm test: %v, reading the logs: %v\n%s", err, run.GetPodLogs(&logs, tested), &logs)
	}
	passed := 0
	for _, h := range tested.Hooks {
		if slices.Contains(h.Events, release.HookTest) && h.LastRun.Phase == release.HookPhaseSucceeded {
			passed++
		}
	}
	if passed != 1 {
		i.t.Errorf("helm test: %d tests have passed", passed)
	}
}

// uninstall removes the release, unless that has happened.
func (i *installation) uninstall() {
	i.t.Helper()
	if i.last == nil {
		return
	}
	i.last = nil
	run := action.NewUninstall(i.config)
	run.Timeout = startWithin
	if _, err := run.Run(releaseName); err != nil {
		i.t.Errorf("helm uninstall: %v", err)
	}
}

// document is an object of a release, as the chart renders it.
type document struct {
	meta.TypeMeta `json:",inline"`
	Metadata      meta.ObjectMeta `json:"metadata"`

	text string
}

// documents returns the objects of the release, hooks included.
func (i *installation) documents() []document {
	i.t.Helper()
	texts := strings.Split(i.last.Manifest, "\n---\n")
	for _, hook := range i.last.Hooks {
		texts = append(texts, hook.Manifest)
	}
	var all []document
	for _, text := range texts {
		d := document{text: text}
		if err := yaml.Unmarshal([]byte(text), &d); err != nil {
			i.t.Fatal(err)
		}
		if d.Kind != "" {
			all = append(all, d)
		}
	}
	return all
}

// transient are kinds that the control plane makes by itself at any time.
var transient = []string{"events", "leases", "endpointslices", "endpoints", "componentstatuses", "controllerrevisions"}

// system are namespaces of the control plane.
var system = []string{"kube-system", "kube-public", "kube-node-lease", "default"}

// everything lists all other objects of the cluster by resource, namespace and name.
func everything(ctx context.Context) (map[string]bool, error) {
	lists, err := cluster.clients.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	all := map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if slices.Contains(transient, r.Name) {
				continue
			}
			items, err := cluster.dynamic.Resource(group.WithResource(r.Name)).List(ctx, meta.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for _, item := range items.Items {
				if slices.Contains(system, item.GetNamespace()) {
					continue
				}
				all[r.Name+" "+item.GetNamespace()+"/"+item.GetName()] = true
			}
		}
	}
	return all, nil
}

// pods lists the pods of the release's namespace.
func (i *installation) pods(ctx context.Context) ([]core.Pod, error) {
	all, err := cluster.clients.CoreV1().Pods(i.namespace).List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all.Items, func(a, b core.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all.Items, nil
}
