// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/teescope/teescope/internal/run/profile"
)

// TestLongAttributesAreNotCopied: many samples, and one many times, may refer to the same long text.
func TestLongAttributesAreNotCopied(t *testing.T) {
	read := func(references int) error {
		all := pprofile.NewProfiles()
		d := all.Dictionary()
		d.StringTable().Append("", "key")
		d.StackTable().AppendEmpty()
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(1)
		a.Value().SetStr(strings.Repeat("x", 1<<20))
		s := all.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
		s.Values().Append(1)
		for range references {
			s.AttributeIndices().Append(0)
		}
		data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(all)
		if err != nil {
			t.Fatal(err)
		}
		limits := profile.DefaultLimits()
		limits.Bytes = 1 << 20
		_, err = Read(bytes.NewReader(data), Options{}, limits)
		return err
	}
	if err := read(maxAttributes); err != nil {
		t.Error(err)
	}
	if err := read(maxAttributes + 1); !errors.Is(err, profile.ErrLimit) {
		t.Errorf("one attribute too many: %v", err)
	}
}

// TestNamesOfCallgrindAreBounded: names that no function uses take memory too.
func TestNamesOfCallgrindAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("# callgrind format\nevents: Ir\n")
	for i := range 300 {
		fmt.Fprintf(&b, "cfn=(%d) %s\n", i, strings.Repeat("x", 4000))
	}
	limits := profile.DefaultLimits()
	limits.Bytes = 1 << 20
	if _, err := Read(strings.NewReader(b.String()), Options{}, limits); !errors.Is(err, profile.ErrLimit) {
		t.Error(err)
	}
}

// TestNestedAttributesAreNoLabels: a label is one value.
func TestNestedAttributesAreNoLabels(t *testing.T) {
	o := otlp{limits: profile.DefaultLimits()}
	nested, one := pcommon.NewValueSlice(), pcommon.NewValueInt(7)
	nested.Slice().AppendEmpty().SetStr("x")
	if got := o.value(nested) + o.value(pcommon.NewValueMap()) + o.value(one); got != "7" {
		t.Errorf("%q", got)
	}
}
