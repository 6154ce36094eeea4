// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

const mib = 1 << 20

// table answers queries that begin with a text.
type table []row

type row struct {
	begins string
	labels string // name=value, separated by commas
	value  float64
}

func (t table) Instant(_ context.Context, expr string, at time.Time) (all []query.Sample, err error) {
	for _, r := range t {
		if !strings.HasPrefix(expr, r.begins) {
			continue
		}
		if math.IsInf(r.value, -1) {
			return nil, errors.New("too slow")
		}
		labels := map[string]string{}
		for pair := range strings.SplitSeq(r.labels, ",") {
			name, value, _ := strings.Cut(pair, "=")
			labels[name] = value
		}
		all = append(all, query.Sample{Labels: labels, Time: at, Value: r.value})
	}
	return all, nil
}

func (table) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]query.Series, error) {
	return nil, errors.New("no range is asked for")
}

const (
	up       = "max by (instance) (up"
	tee      = "max by (instance, tee)"
	version  = "group by"
	size     = "sum by (instance) (sgx_epc_size_bytes"
	free     = "sum by (instance) (sgx_epc_free_bytes"
	reserved = "sum by (instance) (sgx_epc_pages"
	enclaves = "sum by (instance) (sgx_enclaves"
	resident = "sum " + byPod + " (sgx_workload_resident_bytes"
	lowest   = "sum " + byPod + " (min_over_time"
	highest  = "sum " + byPod + " (max_over_time"
	loaded   = "sum " + byPod + " (rate(sgx_workload_pages_loaded"
	exits    = "sum " + byPod + " (rate(teescope_enclave"
	evicts   = "topk("
	requests = "sum by (namespace, pod, node)"
)

// machine has SGX and this much EPC, half of which is free.
func machine(name string, bytes float64) table {
	of := "instance=" + name
	return table{
		{up, of, 1}, {tee, of + ",tee=sgx", 1}, {tee, of + ",tee=tdx", 0}, {version, of + ",version=1.0", 1},
		{size, of, bytes}, {free, of, bytes / 2}, {enclaves, of, 3},
	}
}

// running is a pod on a machine with this working set.
func running(node, name string, low, high float64) table {
	of := "instance=" + node + ",workload=w-" + name + ",namespace=shop,pod=" + name
	return table{{resident, of, low}, {lowest, of, low}, {highest, of, high}}
}

// mixed is a fleet whose answers are written down in the tests below, in MiB:
//
//	sgx1 has 100, of which 4 are reserved: a 40 to 60, b 20 to 30; 6 are left at most
//	sgx2 has 96: c 50; 46 are left
//	sgx3 has 96: d 70, e 40; 14 are lacking
//	odd has 96: f, whose working set was not measured
//	idle has 20 and no enclave; guest runs in TDX, plain has no TEE, dark does not answer
func mixed() table {
	return slices.Concat(
		machine("sgx1", 100*mib), table{{reserved, "instance=sgx1", 4 * mib}}, running("sgx1", "a", 40*mib, 60*mib), running("sgx1", "b", 20*mib, 30*mib),
		machine("sgx2", 96*mib), running("sgx2", "c", 50*mib, 50*mib),
		machine("sgx3", 96*mib), running("sgx3", "d", 70*mib, 70*mib), running("sgx3", "e", 40*mib, 40*mib),
		machine("odd", 96*mib), table{{resident, "instance=odd,workload=f", 10 * mib}},
		table{{up, "instance=idle", 1}, {tee, "instance=idle,tee=sgx", 1}, {size, "instance=idle", 20 * mib}, {free, "instance=idle", 20 * mib}, {enclaves, "instance=idle", 0}},
		table{{up, "instance=guest", 1}, {tee, "instance=guest,tee=tdx", 1}, {tee, "instance=guest,tee=sgx", 0}, {version, "instance=guest,version=0.9", 1}},
		table{{up, "instance=plain", 1}, {tee, "instance=plain,tee=none", 1}, {version, "instance=plain,version=1.0", 1}},
		table{{up, "instance=dark", 0}},
		table{{up, "instance=server", 1}, {version, "instance=server,version=1.0", 1}},
		table{{loaded, "instance=sgx3,workload=w-d,namespace=shop,pod=d", 1000}, {exits, "instance=sgx3,workload=w-d,namespace=shop,pod=d", 10_000}},
		table{{exits, "instance=sgx2,workload=w-c,namespace=shop,pod=c", 1000}},
		table{{evicts, "instance=sgx3,workload=w-d,by=w-e", 7}, {evicts, "instance=sgx3,workload=w-e,by=w-d", 9}},
		table{{requests, "namespace=shop,pod=d,node=sgx3", 32 * mib}},
	)
}

func gather(t *testing.T, source query.Source) *Facts {
	t.Helper()
	return Gather(t.Context(), source, time.Unix(1_000_000, 0), time.Hour, query.Limits{PerQuery: time.Minute, Series: MaxPods})
}

func written(r *Range, unit float64) string {
	switch {
	case r == nil:
		return "unknown"
	case r.High == nil:
		return fmt.Sprintf("%.4g-", r.Low/unit)
	}
	return fmt.Sprintf("%.4g-%.4g", r.Low/unit, *r.High/unit)
}

func TestMachines(t *testing.T) {
	v := gather(t, mixed()).View(Limits{Nodes: 100, Rows: 100}, "", nil)
	var got []string
	for _, n := range v.Nodes {
		got = append(got, fmt.Sprintf("%s %v silent=%v pods=%d unmeasured=%d needs=%s pressure=%s", n.Name, n.TEEs, n.Silent, n.Pods, n.Unmeasured, written(n.WorkingSet, mib), written(n.Pressure, 1)))
	}
	want := []string{
		"sgx3 [sgx] silent=false pods=2 unmeasured=0 needs=110-110 pressure=1.146-1.146",
		"sgx1 [sgx] silent=false pods=2 unmeasured=0 needs=60-90 pressure=0.625-0.9375",
		"sgx2 [sgx] silent=false pods=1 unmeasured=0 needs=50-50 pressure=0.5208-0.5208",
		"idle [sgx] silent=false pods=0 unmeasured=0 needs=0-0 pressure=0-0",
		"odd [sgx] silent=false pods=1 unmeasured=1 needs=unknown pressure=unknown",
		"dark [] silent=true pods=0 unmeasured=0 needs=unknown pressure=unknown",
		"guest [tdx] silent=false pods=0 unmeasured=0 needs=unknown pressure=unknown",
		"plain [] silent=false pods=0 unmeasured=0 needs=unknown pressure=unknown",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if dark, plain := v.Nodes[5], v.Nodes[7]; dark.TEEs != nil || dark.Used != nil || plain.TEEs == nil {
		t.Errorf("dark has the TEEs %#v and uses %v, plain has %#v", dark.TEEs, dark.Used, plain.TEEs)
	}
	var groups []string
	for _, g := range v.TEEs {
		used := "unknown"
		if g.Used != nil {
			used = fmt.Sprintf("%g of %g", *g.Used/mib, *g.Size/mib)
		}
		groups = append(groups, fmt.Sprintf("%s %d %s", g.TEE, g.Nodes, used))
	}
	if want := []string{"sgx 5 194 of 408", "none 1 unknown", "tdx 1 unknown", "unknown 1 unknown"}; !slices.Equal(groups, want) {
		t.Errorf("%q, want %q", groups, want)
	}
	if want := []Version{{"1.0", 6}, {"0.9", 1}}; !slices.Equal(v.Release, want) {
		t.Errorf("versions %v, want %v", v.Release, want)
	}
}

// TestHottest has costs of d: 10,000 exits of 8,000 to 14,000 cycles and 1,000 pages of 12,000 to 40,000 at 2 to 4 GHz, so
// 0.02 to 0.07 and 0.003 to 0.02 cores. Of c no loads were measured, so its cost has no upper end.
func TestHottest(t *testing.T) {
	v := gather(t, mixed()).View(Limits{Nodes: 1, Rows: 2}, "sgx3", nil)
	if len(v.Hottest) != 2 || v.Hottest[0].Name != "shop/d" || v.Hottest[1].Name != "shop/c" {
		t.Fatalf("hottest are %+v", v.Hottest)
	}
	if d, c := written(v.Hottest[0].Cost, 1), written(v.Hottest[1].Cost, 1); d != "0.023-0.09" || c != "0.002-" {
		t.Errorf("costs %s and %s", d, c)
	}
	if d := v.Hottest[0]; d.Requested == nil || *d.Requested != 32*mib || v.Hottest[1].Requested != nil {
		t.Errorf("requests %v, %v", d.Requested, v.Hottest[1].Requested)
	}
	if want := []Eviction{{"sgx3", "w-e", "w-d", 9}, {"sgx3", "w-d", "w-e", 7}}; !slices.Equal(v.Evictions, want) {
		t.Errorf("evictions %v", v.Evictions)
	}
	if len(v.Nodes) != 1 || v.LeftOut.Nodes != 7 || len(v.Pods) != 2 || v.Pods[0].Name != "shop/d" {
		t.Errorf("%d machines, %d left out, pods %+v", len(v.Nodes), v.LeftOut.Nodes, v.Pods)
	}
}

// TestMachinesHaveCosts has a machine where a pair of EEXIT and EENTER was measured as 3 to 5 us, and whose processor runs at
// 2 GHz. Its 10,000 exits take 0.03 to 0.05 cores, and its 1,000 pages of 12,000 to 40,000 cycles 0.006 to 0.02. Others keep the
// published costs.
func TestMachinesHaveCosts(t *testing.T) {
	v := gather(t, slices.Concat(mixed(), table{
		{cost.OCALLQuery, "instance=sgx3,bound=low", 3e-6}, {cost.OCALLQuery, "instance=sgx3,bound=high", 5e-6},
		{cost.OCALLQuery, "instance=sgx2,bound=low", 5e-6}, {cost.OCALLQuery, "instance=sgx2,bound=high", 3e-6}, // no range
		{cost.ClockQuery, "instance=sgx3", 2e9},
	})).View(Limits{Nodes: 1, Rows: 2}, "", nil)
	if d, c := written(v.Hottest[0].Cost, 1), written(v.Hottest[1].Cost, 1); d != "0.036-0.07" || c != "0.002-" {
		t.Errorf("costs %s and %s", d, c)
	}
}

// TestPlacement has odd and dark, of which it is not known whether they have room.
func TestPlacement(t *testing.T) {
	p := gather(t, mixed()).View(Limits{Nodes: 100, Rows: 100}, "", nil).Placement
	var got []string
	for _, f := range p.Fits {
		got = append(got, fmt.Sprintf("%s@%s %d %d %s", f.Pod, f.Node, f.Nodes, f.Unknown, f.Room))
	}
	// 40 MiB of a fit on sgx2 and 60 do not; 20 of b fit on idle and 30 do not.
	want := []string{"shop/d@sgx3 0 2 ", "shop/e@sgx3 1 2 sgx2", "shop/a@sgx1 0 3 ", "shop/b@sgx1 1 3 sgx2", "shop/c@sgx2 0 2 "}
	if !slices.Equal(got, want) {
		t.Errorf("fits %q\nwant %q", got, want)
	}
	if want := []Move{{"shop/e", "sgx3", "sgx2", 40 * mib}}; !slices.Equal(p.Moves, want) || p.Crowded != 1 || p.Relieved != 1 || p.Unjudged != 1 {
		t.Errorf("moves %v, %d crowded, %d relieved, %d unjudged", p.Moves, p.Crowded, p.Relieved, p.Unjudged)
	}
}

// TestMatrix has each pod on each machine that may have enclaves, those with the most room first: sgx2 with 46, idle with 20, sgx1
// with 6 to 36, sgx3 with -14, and odd of which it is not known. The pressure is that with the pod.
func TestMatrix(t *testing.T) {
	f := gather(t, mixed())
	rows := func(p Placement) (all []string) {
		for _, fit := range p.Fits {
			line := fit.Pod
			for _, c := range fit.Cells {
				line += fmt.Sprintf(" %s %s", c.Fits, written(c.Pressure, 0.01))
			}
			all = append(all, line)
		}
		return all
	}
	v := f.View(Limits{Nodes: 1, Rows: 9, Columns: 9}, "", nil)
	if want := []string{"sgx2", "idle", "sgx1", "sgx3", "odd"}; !slices.Equal(v.Placement.Columns, want) || v.LeftOut.Columns != 0 {
		t.Errorf("columns %q, %+v", v.Placement.Columns, v.LeftOut)
	}
	got, want := rows(v.Placement), []string{
		"shop/d no 125-125 no 350-350 no 135.4-166.7 here 114.6-114.6 unknown 72.92-",
		"shop/e yes 93.75-93.75 no 200-200 no 104.2-135.4 here 114.6-114.6 unknown 41.67-",
		"shop/a unknown 93.75-114.6 no 200-300 here 62.5-93.75 no 156.2-177.1 unknown 41.67-",
		"shop/b yes 72.92-83.33 unknown 100-150 here 62.5-93.75 no 135.4-145.8 unknown 20.83-",
		"shop/c here 52.08-52.08 no 250-250 no 114.6-145.8 no 166.7-166.7 unknown 52.08-",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i, fit := range v.Placement.Fits { // one judgement for both
		for j, c := range fit.Cells {
			if c.Fits == Here {
				continue
			}
			if w, err := f.Move(fit.Pod, v.Placement.Columns[j]); err != nil || w.Fits != c.Fits || written(w.To.After, 1) != written(c.Pressure, 1) {
				t.Errorf("row %d, column %d: %+v, %v, want %+v", i, j, w, err, c)
			}
		}
	}
	one := f.View(Limits{Nodes: 1, Rows: 1, Columns: 1}, "sgx1", nil)
	if got := rows(one.Placement); len(got) != 1 || got[0] != "shop/a here 62.5-93.75" || one.Placement.Columns[0] != "sgx1" || one.LeftOut.Columns != 4 {
		t.Errorf("of sgx1: %q, %+v, %+v", got, one.Placement, one.LeftOut)
	}
}

// TestCrowdedIsBounded has machines of which a working set was not measured: the others of x are larger than its EPC, those of y may
// be, of z the EPC was not measured, and none has no EPC at all.
func TestCrowdedIsBounded(t *testing.T) {
	all := slices.Concat(
		machine("x", 50*mib), running("x", "a", 60*mib, 70*mib), table{{resident, "instance=x,workload=b", mib}},
		machine("y", 50*mib), running("y", "a", 40*mib, 90*mib), table{{resident, "instance=y,workload=b", mib}},
		table{{up, "instance=z", 1}, {tee, "instance=z,tee=sgx", 1}}, running("z", "a", mib, mib),
		machine("none", 50*mib), table{{reserved, "instance=none", 50 * mib}}, running("none", "a", 5*mib, 5*mib),
		machine("r", 50*mib), running("r", "small", mib, mib),
	)
	p := gather(t, all).View(Limits{Nodes: 9, Rows: 9}, "", nil).Placement
	if want := []Move{{"shop/a", "none", "r", 5 * mib}}; !slices.Equal(p.Moves, want) || p.Crowded != 2 || p.Relieved != 1 || p.Unjudged != 2 {
		t.Errorf("moves %v, %d crowded, %d relieved, %d unjudged", p.Moves, p.Crowded, p.Relieved, p.Unjudged)
	}
}

// TestFirstFitFillsRoom has a machine that lacks 50 with pods of 30, and two machines with room for one each. Of pods
// of one size it takes the last one by name.
func TestFirstFitFillsRoom(t *testing.T) {
	all := slices.Concat(machine("x", 100*mib), machine("r1", 35*mib), machine("r2", 30*mib), machine("r3", 10*mib))
	for i := range 5 {
		all = append(all, running("x", fmt.Sprint("p", i), 30*mib, 30*mib)...)
	}
	for _, name := range []string{"r1", "r2", "r3"} {
		all = append(all, running(name, "small", 0, 0)...)
	}
	p := gather(t, all).View(Limits{Nodes: 9, Rows: 9}, "", nil).Placement
	if want := []Move{{"shop/p0", "x", "r1", 30 * mib}, {"shop/p4", "x", "r2", 30 * mib}}; !slices.Equal(p.Moves, want) || p.Relieved != 1 {
		t.Errorf("moves %v, %d relieved", p.Moves, p.Relieved)
	}
}

// TestManyPodsThatFitNowhere has a machine whose agent claims 20,000 pods that no machine has room for, and small ones. A search
// that tries each pod on each machine for every move takes 14 s, and grows with pods, machines and moves.
func TestManyPodsThatFitNowhere(t *testing.T) {
	all := machine("liar", mib)
	for i := range 1000 {
		name := fmt.Sprint("r", i)
		all = append(all, machine(name, mib)...)
		all = append(all, running(name, "idle", 0, 0)...)
	}
	for i := range 20_000 {
		all = append(all, running("liar", fmt.Sprint("huge", i), 2*mib, 2*mib)...)
	}
	for i := range maxMoves {
		all = append(all, running("liar", fmt.Sprint("small", i), pageSize, pageSize)...)
	}
	p := gather(t, all).View(Limits{Nodes: 1, Rows: maxMoves}, "", nil).Placement
	if len(p.Moves) != maxMoves || p.Crowded != 1 || p.Relieved != 0 {
		t.Errorf("%d moves, %d crowded, %d relieved", len(p.Moves), p.Crowded, p.Relieved)
	}
}

func TestMove(t *testing.T) {
	f := gather(t, slices.Concat(mixed(), machine("full", 96*mib), table{{reserved, "instance=full", 96 * mib}}, machine("vague", 96*mib)))
	for _, tt := range []struct {
		pod, to       string
		fits          Answer
		from, onto    string
		before, after string
		note          string
	}{
		{"shop/b", "sgx2", Yes, "0.625-0.9375", "0.5208-0.5208", "0.4167-0.625", "0.7292-0.8333", ""},
		{"a", "sgx2", Unknown, "0.625-0.9375", "0.5208-0.5208", "0.2083-0.3125", "0.9375-1.146", "not with the highest"},
		{"shop/d@sgx3", "sgx2", No, "1.146-1.146", "0.5208-0.5208", "0.4167-0.4167", "1.25-1.25", ""},
		{"b", "plain", No, "0.625-0.9375", "unknown", "0.4167-0.625", "unknown", "offers no SGX"},
		{"b", "guest", No, "0.625-0.9375", "unknown", "0.4167-0.625", "unknown", "offers no SGX"},
		{"b", "dark", Unknown, "0.625-0.9375", "unknown", "0.4167-0.625", "unknown", "does not answer"},
		{"b", "odd", Unknown, "0.625-0.9375", "unknown", "0.4167-0.625", "0.2083-", "of 1 other pods"},
		{"f", "sgx2", Unknown, "unknown", "0.5208-0.5208", "0-0", "0.5208-", "of the pod was not measured"},
		{"f", "sgx3", No, "unknown", "1.146-1.146", "0-0", "1.146-", "of the pod was not measured"},
		{"c", "idle", No, "0.5208-0.5208", "0-0", "0-0", "2.5-2.5", "upper bounds while no pages are evicted"},
		{"c", "full", No, "0.5208-0.5208", "unknown", "0-0", "unknown", "has no EPC for enclaves"},
		{"c", "vague", Unknown, "0.5208-0.5208", "unknown", "0-0", "0.5208-", "on the new machine need was not measured"},
	} {
		w, err := f.Move(tt.pod, tt.to)
		if err != nil {
			t.Errorf("%s to %s: %v", tt.pod, tt.to, err)
			continue
		}
		got := []string{written(w.From.Before, 1), written(w.To.Before, 1), written(w.From.After, 1), written(w.To.After, 1)}
		if want := []string{tt.from, tt.onto, tt.before, tt.after}; !slices.Equal(got, want) || w.Fits != tt.fits || !strings.Contains(strings.Join(w.Notes, "; "), tt.note) {
			t.Errorf("%s to %s: %q fits=%s %q, want %q fits=%s %q", tt.pod, tt.to, got, w.Fits, w.Notes, want, tt.fits, tt.note)
		}
	}
}

// TestMoveEndsEvictions has evictions of the pod, by the pod, of others on its machine, and of a workload of its name elsewhere.
func TestMoveEndsEvictions(t *testing.T) {
	f := gather(t, append(mixed(), table{{evicts, "instance=sgx3,workload=x,by=y", 20}, {evicts, "instance=sgx1,workload=w-d,by=y", 30}}...))
	w, err := f.Move("d", "sgx2")
	if err != nil {
		t.Fatal(err)
	}
	if want := []Eviction{{"sgx3", "w-e", "w-d", 9}, {"sgx3", "w-d", "w-e", 7}}; !slices.Equal(w.Evictions, want) {
		t.Errorf("evictions %v, want %v", w.Evictions, want)
	}
	if w, err = f.Move("c", "sgx1"); err != nil || len(w.Evictions) != 0 || w.Evictions == nil {
		t.Errorf("of c: %v, %v", w, err)
	}
}

func TestMoveOfNobody(t *testing.T) {
	f := gather(t, slices.Concat(mixed(), running("sgx1", "twin", mib, mib), running("sgx2", "twin", mib, mib)))
	for _, tt := range []struct{ pod, to, want string }{
		{"nobody", "sgx1", "no pod or workload with enclaves has this name"},
		{"a", "nowhere", "no watched machine has this name"},
		{"a", "server", "no watched machine has this name"},
		{"a", "sgx1", "is on \"sgx1\" already"},
		{"twin", "sgx3", `2 pods have the name "twin": name one of "shop/twin@sgx1", "shop/twin@sgx2"`},
	} {
		if _, err := f.Move(tt.pod, tt.to); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s to %s: %v", tt.pod, tt.to, err)
		}
	}
	if _, err := f.Move("shop/twin@sgx1", "sgx3"); err != nil {
		t.Error(err)
	}
}

// TestNoNameHidesAPod has workloads whose names contain those of pods.
func TestNoNameHidesAPod(t *testing.T) {
	all := mixed()
	for _, name := range []string{"shop/d@sgx3", "x/shop/d", "x/shop/d@sgx3"} {
		all = append(all, table{{resident, "instance=sgx1,workload=" + name, mib}, {lowest, "instance=sgx1,workload=" + name, mib}, {highest, "instance=sgx1,workload=" + name, mib}}...)
	}
	f := gather(t, all)
	for _, name := range []string{"shop/d", "shop/d@sgx3"} {
		if w, err := f.Move(name, "sgx2"); err != nil || w.Pod != "shop/d" || w.From.Node != "sgx3" {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

// TestUnknownStaysUnknown loses one query after the other. No machine may then look emptier than it is.
func TestUnknownStaysUnknown(t *testing.T) {
	for _, lost := range []string{resident, lowest, highest} {
		f := gather(t, append(table{{lost, "", math.Inf(-1)}}, mixed()...))
		v := f.View(Limits{Nodes: 100, Rows: 100}, "", nil)
		for _, n := range v.Nodes {
			if n.Pressure != nil && n.Pressure.High != nil && n.Name != "idle" {
				t.Errorf("without %q the pressure of %s is %s", lost, n.Name, written(n.Pressure, 1))
			}
		}
		if len(v.Problems) != 1 || len(v.Placement.Moves) > 0 {
			t.Errorf("without %q: problems %v, moves %v", lost, v.Problems, v.Placement.Moves)
		}
	}
	two := gather(t, append(table{{up, "", math.Inf(-1)}, {tee, "", math.Inf(-1)}}, mixed()...))
	if len(two.Problems) != len(questions(time.Hour)) || len(two.nodes) > 0 {
		t.Errorf("after two failures: %d problems, %d machines", len(two.Problems), len(two.nodes))
	}
}

// TestHostileFigures has machines that claim what cannot be, and names that are not names.
func TestHostileFigures(t *testing.T) {
	name := "<b>\x1b[31m\"\\\n" + strings.Repeat("x", 10_000)
	hostile := slices.Concat(machine(name, math.Inf(1)), running(name, name, -5, math.NaN()), machine("big", 1e300), running("big", "p", 1e300, 1e300))
	for i := range 50 {
		hostile = append(hostile, row{tee, fmt.Sprintf("instance=big,tee=t%d", i), 1}, row{version, fmt.Sprintf("instance=n%d,version=v%d", i, i), 1})
	}
	f := gather(t, slices.Concat(mixed(), hostile))
	v := f.View(Limits{Nodes: 100, Rows: 100}, "big", nil)
	if _, err := json.Marshal(v); err != nil {
		t.Error(err)
	}
	for _, n := range v.Nodes {
		if (n.Name == name || n.Name == "big") && (n.Size != nil || n.Pressure != nil || len(n.TEEs) > maxWorkloads) {
			t.Errorf("%.10q has %+v", n.Name, n)
		}
	}
	if len(v.TEEs) > 2*maxWorkloads || len(v.Release) > 50 {
		t.Errorf("%d TEEs, %d versions", len(v.TEEs), len(v.Release))
	}
}

// TestMostMachines has more machines and pods than are kept.
func TestMostMachines(t *testing.T) {
	var many table
	for i := range maxNodes + 7 {
		many = append(many, row{up, fmt.Sprint("instance=n", i), 0})
	}
	f := Gather(t.Context(), many, time.Unix(1, 0), time.Hour, query.Limits{PerQuery: time.Minute, Series: MaxPods})
	if len(f.nodes) != maxNodes || len(f.Problems) != 1 || !strings.HasPrefix(f.Problems[0].Error, "7 series of further machines") {
		t.Errorf("%d machines, %v", len(f.nodes), f.Problems)
	}
	f.pods = map[podKey]*pod{}
	for i := range MaxPods {
		f.pods[podKey{"n1", fmt.Sprint(i)}] = nil
	}
	if f.pod(map[string]string{"instance": "n1", "workload": "one more"}) != nil || f.lost[1] != 1 {
		t.Error("one more pod is kept")
	}
}

// large is a fleet of 1,000 machines with 60 workloads each.
func large() table {
	var all table
	for i := range 1000 {
		name := fmt.Sprintf("node%04d", i)
		all = append(all, machine(name, 96*mib)...)
		for j := range 60 {
			bytes := float64(mib + mib*(i%2)*(j%3))
			all = append(all, running(name, fmt.Sprintf("p%d-%d", i, j), bytes, bytes)...)
		}
	}
	return all
}

func TestLargeFleet(t *testing.T) {
	f := gather(t, large())
	// Machines with an even number need 60 MiB. The others need 60 + 20*(0+1+2) = 120 and lack 24, which eight moves of
	// the largest pods with 3 MiB give. An even one has room for twelve of them.
	v := f.View(Limits{Nodes: 10, Rows: 10}, "", nil)
	if v.Placement.Crowded != 500 || v.LeftOut.Nodes != 990 || v.LeftOut.Fits != 59_990 || len(v.Placement.Moves)+v.LeftOut.Moves != maxMoves {
		t.Errorf("%d crowded, %+v", v.Placement.Crowded, v.LeftOut)
	}
	if want := maxMoves / 8; v.Placement.Relieved != want {
		t.Errorf("%d are relieved, want %d", v.Placement.Relieved, want)
	}
}

func BenchmarkLargeFleet(b *testing.B) {
	source := large()
	f := Gather(b.Context(), source, time.Unix(1, 0), time.Hour, query.Limits{PerQuery: time.Minute, Series: MaxPods})
	b.ResetTimer()
	for b.Loop() {
		f.View(Limits{Nodes: 200, Rows: 50}, "node0001", nil)
		if _, err := f.Move("shop/p1-1", "node0002"); err != nil {
			b.Fatal(err)
		}
	}
}
