// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// distant is an API server without a network, so that its time can be that of a synctest bubble.
type distant struct {
	away    bool
	pods    []string
	refused int
	watch   *io.PipeWriter
}

func (d *distant) RoundTrip(req *http.Request) (*http.Response, error) {
	if d.away {
		d.refused++
		return nil, errors.New("connection refused")
	}
	if req.URL.Query().Get("watch") == "true" {
		body, watch := io.Pipe()
		d.watch = watch
		context.AfterFunc(req.Context(), func() { _ = watch.CloseWithError(req.Context().Err()) }) // a pipe closes without an error
		return &http.Response{StatusCode: http.StatusOK, Body: body, Request: req}, nil
	}
	w := httptest.NewRecorder()
	page("", d.pods...)(w, req)
	return w.Result(), nil
}

// TestAPIServerAwayForTenMinutes has pods that come and go meanwhile. Nothing changes until the API server answers again, and
// then the new state is known within half a minute. It is asked once in half a minute meanwhile.
func TestAPIServerAwayForTenMinutes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "first\n")
	synctest.Test(t, func(t *testing.T) {
		there := &distant{pods: []string{pod("a", "1"), pod("b", "2")}}
		c := &Client{base: &url.URL{Scheme: "https", Host: "kubernetes.example"}, tokenFile: filepath.Join(dir, "token"), http: &http.Client{Transport: there}}
		var told []string
		failures := 0
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Follow(ctx, Follower{Client: c, Path: "/api/v1/pods", Most: 10, Failed: func(error) { failures++ }}, func(pods []Pod) {
				told = append(told, fmt.Sprint(len(pods)))
			})
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if fmt.Sprint(told) != "[2]" {
			t.Fatalf("at the start: %v", told)
		}
		there.away = true
		_ = there.watch.CloseWithError(io.ErrUnexpectedEOF) // a pipe closes without an error
		there.pods = []string{pod("b", "2"), pod("c", "8"), pod("d", "9")}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if most := int(10*time.Minute/longPause) + 5; len(told) != 1 || there.refused < most-7 || there.refused > most || failures < there.refused {
			t.Errorf("after ten minutes: %v, %d requests, %d failures", told, there.refused, failures)
		}
		there.away = false
		time.Sleep(longPause)
		synctest.Wait()
		if fmt.Sprint(told) != "[2 3]" {
			t.Errorf("afterwards: %v", told)
		}
		stop()
		<-ended
	})
}
