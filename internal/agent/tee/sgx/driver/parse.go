// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// errFormat means that the format of a file is unknown.
var errFormat = errors.New("unknown format")

// parseNumber parses a file that contains one number.
func parseNumber(data []byte) (uint64, error) {
	n, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a number", errFormat, shorten(data))
	}
	return n, nil
}

// parseNumbers parses numbers separated by blanks.
func parseNumbers(line []byte) ([]uint64, error) {
	fields := bytes.Fields(line)
	numbers := make([]uint64, len(fields))
	for i, field := range fields {
		n, err := parseNumber(field)
		if err != nil {
			return nil, err
		}
		numbers[i] = n
	}
	return numbers, nil
}

func shorten(data []byte) []byte { return data[:min(len(data), 40)] }

// stats is the content of /proc/sgx_stats. Values that its format lacks are absent.
type stats struct {
	created, released, allocated, freed uint64
	total, versionArray, free           uint64 // pages

	added, evicted, loadedBack, backingFreed *uint64
}

// parseStats parses the eight numbers of sgxtop (sgxtop.c, struct stats: "pageins" are allocations of any kind
// and "pageouts" frees of any kind) or the ten of sgxtop-rs.
func parseStats(data []byte) (stats, error) {
	n, err := parseNumbers(data)
	if err != nil {
		return stats{}, err
	}
	switch len(n) {
	case 8:
		return stats{
			created: n[0], released: n[1], added: &n[2], allocated: n[3], freed: n[4],
			total: n[5], versionArray: n[6], free: n[7],
		}, nil
	case 10:
		return stats{
			created: n[0], released: n[1], allocated: n[2], freed: n[3], total: n[4], versionArray: n[5], free: n[6],
			evicted: &n[7], loadedBack: &n[8], backingFreed: &n[9],
		}, nil
	}
	return stats{}, fmt.Errorf("%w: %d numbers, not 8 or 10", errFormat, len(n))
}

// enclave is a line of /proc/sgx_enclaves. Values that a format lacks are absent.
type enclave struct {
	pid, id, size   uint64 // size in bytes
	added, resident uint64 // pages

	versionArray, flags, pagedOut *uint64
}

const flagInitialized = 1 << 0 // SGX_ENCL_INITIALIZED of the legacy driver, sgx.h

// parseEnclaves parses one line for each enclave: pid, id, size, pages added, resident pages. The driver of
// sgxtop-rs adds version array pages, flags, pages in main memory and the start time. More columns may follow.
// Invalid lines are skipped and reported by the error.
func parseEnclaves(data []byte) ([]enclave, error) {
	var all []enclave
	var errs []error
	for line := range bytes.Lines(data) {
		n, err := parseNumbers(line)
		switch {
		case err == nil && len(n) == 0:
			continue
		case err == nil && len(n) < 5:
			err = fmt.Errorf("%w: %d columns, not 5 or more", errFormat, len(n))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e := enclave{pid: n[0], id: n[1], size: n[2], added: n[3], resident: n[4]}
		for i, field := range []**uint64{&e.versionArray, &e.flags, &e.pagedOut} {
			if len(n) > 5+i {
				*field = &n[5+i]
			}
		}
		all = append(all, e)
	}
	return unique(all), firstOf(errs)
}

// unique sorts enclaves by size, largest first, and drops further lines of the same enclave, because a series can
// have only one value.
func unique(all []enclave) []enclave {
	slices.SortStableFunc(all, func(a, b enclave) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.id, b.id), cmp.Compare(a.pid, b.pid))
	})
	seen := map[[2]uint64]bool{}
	return slices.DeleteFunc(all, func(e enclave) bool {
		key := [2]uint64{e.id, e.pid}
		again := seen[key]
		seen[key] = true
		return again
	})
}

// firstOf shortens the errors, so that an invalid file does not fill the log.
func firstOf(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d lines, the first: %w", len(errs), errs[0])
}
