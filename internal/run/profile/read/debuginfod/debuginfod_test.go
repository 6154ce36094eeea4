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
	"time"
)

const id = "0123456789abcdef0123456789abcdef01234567"

func accept(string) error { return nil }

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
		path, err := c.Fetch(id, true, accept)
		if err != nil || path != filepath.Join(cache, id, "debuginfo") {
			t.Fatalf("%q, %v", path, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "content" {
			t.Errorf("%q, %v", data, err)
		}
		for range 2 {
			if _, err := c.Fetch(id, false, accept); !errors.Is(err, errNone) {
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
		if _, err := c.Fetch("0"+id, true, accept); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", answer, err)
		}
		for i := 1; i < 9; i++ {
			if _, err := c.Fetch(fmt.Sprint(i)+id, true, accept); err == nil {
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
		if _, err := c.Fetch(bad, true, accept); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if len(*asked) != 0 {
		t.Errorf("asked for %q", *asked)
	}
}

// A file that the reader refuses is not kept, also if another client has kept it. A server that sends such files is not asked
// for ever.
func TestFilesThatAreRefused(t *testing.T) {
	answers := map[string]string{}
	for i := range 9 {
		answers[fmt.Sprintf("/buildid/%d%s/executable", i, id)] = "wrong"
	}
	url, asked := server(t, answers)
	cache := t.TempDir()
	kept := filepath.Join(cache, "0"+id, "executable")
	if err := errors.Join(os.Mkdir(filepath.Dir(kept), 0o700), os.WriteFile(kept, []byte("wrong"), 0o600)); err != nil {
		t.Fatal(err)
	}
	c, err := New([]string{url}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(path string) error {
		if data, err := os.ReadFile(path); err != nil || string(data) != "right" {
			return errors.New("another file")
		}
		return nil
	}
	for i := range 9 {
		if _, err := c.Fetch(fmt.Sprint(i)+id, false, check); err == nil {
			t.Error("a file that is refused")
		}
	}
	if len(*asked) != maxFailures {
		t.Errorf("asked %d times", len(*asked))
	}
	if left, err := filepath.Glob(filepath.Join(cache, "[1-9]*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left %q, %v", left, err)
	}
	// A file of a later server replaces the one that is refused.
	answers["/buildid/0"+id+"/executable"] = "right"
	if c, err = New([]string{url}, cache, nil); err != nil {
		t.Fatal(err)
	}
	if path, err := c.Fetch("0"+id, false, check); err != nil || path != kept || check(kept) != nil {
		t.Errorf("%q, %v", path, err)
	}
}

// A profile may have any number of build IDs. The requests are limited.
func TestRequestsAreLimited(t *testing.T) {
	url, asked := server(t, nil)
	c, err := New([]string{url}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxRequests + 10 {
		_, err := c.Fetch(fmt.Sprintf("%040x", i), false, accept)
		if want := map[bool]error{true: errNone, false: errLimit}[i < maxRequests]; !errors.Is(err, want) {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if len(*asked) != maxRequests {
		t.Errorf("asked %d times", len(*asked))
	}
	// When the time is over, there are no more either.
	if c, err = New([]string{url}, t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	c.until = time.Now()
	if _, err := c.Fetch(id, false, accept); !errors.Is(err, errLimit) {
		t.Error(err)
	}
}

// What was to be encrypted is not sent or received in the clear.
func TestRedirections(t *testing.T) {
	plain, asked := server(t, map[string]string{"/buildid/" + id + "/executable": "content"})
	secure := httptest.NewTLSServer(http.RedirectHandler(plain+"/buildid/"+id+"/executable", http.StatusFound))
	t.Cleanup(secure.Close)
	c, err := New([]string{secure.URL}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = secure.Client().Transport
	if _, err := c.Fetch(id, false, accept); err == nil || !strings.Contains(err.Error(), "redirected from https to http") || len(*asked) != 0 {
		t.Errorf("%v, asked for %q", err, *asked)
	}
}
