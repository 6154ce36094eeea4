// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestControl(t *testing.T) {
	for _, tt := range []struct {
		allowed        bool
		err            error
		status         Status
		detail, advice string
	}{
		{true, nil, OK, "for at most 1h0m0s", ""},
		{false, nil, Limited, "not allowed", "--control.enabled"},
		{true, errors.New("no file\x1b"), Unknown, "no file\ufffd", "TEESCOPE_CONFIG"},
	} {
		o := Options{Control: func() (bool, time.Duration, error) { return tt.allowed, time.Hour, tt.err }}
		got := o.control()
		if len(got) != 1 || got[0].Status != tt.status || !strings.Contains(got[0].Detail, tt.detail) || (got[0].Advice == "") != (tt.advice == "") || !strings.Contains(got[0].Advice, tt.advice) {
			t.Errorf("%v, %v: %+v", tt.allowed, tt.err, got)
		}
	}
	if got := (Options{}).control(); got != nil {
		t.Errorf("unknown: %+v", got)
	}
}
