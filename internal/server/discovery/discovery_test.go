// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/server/kubernetes"
)

// start runs a finder. Lists has what it told.
func start(t *testing.T, o Options) (f *Finder, lists <-chan string) {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.fileEvery, o.dnsEvery, o.httpEvery = time.Millisecond, time.Millisecond, time.Millisecond
	f = New(o)
	told := make(chan string, 1000)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx, func(all []Target) { told <- texts(all) })
	}()
	t.Cleanup(func() { stop(); <-done })
	return f, told
}

func texts(all []Target) string {
	out := make([]string, 0, len(all))
	for _, t := range all {
		s := t.Address
		if t.TLS {
			s = "https://" + s
		}
		if len(t.Labels) > 0 {
			s += strings.ReplaceAll(fmt.Sprint(t.Labels), "map", "")
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func expect(t *testing.T, lists <-chan string, want string) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		select {
		case got := <-lists:
			if got == want {
				return
			}
			t.Logf("passing %q", got)
		case <-deadline:
			t.Fatalf("%q was not told", want)
		}
	}
}

// replace writes a file as a whole, as a configuration tool should.
func replace(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// failures returns the counter of the first source.
func failures(t *testing.T, f *Finder) float64 {
	t.Helper()
	var n float64
	err := f.Collect(t.Context(), func(m prometheus.Metric) {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		n += out.GetCounter().GetValue()
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFiles changes, breaks and removes files in the formats of Prometheus.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.yml")
	replace(t, a, `[{"targets": ["node2:9750", "node1:9750"], "labels": {"rack": "r1"}}]`)
	f, lists := start(t, Options{Sources: []Source{{File, filepath.Join(dir, "*.[jy]*")}}})
	expect(t, lists, "node1:9750[rack:r1] node2:9750[rack:r1]")
	replace(t, b, "- targets: ['[2001:db8::1]:9750', node1:9750]\n  labels: {__scheme__: https, instance: node3}\n")
	expect(t, lists, "https://[2001:db8::1]:9750[instance:node3] node1:9750[rack:r1] node2:9750[rack:r1]")
	replace(t, a, `[{"targets": ["node2"]}]`)
	for failures(t, f) == 0 {
		time.Sleep(time.Millisecond)
	}
	if len(lists) != 0 {
		t.Errorf("an invalid file changed the agents: %s", <-lists)
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	expect(t, lists, "https://[2001:db8::1]:9750[instance:node3] https://node1:9750[instance:node3]")
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	expect(t, lists, "")
}

// TestUnreadableDirectory says that agents stay when the directory of their files disappears, and that a name is compared with
// a pattern as filepath.Glob does.
func TestUnreadableDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x.json", "a/y.yml", "b/x.json"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(dir, name), `[{"targets": ["node1:9750"]}]`)
	}
	replace(t, filepath.Join(dir, "c"), "a file beside the directories")
	for _, pattern := range []string{"*/x.json", "a/*", "a/x.json", "a/none", "[ab]/*.yml", "*/none", "none*/x", `a/\x.json`} {
		got, err := match(filepath.Join(dir, pattern))
		want, _ := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s matches %v, want %v, %v", pattern, got, want, err)
		}
	}
	f, lists := start(t, Options{Sources: []Source{{File, filepath.Join(dir, "a", "*.json")}}})
	expect(t, lists, "node1:9750")
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	for failures(t, f) == 0 {
		time.Sleep(time.Millisecond)
	}
	if len(lists) != 0 {
		t.Errorf("without the directory the agents are %q", <-lists)
	}
	if _, err := match(filepath.Join(dir, "a", "x.json")); err == nil {
		t.Error("a file in no directory is not an error")
	}
}

// TestCredentialsThatComeLater starts without the file of the HTTP client. It is read when it is there.
func TestCredentialsThatComeLater(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"targets": ["node1:9750"]}]`) }))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "http.yml")
	f, lists := start(t, Options{Sources: []Source{{HTTP, server.URL}}, ClientConfig: config})
	for failures(t, f) == 0 {
		time.Sleep(time.Millisecond)
	}
	replace(t, config, "basic_auth: {username: tee, password: secret}\n")
	expect(t, lists, "node1:9750")
}

// TestHTTP asks a server with a password.
func TestHTTP(t *testing.T) {
	var answer atomic.Value
	answer.Store(`[{"targets": ["node1:9750"]}]`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "tee" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, answer.Load())
	}))
	defer server.Close()
	config := filepath.Join(t.TempDir(), "http.yml")
	replace(t, config, "basic_auth: {username: tee, password: secret}\n")
	f, lists := start(t, Options{Sources: []Source{{HTTP, server.URL + "/?key=hidden"}}, ClientConfig: config})
	expect(t, lists, "node1:9750")
	answer.Store(`[]`)
	expect(t, lists, "")
	answer.Store(`[{"targets": ["node1:9750"]}, {"targets": ["node0:1"], "labels": {"job": "x"}}]`)
	for failures(t, f) == 0 {
		time.Sleep(time.Millisecond)
	}
	if got := f.opts.Sources[0].String(); strings.Contains(got, "hidden") {
		t.Errorf("%s shows a parameter", got)
	}
}

// names is a resolver.
type names map[string]any

func (n names) LookupHost(_ context.Context, host string) ([]string, error) {
	if all, ok := n[host].([]string); ok {
		return all, nil
	}
	return nil, errors.New("no such host")
}

func (n names) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	if all, ok := n[name].([]*net.SRV); ok {
		return "", all, nil
	}
	return "", nil, errors.New("no such record")
}

func TestDNS(t *testing.T) {
	r := names{
		"agents.lan":    []string{"192.0.2.2", "192.0.2.1", "2001:db8::1"},
		"_tee._tcp.lan": []*net.SRV{{Target: "node1.lan.", Port: 9750}, {Target: "node2.lan.", Port: 9751}},
	}
	_, lists := start(t, Options{Sources: []Source{{DNS, "https://agents.lan:97"}}, resolver: r})
	expect(t, lists, "https://192.0.2.1:97 https://192.0.2.2:97 https://[2001:db8::1]:97")
	_, lists = start(t, Options{Sources: []Source{{DNS, "_tee._tcp.lan"}, {DNS, "unknown.lan:9750"}}, resolver: r})
	expect(t, lists, "node1.lan:9750 node2.lan:9751")
}

// TestAgentOfAPod says which pods have an agent that can be scraped.
func TestAgentOfAPod(t *testing.T) {
	good := func() kubernetes.Pod {
		var p kubernetes.Pod
		p.Spec.NodeName, p.Status.PodIP, p.Status.Phase = "worker-1", "192.0.2.1", "Running"
		c := kubernetes.Container{Ports: kubernetes.Ports{{Name: "http", Port: 9750}}}
		p.Spec.Containers = []kubernetes.Container{{}, c}
		return p
	}
	for name, one := range map[string]struct {
		change func(*kubernetes.Pod)
		want   string
	}{
		"running":       {func(*kubernetes.Pod) {}, "192.0.2.1:9750[instance:worker-1]"},
		"TLS":           {func(p *kubernetes.Pod) { p.Annotations.Scheme = "https" }, "https://192.0.2.1:9750[instance:worker-1]"},
		"IPv6":          {func(p *kubernetes.Pod) { p.Status.PodIP = "2001:db8::1" }, "[2001:db8::1]:9750[instance:worker-1]"},
		"pending":       {func(p *kubernetes.Pod) { p.Status.PodIP = "" }, ""},
		"failed":        {func(p *kubernetes.Pod) { p.Status.Phase = "Failed" }, ""},
		"being deleted": {func(p *kubernetes.Pod) { p.Deleted = "2026-01-02T15:04:05Z" }, ""},
		"another port":  {func(p *kubernetes.Pod) { p.Spec.Containers[1].Ports[0].Name = "metrics" }, ""},
		"no address":    {func(p *kubernetes.Pod) { p.Status.PodIP = "a b" }, ""},
	} {
		p := good()
		one.change(&p)
		got := ""
		if target, ok := agentOf(p); ok {
			got = texts([]Target{target})
		}
		if got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
}

// TestNoList says that a text without a list is an error, so that a file that is being written loses no agent.
func TestNoList(t *testing.T) {
	for _, s := range []string{"", " \n", "null", "---\n", "# agents\n", "<html></html>"} {
		if all, err := parse([]byte(s)); err == nil {
			t.Errorf("%q: %v", s, all)
		}
	}
	if all, err := parse([]byte("[]")); err != nil || len(all) != 0 {
		t.Errorf("an empty list: %v, %v", all, err)
	}
}

// TestManyValues says that a short text with many values is not read: values take much more memory than their text.
func TestManyValues(t *testing.T) {
	for _, s := range []string{strings.Repeat("- a\n", maxNodes), "[" + strings.Repeat("[],", maxNodes) + "]", strings.Repeat("a:\n", maxNodes)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parse([]byte(s))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 1<<20 {
			t.Errorf("%.6q...: %v, %d bytes", s, err, used)
		}
	}
	var most strings.Builder // as many agents as may be, each with labels of its own
	for i := range maxTargets {
		fmt.Fprintf(&most, "- targets: ['node-%d.rack-7.example.org:9750']\n  labels: {rack: r%d, zone: eu-1, __scheme__: https}\n", i, i)
	}
	if all, err := parse([]byte(most.String())); err != nil || len(all) != maxTargets {
		t.Errorf("%d agents: %v", len(all), err)
	}
}

// FuzzGroups reads foreign target groups. What is accepted is within the bounds and can be scraped.
func FuzzGroups(f *testing.F) {
	f.Add([]byte(`[{"targets": ["node1:9750"], "labels": {"__scheme__": "https", "rack": "1"}}]`))
	f.Add([]byte("- targets: ['[::1]:1']\n"))
	f.Add([]byte("- &a {targets: [h:1]}\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parse(data)
		if err != nil {
			return
		}
		if len(all) > maxTargets {
			t.Fatalf("%d targets", len(all))
		}
		for _, target := range all {
			host, _, err := net.SplitHostPort(target.Address)
			if err != nil || host == "" || len(target.Labels) > maxLabels || target.Labels["job"] != "" {
				t.Errorf("%+v: %v", target, err)
			}
			for name := range target.Labels {
				if strings.HasPrefix(name, "__") {
					t.Errorf("%+v", target)
				}
			}
		}
		if once := normal(slices.Clone(all)); len(normal(slices.Clone(once))) != len(once) {
			t.Errorf("%v", once)
		}
	})
}
