// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
)

// maxFile is the maximum size of a file.
const maxFile = 4 << 20

// readFile reads a file of /proc or /sys.
func readFile(root string, elem ...string) ([]byte, error) {
	return hostfs.At(root).Read(maxFile, elem...)
}

// readWord reads a file with one line about a device. It returns "" if the device has no such file or no such value,
// such as the speed of a network device that is down.
func readWord(device hostfs.Dir, name string) (string, error) {
	data, err := device.Read(maxFile, name)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.ENODEV): // the device was removed meanwhile
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// readNumber reads a file with one number.
func readNumber(root string, elem ...string) (float64, error) {
	data, err := readFile(root, elem...)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", hostfs.At(root).Path(elem...), err)
	}
	return float64(v), nil
}

// orNoData converts the absence of a file into errNoData.
func orNoData(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return errNoData
	}
	return err
}

// once detects repeated names, because a series must be emitted only once even if a file repeats a line.
type once map[string]bool

func (o once) isNew(name string) bool {
	seen := o[name]
	o[name] = true
	return !seen
}

// field is one line of a file with a name and a value.
type field struct {
	name  string
	value float64
}

// parsePairs reads lines with a name and a number: /proc/vmstat, numastat, /proc/net/snmp6. Other lines are omitted, and the
// error describes the last one.
func parsePairs(data []byte) ([]field, error) {
	var (
		all []field
		bad error
	)
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 || !isName(words[0]) {
			bad = fmt.Errorf("not a name and a number: %.80q", line)
			continue
		}
		v, err := number(words[1])
		if err != nil {
			bad = err
			continue
		}
		all = append(all, field{words[0], v})
	}
	return all, bad
}

// number parses an integer of the kernel, which may be negative.
func number(word string) (float64, error) {
	if v, err := strconv.ParseInt(word, 10, 64); err == nil {
		return float64(v), nil
	}
	v, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("no number: %.80q", word)
	}
	return float64(v), nil
}

// notFinite reports whether a value is NaN or infinite: procfs parses "nan" and "inf" too.
func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// isName reports whether a word of a file can be part of a metric's name.
func isName(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// maxFields is the maximum number of stored names of one file.
const maxFields = 2048

// fields are the families that are named after the fields of a file: known fields, and those of newer
// kernels. It needs no lock, because the registry never runs a collector concurrently.
type fields struct {
	known  []*metric.Desc
	byName map[string]*metric.Desc // nil for a name that is omitted
	wanted *regexp.Regexp          // the emitted names; nil means all
	make   func(name string) *metric.Desc
}

func newFields(known []string, wanted *regexp.Regexp, describe func(name string) *metric.Desc) *fields {
	f := &fields{byName: map[string]*metric.Desc{}, wanted: wanted, make: describe}
	for _, name := range known {
		f.known = append(f.known, f.of(name))
	}
	return f
}

// of returns the family of a field. It returns nil if the name is omitted or the limit is reached.
func (f *fields) of(name string) *metric.Desc {
	d, ok := f.byName[name]
	if ok || len(f.byName) >= maxFields {
		return d
	}
	if f.wanted == nil || f.wanted.MatchString(name) {
		d = f.make(name)
	}
	f.byName[name] = d
	return d
}

// emit emits the fields that have a family.
func (f *fields) emit(all []field, emit func(prometheus.Metric), labels ...string) {
	for _, one := range all {
		if d := f.of(one.name); d != nil {
			emit(d.Value(one.value, labels...))
		}
	}
}
