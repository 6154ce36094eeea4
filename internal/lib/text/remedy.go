// SPDX-License-Identifier: Apache-2.0

package text

import (
	"errors"
	"fmt"
	"io/fs"
)

// Remedy adds advice to the error of opening a file that the user named, if the file does not exist. The alternative to
// another path may be empty. Other errors stay as they are.
func Remedy(err error, alternative string) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case alternative == "":
		return fmt.Errorf("%w; correct the path", err)
	}
	return fmt.Errorf("%w; correct the path, or %s", err, alternative)
}
