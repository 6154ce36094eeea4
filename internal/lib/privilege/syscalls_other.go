// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package privilege

import "fmt"

func unneeded(Role) (filter, error) {
	return filter{}, fmt.Errorf("seccomp is %w: teescope has no filter for this processor", errUnsupported)
}
