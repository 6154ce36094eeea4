// SPDX-License-Identifier: Apache-2.0

// Package lazy makes values of packages when they are first used. The agent, the server and the supervisor are one program, and each
// process would otherwise keep what only another command needs.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles a regular expression at its first call. It panics there if the expression is invalid. A counted
// repetition such as [a-z]{0,200} takes some 100 kB.
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
