// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A handler can end a request whose body does not arrive, although its answer is held in memory.
func TestHandlersLimitTheTimeOfBodies(t *testing.T) {
	failed := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(&answer{to: w, control: http.NewResponseController(w)})
		err := control.SetReadDeadline(time.Now())
		if err == nil {
			_, err = io.ReadAll(r.Body)
		}
		failed <- err
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	body, sends := io.Pipe()
	defer sends.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
		}
	}()
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading a body that does not arrive: %v", err)
	}
}
