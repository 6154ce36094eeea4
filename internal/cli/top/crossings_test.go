// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// crossing returns a list of threads of which some cross, as an agent answers.
func crossing(t *testing.T, at time.Time, scale int) *ThreadList {
	t.Helper()
	count := func(n int) string {
		return fmt.Sprintf(`{"eenter":%d,"eexit":%d,"aex":%d,"source":"vdso_breakpoint"}`, n*scale, n*scale, n*scale/10)
	}
	text := fmt.Sprintf(`{"workload":"redis-server","processes":2,"threads":3,"list":[
		{"pid":10,"tid":10,"name":"main","state":"S","started_seconds":1,"cpu_seconds":1,"crossings":%s},
		{"pid":10,"tid":11,"name":"worker","state":"R","started_seconds":2,"cpu_seconds":1,"crossings":%s},
		{"pid":12,"tid":12,"name":"helper","state":"S","started_seconds":2,"cpu_seconds":1}],
		"process_crossings":[{"pid":10,"eenter":%d,"eexit":%d,"source":"sdk_uprobe"}],
		"pairs":[
		{"kind":"ocall","from":"ocall_read","to":"ocall_read","n":4000,"of":4000,"mean_seconds":0.0000021,"advice":"move_in"},
		{"kind":"next_ocall","from":"ocall_read","to":"ocall_read","n":2000,"of":4000,"mean_seconds":0.000004,"advice":"batch"},
		{"kind":"ocall_in_ecall","from":"ecall_main","to":"ocall_read","n":1000,"of":1000,"mean_seconds":0.5},
		{"kind":"new\u001b","from":"a\u001b","to":"b","n":1,"of":1,"mean_seconds":1,"advice":"wait\u0007"}]}`,
		count(100), count(20), 150*scale, 150*scale)
	l, err := parseThreads([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l.Time = at
	return l
}

func TestCrossingsOfThreadsAndPairs(t *testing.T) {
	m := press(t, live(t, ""), "down", "enter", "t")
	m = m.takeThreads("redis-server", crossing(t, recorded, 1), nil)
	if text := plain(m); !strings.Contains(text, "ocall_read") || known(m.threads.rows[0].Enters) {
		t.Errorf("with one list there are rates, or no pairs:\n%s", text)
	}
	m = m.takeThreads("redis-server", crossing(t, recorded.Add(2*time.Second), 3), nil)
	if r := m.threads.rows; r[0].Enters != 100 || r[0].AEXs != 10 || r[1].Exits != 20 || known(r[2].Enters) {
		t.Errorf("the rates are %+v", r)
	}
	if p := m.threads.processes; len(p) != 1 || p[0].Enters != 150 || known(p[0].AEXs) {
		t.Errorf("the rates of processes are %+v", p)
	}
	for _, size := range [][2]int{{80, 24}, {160, 50}} {
		golden(t, fmt.Sprintf("crossings-%dx%d", size[0], size[1]), plain(m.resize(size[0], size[1])))
	}
}

// A source that changes has counted other things.
func TestNoRateAcrossSources(t *testing.T) {
	before, after := crossing(t, recorded, 1), crossing(t, recorded.Add(time.Second), 2)
	after.List[0].Crossings.Source = "sdk_uprobe"
	if r := compareThreads(before, after); known(r[0].Enters) || !known(r[1].Enters) {
		t.Errorf("the rates are %+v", r)
	}
}
