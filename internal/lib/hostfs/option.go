// SPDX-License-Identifier: Apache-2.0

package hostfs

import "strings"

// Option returns the value of an option in the arguments of a program, which one or two dashes precede, and a space or "=" follows.
func Option(args []string, name string) string {
	for i, arg := range args {
		bare := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if bare == arg {
			continue
		}
		if value, ok := strings.CutPrefix(bare, name+"="); ok {
			return value
		}
		if bare == name && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}
