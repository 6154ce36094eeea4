// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/text"
)

// Write prints the configuration as YAML that would give the same configuration. A comment names the origin of each
// value.
func (c *Config) Write(w io.Writer) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{}
	for _, k := range keys() {
		parent, name := root, k.name
		if section, rest, ok := strings.Cut(k.name, "."); ok {
			if sections[section] == nil {
				sections[section] = &yaml.Node{Kind: yaml.MappingNode}
				root.Content = append(root.Content, scalar(section), sections[section])
			}
			parent, name = sections[section], rest
		}
		kn, vn := scalar(name), c.node(k)
		comment := text.Label(c.origins[k.name].String())
		if vn.Kind == yaml.SequenceNode && len(vn.Content) > 0 {
			kn.LineComment = comment
		} else {
			vn.LineComment = comment
		}
		parent.Content = append(parent.Content, kn, vn)
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return enc.Close()
}

func (c *Config) node(k *key) *yaml.Node {
	values := k.get(c)
	if !k.list() {
		return scalar(values[0])
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, scalar(v))
	}
	if len(values) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// scalar quotes a text only where YAML would read the plain text differently. Without a tag, a number stays a number
// and true stays true.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	switch strings.ToLower(s) {
	case "", "null", "~":
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
