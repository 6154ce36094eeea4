// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/teescope/teescope/docs/runbooks"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom"
	shipped "github.com/teescope/teescope/rules"
)

// ruleOptions are the rules that a configuration names, and nobody to tell.
func ruleOptions(c *config.Config) prom.RuleOptions {
	o := prom.RuleOptions{Files: c.Rules.Files, Interval: c.Rules.Interval}
	if c.Rules.Default {
		o.Shipped = shippedRules()
	}
	return o
}

func shippedRules() fs.FS { return shipped.Files }

// alerting makes who evaluates rules and who tells of what fires, and adds what of it is a service beside the database.
func (p *program) alerting() (prom.RuleOptions, error) {
	c, o := p.Config, ruleOptions(p.Config)
	o.URL = func() string { return cmp.Or(c.ExternalURL, p.address()) }
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
	p.collectors, p.web.Runbooks = append(p.collectors, o.Hub), runbooks.Files
	return o, nil
}

// address is where this server listens. It is known when all is initialised.
func (p *program) address() string {
	if p.url == nil {
		return ""
	}
	return p.url()
}

// webhooks makes the webhooks of a configuration. Those whose URL is a secret have it in a file.
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
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("alerting.webhooks: %w", err)
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

// findingsSource is the name under which the hub knows findings.
const findingsSource = "findings"

// tellFindings says which findings live, all of them, to whoever is told of alerts. Those of the severity info are for
// who looks.
func tellFindings(hub *notify.Hub) func(live []analysis.Finding) {
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

// findingPage is where the page shows a finding.
func findingPage(f analysis.Finding) string {
	view := url.Values{"page": {"findings"}}
	if f.Workload != "" {
		view.Set("w", f.Workload)
	}
	return "/?" + view.Encode()
}

// findingAlert is a finding as an alert. Its severity may change: the label is that with which it began.
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
