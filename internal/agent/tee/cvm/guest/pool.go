// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
)

// slot is the unit of the pool: IO_TLB_SIZE (include/linux/swiotlb.h).
const slot = 2048

// emitPool emits the state of the pool of bounce buffers, as far as the kernel shows it.
func emitPool(sys string, f *families, emit func(prometheus.Metric)) error {
	size, known, err := readSlots(sys, "io_tlb_nslabs")
	if err != nil || !known || size > math.MaxUint64/slot {
		return err
	}
	emit(f.pool.Value(float64(size) * slot))
	var errs []error
	for _, part := range []struct {
		desc *metric.Desc
		file string
	}{{f.used, "io_tlb_used"}, {f.most, "io_tlb_used_hiwater"}} {
		n, known, err := readSlots(sys, part.file)
		errs = append(errs, err)
		// The count of used slots could wrap below zero before 6.9.
		if known && n <= size {
			emit(part.desc.Value(float64(n) * slot))
		}
	}
	return errors.Join(errs...)
}

// readSlots reads a number of slots. It is not known if debugfs is not mounted, or not readable for this process.
func readSlots(sys, file string) (n uint64, known bool, err error) {
	root := hostfs.At(sys)
	data, err := root.ReadWhole(64, "kernel/debug/swiotlb", file)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("reading %s: %w", root.Path("kernel/debug/swiotlb", file), err)
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("reading %s: %.20q is not a number of slots", root.Path("kernel/debug/swiotlb", file), data)
	}
	return n, true, nil
}
