// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"
)

// A scrape gets the histograms that the database stores as one series as one line each.
func TestPackedHistograms(t *testing.T) {
	const agent = "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n# TYPE other histogram\nother_bucket{le=\"+Inf\"} 3\nother_sum 4\nother_count 3\n# EOF\n"
	want := strings.Replace(agent, "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n", "h 3 # {le=\"1,+Inf\",n=\"2,3\"} 4\n", 1)
	both := (*Agent)(nil).With(nil, func(family string) bool { return family == "h" })
	var out strings.Builder
	if err := merge(&out, []byte(agent), nil, both.packed); err != nil || out.String() != want {
		t.Errorf("%v\n%q, want\n%q", err, out.String(), want)
	}
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ name, first, second, want string }{
		{
			"families that both have stay together",
			"# HELP a x\n# TYPE a gauge\na 1\n# TYPE b counter\n# HELP b y\nb_total{p=\"#\"} 2\n# TYPE c gauge\nc 3\n# EOF\n",
			"# TYPE b counter\n# HELP b y\nb_total 4\n# TYPE d gauge\nd 5\n# EOF\n",
			"# HELP a x\n# TYPE a gauge\na 1\n# TYPE b counter\n# HELP b y\nb_total{p=\"#\"} 2\nb_total 4\n# TYPE c gauge\nc 3\n# TYPE d gauge\nd 5\n# EOF\n",
		},
		{"the text format has no end", "# TYPE a gauge\na 1\n", "# TYPE b gauge\nb 1\n", "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n"},
		{"nothing from the agent", "", "# TYPE b gauge\nb 1\n# EOF\n", "# TYPE b gauge\nb 1\n# EOF\n"},
		{"a torn text", "# TYPE", "a 1\n", "# TYPEa 1\n"},
	} {
		var out strings.Builder
		if err := merge(&out, []byte(tt.first), []byte(tt.second), unchanged); err != nil || out.String() != tt.want {
			t.Errorf("%s: %v\n%q, want\n%q", tt.name, err, out.String(), tt.want)
		}
	}
}
