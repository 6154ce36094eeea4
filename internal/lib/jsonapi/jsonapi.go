// SPDX-License-Identifier: Apache-2.0

// Package jsonapi reads JSON bodies of requests and answers with JSON, errors in the format of the Prometheus API. Commands
// print JSON with it too.
//
// It does not depend on what a body means.
package jsonapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// maxBody is the maximum size of a body in bytes.
const maxBody = 64 << 10

// The types of errors, as Prometheus names them.
const (
	BadData   = "bad_data"
	NotFound  = "not_found"
	Execution = "execution"
	Forbidden = "forbidden"
	Timeout   = "timeout"
	Internal  = "internal"
)

// Read reads a JSON body into a value. The parameter what names the value in errors, such as "silence". If the body is
// invalid, Read answers the request and returns false. A member that the value does not have is an error, because it is
// probably misspelled. The header must say that the body is JSON: another site cannot make a browser send that.
func Read(w http.ResponseWriter, r *http.Request, what string, into any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Refuse(w, http.StatusUnsupportedMediaType, BadData, errors.New("the body must be JSON, with the header Content-Type: application/json"))
		return false
	}
	if err := decode(http.MaxBytesReader(w, r.Body, maxBody), what, into); err != nil {
		Refuse(w, http.StatusBadRequest, BadData, err)
		return false
	}
	return true
}

func decode(body io.Reader, what string, into any) error {
	in := json.NewDecoder(body)
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("the body is not a %s: %w", what, err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the body has more than one %s", what)
	}
	return nil
}

// Print writes a value as indented JSON.
func Print(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// Answer answers with a value as JSON.
func Answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(value) // the only error is a client that disconnected
}

// Refuse answers in the format of the Prometheus API, so that a client handles both in the same way.
func Refuse(w http.ResponseWriter, status int, kind string, err error) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": err.Error()})
}
