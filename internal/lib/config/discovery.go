// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// Discovery is where the server looks for agents.
type Discovery struct {
	Kind  string // file, http, dns or kubernetes
	Where string
}

// String returns a discovery as a user writes it.
func (d Discovery) String() string { return d.Kind + "=" + d.Where }

// Kubernetes selects what the server reads from Kubernetes' API in addition to agents.
type Kubernetes struct {
	Pods   bool
	Labels []string // of pods, which become series
}

// maxDiscoveries is the maximum number of them.
const maxDiscoveries = 20

// discoveryKinds are the kinds with the check of what follows them.
func discoveryKinds() map[string]func(string) error {
	return map[string]func(string) error{"file": checkPattern, "http": checkSource, "dns": checkName, "kubernetes": checkPods}
}

func discoveryKeys() []*key {
	return []*key{discoveryKey(), discoveryConfigFileKey(), kubernetesPodsKey(), kubernetesPodLabelsKey()}
}

func discoveryKey() *key {
	return &key{
		name: "discovery", commands: Up | Server, kind: "kind=where", sep: ";",
		usage: "also find agents in file=PATTERN, at http=URL, in dns=NAME:PORT, in kubernetes=NAMESPACE/SELECTOR; may be repeated",
		def:   none,
		set: func(c *Config, values []string) error {
			c.Discovery = nil
			if len(values) > maxDiscoveries {
				return fmt.Errorf("%d values; the maximum is %d", len(values), maxDiscoveries)
			}
			return inEach(values, func(s string) error {
				kind, where, _ := strings.Cut(s, "=")
				check := discoveryKinds()[kind]
				if check == nil || where == "" {
					return fmt.Errorf("%q is not file=PATTERN, http=URL, dns=NAME:PORT or kubernetes=NAMESPACE/SELECTOR", text.WithoutPassword(s))
				}
				one := Discovery{Kind: kind, Where: where}
				if slices.Contains(c.Discovery, one) {
					return fmt.Errorf("%q is listed twice", text.WithoutPassword(s))
				}
				c.Discovery = append(c.Discovery, one)
				return check(where)
			})
		},
		get: func(c *Config) []string {
			var texts []string
			for _, d := range c.Discovery {
				texts = append(texts, d.String())
			}
			return texts
		},
	}
}

func discoveryConfigFileKey() *key {
	return fileKey("discovery-config-file", "TLS and credentials for servers of discovery, in the format of Prometheus' http_config",
		func(c *Config) *string { return &c.DiscoveryConfigFile })
}

func checkPattern(s string) error {
	if _, err := filepath.Match(s, ""); err != nil {
		return fmt.Errorf("%q is not a pattern of file names: %w", s, err)
	}
	if !filepath.IsAbs(s) {
		return fmt.Errorf("file=%s: use the whole name, which begins with /", s)
	}
	return nil
}

func checkSource(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%q is not an http or https URL", text.WithoutPassword(s))
	case u.User != nil:
		return fmt.Errorf("%q: a password in a URL ends up in logs; put it into discovery-config-file", text.WithoutPassword(s))
	}
	return nil
}

func checkName(s string) error {
	name := strings.TrimPrefix(s, secure)
	if strings.HasPrefix(name, "_") {
		if strings.ContainsAny(name, ":/ ") {
			return fmt.Errorf("%q: SRV records have the port; use dns=_SERVICE._PROTO.NAME", s)
		}
		return nil
	}
	return checkHostPort(name)
}

// namespaceOf matches the name of a namespace, and a selector of labels without its grammar, which the API server checks.
var namespaceOf = lazy.Regexp(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(/.{1,1000})?$`)

func checkPods(s string) error {
	if !namespaceOf().MatchString(s) {
		return fmt.Errorf("%q is not NAMESPACE/SELECTOR: use for example kubernetes=observe/app.kubernetes.io/component=agent", s)
	}
	return nil
}

func kubernetesPodsKey() *key {
	return &key{
		name: "kubernetes.pods", commands: Up | Server, kind: "bool",
		usage: "also read owners of pods and their EPC requests and limits from Kubernetes' API",
		def:   constant("false"),
		set: one(func(c *Config, s string) (err error) {
			c.Kubernetes.Pods, err = parseBool(s)
			return err
		}),
		get: func(c *Config) []string { return []string{strconv.FormatBool(c.Kubernetes.Pods)} },
	}
}

// maxPodLabels is the maximum number of labels of a pod that are exported.
const maxPodLabels = 10

// podLabel matches the name of a label of Kubernetes.
var podLabel = lazy.Regexp(`^([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

func kubernetesPodLabelsKey() *key {
	return &key{
		name: "kubernetes.pod-labels", commands: Up | Server, kind: "name,...", sep: ",", flagSep: true,
		usage: "labels of pods that become series, with kubernetes.pods",
		def:   none,
		set: func(c *Config, values []string) error {
			c.Kubernetes.Labels = nil
			if len(values) > maxPodLabels {
				return fmt.Errorf("%d names; the maximum is %d", len(values), maxPodLabels)
			}
			return inEach(values, func(s string) error {
				if !podLabel().MatchString(s) {
					return fmt.Errorf("%q is not the name of a label: use for example app.kubernetes.io/name", s)
				}
				if !slices.Contains(c.Kubernetes.Labels, s) {
					c.Kubernetes.Labels = append(c.Kubernetes.Labels, s)
				}
				return nil
			})
		},
		get: func(c *Config) []string { return c.Kubernetes.Labels },
	}
}
