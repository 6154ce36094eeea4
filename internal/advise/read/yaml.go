// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// occlumYAML finds the section that each Occlum.yaml has.
var occlumYAML = lazy.Regexp(`(?m)^resource_limits:`)

// grown is a size of Occlum.yaml: at the start, and with EDMM at most.
type grown struct{ Init, Max string }

// UnmarshalYAML reads one size, or a size for the start and one with EDMM.
func (g *grown) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		g.Init = node.Value
		return nil
	}
	type plain grown
	return node.Decode((*plain)(g))
}

// parseYAML reads Occlum.yaml. Without EDMM Occlum ignores the larger sizes (its template says so). EDMM can also be switched
// on when Occlum builds, which the file does not say.
func parseYAML(data []byte) (Config, error) {
	var file struct {
		Resources struct {
			User    grown  `yaml:"user_space_size"`
			Heap    grown  `yaml:"kernel_space_heap_size"`
			Threads uint64 `yaml:"num_of_cpus"`
		} `yaml:"resource_limits"`
		Metadata struct {
			Debuggable bool `yaml:"debuggable"`
		} `yaml:"metadata"`
		Feature struct {
			EDMM bool `yaml:"enable_edmm"`
		} `yaml:"feature"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return Config{}, fmt.Errorf("it is not an Occlum.yaml: %q", err.Error())
	}
	memory := func(g grown) (uint64, bool) {
		if file.Feature.EDMM && g.Max != "" {
			return sizeOf(g.Max)
		}
		return sizeOf(g.Init)
	}
	user, ok1 := memory(file.Resources.User)
	heap, ok2 := memory(file.Resources.Heap)
	if !ok1 || !ok2 {
		return Config{}, fmt.Errorf("a size of resource_limits has not the form \"300MB\"")
	}
	return Config{
		Runtime: "Occlum", Memory: user + heap, Key: "resource_limits, user space and kernel heap",
		Threads: file.Resources.Threads, Debug: file.Metadata.Debuggable,
	}, nil
}
