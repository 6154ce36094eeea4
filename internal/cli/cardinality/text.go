// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

// JSON writes everything that was counted.
func (c *Count) JSON(out io.Writer) error {
	return jsonapi.Print(out, c)
}

// Text writes tables with at most this many metrics and labels. 0 is no limit.
func (c *Count) Text(out io.Writer, most int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s: %d series of %s", text.Terminal(c.Target), c.Series, text.Plural(len(c.Metrics), "metric", "metrics"))
	if c.Machines > 1 {
		fmt.Fprintf(w, " from %s", text.Plural(c.Machines, "machine", "machines"))
	}
	fmt.Fprint(w, ".\n")
	if c.Stored != nil {
		fmt.Fprintf(w, "A teescope server stores %d: it keeps each histogram of a workload as one series. Each database adds a few of its own, such as up.\n", *c.Stored)
	}
	if e := c.Expected; e != nil {
		fmt.Fprintf(w, "A machine with %s has about %.0f: %.0f for each workload, as on average now (n=%d).\n", text.Plural(e.Workloads, "workload", "workloads"), e.Series, e.PerWorkload, c.Workloads)
	}
	c.writeMetrics(w, most)
	c.writeLabels(w, most)
	c.writeSettings(w)
	for _, a := range c.Absent {
		fmt.Fprintf(w, "Not counted: %s.\n", text.Terminal(a))
	}
	return w.Flush()
}

func (c *Count) writeMetrics(w io.Writer, most int) {
	fmt.Fprint(w, "\nSERIES\tMETRIC\tLABELS (VALUES)\tSETTINGS\n")
	shown := c.Metrics[:limit(len(c.Metrics), most)]
	rest := c.Series
	for _, m := range shown {
		rest -= m.Series
		labels := labelsOf(m)
		for i, l := range labels {
			labels[i] = text.Terminal(fmt.Sprintf("%s (%d)", l, m.Labels[l]))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", m.Series, text.Terminal(m.Name), strings.Join(labels, ", "), strings.Join(m.Settings, ", "))
	}
	if n := len(c.Metrics) - len(shown); n > 0 {
		fmt.Fprintf(w, "%d\tin %s: --top 0 lists all\n", rest, text.Plural(n, "more metric", "more metrics"))
	}
}

func (c *Count) writeLabels(w io.Writer, most int) {
	fmt.Fprint(w, "\nVALUES\tLABEL\tSERIES OF THE METRICS THAT HAVE IT\n")
	for _, l := range c.Labels[:limit(len(c.Labels), most)] {
		fmt.Fprintf(w, "%d\t%s\t%d\n", l.Values, text.Terminal(l.Name), l.Series)
	}
}

func (c *Count) writeSettings(w io.Writer) {
	if len(c.Settings) == 0 {
		fmt.Fprint(w, "\nNo setting of an agent lowers this number.\n")
		return
	}
	fmt.Fprint(w, "\nSETTING OF AGENTS\tVALUE\tEFFECT\n")
	for _, s := range c.Settings {
		effect := fmt.Sprintf("lowers the number of %d series", s.Series)
		if s.Removes {
			effect = fmt.Sprintf("removes up to %d series", s.Series)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.Value, effect)
	}
}

// limit returns how many of n are shown.
func limit(n, most int) int {
	if most == 0 {
		return n
	}
	return min(n, most)
}
