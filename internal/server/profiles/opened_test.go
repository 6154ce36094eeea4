// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// open sends files as the page does.
func open(t *testing.T, s *Store, path string, files ...[]byte) (int, string) {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i, data := range files {
		part, err := w.CreateFormFile("profile", fmt.Sprintf("file%d.pb.gz", i))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", w.FormDataContentType())
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}

// Two recordings of one thread, of its CPU time and its waits, are one row. Each has its own tree, also of a span.
func TestOpenedFilesAreShownTogether(t *testing.T) {
	s := filled(t, 0, nil)
	cpu := timed(t, "cpu", []taken{{1, "8", "work", false, profile.Label{}, 100}, {2, "8", "work", false, profile.Label{}, 30}})
	waits := timed(t, "off-cpu", []taken{{1.5, "8", "poll", true, profile.Label{Key: profile.Reason, Value: "disk"}, 400}})
	status, body := open(t, s, "/api/profiles/threads", cpu, waits)
	var got threadsAnswer
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Fatal(status, body)
	}
	if want := [][3]int64{{2, 0, 100e6}, {3, 1, 400e6}, {4, 0, 30e6}}; len(got.Threads) != 1 || !reflect.DeepEqual(got.Threads[0].Pieces, want) || !reflect.DeepEqual(got.States, []string{"user", "waits: disk"}) {
		t.Errorf("%s", body)
	}
	second := fmt.Sprintf("?start=%d&end=%d", epoch.Unix()+2, epoch.Unix()+3)
	for path, want := range map[string]int64{"": 130e6, "?file=1": 400e6, second: 30e6, "?file=9": 130e6, "?label=tid:9": 0, second + "&file=1": 0} {
		var tree write.Tree
		status, body := open(t, s, "/api/profiles/tree"+path, cpu, waits)
		if err := json.Unmarshal([]byte(body), &tree); err != nil || status != 200 || tree.Total != want {
			t.Errorf("%s: %d, total %d, want %d", path, status, tree.Total, want)
		}
	}
	if len(s.entries) != 0 {
		t.Error("the server keeps what was opened")
	}
}

func TestOpenedFilesAreBounded(t *testing.T) {
	s := filled(t, 0, nil)
	one := timed(t, "cpu", []taken{{1, "8", "work", false, profile.Label{}, 1}})
	for want, files := range map[string][][]byte{
		"more than 4 files":     {one, one, one, one, one},
		"has no file":           {},
		"unknown format":        {[]byte("\x00\x01nothing")},
		"which may have 16 MiB": {make([]byte, maxOpenedBytes+1)},
	} {
		if status, body := open(t, s, "/api/profiles/tree", files...); status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", want, status, body)
		}
	}
	for range maxUploads {
		s.uploads <- struct{}{}
	}
	if status, body := open(t, s, "/api/profiles/tree", one); status != 503 {
		t.Errorf("with other uploads: %d %s", status, body)
	}
}
