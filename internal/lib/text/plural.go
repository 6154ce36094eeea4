// SPDX-License-Identifier: Apache-2.0

package text

import "strconv"

// Plural returns a number with its noun: "1 run", "2 runs", "0 runs". A name of a thing in several words works too: "more run".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
