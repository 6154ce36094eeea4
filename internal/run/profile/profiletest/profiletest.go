// SPDX-License-Identifier: Apache-2.0

// Package profiletest writes profiles and reads stored recordings for tests.
//
// It must not be imported by the program, and it judges nothing.
package profiletest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// Pprof returns a profile in pprof's format.
func Pprof(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	format, err := write.Choose("pprof", "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := format.Write(&out, p, "test"); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Unzipped returns the content of a file that is compressed by gzip.
func Unzipped(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
