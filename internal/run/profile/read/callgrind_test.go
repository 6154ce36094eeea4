// SPDX-License-Identifier: Apache-2.0

package read

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
)

// callgrindFile has the example of the manual's section "Extended Example", with names abbreviated and two events. By hand:
// main itself costs 20 and 400, func1 100 and 300, func2 700.
const callgrindFile = `# callgrind format
version: 1
creator: callgrind-3.19.0
positions: line
events: Ir Dr

fl=(1) file1.c
fn=(1) main
16 20 1
cfn=(2) func1
calls=1 50
16 400 9
cfi=(2) file2.c
cfn=(3) func2
calls=3 20
16 400 9
+4 400

fn=(2)
51 100 2
cfi=(2)
cfn=(3)
calls=2 20
51 300 9
* 300

fl=(2)
fn=(3)
20 700
totals: 1520 3
`

func selves(t *testing.T, p *profile.Profile) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, r := range p.By("function", 0, profile.Whole{}).Rows {
		if r.Self > 0 {
			all[r.Name] = r.Self
		}
	}
	return all
}

func TestCallgrindByHand(t *testing.T) {
	p, err := Read(strings.NewReader(callgrindFile), Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	got := selves(t, p)
	if len(got) != 3 || got["main"] != 420 || got["func1"] != 400 || got["func2"] != 700 {
		t.Errorf("%v", got)
	}
	if !p.Select("Dr") || p.Total() != 3 {
		t.Errorf("%d of Dr", p.Total())
	}
	for _, broken := range []string{
		"# callgrind format\nevents: Ir\n1 2\n", "# callgrind format\nevents: Ir\nfn=(7)\n", "# callgrind format\nfn=f\n",
		"# callgrind format\nevents: Ir\nfn=f\n1 2 3\n", "# callgrind format\nevents: Ir\nfn=f\n1 -2\n", "# callgrind format\nversion: 1\n",
	} {
		if p, err := Read(strings.NewReader(broken), Options{}, profile.DefaultLimits()); err == nil {
			t.Errorf("%q is %v", broken, p)
		}
	}
}

// TestCallgrindIsThatOfItsOwnTool compares each function with what callgrind_annotate prints.
func TestCallgrindIsThatOfItsOwnTool(t *testing.T) {
	for _, tool := range []string{"valgrind", "callgrind_annotate"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	file := filepath.Join(t.TempDir(), "callgrind.out")
	if out, err := exec.Command("valgrind", "--tool=callgrind", "--callgrind-out-file="+file, "/bin/true").CombinedOutput(); err != nil {
		t.Skipf("valgrind: %v\n%s", err, out)
	}
	out, err := exec.Command("callgrind_annotate", "--threshold=100", "--auto=no", file).Output()
	if err != nil {
		t.Skip("callgrind_annotate:", err)
	}
	want := map[string]int64{}
	row := regexp.MustCompile(`(?m)^\s*([0-9,]+) \([0-9. ]+%\)  (.*)$`)
	for _, m := range row.FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		name := m[2]
		if i := strings.LastIndex(name, " ["); i >= 0 {
			name = name[:i]
		}
		want[name[strings.IndexByte(name, ':')+1:]] += n
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := Read(in, Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	got, compared := selves(t, p), 0
	for name, n := range got {
		if want[name] == 0 || name == "unresolved" {
			continue
		}
		compared++
		if want[name] != n {
			t.Errorf("%s costs %d, callgrind_annotate says %d", name, n, want[name])
		}
	}
	t.Logf("%d of %d functions compared, %d instructions, callgrind_annotate says %d", compared, len(got), p.Total(), want["PROGRAM TOTALS"])
	if compared < 20 || want["PROGRAM TOTALS"] != p.Total() {
		t.Errorf("%d functions compared; %d instructions, callgrind_annotate says %d", compared, p.Total(), want["PROGRAM TOTALS"])
	}
}
