// SPDX-License-Identifier: Apache-2.0

// Package kubernetes reads objects from the API of the cluster that this process runs in, and follows their changes.
//
// It uses plain HTTP and JSON, so that the binary needs no client library, and it decodes only the fields that its
// users name. It only reads. The protocol: https://kubernetes.io/docs/reference/using-api/api-concepts/.
package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// AccountDir is where Kubernetes puts the credentials of a pod's service account.
const AccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

const (
	maxSecret = 1 << 20
	// maxBody is the largest page of a list, and maxObject the largest change of a watch, in bytes. etcd stores objects of
	// 1.5 MiB at most. As JSON, a byte can take six.
	maxBody   = 64 << 20
	maxObject = 12 << 20
	// pageSize is the number of objects in a page of a list.
	pageSize = 250
	// answerWithin is the time limit for a page, and for the start of a watch.
	answerWithin = 30 * time.Second
)

// errOutside reports that the process does not run in a pod.
var errOutside = errors.New("this process is not in a pod of Kubernetes: KUBERNETES_SERVICE_HOST and _PORT are not set")

// Client queries the API server with the token of the pod's service account. The token is read for each request, because
// Kubernetes replaces it.
type Client struct {
	base      *url.URL
	tokenFile string
	http      *http.Client
}

// Connect returns the client of a pod, as [inCluster] does. If the credentials cannot be read, it passes the reason to
// failed and tries again. It returns nil when ctx ends. Outside a pod it returns errOutside at once.
func Connect(ctx context.Context, getenv func(string) string, dir string, failed func(error)) (*Client, error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		client, err := inCluster(getenv, dir)
		if err == nil || errors.Is(err, errOutside) {
			return client, err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // the end is not an error
		case <-time.After(pause):
		}
	}
}

// inCluster returns the client of a pod. Getenv is os.Getenv, and dir is [AccountDir], except in tests.
func inCluster(getenv func(string) string, dir string) (*Client, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errOutside
	}
	authorities, err := inputfile.Read(filepath.Join(dir, "ca.crt"), maxSecret)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the cluster: %w (the pod needs automountServiceAccountToken)", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(dir, "ca.crt"))
	}
	base := &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}
	return &Client{base: base, tokenFile: filepath.Join(dir, "token"), http: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ResponseHeaderTimeout: answerWithin, TLSHandshakeTimeout: answerWithin, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// get opens an answer, which the caller closes.
func (c *Client) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	token, err := inputfile.Read(c.tokenFile, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("reading the token of the service account: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer func() { _ = answer.Body.Close() }() // nothing was written
		return nil, refused(answer)
	}
	return answer.Body, nil
}

// statusError is an answer that is not an object.
type statusError struct {
	code int
	text string
}

// Error implements error.
func (e *statusError) Error() string { return e.text }

// refused describes an answer with an error. Its message names the service account and the right that is missing.
func refused(answer *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 4096)) // what was read is shown
	var status struct{ Message string }
	said := string(body)
	if decode(body, &status) == nil && status.Message != "" {
		said = status.Message
	}
	return &statusError{answer.StatusCode, fmt.Sprintf("the API server answers %s: %s", answer.Status, text.Terminal(said))}
}
