// SPDX-License-Identifier: Apache-2.0

package rulefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A rule that would take too much memory is an error of its file, which names the rule and the limit.
func TestCostlyRulesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ expr, want string }{
		"steps":  {`up[365d:1ms]`, "use a larger step than 1ms"},
		"nested": {`max_over_time(rate(up[5m:1s])[30d:100ms])`, "all subqueries of a query together may need 1000000"},
		"long":   {strings.Repeat("-", 17_000) + "1", "the query has 17008 bytes; the maximum is 16384"},
		"regexp": {`up{job=~"` + strings.Repeat("a", 1000) + `{999}` + strings.Repeat("(b{1000})", 200) + `"}`, "fewer or smaller repetitions"},
		"labels": {strings.Repeat(`label_join(`, 20) + "up" + strings.Repeat(`,"a","","a","a","a")`, 20), "nest fewer of them"},
	} {
		file := filepath.Join(t.TempDir(), "rules.yaml")
		text := fmt.Sprintf("groups:\n- name: g\n  rules:\n  - record: fine\n    expr: up\n  - record: %s\n    expr: %q\n", name, "count("+c.expr+")")
		if name == "steps" {
			text = strings.Replace(text, "count(", "count_over_time(", 1)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read([]string{file}, DefaultStep)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, file+":6: rule \""+name+"\"") && !strings.HasPrefix(got, file+":7: ") {
			t.Errorf("%s: the error names no line: %s", name, got)
		}
	}
}
