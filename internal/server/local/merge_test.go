// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"
)

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
		if err := merge(&out, []byte(tt.first), []byte(tt.second)); err != nil || out.String() != tt.want {
			t.Errorf("%s: %v\n%q, want\n%q", tt.name, err, out.String(), tt.want)
		}
	}
}
