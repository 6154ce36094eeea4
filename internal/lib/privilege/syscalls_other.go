// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package privilege

import "fmt"

func unneeded(Role) (filter, error) {
	return filter{}, fmt.Errorf("a filter of system calls is %w: there is none for this processor", ErrUnsupported)
}
