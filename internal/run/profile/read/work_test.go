// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/teescope/teescope/internal/run/profile"
)

// longLabels returns a request of samples of one stack, each with as many labels of 4000 bytes as a sample may have, and times.
func longLabels(t *testing.T, samples, times int) []byte {
	t.Helper()
	out := pprofile.NewProfiles()
	d := out.Dictionary()
	d.StringTable().Append("", "samples")
	d.FunctionTable().AppendEmpty()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	for i := range int32(maxAttributes) {
		d.StringTable().Append("key" + strconv.Itoa(int(i)))
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(i + 2)
		a.Value().SetStr(strconv.Itoa(int(i)) + strings.Repeat("x", 4000))
	}
	p := out.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	for range samples {
		s := p.Samples().AppendEmpty()
		for i := range int32(maxAttributes) {
			s.AttributeIndices().Append(i + 1)
		}
		for n := range times {
			s.TimestampsUnixNano().Append(uint64(n + 1))
		}
	}
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLabelsAreResolvedOncePerSample counts how often a reader asks for its end, which it does for each MiB that it looks up. The
// labels of the sample have half a MiB.
func TestLabelsAreResolvedOncePerSample(t *testing.T) {
	const times = 2000
	limits, asked := profile.DefaultLimits(), 0
	limits.Ended = func() error { asked++; return nil }
	p, err := Read(bytes.NewReader(longLabels(t, 1, times)), Options{Times: true}, limits)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Samples) != times || len(p.LabelSets[p.Samples[times-1].Labels]) != maxAttributes || p.Samples[times-1].At != times {
		t.Errorf("%d samples, the last %v", len(p.Samples), p.Samples[len(p.Samples)-1])
	}
	if asked > 2 {
		t.Errorf("%d MiB of labels and stacks are looked up for one sample", asked)
	}
}

// TestReadingEnds: many samples that share long labels need much time and no memory, so reading ends when the caller says so.
func TestReadingEnds(t *testing.T) {
	ended := errors.New("its time has ended")
	limits, asked := profile.DefaultLimits(), 0
	limits.Ended = func() error {
		if asked++; asked < 3 {
			return nil
		}
		return ended
	}
	if _, err := Read(bytes.NewReader(longLabels(t, 100, 1)), Options{}, limits); !errors.Is(err, ended) || asked != 3 {
		t.Errorf("%v after %d questions", err, asked)
	}
}
