// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"testing"
)

func TestOneENCLUOfTheVDSOIsFound(t *testing.T) {
	offset, err := encluOfVDSO()
	if errors.Is(err, ErrNoVDSO) {
		t.Skip("this kernel is built without SGX")
	}
	if err != nil || offset == 0 {
		t.Errorf("%#x, %v", offset, err)
	}
}
