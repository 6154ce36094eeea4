// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
)

// files writes the files of a thread in a simulated /proc.
func files(t testing.TB, proc string, pid, tid int, texts map[string]string) {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid), "task", fmt.Sprint(tid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func statLine(tid int, name, state string, user, system, start int) string {
	return fmt.Sprintf("%d (%s) %s 1 1 1 0 -1 4194560 637 0 0 0 %d %d 0 0 20 0 13 0 %d 54640640 5222\n", tid, name, state, user, system, start)
}

func read(t *testing.T, r *Reader, name string) *List {
	t.Helper()
	l, known, err := r.Read(t.Context(), name)
	if err != nil || !known {
		t.Fatalf("%s: known %v, error %v", name, known, err)
	}
	return l
}

// outside is a machine without enclaves.
func outside([]int) (*transition.Report, error) { return nil, nil }

func workload(name string, pids ...int) Processes {
	return func(asked string) ([]int, bool) { return pids, asked == name }
}

func TestThreadsOfAFakeMachine(t *testing.T) {
	proc := t.TempDir()
	files(t, proc, 7, 7, map[string]string{
		"stat": statLine(7, "a) R (b", "S", 150, 50, 700), "schedstat": "2500000000 125000000 9\n",
		"status": "Name:\ta) R (b\nvoluntary_ctxt_switches:\t10\nnonvoluntary_ctxt_switches:\t3\n", "wchan": "poll_schedule_timeout.constprop.0",
	})
	files(t, proc, 7, 8, map[string]string{ // a kernel with fewer files
		"stat": statLine(8, "b", "R", 150, 50, 800), "schedstat": "0 0 0\n", "wchan": "0",
	})
	files(t, proc, 9, 9, map[string]string{"stat": "9 (ends"})
	l := read(t, New(proc, workload("w", 7, 9, 11), outside), "w")
	if l.Workload != "w" || l.Processes != 3 || l.Threads != 3 || l.Compared != 3 || len(l.List) != 2 || time.Since(l.Time) > time.Minute {
		t.Fatalf("the list is %+v", l)
	}
	byTID := map[int]Thread{}
	for _, one := range l.List {
		byTID[one.TID] = one
	}
	one, other := byTID[7], byTID[8]
	if one.PID != 7 || one.Name != "a) R (b" || one.State != "S" || one.Started != 7 || one.CPU != 2.5 || *one.Waited != 0.125 ||
		*one.Voluntary != 10 || *one.Involuntary != 3 || one.WaitsIn != "poll_schedule_timeout" {
		t.Errorf("the first thread is %+v", one)
	}
	if other.CPU != 2 || other.Waited != nil || other.Voluntary != nil || other.WaitsIn != "" {
		t.Errorf("the second thread is %+v, want missing values to be absent", other)
	}
}

// Transitions belong to a thread with the same ID and start. What is known is shown also if a part of it could not be read.
func TestTransitionsOfThreads(t *testing.T) {
	proc := t.TempDir()
	for tid := 7; tid <= 9; tid++ {
		files(t, proc, 7, tid, map[string]string{"stat": statLine(tid, "a", "S", 0, 0, 700+tid)})
	}
	aexs := uint64(3)
	one, old := transition.Counts{Enters: 10, Exits: 9, AEXs: &aexs, Source: "gramine_counters"}, transition.Counts{Enters: 5}
	pairs := []transition.Pair{{Kind: transition.OCall, From: "read", To: "read", N: 4, Of: 4}}
	r := New(proc, workload("w", 7, 11), func(pids []int) (*transition.Report, error) {
		if !slices.Equal(pids, []int{7, 11}) {
			t.Errorf("asked for the transitions of %v", pids)
		}
		return &transition.Report{
			Processes: []transition.Process{{PID: 11, Counts: old}, {PID: 7, Counts: one}}, Pairs: pairs, LeftOut: 2,
			Threads: map[transition.Thread]transition.Counts{
				{TID: 7, Started: 7070 * time.Millisecond}: one,
				{TID: 8, Started: 7070 * time.Millisecond}: old, // an earlier thread with that ID
			},
		}, errors.New("a part is missing")
	})
	l := read(t, r, "w")
	if len(l.List) != 3 || l.List[0].Transitions == nil || *l.List[0].Transitions != one || l.List[1].Transitions != nil || l.List[2].Transitions != nil {
		t.Errorf("the threads are %+v", l.List)
	}
	if !slices.Equal(l.OfProcesses, []transition.Process{{PID: 7, Counts: one}, {PID: 11, Counts: old}}) || len(l.Pairs) != 1 || l.PairsLeftOut != 2 {
		t.Errorf("the list is %+v", l)
	}
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"process_crossings":[{"pid":7,"eenter":10,"eexit":9,"aex":3,"source":"gramine_counters"},{"pid":11,"eenter":5,"eexit":0,"source":""}]`,
		`"pairs":[{"kind":"ocall","from":"read","to":"read","n":4,"of":4,"mean_seconds":0,"under_1_5_10_20_us":[0,0,0,0]}],"pairs_left_out":2`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the answer is %s, want %s in it", data, want)
		}
	}
}

// A thread names itself, with any bytes.
func TestNamesAreText(t *testing.T) {
	proc := t.TempDir()
	files(t, proc, 7, 7, map[string]string{"stat": statLine(7, "a (b) c\n\xff", "S", 0, 0, 100)})
	if l := read(t, New(proc, workload("w", 7), outside), "w"); len(l.List) != 1 || l.List[0].Name != "a (b) c\uFFFD\uFFFD" {
		t.Errorf("the list is %+v", l)
	}
}

// With too many threads, those with the most CPU time are listed, regardless of their order.
func TestTheBusiestOfManyThreads(t *testing.T) {
	proc := t.TempDir()
	const all = maxThreads + 50
	for i := range all {
		tid := 1000 + i
		files(t, proc, 1000, tid, map[string]string{
			"stat": statLine(tid, "x", "S", 0, 0, 1), "schedstat": fmt.Sprintf("%d 0 1\n", (i*7919)%all),
		})
	}
	l := read(t, New(proc, workload("w", 1000), outside), "w")
	if l.Threads != all || l.Compared != all || len(l.List) != maxThreads {
		t.Fatalf("%d threads, %d compared, %d listed", l.Threads, l.Compared, len(l.List))
	}
	for _, one := range l.List {
		if one.CPU < float64(all-maxThreads)/1e9 {
			t.Errorf("the thread %d with %v s is listed, and busier ones are not", one.TID, one.CPU)
		}
	}
}

func TestSoManyThreadsThatNotAllAreCompared(t *testing.T) {
	proc := t.TempDir()
	for i := range maxCompared + 3 {
		if err := os.MkdirAll(filepath.Join(proc, "5/task", fmt.Sprint(10+i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := read(t, New(proc, workload("w", 5, 5), outside), "w")
	if l.Threads != 2*(maxCompared+3) || l.Compared != maxCompared || len(l.List) != 0 {
		t.Errorf("%d threads, %d compared, %d listed", l.Threads, l.Compared, len(l.List))
	}
}

// The real /proc, compared with the thread's own values.
func TestARealThread(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the name would stay with a thread of others
	if err := os.WriteFile("/proc/thread-self/comm", []byte("threads) test"), 0o644); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
	}
	time.Sleep(time.Millisecond)
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &before); err != nil {
		t.Fatal(err)
	}
	l := read(t, New("/proc", workload("own", os.Getpid()), outside), "own")
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &after); err != nil {
		t.Fatal(err)
	}
	for _, one := range l.List {
		if one.TID != unix.Gettid() {
			continue
		}
		cpu := func(r unix.Rusage) float64 { return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9 }
		const slack = 0.01 // /proc has the run time as of the last clock tick
		if one.Name != "threads) test" || one.State != "R" || one.WaitsIn != "" || one.CPU < cpu(before)-slack || one.CPU > cpu(after)+slack ||
			float64(*one.Voluntary) < float64(before.Nvcsw) || float64(*one.Voluntary) > float64(after.Nvcsw) ||
			float64(*one.Involuntary) < float64(before.Nivcsw) || float64(*one.Involuntary) > float64(after.Nivcsw) {
			t.Errorf("the thread is %+v, and used %v to %v s", one, cpu(before), cpu(after))
		}
		return
	}
	t.Errorf("this thread is not in %+v", l)
}

func TestServe(t *testing.T) {
	r := New("/proc", workload("own\n", os.Getpid()), outside)
	for _, tt := range []struct {
		query, want string
		status      int
	}{
		{"", "?workload=NAME", 400}, {"?workload=", "?workload=NAME", 400},
		{"?workload=other", `no workload has the name "other" now`, 404},
		{"?workload=own%0a", `"workload":"own\n"`, 200},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "/api/top/threads"+tt.query, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%q: %d %s", tt.query, w.Code, w.Body)
		}
		var l List
		if err := json.Unmarshal(w.Body.Bytes(), &l); tt.status == 200 && (err != nil || len(l.List) == 0) {
			t.Errorf("%q: %v, %+v", tt.query, err, l)
		}
	}
}

// Requests are served one after the other. A disconnected client does not wait.
func TestOneAtATime(t *testing.T) {
	enter, leave := make(chan bool), make(chan bool)
	r := New("/proc", func(string) ([]int, bool) {
		enter <- true
		<-leave
		return nil, true
	}, outside)
	go func() { _, _, _ = r.Read(t.Context(), "first") }()
	<-enter
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := r.Read(ctx, "second"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second reads beside the first: %v", err)
	}
	leave <- true
}

// BenchmarkRead10000 is one answer about a workload of 100 processes with 100 threads each.
func BenchmarkRead10000(b *testing.B) {
	proc := b.TempDir()
	var pids []int
	for pid := 1000; pid < 1_000_000; pid += 10_000 {
		pids = append(pids, pid)
		for tid := pid; tid < pid+100; tid++ {
			files(b, proc, pid, tid, map[string]string{
				"stat": statLine(tid, "worker", "S", 150, 50, 700), "schedstat": "2500000000 125000000 9\n",
				"status": "voluntary_ctxt_switches:\t10\nnonvoluntary_ctxt_switches:\t3\n", "wchan": "poll_schedule_timeout",
			})
		}
	}
	r := New(proc, workload("w", pids...), outside)
	b.ReportAllocs()
	for b.Loop() {
		if l, _, err := r.Read(b.Context(), "w"); err != nil || l.Compared != 10_000 {
			b.Fatalf("%d threads compared, error %v", l.Compared, err)
		}
	}
}
