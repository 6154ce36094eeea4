// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"os"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/text"
)

// checkWebConfig validates the file at the start and reports whether it enables TLS. The toolkit reads it again for each
// connection, so that certificates and passwords can be changed while the program runs.
func checkWebConfig(path string) (tls bool, err error) {
	if path == "" {
		return false, nil
	}
	if err := web.Validate(path); err != nil {
		return false, fmt.Errorf("reading the web configuration %s: %w", path, text.Remedy(err, "leave --web.config-file out"))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("reading the web configuration: %w", err)
	}
	var sections struct {
		TLS map[string]any `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(data, &sections); err != nil {
		return false, fmt.Errorf("reading the web configuration %s: %w", path, err)
	}
	return len(sections.TLS) > 0, nil
}
