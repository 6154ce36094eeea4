// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const number = `(\d{1,3}(?:,\d{3})+)`

var (
	// stated matches a cost in cycles in a text, from 1,000 on.
	stated = regexp.MustCompile(number + `(?: to ` + number + `)? cycles`)
	// share matches a range of cycles with the part of a core that a rate of events takes.
	share = regexp.MustCompile(number + ` to ` + number + ` cycles: ` + number + ` (?:pages )?a second are ([\d.]+) to ([\d.]+) % of a core at 3 GHz`)
)

func parse(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// texts returns all files that state costs, without cost.go, which has the constants and quotes its sources.
func texts(t *testing.T) map[string]string {
	t.Helper()
	const top = "../../../"
	all := make(map[string]string)
	for _, dir := range []string{"README.md", "rules", "docs", "internal", "web/src"} {
		err := filepath.WalkDir(top+dir, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(file, "analysis/cost/cost.go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			switch filepath.Ext(file) {
			case ".md", ".yaml", ".go", ".ts", ".tsx", ".json":
				text, err := os.ReadFile(file)
				all[strings.TrimPrefix(file, top)] = strings.Join(strings.Fields(string(text)), " ") // sentences go over lines
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Every text states a cost of this package: a range, or one end of it.
func TestTextsStateTheseCosts(t *testing.T) {
	costs := []Cycles{OCALL, Exitless, AEX, Paging, Switch, Fault, Syscall, Exception, HostException, Handed, Added}
	ranges, ends := make(map[[2]float64]bool), make(map[float64]bool)
	for _, c := range costs {
		ranges[[2]float64{c.Low, c.High}], ends[c.Low], ends[c.High] = true, true, true
	}
	found := make(map[[2]float64]int)
	for file, text := range texts(t) {
		for _, m := range stated.FindAllStringSubmatch(text, -1) {
			low := parse(t, m[1])
			if m[2] == "" {
				if !ends[low] {
					t.Errorf("%s: %q is not an end of a cost in cost.go", file, m[0])
				}
				continue
			}
			r := [2]float64{low, parse(t, m[2])}
			found[r]++
			if !ranges[r] {
				t.Errorf("%s: %q is not a cost in cost.go", file, m[0])
			}
		}
		for _, m := range share.FindAllStringSubmatch(text, -1) {
			for i, cycles := range m[1:3] {
				percent := 100 * parse(t, m[3]) * parse(t, cycles) / 3e9
				digits := len(m[4+i]) - len(strings.Split(m[4+i], ".")[0])
				unit := math.Pow(10, -float64(max(0, digits-1)))
				if says := parse(t, m[4+i]); math.Abs(says-percent) > unit/2+1e-9 {
					t.Errorf("%s: %q: it is %.2f %%", file, m[0], percent)
				}
			}
		}
	}
	if found[[2]float64{OCALL.Low, OCALL.High}] < 5 {
		t.Errorf("the test finds only %d texts that state the cost of an OCALL", found[[2]float64{OCALL.Low, OCALL.High}])
	}
}
