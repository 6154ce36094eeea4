// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/httpconfig"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of the text of a source.
const (
	maxText   = 16 << 20 // bytes
	maxFiles  = 100
	maxLabels = 20 // of a group
	maxLabel  = 1000
	// maxNodes is the maximum number of values that a text may have. Each takes about 700 bytes while it is read.
	maxNodes = 200_000
)

// group is a target group in the format of Prometheus' file_sd and http_sd.
type group struct {
	Targets []string          `yaml:"targets"`
	Labels  map[string]string `yaml:"labels"`
}

// errNothing reports a text without a list, such as that of a file that is being written. A list without targets is [].
var errNothing = errors.New("it has no list of targets and labels; write [] for no agents")

// nodes returns an upper bound of the number of values in a text. Each value except the first follows one of these
// characters.
func nodes(data []byte) int {
	n := 1
	for _, c := range data {
		switch c {
		case '-', ',', '[', '{':
			n++
		case ':', '?': // a name and a value
			n += 2
		}
	}
	return n
}

// parse reads target groups in YAML or JSON, which is YAML too. Aliases are refused: a few of them can stand for gigabytes.
func parse(data []byte) ([]Target, error) {
	if nodes(data) > maxNodes {
		return nil, fmt.Errorf("it may have more than %d values", maxNodes)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("not a list of targets and labels: %w", err)
	}
	if hasAlias(&root) {
		return nil, errors.New("aliases of YAML are not read")
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil, errNothing
	}
	var groups []group
	if err := root.Decode(&groups); err != nil {
		return nil, fmt.Errorf("not a list of targets and labels: %w", err)
	}
	var all []Target
	for _, g := range groups {
		labels, tls, err := g.labels()
		if err != nil {
			return nil, err
		}
		for _, address := range g.Targets {
			if err := checkAddress(address); err != nil {
				return nil, err
			}
			if all = append(all, Target{Address: address, TLS: tls, Labels: labels}); len(all) > maxTargets {
				return nil, errMany
			}
		}
	}
	return all, nil
}

func hasAlias(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return true
	}
	for _, c := range n.Content {
		if hasAlias(c) {
			return true
		}
	}
	return false
}

// labels checks the labels of a group. Among those that begin with two underscores, only __scheme__ has a meaning here.
func (g *group) labels() (labels map[string]string, tls bool, err error) {
	if len(g.Labels) > maxLabels {
		return nil, false, fmt.Errorf("a group has more than %d labels", maxLabels)
	}
	labels = map[string]string{}
	for name, value := range g.Labels {
		switch {
		case name == model.SchemeLabel && (value == "http" || value == "https"):
			tls = value == "https"
		case name == model.JobLabel:
			return nil, false, errors.New("the label job of an agent is always teescope: remove it")
		case strings.HasPrefix(name, model.ReservedLabelPrefix):
			return nil, false, fmt.Errorf("the label %.100q is not known; __scheme__ may be http or https", name)
		case !model.LegacyValidation.IsValidLabelName(name), !text.IsLabel(value), len(name)+len(value) > maxLabel:
			return nil, false, fmt.Errorf("the label %.100q is invalid or too long", name)
		default:
			labels[name] = value
		}
	}
	return labels, tls, nil
}

// readFiles reads all files that match a pattern. An invalid one fails the source, so that no agent is lost by a mistake.
func readFiles(pattern string) ([]Target, error) {
	names, err := match(pattern)
	if err != nil {
		return nil, err
	}
	var all []Target
	for _, name := range names {
		data, err := inputfile.Read(name, maxText)
		if err != nil {
			return nil, err
		}
		targets, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if all = append(all, targets...); len(all) > maxTargets {
			return nil, errMany
		}
	}
	return all, nil
}

// httpReader returns the function that asks an HTTP server for target groups.
func httpReader(config, address string) (func(context.Context) ([]Target, error), error) {
	c, err := httpconfig.Check(config)
	if err != nil {
		return nil, err
	}
	c.FollowRedirects = false // another server must not get the credentials
	client, err := commonconfig.NewClientFromConfig(c, "discovery")
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]Target, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json")
		answer, err := client.Do(req)
		if err != nil {
			return nil, withoutURL(err)
		}
		defer func() { _ = answer.Body.Close() }() // nothing was written
		if answer.StatusCode != http.StatusOK {
			_, _ = io.CopyN(io.Discard, answer.Body, 4096) // so that the connection can be used again
			return nil, fmt.Errorf("the server answers %s", answer.Status)
		}
		data, err := inputfile.ReadAll(answer.Body, maxText)
		if err != nil {
			return nil, err
		}
		return parse(data)
	}, nil
}
