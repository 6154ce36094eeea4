// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"debug/elf"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/lib/symbols"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read/debuginfod"
	"github.com/teescope/teescope/internal/run/profile/read/names"
)

// stripped compiles a program with a function, and returns its build ID, the function's offset in the file, and the paths of
// the program without symbols and of its debug file.
func stripped(t *testing.T) (id string, offset uint64, program, debug string) {
	t.Helper()
	dir := t.TempDir()
	source, whole := filepath.Join(dir, "p.c"), filepath.Join(dir, "whole")
	program, debug = filepath.Join(dir, "program"), filepath.Join(dir, "program.debug")
	code := "__attribute__((noinline)) static int wanted(int n) { __asm__ volatile(\"\"); return n + 1; }\nint main(int n, char **v) { return wanted(n); }\n"
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"gcc", "-g", "-O1", "-Wl,--build-id=sha1", "-o", whole, source},
		{"objcopy", "--only-keep-debug", whole, debug},
		{"objcopy", "--strip-all", whole, program},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	e, err := elf.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	notes, err := e.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	all, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		text := e.Sections[s.Section%elf.SectionIndex(len(e.Sections))]
		if s.Name == "wanted" {
			offset = s.Value - text.Addr + text.Offset
		}
	}
	return symbols.BuildID(notes, e.ByteOrder), offset, program, debug
}

// A profile whose recorder had no symbols gets its names later: from a server of debug files, by the build ID alone.
func TestNamesAreFoundLater(t *testing.T) {
	id, offset, program, debug := stripped(t)
	files := map[string]string{"/buildid/" + id + "/executable": program, "/buildid/" + id + "/debuginfo": debug}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := files[r.URL.Path]; name != "" {
			http.ServeFile(w, r, name)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	const start = 0x7f0000000000
	m := &pprof.Mapping{ID: 1, Start: start, Limit: start + 1<<20, File: "/no/such/program", BuildID: id}
	unknown := &pprof.Mapping{ID: 2, Start: 2 * start, Limit: 2*start + 1<<20, File: "/no/such/other", BuildID: strings.Repeat("ab", 20)}
	locations := []*pprof.Location{
		{ID: 1, Mapping: m, Address: start + offset + 1}, {ID: 2, Mapping: unknown, Address: 2*start + offset + 1},
		{ID: 3, Mapping: m, Address: start + offset + 2, Line: []pprof.Line{{Function: &pprof.Function{ID: 1, Name: "known"}}}},
	}
	p := &pprof.Profile{
		SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}}, Mapping: []*pprof.Mapping{m, unknown}, Location: locations,
		Function: []*pprof.Function{locations[2].Line[0].Function},
	}
	for _, l := range locations {
		p.Sample = append(p.Sample, &pprof.Sample{Location: []*pprof.Location{l}, Value: []int64{1}})
	}
	var data bytes.Buffer
	if err := p.Write(&data); err != nil {
		t.Fatal(err)
	}
	functions := func(finder *names.Finder) string {
		t.Helper()
		read, err := Read(bytes.NewReader(data.Bytes()), Options{Names: finder}, profile.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range read.Frames {
			all = append(all, f.Function)
		}
		return strings.Join(all, ",")
	}
	client, err := debuginfod.New([]string{server.URL}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	finder := &names.Finder{Root: t.TempDir()}
	if got := functions(finder); got != ",,known" {
		t.Errorf("without a server the functions are %q", got)
	}
	finder.Fetch = client.Fetch
	if got := functions(finder); got != "wanted,,known" {
		t.Errorf("the functions are %q", got)
	}
	// A file with another build ID is not taken.
	files["/buildid/"+unknown.BuildID+"/executable"] = program
	if client, err = debuginfod.New([]string{server.URL}, t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	finder.Fetch = client.Fetch
	if got := functions(finder); got != "wanted,,known" {
		t.Errorf("with a file of another build ID the functions are %q", got)
	}
}
