// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// The object contains every program that a probe names.
func TestEveryWayHasItsProgram(t *testing.T) {
	obj, err := bpf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	programs := obj.Programs()
	named := map[string]bool{"snapshot": true, "mapped": true, "opened": true, "guests_mapped": true, "guests_opened": true, "outside_pages": true}
	for _, p := range append(lifeProbes(), pageProbes()...) {
		for _, w := range p.Ways {
			named[w.Program] = true
			if w.Args != "" {
				named[w.Args] = true
			}
		}
	}
	for _, h := range append(hooksOf(moduleISGX), hooksOf(moduleDCAP)...) {
		named[h.program] = true
		if h.args != "" {
			named[h.args] = true
		}
	}
	for _, p := range programs {
		if !named[p] {
			t.Errorf("no probe attaches the program %s", p)
		}
		delete(named, p)
	}
	if len(named) > 0 {
		t.Errorf("the object lacks %v", named)
	}
}

// pairsTable is a fake of the map evictions.
type pairsTable map[evictionKey]uint64

func (p pairsTable) LookupAndDelete(key, value any) error {
	n, ok := p[key.(evictionKey)]
	if !ok {
		return errors.New("no such key")
	}
	*value.(*uint64) = n
	delete(p, key.(evictionKey))
	return nil
}

// groupsTable is a fake of the map of keys. It records the withdrawn keys.
type groupsTable struct{ withdrawn []attribution.Key }

func (g *groupsTable) Delete(key any) error {
	g.withdrawn = append(g.withdrawn, key.(attribution.Key))
	return nil
}

func (g *groupsTable) Update(any, any, attribution.Flags) error { return nil }

// freeNumbers is a fake of the map of free numbers. It records the freed numbers.
type freeNumbers struct{ freed []uint32 }

func (f *freeNumbers) Update(_, number any, _ attribution.Flags) error {
	f.freed = append(f.freed, number.(uint32))
	return nil
}

func (f *freeNumbers) LookupAndDelete(any, any) error { return errors.ErrUnsupported }

// fake is a kernel side without programs.
type fake struct {
	*kernelSide
	pairs     pairsTable
	withdrawn *groupsTable
	*freeNumbers
}

func newFake(groups int) *fake {
	k := &fake{pairs: pairsTable{}, withdrawn: &groupsTable{}, freeNumbers: &freeNumbers{}}
	k.kernelSide = &kernelSide{
		object: &bpf.Object{}, look: func() error { return nil },
		machine: make([]totals, 2), records: make([]record, 8), uses: make([]groupUse, groups),
		losses: make([]uint64, len(lossNames)), moment: make([]moment, 1),
		groups:    &attribution.Kernel{First: 1, Records: make([]attribution.Record, groups), Keys: k.withdrawn, Free: k.freeNumbers},
		evictions: k.pairs,
	}
	k.kernelSide.pairs = func(each func(evictionKey, uint64)) {
		for key, n := range maps.Clone(k.pairs) {
			each(key, n)
		}
	}
	for _, p := range append(lifeProbes(), pageProbes()...) {
		k.status = append(k.status, bpf.Status{Probe: p.Name, Mechanism: p.Ways[0].Mechanism, Program: p.Ways[0].Program})
	}
	k.status = append(k.status, bpf.Status{Probe: probeVEPCFound, Mechanism: bpf.Iterator, Program: "guests_opened"})
	return k
}

// group creates a group of a program, in a unit or in none.
func (k *fake) group(i int, program, unit string, enclaves uint64, c counts) {
	g := &k.groups.Records[i]
	*g = attribution.Record{Cgroup: uint64(100 + i), Ready: 1}
	k.uses[i] = groupUse{Enclaves: enclaves, Count: c}
	copy(g.Comm[:], program)
	if unit != "" {
		g.Depth = 1
		copy(g.Path[0][:], unit)
	}
}

func (k *fake) detach(probes ...string) {
	for i := range k.status {
		for _, p := range probes {
			if k.status[i].Probe == p {
				k.status[i].Mechanism, k.status[i].Reason = bpf.NotAttached, "no such function"
			}
		}
	}
}

func (k *fake) backend(workloads int) *Backend {
	b := New(Options{Roots: rootsAt("testdata/driver"), MaxWorkloads: workloads, Log: slog.New(slog.DiscardHandler)})
	b.watch = watch{kernel: k.kernelSide, owners: newOwners(k.kernelSide, workloads, nil)}
	return b
}

// told returns what a backend emits, as text.
func told(t *testing.T, b *Backend) string {
	t.Helper()
	return string(metrictest.Text(t, func(emit func(prometheus.Metric)) {
		if err := b.Collect(t.Context(), emit); err != nil {
			t.Error(err)
		}
	}))
}

// someMachine has two enclaves of a unit's two programs, one of them found at the start, a third one of another
// program, and a guest. All numbers differ.
func someMachine() *fake {
	k := newFake(5)
	for i := range nCounts {
		k.machine[0].Count[i], k.machine[1].Count[i] = uint64(1000+i), uint64(10*i)
	}
	for i := range nTotals {
		k.machine[0].Total[i], k.machine[1].Total[i] = uint64(5000+i), uint64(100*i)
	}
	for i := range timeHistograms {
		k.machine[0].Times[i].Bucket[i], k.machine[1].Times[i].Bucket[buckets-1] = uint64(30+i), 2
		k.machine[1].Times[i].SumNS = uint64(i+1) * 1e9
	}
	k.moment[0] = moment{FreePages: 77, InUse: 4901, Moved: 3, Read: 1}
	k.losses[1] = 4
	k.group(1, "redis-server", "redis.service", 1, counts{nAdded: 700, nEvicted: 41, nCreated: 2, nLoadedBack: 31, nFaults: 90})
	k.group(2, "sentinel", "redis.service", 1, counts{nAdded: 11, nEvicted: 3, nCreated: 1, nFaults: 5})
	k.group(3, "batch", "", 1, counts{nAdded: 300, nEvicted: 9, nCreated: 6, nAugmented: 8, nFaults: 17})
	k.group(4, "qemu-system-x86", "", 1, counts{})
	k.records[1] = record{
		Address: 0xf1, CreatedNS: uint64(5 * time.Second), Size: 1 << 26, ID: 1, Kind: kindEnclave, Group: 1, TGID: 4242, Threads: 4,
		Count: counts{nAdded: 600, nEvicted: 40, nLoadedBack: 31, nFaults: 80}, Flags: recordInitialized, Pages: 600, Resident: 550, SECSResident: 1, Read: 1,
	}
	k.records[2] = record{
		Address: 0xf2, Size: 1 << 20, ID: 2, Kind: kindEnclave, Group: 2, TGID: 4300,
		Count: counts{nEvicted: 3}, Flags: recordInitialized | recordDebug, Pages: 20, Resident: 0, Read: 1,
	}
	k.records[3] = record{Address: 0xf3, CreatedNS: uint64(9 * time.Second), Size: 1 << 21, ID: 3, Kind: kindEnclave, Group: 3, TGID: 5000, Pages: 300, Resident: 291, SECSResident: 1, Read: 1}
	k.records[4] = record{Address: 0xf4, ID: 4, Kind: kindGuest, Group: 4, TGID: 6000, Resident: 64}
	k.records[5] = record{Address: 0xf5, ID: 5, Kind: kindEnclave, Group: 3} // created since the snapshot
	k.pairs[evictionKey{Victim: 1, By: 3}], k.pairs[evictionKey{Victim: 2, By: 3}], k.pairs[evictionKey{Victim: 1, By: 1}] = 30, 3, 11
	return k
}

// Write it again with: go test ./internal/agent/tee/sgx/driver -update
func TestADriverThatIsWatched(t *testing.T) {
	b := someMachine().backend(8)
	if err := b.refresh(time.Unix(1000, 0)); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(told(t, b)) {
		if !strings.HasPrefix(line, "sgx_enclave_start_time_seconds{") { // depends on the clock
			lines = append(lines, line)
		}
	}
	metrictest.Golden(t, filepath.Join("testdata", "driver", "exposition.golden"), []byte(strings.Join(lines, "")), *update)
}

func TestWhatAnUnattachedProbeCountsIsAbsent(t *testing.T) {
	k := someMachine()
	k.detach(probeEvicted, probeFault, probeRelease)
	k.moment[0].Read = 0
	got := told(t, k.backend(8))
	for _, not := range []string{
		"sgx_epc_pages_evicted_total", "sgx_workload_pages_evicted_total", "sgx_enclave_pages_evicted_total", "sgx_workload_pages_evicted_by_total",
		"sgx_epc_faults_total", "sgx_load_back_seconds", "sgx_epc_pages_augmented_total", `leaf="EBLOCK"`, `leaf="EAUG"`,
		"sgx_enclaves{", "sgx_enclaves_released_total", "sgx_epc_free_bytes", `state="free"`,
	} {
		if strings.Contains(got, not) {
			t.Errorf("the exposition has %s", not)
		}
	}
	for _, want := range []string{
		"sgx_epc_pages_loaded_back_total 1044\n", `leaf="ELDU"`, `teescope_probe_attached{mechanism="none",probe="sgx_fault",reason="no such function"} 0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the exposition lacks %s", want)
		}
	}
}

func TestAFailedStartIsReportedAndFilesAreRead(t *testing.T) {
	b := reader(rootsAt(filepath.Join("testdata", "sgxtop")))
	b.failed = errors.New("no BTF")
	n := 0
	err := b.Collect(context.Background(), func(prometheus.Metric) { n++ })
	if !errors.Is(err, b.failed) || n < 10 {
		t.Errorf("%d samples, %v; want those of the files and the error", n, err)
	}
}

func TestWithoutADriverNothingIsLoaded(t *testing.T) {
	b := reader(tee.Roots{Proc: t.TempDir(), Dev: t.TempDir(), Sys: t.TempDir()})
	if err := b.Init(t.Context()); err != nil || b.watch.kernel != nil || b.failed != nil {
		t.Errorf("Init: %v, %v, %v", err, b.watch.kernel, b.failed)
	}
	if err := errors.Join(b.tend(time.Now()), b.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}
}
