// SPDX-License-Identifier: Apache-2.0

package top

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
)

// Access is what an agent may want to be asked with, besides its address.
type Access struct {
	CAFile       string // certificates of authorities, in PEM; the system's are trusted too
	PasswordFile string // the password of the user that the address names
}

// maxPassword bounds what is read of a file with a password, in bytes.
const maxPassword = 4 << 10

// NewClient makes a client for HOST:PORT, or for a URL, which may have a user, a password and the path
// that a proxy has put before the agent's.
func NewClient(target string, a Access) (*Client, error) {
	u, err := address(target, a.CAFile != "")
	if err != nil {
		return nil, err
	}
	c := &Client{http: http.Client{Timeout: askWithin}, user: u.User.Username()}
	c.password, _ = u.User.Password()
	if a.PasswordFile != "" {
		if c.password, err = readPassword(a.PasswordFile, c.user); err != nil {
			return nil, err
		}
	}
	if c.http.Transport, err = transport(a.CAFile); err != nil {
		return nil, err
	}
	u.User = nil
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/metrics")
	c.target = strings.TrimPrefix(u.String(), "http://")
	c.metrics = u.JoinPath("metrics").String()
	c.threads = u.JoinPath("api/top/threads").String()
	return c, nil
}

// NewLocal makes a client for an agent in the same process.
func NewLocal(name string, agent http.Handler) *Client {
	return &Client{
		target: name, metrics: "http://localhost/metrics", threads: "http://localhost/api/top/threads",
		http: http.Client{Timeout: askWithin, Transport: inProcess{agent}},
	}
}

// address reads what the user wrote. Errors must not repeat a password.
func address(target string, secure bool) (*url.URL, error) {
	shown := target[strings.LastIndex(target, "@")+1:]
	if !strings.Contains(target, "://") {
		if _, _, err := net.SplitHostPort(shown); err != nil {
			return nil, fmt.Errorf("the address %q is not HOST:PORT, such as 127.0.0.1:9750", shown)
		}
		scheme := "http://"
		if secure {
			scheme = "https://"
		}
		target = scheme + target
	}
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the address %q is neither HOST:PORT nor a URL of http or https", shown)
	}
	u.RawQuery, u.Fragment, u.Path = "", "", path.Clean("/"+u.Path)
	return u, nil
}

func readPassword(file, user string) (string, error) {
	if user == "" {
		return "", errors.New("a password needs a user: name one in the address, as in https://USER@HOST:PORT")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPassword))
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// transport is Go's own, which trusts the authorities of a file too.
func transport(caFile string) (http.RoundTripper, error) {
	if caFile == "" {
		return http.DefaultTransport, nil
	}
	data, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities to trust: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // there are none: those of the file are enough
	}
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the authorities to trust: %s holds no certificate in PEM", caFile)
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: askWithin,
		MaxIdleConns:        1,
	}, nil
}

// inProcess asks a handler without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	a := answer{header: http.Header{}, status: http.StatusOK}
	p.handler.ServeHTTP(&a, r)
	return &http.Response{
		StatusCode: a.status, Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}, nil
}

// answer is what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func (a *answer) WriteHeader(status int) { a.status = status }
