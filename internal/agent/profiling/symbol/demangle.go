// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// longestName is the number of bytes of a demangled name, as a power of two.
const longestName = 12

// demangle makes the name of a function of C++ or Rust readable: without parameters, which make tables unreadable. A name that
// is none, such as those of C and Go, stays.
func (n *Name) demangle() {
	n.Function = readable(n.System)
}

func readable(name string) (text string) {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") && !strings.HasPrefix(name, "__Z") {
		return name
	}
	defer func() {
		if recover() != nil { // a program chooses its names
			text = name
		}
	}()
	text, err := demangle.ToString(name, demangle.NoParams, demangle.MaxLength(longestName))
	if err != nil {
		return name
	}
	return text
}
