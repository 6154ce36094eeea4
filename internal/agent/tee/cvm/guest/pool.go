// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"io/fs"
	"math"

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
	n, err = hostfs.At(sys).Number("kernel/debug/swiotlb", file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return 0, false, nil
	}
	return n, err == nil, err
}
