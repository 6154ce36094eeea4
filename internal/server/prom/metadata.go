// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/server/discovery"
)

// Bounds of the metadata (HELP, TYPE and UNIT) of a target. The scraper keeps it with the names of the families for ten
// scrapes, and for longer while scrapes fail. An agent has about 60 kB.
const (
	metadataLimit      = 1 << 20 // bytes
	agentMetadataLimit = 4 << 20
	familiesLimit      = 10_000
	// metadataEvery is after how many samples of a scrape the metadata is checked.
	metadataEvery = 1000
)

// Labels of a target that are not part of its series. The scraper discards the cache of a target when one of its labels
// has changed.
const (
	numberLabel     = "__teescope_number__"
	generationLabel = "__teescope_generation__"
)

// checkMetadata returns an error when the scraper holds too much metadata of the target.
func (a *limitedAppender) checkMetadata() error {
	if a.metadata == nil {
		return nil
	}
	families := a.metadata.LengthMetadata()
	size := a.metadata.SizeMetadata()
	if families <= familiesLimit && size <= a.mostMetadata {
		for _, m := range a.metadata.ListMetadata() { // The size lacks the names.
			size += len(m.MetricFamily)
		}
	}
	if families <= familiesLimit && size <= a.mostMetadata {
		return nil
	}
	a.all.forget(a.target.GetValue(numberLabel))
	return a.all.refuse(a.key, "metadata", fmt.Errorf(
		"the HELP, TYPE and UNIT texts of its metrics exceed %d families or %d MiB: shorten them at the target", familiesLimit, a.mostMetadata>>20))
}

// report looks at a sample about the scrape and returns its value. Metadata after the last sample is found here, because the
// scraper requests nothing else in between. While scrapes fail, the scraper removes nothing from its cache, and the target
// can still add to it. So the cache is discarded.
func (a *limitedAppender) report(name string, v float64) float64 {
	switch {
	case math.IsNaN(v): // The target is no longer scraped.
	case name == "up" && v == 1:
		if err := a.checkMetadata(); err != nil {
			a.target.Report(a.target.LastScrape(), a.target.LastScrapeDuration(), err)
			return 0
		}
	case name == "up":
		a.down = true
		_ = a.checkMetadata() // The scrape has failed for another reason.
	case name == "scrape_samples_scraped" && a.down && v > 0:
		a.all.forget(a.target.GetValue(numberLabel))
	}
	return v
}

// forget marks the cache of a target to be discarded.
func (b *seriesLimiter) forget(number string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.discard[number] = true
}

// forgotten returns the targets whose cache must be discarded, and starts a new generation of each.
func (b *seriesLimiter) forgotten() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.discard) == 0 {
		return nil
	}
	out := b.discard
	b.discard = map[string]bool{}
	for number := range out {
		b.caches[number]++
	}
	return out
}

// generations copies target groups and sets the generation of each target.
func (b *seriesLimiter) generations(groups map[string][]*targetgroup.Group) map[string][]*targetgroup.Group {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string][]*targetgroup.Group, len(groups))
	for job, list := range groups {
		out[job] = make([]*targetgroup.Group, 0, len(list)) // also without targets, because the scraper keeps the targets of a job that is missing here
		for _, g := range list {
			labels := g.Labels
			if n := b.caches[string(g.Labels[numberLabel])]; n > 0 {
				labels = model.LabelSet{generationLabel: model.LabelValue(strconv.Itoa(n))}.Merge(g.Labels)
			}
			out[job] = append(out[job], &targetgroup.Group{Targets: g.Targets, Labels: labels, Source: g.Source})
		}
	}
	return out
}

// run keeps the limits of targets until ctx ends: it counts their series again when the database has removed some, and
// discards what the scraper has cached for targets that sent too much. Found are the agents of the discovery, which are
// scraped besides groups.
func (b *seriesLimiter) run(
	ctx context.Context, head *tsdb.Head, scraper *scrape.Manager, o Options,
	groups map[string][]*targetgroup.Group, found <-chan []discovery.Target, again func(map[string][]*targetgroup.Group),
) {
	oldest := int64(math.MaxInt64)
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	fixed := groups
	o.Scraped(targetsOf(groups))
	for ctx.Err() == nil {
		if now := head.MinTime(); now != oldest {
			oldest = now
			if err := b.accounts.count(ctx, head); err != nil && ctx.Err() == nil {
				o.Log.Warn("the series of targets are not counted", "err", err)
			}
		}
		if numbers := b.forgotten(); numbers != nil {
			disappear(scraper, numbers)
			again(b.generations(groups))
		}
		select {
		case <-ctx.Done():
		case agents := <-found:
			groups = withFound(fixed, agents, o.TargetsConfig)
			b.known(groups)
			o.Scraped(targetsOf(groups))
			again(b.generations(groups))
		case <-tick.C:
		}
	}
}

// disappear prepares targets for a new generation. To the scraper, they disappear. They are scraped again, so their series
// must not be marked as stale.
func disappear(scraper *scrape.Manager, numbers map[string]bool) {
	for pool, all := range scraper.TargetsActive() {
		var old []*scrape.Target
		for _, target := range all {
			if numbers[target.GetValue(numberLabel)] {
				old = append(old, target)
			}
		}
		scraper.DisableEndOfRunStalenessMarkers(pool, old)
	}
}
