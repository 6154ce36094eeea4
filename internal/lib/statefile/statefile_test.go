// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var errNotStored = errors.New("the words could not be written")

func of(path string) *File[string] {
	return &File[string]{Path: path, Most: 8, What: "the words", Loss: "there are none", NotStored: errNotStored, Parse: func(data []byte) (word string, err error) {
		if err := json.Unmarshal(data, &word); err != nil {
			return "", errors.New("bad words")
		}
		return word, nil
	}}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	for _, tt := range []struct{ content, state, reason, stays string }{
		{`"good"`, "good", "", "words"},
		{"bad", "before", "the words cannot be read, so there are none; the file is " + path + ".bad: bad words", "words.bad"},
		{"too long a word", "before", "the words cannot be read, so there are none; the file is " + path + ".bad: ", "words.bad"},
	} {
		if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		state, f := "before", of(path)
		err := f.Read(&state)
		if state != tt.state || (err == nil) != (tt.reason == "") || err != nil && !strings.HasPrefix(err.Error(), tt.reason) {
			t.Errorf("%q: %q, %v", tt.content, state, err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), tt.stays)); err != nil {
			t.Errorf("%q: %v", tt.content, err)
		}
		if err := f.Retry(&state); err != nil {
			t.Errorf("%q: read again: %v", tt.content, err)
		}
	}
	for _, absent := range []*File[string]{of(""), of(path)} { // the last one was renamed
		state := "before"
		if err := errors.Join(absent.Read(&state), absent.Retry(&state)); err != nil || state != "before" {
			t.Errorf("without a file: %q, %v", state, err)
		}
	}
	if err := of("").Write("x"); err != nil {
		t.Errorf("without a path: %v", err)
	}
}

// A directory cannot be read, also by root.
func TestAFileThatCannotBeReadNowIsReadLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	state, f := "before", of(path)
	for _, read := range []func(*string) error{f.Read, f.Retry} {
		if err := read(&state); err == nil || !strings.Contains(err.Error(), "the words cannot be read now, so there are none: ") || state != "before" {
			t.Errorf("%q, %v", state, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatalf("it was renamed: %v", err)
	}
	if err := f.Write("good"); err != nil {
		t.Fatal(err)
	}
	if err := f.Retry(&state); err != nil || state != "good" {
		t.Errorf("%q, %v", state, err)
	}
	state = "changed"
	if err := f.Retry(&state); err != nil || state != "changed" {
		t.Errorf("a file that was read is read again: %q, %v", state, err)
	}
}

// A state that is not stored leaves the file, and the error says so.
func TestWhatIsNotStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words")
	f, state := of(path), ""
	if err := f.Write("good"); err != nil {
		t.Fatal(err)
	}
	if err := f.Write("too long"); !errors.Is(err, ErrFull) || f.Read(&state) != nil || state != "good" {
		t.Errorf("larger than is read: %v, and the file has %q", err, state)
	}
	if err := of(filepath.Join(path, "x")).Write("good"); !errors.Is(err, errNotStored) {
		t.Errorf("below a file: %v", err)
	}
}
