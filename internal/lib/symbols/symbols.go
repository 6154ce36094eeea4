// SPDX-License-Identifier: Apache-2.0

// Package symbols reads names of functions: it demangles them, and reads the lists of the kernel, of just-in-time compilers
// and of Go's linker. It also reads the build ID, which identifies the file of the names. The files may belong to a hostile
// program, so the work has bounds. The package opens no files.
package symbols

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Longest is the number of bytes of a name that are read. Names of C++ can be this long.
const Longest = 4096

// longestName is the number of bytes of a demangled name, as a power of two.
const longestName = 12

// Readable makes the name of a function of C++ or Rust readable: without parameters, which make tables unreadable.
// Other names, such as those of C and Go, stay unchanged.
func Readable(name string) (text string) {
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
