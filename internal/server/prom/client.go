// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"net/http"

	commonconfig "github.com/prometheus/common/config"

	"github.com/teescope/teescope/internal/lib/httpconfig"
)

// scrapeClient reads the configuration of the client for scrapes. Redirects are never followed, so that a target cannot
// pass on credentials or name other targets.
func scrapeClient(file string) (commonconfig.HTTPClientConfig, error) {
	c, err := httpconfig.Check(file)
	c.FollowRedirects = false
	return c, err
}

// HTTPClient returns a client that is configured by a file of httpconfig. The name identifies the client in metrics.
func HTTPClient(file, name string) (*http.Client, error) {
	c, err := httpconfig.Read(file)
	if err != nil {
		return nil, err
	}
	return commonconfig.NewClientFromConfig(c, name)
}
