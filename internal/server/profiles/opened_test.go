// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// open sends files as the page does.
func open(t *testing.T, s *Store, path string, files ...[]byte) (int, string) {
	t.Helper()
	return openUntil(t.Context(), t, s, path, files...)
}

func openUntil(ctx context.Context, t *testing.T, s *Store, path string, files ...[]byte) (int, string) {
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
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, &body)
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
	var others []func()
	for i := range maxUploads {
		others = append(others, s.uploads.Take(t.Context(), fmt.Sprintf("192.0.2.%d:1", 100+i)))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if status, body := openUntil(gone, t, s, "/api/profiles/tree", one); status != 503 {
		t.Errorf("with other uploads: %d %s", status, body)
	}
	// A page sends its files twice at a time, and again when another span is chosen, so a request waits for a place.
	if status, body := openUntil(leaving{t.Context(), sync.OnceFunc(others[0])}, t, s, "/api/profiles/tree", one); status != 200 {
		t.Errorf("after another upload: %d %s", status, body)
	}
}

// sender is a client that sends a body in parts, and the connection's deadlines of reading.
type sender struct {
	*httptest.ResponseRecorder
	parts [][]byte // nil: it sends nothing until the deadline
	until []time.Time
}

func (c *sender) SetReadDeadline(at time.Time) error {
	c.until = append(c.until, at)
	return nil
}

func (c *sender) Read(b []byte) (int, error) {
	if len(c.parts) == 0 {
		return 0, io.EOF
	}
	part := c.parts[0]
	c.parts = c.parts[1:]
	if part == nil {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(b, part), nil
}

// A client that sends too slowly gives up its place. What it has sent moves its deadline, which ends with the files.
func TestSlowUploadsEnd(t *testing.T) {
	s := filled(t, 0, nil)
	for _, tt := range []struct {
		parts   [][]byte
		seconds []float64
		status  int
	}{
		{[][]byte{nil}, []float64{5}, 408},
		{[][]byte{make([]byte, 96), nil}, []float64{5, 5 + 96./uploadRate}, 408},
		{[][]byte{make([]byte, 300), make([]byte, 200)}, []float64{5, 5 + 300./uploadRate, 5 + 500./uploadRate}, 400}, // no files
	} {
		c := &sender{ResponseRecorder: httptest.NewRecorder(), parts: tt.parts}
		began := time.Now()
		s.ServeHTTP(c, httptest.NewRequest(http.MethodPost, "/api/profiles/tree", c))
		if _, held := s.uploads.Requests(); c.Code != tt.status || held != 0 {
			t.Errorf("%d %s, %d places are held", c.Code, c.Body, held)
		}
		if closes := c.Header().Get("Connection") == "close"; closes != (tt.status == 408) {
			t.Errorf("%d: the header is %v", c.Code, c.Header())
		}
		if tt.status == 400 { // the answer has no deadline
			if last := c.until[len(c.until)-1]; !last.IsZero() {
				t.Errorf("the deadline of the answer is %v", last)
			}
			c.until = c.until[:len(c.until)-1]
		}
		if len(c.until) != len(tt.seconds) {
			t.Fatalf("deadlines %v, want %d", c.until, len(tt.seconds))
		}
		for i, at := range c.until {
			if after := at.Sub(c.until[0]).Seconds() + 5; math.Abs(after-tt.seconds[i]) > 1e-6 || at.Before(began.Add(uploadTime)) {
				t.Errorf("deadline %d is %v after the beginning, want %v", i, after, tt.seconds[i])
			}
		}
	}
	if whole := uploadTime + maxOpenedBytes*time.Second/uploadRate; whole > patience {
		t.Errorf("files of the largest size may take %v, others wait for %v", whole, patience)
	}
}

// leaving is a context that ends another upload when something waits.
type leaving struct {
	context.Context
	end func()
}

func (l leaving) Done() <-chan struct{} {
	l.end()
	return l.Context.Done()
}

// slowly is a body that does not arrive before the test ends it.
type slowly struct {
	begun chan<- struct{}
	ended <-chan struct{}
}

func (b slowly) Read([]byte) (int, error) {
	b.begun <- struct{}{}
	<-b.ended
	return 0, os.ErrDeadlineExceeded
}

// Two clients that send slowly, each with as many requests as it likes, leave a place for a third one.
func TestSlowClientsLeaveAPlace(t *testing.T) {
	s := filled(t, 0, nil)
	begun, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 10 {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/profiles/tree", slowly{begun, ended})
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:%d", 100+i%2, i+1)
		all.Go(func() { s.ServeHTTP(httptest.NewRecorder(), r) })
	}
	<-begun
	<-begun
	one := timed(t, "cpu", []taken{{1, "8", "work", false, profile.Label{}, 1}})
	if status, body := open(t, s, "/api/profiles/tree", one); status != 200 {
		t.Errorf("a third client: %d %s", status, body)
	}
	cancel()
	go func() {
		for range begun { // requests that got a place of an ended one
		}
	}()
	close(ended)
	all.Wait()
	close(begun)
	if clients, held := s.uploads.Requests(); clients+held > 0 {
		t.Errorf("%d clients have %d places", clients, held)
	}
}

// What decompresses to gigabytes does not occupy the place of queries after their time.
func TestOpenedFilesAreReadForALimitedTime(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	parts := multipart.NewReader(strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"a\"\r\n\r\nmain;work 1\n\r\n--x--\r\n"), "x")
	part, err := parts.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	var o opened
	if err := o.add(gone, part); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// The compressed bytes are read in about ten steps. The time ends while their stacks are added up.
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	line := strings.Repeat("a;", 4000) + "b 1\n"
	for range 2000 {
		_, _ = w.Write([]byte(line))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	body := "--x\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"a\"\r\n\r\n" + packed.String() + "\r\n--x--\r\n"
	if part, err = multipart.NewReader(strings.NewReader(body), "x").NextPart(); err != nil {
		t.Fatal(err)
	}
	if err := o.add(&ending{t.Context(), 20}, part); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// ending is a context that ends when it was asked often enough.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A small file that needs much memory is refused before it is parsed: 2,000,000 empty samples are a few kB of gzip.
func TestOpenedFilesNeedLimitedMemory(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte{0x0a, 0x00, 0x32, 0x00}) // an empty type of values, an empty string
	for range 20 {
		_, _ = w.Write(bytes.Repeat([]byte{0x12, 0x00}, 100_000)) // empty samples
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if status, body := open(t, filled(t, 0, nil), "/api/profiles/tree", packed.Bytes()); status != 400 || !strings.Contains(body, "would need more than 256 MiB of memory") {
		t.Errorf("%d %.200s", status, body)
	}
}

// The clock of the machine that recorded a file may be ahead.
func TestOpenedFilesOfTheFutureAreShown(t *testing.T) {
	s := filled(t, 0, nil)
	ahead := time.Since(epoch) + time.Hour
	future := timedAt(t, epoch.Add(ahead), "cpu", []taken{{ahead.Seconds() + 1, "8", "work", false, profile.Label{}, 100}})
	var tree write.Tree
	if status, body := open(t, s, "/api/profiles/tree", future); status != 200 || json.Unmarshal([]byte(body), &tree) != nil || tree.Total != 100e6 {
		t.Errorf("%d %.300s", status, body)
	}
	var got threadsAnswer
	if status, body := open(t, s, "/api/profiles/threads", future); status != 200 || json.Unmarshal([]byte(body), &got) != nil || len(got.Threads) != 1 {
		t.Errorf("%d %.300s", status, body)
	}
}

// A slow client is one that reads nothing while the test looks.
type slow struct {
	http.ResponseWriter
	s    *Store
	held *int
}

func (w slow) Write(b []byte) (int, error) {
	_, uploads := w.s.uploads.Requests()
	_, turns := w.s.turns.Requests()
	*w.held += len(w.s.queries) + uploads + turns
	return w.ResponseWriter.Write(b)
}

// The place of queries is for reading profiles, and not for sending answers.
func TestSlowClientsHoldNoPlace(t *testing.T) {
	s := filled(t, 1, nil)
	get := func(path string) *http.Request {
		return httptest.NewRequest(http.MethodGet, path+"start="+at(0)+"&end="+at(1), nil)
	}
	post := httptest.NewRequest(http.MethodPost, "/api/profiles/tree", strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"a\"\r\n\r\nmain;work 1\n\r\n--x--\r\n"))
	post.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	for _, r := range []*http.Request{get("/api/profiles/tree?"), get("/api/profiles/threads?"), get("/api/profiles/merged?format=html&"), post} {
		held, answer := 0, httptest.NewRecorder()
		s.ServeHTTP(slow{answer, s, &held}, r)
		if answer.Code != 200 || answer.Body.Len() == 0 || held > 0 {
			t.Errorf("%s: %d with %d bytes, %d places are held", r.URL, answer.Code, answer.Body.Len(), held)
		}
	}
}
