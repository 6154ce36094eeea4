// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

const (
	maxFile     = 1 << 20
	maxNodes    = 1024 // CONFIG_NODES_SHIFT is 10 at most
	maxEnclaves = 64   // with their own samples
)

// read reads a file. The result is empty if there is no such file, as on most machines.
func read(path string) ([]byte, error) {
	data, err := hostfs.At(path).ReadLines(maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// readNumber reads a file that contains one number. found is false if there is no such file.
func readNumber(path string) (n uint64, found bool, err error) {
	data, err := read(path)
	if err != nil || data == nil {
		return 0, false, err
	}
	n, err = parseNumber(data)
	if err != nil {
		return 0, false, fmt.Errorf("reading %s: %w", path, err)
	}
	return n, true, nil
}

// readNodes reads the EPC size of each NUMA node. A node without EPC has size zero.
func readNodes(r tee.Roots, f *families) ([]sample, error) {
	dir := filepath.Join(r.Sys, "devices/system/node")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil // a kernel without NUMA
	}
	var samples []sample
	var errs []error
	for _, e := range entries {
		node, ok := strings.CutPrefix(e.Name(), "node")
		if _, err := strconv.ParseUint(node, 10, 16); !ok || err != nil || len(samples) >= maxNodes {
			continue
		}
		n, found, err := readNumber(filepath.Join(dir, e.Name(), "x86/sgx_total_bytes"))
		errs = append(errs, err)
		if found {
			samples = append(samples, sample{desc: f.size, value: float64(n), labels: []string{node}})
		}
	}
	return samples, errors.Join(errs...)
}

// readParameters reads the parameters of a driver with TEEMon's patch. The stock legacy driver has none of them.
func readParameters(r tee.Roots, f *families, module string) ([]sample, error) {
	parameters := []struct {
		name string
		sample
	}{
		{"sgx_nr_total_epc_pages", sample{desc: f.size, value: pageSize, labels: []string{""}}},
		{"sgx_nr_free_pages", sample{desc: f.free, value: pageSize}},
		{"sgx_nr_low_pages", sample{desc: f.watermark, value: pageSize, labels: []string{"low"}}},
		{"sgx_nr_high_pages", sample{desc: f.watermark, value: pageSize, labels: []string{"high"}}},
		{"sgx_nr_epc_sections", sample{desc: f.sections, value: 1}},
		{"sgx_nr_enclaves", sample{desc: f.enclaves, value: 1, labels: []string{"unknown"}}},
		{"sgx_nr_added_pages", sample{desc: f.added, value: 1}},
		{"sgx_nr_alloc_pages", sample{desc: f.allocated, value: 1}},
		{"sgx_nr_evicted", sample{desc: f.evicted, value: 1}},
		{"sgx_loaded_back", sample{desc: f.loadedBack, value: 1}},
		{"sgx_nr_reclaimed", sample{desc: f.reclaimed, value: 1}},
		{"sgx_nr_marked_old", sample{desc: f.markedOld, value: 1}},
		{"sgx_init_enclaves", sample{desc: f.initialized, value: 1}},
	}
	var samples []sample
	var errs []error
	for _, p := range parameters {
		n, found, err := readNumber(filepath.Join(r.Sys, "module", module, "parameters", p.name))
		errs = append(errs, err)
		if found {
			samples = append(samples, sample{desc: p.desc, value: float64(n) * p.value, labels: p.labels})
		}
	}
	return samples, errors.Join(errs...)
}

// readStats reads the totals of sgxtop's patched drivers.
func readStats(r tee.Roots, f *families) ([]sample, error) {
	path := filepath.Join(r.Proc, "sgx_stats")
	data, err := read(path)
	if err != nil || data == nil {
		return nil, err
	}
	s, err := parseStats(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	samples := []sample{
		{desc: f.created, value: float64(s.created)},
		{desc: f.released, value: float64(s.released)},
		{desc: f.allocated, value: float64(s.allocated)},
		{desc: f.freed, value: float64(s.freed)},
		{desc: f.size, value: float64(s.total) * pageSize, labels: []string{""}},
		{desc: f.pages, value: float64(s.versionArray), labels: []string{"version_array"}},
		{desc: f.free, value: float64(s.free) * pageSize},
	}
	if s.created >= s.released { // the two are not read at the same instant
		samples = append(samples, sample{desc: f.enclaves, value: float64(s.created - s.released), labels: []string{"unknown"}})
	}
	for _, x := range []struct {
		sample
		n *uint64
	}{
		{sample{desc: f.added}, s.added}, {sample{desc: f.evicted}, s.evicted},
		{sample{desc: f.loadedBack}, s.loadedBack}, {sample{desc: f.backingFreed}, s.backingFreed},
	} {
		if x.n != nil {
			samples = append(samples, sample{desc: x.desc, value: float64(*x.n)})
		}
	}
	return samples, nil
}

// readEnclaves reads the enclaves of sgxtop's patched drivers.
func readEnclaves(r tee.Roots, f *families) ([]sample, error) {
	path := filepath.Join(r.Proc, "sgx_enclaves")
	data, err := read(path)
	if err != nil || data == nil {
		return nil, err
	}
	all, err := parseEnclaves(data)
	if err != nil {
		err = fmt.Errorf("reading %s: %w", path, err)
	}
	samples := states(f, all)
	for _, e := range all[:min(len(all), maxEnclaves)] {
		labels := []string{strconv.FormatUint(e.id, 10), strconv.FormatUint(e.pid, 10)}
		samples = append(samples, e.gauges(f, labels)...)
		samples = append(samples, sample{desc: f.enclaveAdded, value: float64(e.added), labels: labels})
	}
	if len(all) > maxEnclaves {
		samples = append(samples, sum(all[maxEnclaves:]).gauges(f, []string{"other", ""})...)
	}
	return samples, err
}

// states counts enclaves by state, if all lines have flags.
func states(f *families, all []enclave) []sample {
	initialized := 0
	for _, e := range all {
		if e.flags == nil {
			return []sample{{desc: f.enclaves, value: float64(len(all)), labels: []string{"unknown"}}}
		}
		if *e.flags&flagInitialized != 0 {
			initialized++
		}
	}
	return []sample{
		{desc: f.enclaves, value: float64(initialized), labels: []string{"initialized"}},
		{desc: f.enclaves, value: float64(len(all) - initialized), labels: []string{"uninitialized"}},
	}
}

func (e enclave) gauges(f *families, labels []string) []sample {
	samples := []sample{
		{desc: f.enclaveSize, value: float64(e.size), labels: labels},
		{desc: f.enclaveResident, value: float64(e.resident) * pageSize, labels: labels},
	}
	if e.pagedOut != nil {
		samples = append(samples, sample{desc: f.enclavePagedOut, value: float64(*e.pagedOut) * pageSize, labels: labels})
	}
	if e.versionArray != nil {
		samples = append(samples, sample{desc: f.enclaveVersions, value: float64(*e.versionArray) * pageSize, labels: labels})
	}
	return samples
}

// sum adds up enclaves. The sum lacks each value that one of the enclaves lacks.
func sum(all []enclave) enclave {
	total := enclave{versionArray: new(uint64), pagedOut: new(uint64)}
	add := func(to **uint64, n *uint64) {
		if n == nil || *to == nil {
			*to = nil
			return
		}
		**to = plus(**to, *n)
	}
	for _, e := range all {
		total.size = plus(total.size, e.size)
		total.resident = plus(total.resident, e.resident)
		add(&total.versionArray, e.versionArray)
		add(&total.pagedOut, e.pagedOut)
	}
	return total
}

// plus adds without overflow, so that a sum is never less than a summand.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
