// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const id = "0123456789abcdef0123456789abcdef01234567"

// server answers requests by their paths, and counts them.
func server(t *testing.T, answers map[string]string) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		switch answer := answers[r.URL.Path]; answer {
		case "":
			http.NotFound(w, r)
		case "broken":
			http.Error(w, "\x1b[31mno", http.StatusInternalServerError)
		case "huge":
			w.Header().Set("Content-Length", fmt.Sprint(int64(maxFile)+1))
		case "cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// The second server has the file. It is downloaded once, also by a later client.
func TestFetch(t *testing.T) {
	none, askedNone := server(t, nil)
	has, asked := server(t, map[string]string{"/sub/buildid/" + id + "/debuginfo": "content"})
	cache := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		c, err := New([]string{none, has + "/sub/"}, cache, nil)
		if err != nil {
			t.Fatal(err)
		}
		path, err := c.Fetch(id, true)
		if err != nil || path != filepath.Join(cache, id, "debuginfo") {
			t.Fatalf("%q, %v", path, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "content" {
			t.Errorf("%q, %v", data, err)
		}
		for range 2 {
			if _, err := c.Fetch(id, false); !errors.Is(err, ErrNone) {
				t.Error(err)
			}
		}
	}
	// Once for the debug file, and once by each client for the program, which is missing.
	if len(*asked) != 3 || len(*askedNone) != 3 {
		t.Errorf("asked for %q and %q", *asked, *askedNone)
	}
	if left, err := filepath.Glob(filepath.Join(cache, id, "*.*")); err != nil || len(left) != 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// Problems are named, and a server that has them is not asked for ever.
func TestProblems(t *testing.T) {
	for answer, want := range map[string]string{
		"broken": "answered 500 Internal Server Error",
		"huge":   "has 2048 MiB, and at most 2048 are downloaded",
		"cut":    "unexpected EOF",
	} {
		answers := map[string]string{}
		for i := range 9 {
			answers[fmt.Sprintf("/buildid/%d%s/debuginfo", i, id)] = answer
		}
		url, asked := server(t, answers)
		cache := t.TempDir()
		c, err := New([]string{url}, cache, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Fetch("0"+id, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", answer, err)
		}
		for i := 1; i < 9; i++ {
			if _, err := c.Fetch(fmt.Sprint(i)+id, true); err == nil {
				t.Errorf("%s: a file", answer)
			}
		}
		if len(*asked) != maxFailures {
			t.Errorf("%s: asked %d times", answer, len(*asked))
		}
		if left, err := filepath.Glob(filepath.Join(cache, "*", "*")); err != nil || len(left) != 0 {
			t.Errorf("%s: left %q, %v", answer, left, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, servers := range [][]string{nil, {"ftp://host"}, {"host"}, {"http://"}, {"http://host", "%"}} {
		if _, err := New(servers, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "DEBUGINFOD_URLS") {
			t.Errorf("%q: %v", servers, err)
		}
	}
	url, asked := server(t, nil)
	c, err := New([]string{url}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "../../etc", "0123", strings.Repeat("a", 200), "ABCDEF0123"} {
		if _, err := c.Fetch(bad, true); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if len(*asked) != 0 {
		t.Errorf("asked for %q", *asked)
	}
}
