// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"

	"github.com/teescope/teescope/internal/lib/httpconfig"
	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/server/notify"
)

const (
	// alertQueue is the maximum number of alerts that wait for an Alertmanager. It is Prometheus' default.
	alertQueue = 10_000
	// lastSend bounds how long queued alerts are still sent when the program stops. The rest is sent after the next
	// start.
	lastSend = 3 * time.Second
)

// Alertmanagers sends alerts through Prometheus' own notifier (version 2 of the API). It is a service with Run.
type Alertmanagers struct {
	manager *notifier.Manager
	groups  map[string][]*targetgroup.Group
	ended   context.Context // ends when nothing may be sent any longer
	end     context.CancelFunc
}

// NewAlertmanagers returns a sender to the given addresses. File configures TLS and authentication, as for
// [HTTPClient]. It may be empty.
func NewAlertmanagers(addresses []*url.URL, file string, reg prometheus.Registerer, log *slog.Logger) (*Alertmanagers, error) {
	client, err := httpconfig.Read(file)
	if err != nil {
		return nil, err
	}
	var all config.AlertmanagerConfigs
	for _, u := range addresses {
		one := config.DefaultAlertmanagerConfig
		one.Scheme, one.PathPrefix, one.HTTPClientConfig = u.Scheme, u.Path, client
		one.Timeout = model.Duration(10 * time.Second)
		all = append(all, &one)
	}
	a := &Alertmanagers{groups: map[string][]*targetgroup.Group{}}
	a.ended, a.end = context.WithCancel(context.Background())
	for key, one := range all.ToMap() {
		address := hostPort(addresses[slices.Index(all, one)])
		a.groups[key] = []*targetgroup.Group{{
			Source: key, Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address)}},
		}}
	}
	a.manager = notifier.NewManager(&notifier.Options{
		QueueCapacity: alertQueue, DrainOnShutdown: true, Do: a.do, Registerer: reg,
	}, model.UTF8Validation, quietlog.New(log, "alertmanagers"))
	if err := a.manager.ApplyConfig(&config.Config{AlertingConfig: config.AlertingConfig{AlertmanagerConfigs: all}}); err != nil {
		return nil, fmt.Errorf("configuring notifications to Alertmanagers: %w", err)
	}
	return a, nil
}

// hostPort returns the host and port of a URL. Without a port it uses the scheme's default.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// Name implements service.Service.
func (*Alertmanagers) Name() string { return "alertmanagers" }

// Run implements service.Runner.
func (a *Alertmanagers) Run(ctx context.Context) error {
	addresses := make(chan map[string][]*targetgroup.Group, 1)
	addresses <- a.groups
	done := make(chan struct{})
	go func() {
		a.manager.Run(addresses)
		close(done)
	}()
	<-ctx.Done()
	defer time.AfterFunc(lastSend, a.end).Stop()
	a.manager.Stop()
	<-done
	return nil
}

// do makes a request of the notifier. The request is cancelled when sending ends.
func (a *Alertmanagers) do(ctx context.Context, client *http.Client, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(a.ended, cancel)()
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &closer{ReadCloser: resp.Body, after: cancel}
	return resp, nil
}

// closer runs a function after a body is closed.
type closer struct {
	io.ReadCloser
	after func()
}

// Close implements io.Closer.
func (c *closer) Close() error {
	defer c.after()
	return c.ReadCloser.Close()
}

// Send implements notify.Alertmanagers.
func (a *Alertmanagers) Send(notices []notify.Notice) {
	alerts := make([]*notifier.Alert, len(notices))
	for i, n := range notices {
		alerts[i] = &notifier.Alert{
			Labels: labels.FromMap(n.Labels), Annotations: labels.FromMap(n.Annotations),
			StartsAt: n.StartsAt, EndsAt: n.EndsAt, GeneratorURL: n.GeneratorURL,
		}
	}
	a.manager.Send(alerts...)
}
