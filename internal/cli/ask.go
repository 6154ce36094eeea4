// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

// errNoSuchAPI is returned when a server does not answer a path.
var errNoSuchAPI = errors.New("the server does not have this API")

// askAPI sends a request to a path of an API of teescope, and returns the answer, which has at most the given size. A
// body is JSON. It also returns the name of the server for messages.
func askAPI(ctx context.Context, address string, access remote.Access, method, path string, q url.Values, body []byte, most int64) (answer []byte, target string, err error) {
	server, err := remote.New("--server", address, access, perQuery)
	if err != nil {
		return nil, "", err
	}
	return ask(ctx, server, method, path, q, body, "application/json", most)
}

// ask does the same with a body of another type.
func ask(ctx context.Context, server *remote.Server, method, path string, q url.Values, body []byte, contentType string, most int64) (answer []byte, target string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, server.URL(path), bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.URL.RawQuery = q.Encode()
	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		return nil, "", server.Explain(err)
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(io.LimitReader(resp.Body, most)); err != nil {
		return nil, "", server.Explain(err)
	}
	if resp.StatusCode/100 == 2 {
		return answer, server.Target(), nil
	}
	return nil, server.Target(), &refusal{refused(server, resp.StatusCode, answer), resp.StatusCode}
}

// decoded decodes the answer of a server, whose name is for the message.
func decoded(answer []byte, target string, into any) error {
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer of %s is not in teescope's format: %w", target, err)
	}
	return nil
}

// refused says why a server refused a request.
func refused(server *remote.Server, status int, answer []byte) error {
	var said struct{ Error string }
	switch err := json.Unmarshal(answer, &said); {
	case err == nil && said.Error != "":
		return fmt.Errorf("%s: %s", server.Target(), text.Terminal(said.Error))
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return errNoSuchAPI
	}
	return server.ExplainStatus(status, answer)
}

// refusal is the error of a request that a server refused.
type refusal struct {
	error
	status int
}

func (r *refusal) Unwrap() error { return r.error }
