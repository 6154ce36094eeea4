// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"reflect"
	"strconv"
	"testing"
)

func TestEqualLabelsAreOneMap(t *testing.T) {
	written := 0
	labels := func() map[string]string {
		written++
		return map[string]string{"workload": strconv.Itoa(written)}
	}
	same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	set := LabelSetOf(SharingLabels(t.Context()))
	first := set.Of([]byte("a"), labels)
	if again := set.Of([]byte("a"), labels); !same(first, again) || written != 1 {
		t.Errorf("equal labels are written %d times", written)
	}
	if other := set.Of([]byte("b"), labels); same(first, other) {
		t.Error("different labels are one map")
	}
	for i := range 3 * mostShared {
		set.Of([]byte(strconv.Itoa(i)), labels)
	}
	if n := len(set.maps); n > mostShared {
		t.Errorf("%d maps are kept", n)
	}
	none := LabelSetOf(context.Background())
	if a, b := none.Of([]byte("a"), labels), none.Of([]byte("a"), labels); none != nil || same(a, b) {
		t.Error("labels are shared outside of an evaluation")
	}
}
