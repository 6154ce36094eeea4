// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/teescope/teescope/internal/lib/requester"
)

// An agent that does not answer is an error in the form that all errors of the API have.
func TestPassWithoutAnAgent(t *testing.T) {
	gone := New(func(context.Context) (net.Conn, error) { return nil, errors.New("no agent is there") })
	w := httptest.NewRecorder()
	gone.Pass().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/control", nil))
	var said struct{ Status, ErrorType, Error string }
	if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != http.StatusBadGateway ||
		said.Status != "error" || said.ErrorType != "execution" || said.Error != "asking the agent: no agent is there" {
		t.Errorf("%d %s, %v", w.Code, w.Body, err)
	}
}

// The agent learns the user whose password was checked, and neither the password nor what a client claims.
func TestPassSaysWhoAsks(t *testing.T) {
	var by string
	var verified bool
	agent := httptest.NewServer(requester.FromLink(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if by, verified = requester.Of(r, ""); r.Header.Get("Authorization") != "" {
			t.Error("the agent gets a password")
		}
	})))
	defer agent.Close()
	pass := New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", agent.Listener.Addr().String())
	}).Pass()
	for _, user := range []string{"", "ann", "Ünal"} {
		r := httptest.NewRequest(http.MethodGet, "/api/control", nil)
		r.SetBasicAuth("mallory", "not checked")
		r.Header.Set("Teescope-User", "root")
		if user != "" {
			r = requester.With(r, user)
		}
		if pass.ServeHTTP(httptest.NewRecorder(), r); by != user || verified != (user != "") {
			t.Errorf("the agent got %q, %v; want %q", by, verified, user)
		}
	}
}

// Clients that ask much do not delay the server's own questions, or it would look as if the agent hung.
func TestClientsDoNotDelayTheServer(t *testing.T) {
	slow, end := make(chan struct{}, 100), make(chan struct{})
	agent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/top/threads" {
			slow <- struct{}{}
			<-end
		}
	}))
	defer agent.Close()
	of := New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", agent.Listener.Addr().String())
	})
	pass := of.Pass()
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			pass.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/top/threads?workload=w", nil))
		})
	}
	for range maxClients {
		<-slow
	}
	if err := of.Hangs(); err != nil {
		t.Errorf("the agent seems to hang: %v", err)
	}
	close(end)
	clients.Wait()
}
