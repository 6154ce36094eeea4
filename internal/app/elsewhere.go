// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis/query/promapi"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/server/elsewhere"
	"github.com/teescope/teescope/internal/server/findings"
	"github.com/teescope/teescope/internal/server/fleet"
)

// elsewhereWithin is the time limit of a request to another database. The page waits for 20 s.
const elsewhereWithin = 20 * time.Second

// elsewhere adds the page and the analysis of another database. This process stores nothing: findings, silences and their
// history last until it ends, and rules and alerts are those of the database.
func (p *program) elsewhere() error {
	c := p.Config
	server, err := remote.New("--query.url", c.Query.URL.String(), remote.Access{HTTPConfigFile: c.Query.ConfigFile}, elsewhereWithin)
	if err != nil {
		return fmt.Errorf("query.url: %w", err)
	}
	source, err := promapi.New(server)
	if err != nil {
		return fmt.Errorf("query.url: %w", err)
	}
	p.page(elsewhere.New(server))
	p.web.Fleet = fleet.New(fleet.Options{Source: source})
	if !c.Analysis.Enabled {
		return nil
	}
	return p.analyse(findings.Options{Source: source, Name: server.Target()})
}
