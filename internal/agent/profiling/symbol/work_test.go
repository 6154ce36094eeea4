// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// However many and large the sources of one workload are, another one has its equal share, and all together keep the limit.
func TestWorkloadsShareTheReadingOfNames(t *testing.T) {
	var sources []source
	names := make([]Name, 300)
	read := map[string]uint64{}
	add := func(workload string, cost uint64) {
		i := len(sources)
		sources = append(sources, source{[]int{i}, workload, cost, func() { read[workload] += cost; names[i].Function = workload }})
	}
	for range 100 {
		add("many", 10)
	}
	add("large", 1<<40)
	add("large", 300)
	for range 5 {
		add("small", 66)
	}
	readInTurn(sources, 1000, names)
	if read["small"] != 330 || read["large"] != 300 || read["many"] < 330 || read["small"]+read["large"]+read["many"] > 1000 {
		t.Errorf("%v bytes are read of 1000", read)
	}
	unread := 0
	for _, n := range names {
		if n.Reason == costly {
			unread++
		}
		if n.Reason == costly == (n.Function != "") && n != (Name{}) {
			t.Errorf("%+v", n)
		}
	}
	if want := len(sources) - int(read["many"]/10) - 6; unread != want {
		t.Errorf("%d sources are not read, want %d", unread, want)
	}
	readInTurn([]source{{nil, "", 1 << 50, func() { read["all"]++ }}, {nil, "", 1 << 50, func() { read["all"]++ }}}, 0, nil)
	if read["all"] != 2 {
		t.Errorf("without a limit, %d sources are read", read["all"])
	}
}

// A process makes its perf map as large as it likes, also without using a disk. Files that others need are still read.
func TestALargePerfMapIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jit")
	gcc(t, "-o", path, "testdata/jit.c")
	p := run(t, path)
	table := table(t, "")
	table.Work = 1 << 20
	process := table.Of(sampleOf(t, p.Process.Pid))
	at := Location{process, table.Mapping(process, p.address+5), p.address + 5}
	entry := mapping(t, p.Process.Pid, path)
	own := Location{process, table.Mapping(process, entry), entry}
	if n := table.Resolve([]Location{at, own}); n[0].Function != "generated loop" || n[1].Reason == costly {
		t.Errorf("before, the names are %+v", n)
	}
	if err := os.Truncate(fmt.Sprintf("/tmp/perf-%d.map", p.Process.Pid), 64<<30); err != nil {
		t.Fatal(err)
	}
	if n := table.Resolve([]Location{at, own}); n[0].Reason != costly || n[1].Reason == costly {
		t.Errorf("with a perf map of 64 GiB, the names are %+v", n)
	}
}
