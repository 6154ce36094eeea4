// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"

	"github.com/cilium/ebpf"
)

func ignoreMissing(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}
