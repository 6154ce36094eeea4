// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// startStack runs the parts of TEEMon without its page: exporters, and a Prometheus server that scrapes them.
func startStack(ctx context.Context, o options, on target) (*watcher, error) {
	w := &watcher{}
	w.stop = func() {
		for i := len(w.parts) - 1; i >= 0; i-- {
			w.parts[i].stop()
		}
	}
	if err := w.addStack(ctx, o, on.dir); err != nil {
		w.stop()
		return nil, err
	}
	w.counted = countedBy(w.parts[0])
	return w, nil
}

func (w *watcher) addStack(ctx context.Context, o options, dir string) error {
	p, err := startReference(ctx, "teemon")
	if err != nil {
		return err
	}
	w.parts = append(w.parts, p)
	err = w.add(ctx, "node_exporter", "/metrics", func(addr string) []string {
		return []string{"prometheus-node-exporter", "--web.listen-address", addr}
	})
	if err != nil {
		return err
	}
	if _, missing := os.Stat(o.cadvisor); missing == nil {
		err = w.add(ctx, "cadvisor", "/metrics", func(addr string) []string { return []string{o.cadvisor, "-listen", addr} })
		if err != nil {
			return err
		}
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(w.prometheusConfig(o)), 0o644); err != nil {
		return err
	}
	return w.add(ctx, "prometheus", "/-/ready", func(addr string) []string {
		return []string{"prometheus", "--config.file", file, "--storage.tsdb.path", filepath.Join(dir, "prometheus"),
			"--web.listen-address", addr, "--log.level", "warn"}
	})
}

// add starts a server as another part.
func (w *watcher) add(ctx context.Context, name, path string, command func(addr string) []string) error {
	r, err := startServer(ctx, path, command)
	if err != nil {
		return err
	}
	w.parts = append(w.parts, part{name: name, child: r.child, url: r.url + "/metrics"})
	return nil
}

// prometheusConfig scrapes all parts that were started so far.
func (w *watcher) prometheusConfig(o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %s, scrape_timeout: %s}\nscrape_configs:\n", o.scrapeEach, o.scrapeEach)
	for _, p := range w.parts {
		addr := strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/metrics")
		fmt.Fprintf(&b, "- {job_name: %s, static_configs: [{targets: ['%s']}]}\n", strings.Fields(p.name)[0], addr)
	}
	return b.String()
}
