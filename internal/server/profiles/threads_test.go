// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// taken is a sample of the test: a function in which a thread was, seconds after epoch, for some milliseconds.
type taken struct {
	second   float64
	tid      string
	function string
	kernel   bool
	label    profile.Label
	ms       int64
}

// timed is a profile of the first minute of epoch.
func timed(t *testing.T, value string, samples []taken) []byte {
	t.Helper()
	return timedAt(t, epoch, value, samples)
}

func timedAt(t *testing.T, begin time.Time, value string, samples []taken) []byte {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: value, Unit: "nanoseconds"}}, profile.DefaultLimits())
	for _, one := range samples {
		f, err := b.Frame(profile.Frame{Function: one.function, Library: map[bool]string{true: "[kernel.kallsyms]", false: "/bin/app"}[one.kernel], Kernel: one.kernel})
		if err != nil {
			t.Fatal(err)
		}
		labels := []profile.Label{{Key: profile.PID, Value: "7"}, {Key: profile.Thread, Value: one.tid}, {Key: profile.Process, Value: "app"}, one.label}
		at := epoch.Add(time.Duration(one.second * float64(time.Second))).UnixNano()
		if err := b.AddAt(at, []uint32{f}, labels, 1, one.ms*1e6); err != nil {
			t.Fatal(err)
		}
	}
	return encoded(t, b, begin)
}

// TestThreadsShowWhatTheyDid has two threads whose states at each time are known, one with a wait that is longer than a bucket.
func TestThreadsShowWhatTheyDid(t *testing.T) {
	s := filled(t, 0, nil)
	if err := s.add(timed(t, "cpu", []taken{
		{0, "8", "work", false, profile.Label{}, 100}, {0, "8", "do_syscall_64", true, profile.Label{}, 50}, {0.5, "8", "irq", true, profile.Label{}, 20},
		{2, "9", "[in enclave]", false, profile.Label{Key: profile.Enclave, Value: "inside"}, 400},
	})); err != nil {
		t.Fatal(err)
	}
	status, body, _ := get(s, "/api/profiles/threads?start="+at(0)+"&end="+at(1))
	var got threadsAnswer
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	if got.Begin != float64(epoch.Unix()) || got.Width != 0.5 || got.Buckets != 120 || got.LeftOut != 0 || got.Untimed != 0 {
		t.Errorf("%+v", got)
	}
	if want := []string{"user", "system call", "kernel", "in enclave"}; !reflect.DeepEqual(got.States, want) {
		t.Errorf("states %v, want %v", got.States, want)
	}
	if len(got.Threads) != 2 || got.Threads[0].TID != "9" || !reflect.DeepEqual(got.Threads[0].Pieces, [][3]int64{{4, 3, 400e6}}) ||
		!reflect.DeepEqual(got.Threads[1].Pieces, [][3]int64{{0, 0, 100e6}, {0, 1, 50e6}, {1, 2, 20e6}}) {
		t.Errorf("threads: %s", body)
	}
	// The tree of a span has its samples alone, also with a thread.
	for query, want := range map[string]int64{
		"start=" + at(0) + "&end=" + at(1): 570e6, "start=" + fmt.Sprint(epoch.Unix()) + "&end=" + fmt.Sprintf("%.1f", float64(epoch.Unix())+0.5): 150e6,
		"start=" + at(0) + "&end=" + at(1) + "&label=tid:9": 400e6,
	} {
		var tree write.Tree
		status, body, _ := get(s, "/api/profiles/tree?"+query)
		if err := json.Unmarshal([]byte(body), &tree); err != nil || status != 200 || tree.Total != want {
			t.Errorf("%s: %d, total %d, want %d, %v", query, status, tree.Total, want, err)
		}
	}
}

// madeCalls is a profile of the first minute of epoch with system calls of two threads: 64 calls of read a second after epoch, of 1.2 s
// together, 128 of write a second later, of 2 ms, and 192 of write by another thread.
func madeCalls(t *testing.T) []byte {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "calls", Unit: "count"}, {Type: "wall", Unit: "nanoseconds"}}, profile.DefaultLimits())
	for _, one := range []struct {
		second  time.Duration
		tid     string
		call    string
		samples int64
		wall    int64
	}{{1, "8", "read", 1, 1200e6}, {2, "8", "write", 2, 2e6}, {2, "9", "write", 3, 3e6}} {
		f, err := b.Frame(profile.Frame{Function: one.call, Library: profile.CallLibrary})
		if err != nil {
			t.Fatal(err)
		}
		labels := []profile.Label{{Key: profile.PID, Value: "8"}, {Key: profile.Thread, Value: one.tid}, {Key: profile.Workload, Value: "app"}}
		if err := b.AddAt(epoch.Add(one.second*time.Second).UnixNano(), []uint32{f}, labels, one.samples, 64*one.samples, one.wall); err != nil {
			t.Fatal(err)
		}
	}
	p := b.Profile()
	p.Select("calls") // as the agent
	return written(t, p, epoch)
}

// Calls are shown by their number, as the agent records them, or by their time, which ends when they return.
func TestCallsAreShownByNumberAndTime(t *testing.T) {
	s := filled(t, 0, nil)
	if err := s.add(madeCalls(t)); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]struct {
		unit   string
		pieces map[string][][3]int64
		total  int64
	}{
		"":             {"count", map[string][][3]int64{"9": {{4, 1, 192}}, "8": {{2, 0, 64}, {4, 1, 128}}}, 384},
		"&value=calls": {"count", map[string][][3]int64{"9": {{4, 1, 192}}, "8": {{2, 0, 64}, {4, 1, 128}}}, 384},
		"&value=wall":  {"nanoseconds", map[string][][3]int64{"9": {{4, 1, 3e6}}, "8": {{0, 0, 200e6}, {1, 0, 500e6}, {2, 0, 500e6}, {4, 1, 2e6}}}, 1205e6},
	} {
		query := "?event=syscalls&start=" + at(0) + "&end=" + at(1) + value
		var threads threadsAnswer
		_, body, _ := get(s, "/api/profiles/threads"+query)
		if err := json.Unmarshal([]byte(body), &threads); err != nil || threads.Unit != want.unit || !reflect.DeepEqual(threads.States, []string{"read", "write"}) {
			t.Errorf("%q: %s", value, body)
		}
		pieces := map[string][][3]int64{}
		for _, one := range threads.Threads {
			pieces[one.TID] = one.Pieces
		}
		if !reflect.DeepEqual(pieces, want.pieces) {
			t.Errorf("%q: %v, want %v", value, pieces, want.pieces)
		}
		var tree write.Tree
		_, body, _ = get(s, "/api/profiles/tree"+query)
		if err := json.Unmarshal([]byte(body), &tree); err != nil || tree.Total != want.total || tree.Unit != want.unit || tree.Counts != "calls" || tree.Times != "wall" {
			t.Errorf("%q: %s", value, body)
		}
	}
	status, body := open(t, s, "/api/profiles/threads", madeCalls(t), timed(t, "cpu", []taken{{1, "8", "work", false, profile.Label{}, 100}}))
	if status != 200 || !strings.Contains(body, `"states":["user"]`) || !strings.Contains(body, `"unit":"nanoseconds"`) {
		t.Errorf("times and numbers together: %s", body)
	}
}

// The states with the largest values are shown, also if others came first.
func TestTheLargestStatesAreShown(t *testing.T) {
	l := newTimeline(epoch, epoch.Add(time.Minute))
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "calls", Unit: "count"}}, profile.DefaultLimits())
	sum := int64(0)
	for i := range 2 * maxNames {
		f, err := b.Frame(profile.Frame{Function: fmt.Sprint("call", i), Library: profile.CallLibrary})
		if err != nil {
			t.Fatal(err)
		}
		n := int64(1)
		if i == maxNames-1 || i == maxNames/2 {
			n = 1000
		}
		sum += n
		if err := b.AddAt(epoch.UnixNano(), []uint32{f}, []profile.Label{{Key: profile.Thread, Value: "8"}}, n); err != nil {
			t.Fatal(err)
		}
	}
	l.add(b.Profile(), nil)
	got := l.answer()
	for _, piece := range got.Threads[0].Pieces {
		sum -= piece[2]
	}
	if len(got.States) != maxStates || !slices.Contains(got.States, fmt.Sprint("call", maxNames-1)) || !slices.Contains(got.States, fmt.Sprint("call", maxNames/2)) || sum != 0 {
		t.Errorf("%d states %v, %d calls are missing", len(got.States), got.States, sum)
	}
}

// A wait is known at its end, and lasted before it.
func TestWaitsAreShownWhereTheyWere(t *testing.T) {
	l := newTimeline(epoch, epoch.Add(10*time.Second))
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "off-cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	if err := b.AddAt(epoch.Add(2*time.Second).UnixNano(), nil, []profile.Label{{Key: profile.Thread, Value: "8"}, {Key: profile.Reason, Value: "disk"}}, 1200e6); err != nil {
		t.Fatal(err)
	}
	// One that began before the first bucket has only the time in it.
	if err := b.AddAt(epoch.Add(600*time.Millisecond).UnixNano(), nil, []profile.Label{{Key: profile.Thread, Value: "9"}, {Key: profile.Reason, Value: "disk"}}, 60e9); err != nil {
		t.Fatal(err)
	}
	l.add(b.Profile(), nil)
	got := l.answer()
	if want := [][3]int64{{0, 0, 500e6}, {1, 0, 500e6}}; !reflect.DeepEqual(got.Threads[0].Pieces, want) {
		t.Errorf("%v", got.Threads[0].Pieces)
	}
	got.Threads = got.Threads[1:]
	if want := [][3]int64{{2, 0, 200e6}, {3, 0, 500e6}, {4, 0, 500e6}}; !reflect.DeepEqual(got.Threads[0].Pieces, want) || got.States[0] != "waits: disk" {
		t.Errorf("%v %v", got.Threads[0].Pieces, got.States)
	}
}

// An hour that begins within a profile shares time with 61 of them.
func TestAnHourHasThreads(t *testing.T) {
	s := filled(t, 0, nil)
	for i := range 61 {
		if err := s.add(timedAt(t, epoch.Add(time.Duration(i)*time.Minute), "cpu", []taken{{float64(60*i) + 40, "8", "work", false, profile.Label{}, 10}})); err != nil {
			t.Fatal(err)
		}
	}
	var got threadsAnswer
	status, body, _ := get(s, "/api/profiles/threads?start="+at(0.5)+"&end="+at(60.5))
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Threads) != 1 || len(got.Threads[0].Pieces) != 60 {
		t.Errorf("%d %.300s", status, body)
	}
}

// An answer has at most so many threads and states, for any samples.
func TestTimelineIsBounded(t *testing.T) {
	l := newTimeline(epoch, epoch.Add(24*time.Hour))
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	for i := range 200 {
		labels := []profile.Label{{Key: profile.Thread, Value: fmt.Sprint(i)}, {Key: profile.Reason, Value: fmt.Sprint("reason ", i)}}
		if err := b.AddAt(epoch.Add(time.Duration(i)*7*time.Minute).UnixNano(), nil, labels, int64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	l.add(b.Profile(), nil)
	got := l.answer()
	if got.Buckets != maxBuckets || len(got.States) != maxStates || got.States[maxStates-1] != otherStates || len(got.Threads) != maxThreads || got.LeftOut != 200-maxThreads || got.Threads[0].TID != "199" {
		t.Errorf("%d buckets, %d states, %d threads, %d left out", got.Buckets, len(got.States), len(got.Threads), got.LeftOut)
	}
}

// A profile without times is said to be missing, and its samples are in each tree.
func TestProfilesWithoutTimesAreNamed(t *testing.T) {
	s := filled(t, 1, nil)
	var got threadsAnswer
	_, body, _ := get(s, "/api/profiles/threads?start="+at(0)+"&end="+at(1))
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Untimed != 1 || len(got.Threads) != 0 {
		t.Errorf("%s, %v", body, err)
	}
	for path, want := range map[string]string{"threads": `"threads":[]`, "tree": "profiles.enabled takes samples"} {
		if status, body, _ := get(s, "/api/profiles/"+path+"?start="+at(5)+"&end="+at(6)); status != 200 || !strings.Contains(body, want) {
			t.Errorf("without a profile: %d %s", status, body)
		}
	}
}
