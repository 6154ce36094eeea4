// SPDX-License-Identifier: Apache-2.0

package returns

import (
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/agent/executable"
)

// RefuseProgram returns why no return of a program may be probed, or "".
func RefuseProgram(program *executable.Program) string {
	if program.IsGo() {
		return "it is a Go program, which Go's runtime ends when it finds a return address of the kernel"
	}
	return ""
}

// twice are functions that save their return address for later or find their caller by it.
var twice = []string{
	"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "savectx", "getcontext", "__getcontext", "swapcontext", "__swapcontext",
	"jump_fcontext", "dlopen", "dlmopen", "dlsym", "dlvsym",
}

// RefuseFunction returns why the return of a function may not be probed, by its name, or "".
func RefuseFunction(name string) string {
	plain, _, _ := strings.Cut(name, "@") // a version may follow
	if slices.Contains(twice, plain) {
		return name + " uses its return address otherwise than to return, so a probe of its return would end the program"
	}
	return ""
}

// leaving are symbols of programs that leave functions otherwise than by returning from them one after the other, by what they do.
// The kernel keeps the return addresses that it has replaced in the order of the calls. An exception that meets a replaced one ends
// the program. After a change of the stack, functions return to the callers of others.
var leaving = []struct {
	names []string
	what  string
}{
	{[]string{"__gxx_personality_v0", "__cxa_throw", "__cxa_begin_catch"}, "it has exceptions of C++: one that passes through a function whose return is probed ends the program"},
	{[]string{"rust_eh_personality"}, "it is a Rust program: a panic that passes through a function whose return is probed ends it, also where it is caught"},
	{[]string{"makecontext", "swapcontext", "setcontext", "jump_fcontext", "make_fcontext"}, "it changes its stack, as coroutines do: a change within a function whose return is probed breaks the program"},
	{[]string{"sigaltstack"}, "it can have handlers of signals on another stack: a function whose return is probed and that is called in such a handler breaks the program"},
	{[]string{"pthread_exit", "pthread_cancel", "thrd_exit"}, "it can end a thread within a function: then its cleanup handlers further out do not run if the function's return is probed"},
}

// Risk returns why probing returns of a program could end or break it, or "". It depends on the function whether that can happen.
func Risk(program *executable.Program) (string, error) {
	for _, l := range leaving {
		if name, err := executable.Mentions(program, l.names...); err != nil || name != "" {
			return l.what, err
		}
	}
	return "", nil
}
