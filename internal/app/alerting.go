// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/httpapi"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
	shipped "github.com/teescope/teescope/rules"
)

// Rules reads the rules that a server with a configuration evaluates.
func Rules(c *config.Config) ([]*rulefile.File, error) {
	files, err := prom.ReadRules(ruleOptions(c))
	if err != nil {
		return nil, fmt.Errorf("reading rules:\n%w", err)
	}
	return files, nil
}

// ruleOptions names the rules of a configuration, without receivers of alerts.
func ruleOptions(c *config.Config) prom.RuleOptions {
	o := prom.RuleOptions{Files: c.Rules.Files, Interval: c.Rules.Interval, Step: c.Interval}
	if c.Rules.Default {
		o.Shipped = shipped.Files
	}
	return o
}

// alerting configures the evaluation of rules and the hub that sends alerts, and adds the services among them.
func (p *program) alerting() (prom.RuleOptions, error) {
	c, o := p.Config, ruleOptions(p.Config)
	o.URL = func() string { return cmp.Or(c.ExternalURL, p.address()) }
	for _, pattern := range rulefile.Unmatched(c.Rules.Files) {
		p.Log.Warn("a pattern of rules.files matches no file; correct it if there should be one", "pattern", pattern)
	}
	hub := notify.Options{
		File: filepath.Join(c.DataDir, "alerts.json"), Base: o.URL, Resend: o.Resend(), Log: p.Log.With("part", "alerts"),
	}
	var err error
	if hub.Webhooks, err = webhooks(c.Alerting); err != nil {
		return o, err
	}
	if len(c.Alerting.Alertmanagers) > 0 {
		o.Alerts, err = prom.NewAlertmanagers(c.Alerting.Alertmanagers, c.Alerting.AlertmanagerConfigFile, p.own, p.Log)
		if err != nil {
			return o, fmt.Errorf("alerting.alertmanager-config-file: %w", err)
		}
		hub.Alertmanagers = o.Alerts
		p.add(o.Alerts)
	}
	o.Hub = notify.New(hub)
	p.hub = o.Hub
	p.collectors = append(p.collectors, o.Hub)
	return o, nil
}

// address is the URL at which this server listens. It is empty until all services are initialised.
func (p *program) address() string {
	if p.url == nil {
		return ""
	}
	if httpapi.IsSocket(p.web.Listen) {
		return "http://" + p.host // a browser cannot open a link to a socket
	}
	return p.url()
}

// maxWebhookFile is the maximum size of a file with the address of a webhook, in bytes.
const maxWebhookFile = 64 << 10

// webhooks creates the webhooks of a configuration. A URL that contains a secret is read from a file.
func webhooks(c config.Alerting) ([]*notify.Webhook, error) {
	if len(c.Webhooks) == 0 {
		return nil, nil
	}
	client, err := prom.HTTPClient(c.WebhookConfigFile, "webhook")
	if err != nil {
		return nil, fmt.Errorf("alerting.webhook-config-file: %w", err)
	}
	var all []*notify.Webhook
	for _, address := range c.Webhooks {
		from := ""
		if file, ok := config.WebhookFile(address); ok {
			data, err := inputfile.Read(file, maxWebhookFile)
			if err != nil {
				return nil, fmt.Errorf("alerting.webhooks: %w", text.Remedy(err, "write the address of the webhook into this file"))
			}
			address, from = strings.TrimSpace(string(data)), file+": "
		}
		w, err := notify.NewWebhook(address, client)
		if err != nil {
			return nil, fmt.Errorf("alerting.webhooks: %s%w; write one address, for example http://host:port/path", from, err)
		}
		all = append(all, w)
	}
	return all, nil
}

// findingsSource names findings as a source of alerts in the hub.
const findingsSource = "findings"

// sendFindings passes all live findings to the hub as alerts. Findings of severity info do not raise alerts.
func sendFindings(hub *notify.Hub) func(live []analysis.Finding) {
	return func(live []analysis.Finding) {
		var alerts []notify.Alert
		for _, f := range live {
			if f.Severity != analysis.Info {
				alerts = append(alerts, findingAlert(f))
			}
		}
		hub.Firing(findingsSource, alerts, true)
	}
}

// findingPage is the path at which the page shows a finding.
func findingPage(f analysis.Finding) string {
	view := url.Values{"page": {"findings"}}
	if f.Workload != "" {
		view.Set("w", f.Workload)
	}
	return "/?" + view.Encode()
}

// findingAlert converts a finding to an alert. The label severity keeps the first severity, because a changed label would
// be another alert; the annotation severity_now follows the finding.
func findingAlert(f analysis.Finding) notify.Alert {
	a := notify.Alert{
		Key:    "finding " + f.ID,
		Labels: map[string]string{"alertname": f.Rule, "severity": string(f.Severity), "source": "finding"},
		Annotations: map[string]string{
			"summary": f.Cause, "description": strings.Join(f.Advice, " "), "severity_now": string(f.Severity),
			"confidence": string(f.Confidence),
		},
		Since: f.FirstSeen, GeneratorURL: findingPage(f), Logged: true,
	}
	for name, value := range map[string]string{"workload": f.Workload, "instance": f.Instance} {
		if value != "" {
			a.Labels[name] = value
		}
	}
	if f.Runbook != "" {
		a.Annotations["runbook_url"] = "docs/runbooks/" + filepath.Base(f.Runbook)
	}
	if f.Gain != nil {
		a.Annotations["gain"] = fmt.Sprintf("%.0f to %.0f %%", 100*f.Gain.Low, 100*f.Gain.High)
	}
	return a
}
