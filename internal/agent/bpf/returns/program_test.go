// SPDX-License-Identifier: Apache-2.0

package returns

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/executable/executabletest"
)

// Programs that a probe of a return could end or break are known by their symbols.
func TestRisk(t *testing.T) {
	for source, want := range map[string]string{
		`int main(void) { return 0; }`: "",
		`#include <ucontext.h>
		int main(void) { ucontext_t a, b; return swapcontext(&a, &b); }`: "coroutines",
		`#include <signal.h>
		int main(void) { return sigaltstack(0, 0); }`: "signals on another stack",
		`#include <pthread.h>
		int main(void) { pthread_exit(0); }`: "end a thread within",
		`extern "C" int puts(const char *);
		int main(int n, char **) { try { if (n) throw n; } catch (int) { puts("caught"); } return 0; }`: "exceptions of C++",
	} {
		name := filepath.Join(t.TempDir(), "program")
		language, libraries := "c", []string(nil)
		if want == "exceptions of C++" {
			language, libraries = "c++", []string{"-lstdc++"}
		}
		compiler := exec.Command("gcc", append([]string{"-x", language, "-o", name, "-"}, libraries...)...)
		compiler.Stdin = strings.NewReader(source)
		if out, err := compiler.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, program := executabletest.Open(t, name)
		if risk, err := Risk(program); err != nil || !strings.Contains(risk, want) || (risk == "") != (want == "") {
			t.Errorf("%q, %v, want %q", risk, err, want)
		}
		if reason := RefuseProgram(program); reason != "" {
			t.Error(reason)
		}
	}
}

// Go's runtime ends a program whose return addresses are foreign. Functions that use their return address are refused by name.
func TestRefused(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, program := executabletest.Open(t, own)
	if reason := RefuseProgram(program); !strings.Contains(reason, "Go program") {
		t.Errorf("%q", reason)
	}
	for name, want := range map[string]bool{"setjmp": true, "dlsym": true, "dlopen@@GLIBC_2.34": true, "setjmps": false, "main": false} {
		if got := RefuseFunction(name); (got != "") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
