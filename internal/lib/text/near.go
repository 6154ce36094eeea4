// SPDX-License-Identifier: Apache-2.0

package text

// Nearest returns the candidate that s is most likely a misspelling of, or "". Less than half of s may differ.
func Nearest(s string, candidates []string) string {
	best, bestDistance := "", min(len(s)/3+2, (len(s)+1)/2)
	for _, c := range candidates {
		if d := distance(s, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions, substitutions and swaps of neighbours between a and b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
