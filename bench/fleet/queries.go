// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// expression is a query in the definition of a panel: a string after "expr:", perhaps on the next line.
var expression = regexp.MustCompile(`expr:\s*("(?:[^"\\]|\\.)*")`)

// readQueries finds the queries of all panels, and fills their placeholders as web/src/lib/promql.ts does for
// all workloads and the last minutes.
func readQueries(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.ts"))
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("$workloads", `workload!="idle"`, "$containers", "", "$rate", "rate", "$window", "20s", "$interval", "5s")
	var all []string
	for _, file := range files {
		if strings.HasSuffix(file, ".test.ts") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range expression.FindAllSubmatch(source, -1) {
			text, err := strconv.Unquote(string(m[1]))
			if err != nil {
				return nil, fmt.Errorf("reading %s: %s: %w", file, m[1], err)
			}
			all = append(all, fill.Replace(text))
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return nil, fmt.Errorf("no queries in %s", dir)
	}
	return all, nil
}
