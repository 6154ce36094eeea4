// SPDX-License-Identifier: Apache-2.0

// Package remote connects to an HTTP server that the user has named: its address, certificate and password. It explains
// failures in terms of that address.
//
// It does not depend on the requests: it contains no paths and no formats of answers.
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// Access holds what a server may require besides its address.
type Access struct {
	CAFile       string // certificates of authorities, in PEM; added to the system's
	PasswordFile string // contains the password of the user in the address
	// HTTPConfigFile configures the HTTP client, in the format of httpconfig. It excludes the other two.
	HTTPConfigFile string
}

// maxPassword is the maximum size of a password file, in bytes.
const maxPassword = 4 << 10

// Server is an HTTP server and how to reach it.
type Server struct {
	flag           string // the command line flag that names the server, for advice
	target         string // the address without a password
	base           *url.URL
	user, password string // of basic authentication; empty without a user
	within         time.Duration
	transport      http.RoundTripper
	config         string // the file that configures the transport, or empty
}

// socketPrefix begins the address of a unix socket.
const socketPrefix = "unix:"

// New returns a server for HOST:PORT, unix:PATH or a URL. The URL may have a user, and a path that a proxy puts before
// the server's. Flag is the flag that names the address, and within is the time limit of each request.
func New(flag, target string, a Access, within time.Duration) (*Server, error) {
	if path, local := strings.CutPrefix(target, socketPrefix); local {
		return socket(flag, path, a, within)
	}
	if err := a.exclusive(); err != nil {
		return nil, err
	}
	s, secure := &Server{flag: flag, within: within, config: a.HTTPConfigFile}, a.CAFile != ""
	var err error
	if a.HTTPConfigFile == "" {
		s.transport, err = transport(a.CAFile, within)
	} else {
		s.transport, secure, err = a.client()
	}
	if err != nil {
		return nil, err
	}
	u, err := address(target, secure)
	if err != nil {
		return nil, err
	}
	s.user = u.User.Username()
	if _, given := u.User.Password(); given {
		return nil, fmt.Errorf("the address contains a password, which everyone on this machine can read in the list of processes: "+
			"use %s %s://%s@%s --password-file FILE", flag, u.Scheme, url.User(s.user), u.Host)
	}
	if a.PasswordFile != "" {
		if s.password, err = readPassword(a.PasswordFile, s.user); err != nil {
			return nil, err
		}
	}
	if s.user != "" && s.config != "" {
		return nil, fmt.Errorf("the address contains the user %q and --http-config-file is given: write the user into basic_auth of %s", s.user, s.config)
	}
	u.User = nil
	s.setBase(u)
	return s, nil
}

// socket returns a server for a unix socket of this machine.
func socket(flag, path string, a Access, within time.Duration) (*Server, error) {
	if (a != Access{}) {
		return nil, fmt.Errorf("%s%s is a socket of this machine: omit --ca-file, --password-file and --http-config-file", socketPrefix, path)
	}
	s := &Server{flag: flag, within: within, transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
		MaxIdleConns: 4,
	}}
	s.setBase(&url.URL{Scheme: "http", Host: "localhost"})
	s.target = socketPrefix + path
	return s, nil
}

// Local returns a server for a handler in this process.
func Local(name string, h http.Handler, within time.Duration) *Server {
	s := &Server{within: within, transport: inProcess{h}}
	s.setBase(&url.URL{Scheme: "http", Host: "localhost"})
	s.target = name
	return s
}

func (s *Server) setBase(u *url.URL) {
	u.Path = strings.TrimSuffix(u.Path, "/")
	s.base, s.target = u, strings.TrimPrefix(u.String(), "http://")
}

// TrimPath removes a path from the end of the address, which a user may have copied with it.
func (s *Server) TrimPath(suffix string) *Server {
	u := *s.base
	if u.Path == "" {
		return s
	}
	u.Path = strings.TrimSuffix(u.Path, suffix)
	s.setBase(&u)
	return s
}

// Target returns the address for display.
func (s *Server) Target() string { return s.target }

// URL returns the URL of a path at the server.
func (s *Server) URL(path string) string { return s.base.JoinPath(path).String() }

// Within returns the time limit of each request.
func (s *Server) Within() time.Duration { return s.within }

// Client returns an HTTP client for the server, with its user and password.
func (s *Server) Client() *http.Client { return &http.Client{Timeout: s.within, Transport: s} }

// RoundTrip implements http.RoundTripper. It does not send the password to another host after a redirect. A transport
// from a file would send its credentials, so it sends no request there.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	named := r.URL.Host == s.base.Host && r.URL.Scheme == s.base.Scheme
	if !named && s.config != "" {
		if r.Body != nil {
			_ = r.Body.Close() // as http.RoundTripper requires; nothing was read
		}
		return nil, fmt.Errorf("it redirects to %s://%s, which must not get the credentials in %s: name that address with %s if you trust it",
			text.Terminal(r.URL.Scheme), text.Terminal(r.URL.Host), s.config, s.flag)
	}
	if s.user != "" && named {
		r = r.Clone(r.Context())
		r.SetBasicAuth(s.user, s.password)
	}
	return s.transport.RoundTrip(r)
}

// address parses an address. Errors must not repeat a password.
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
		return "", errors.New("a password needs a user: put one in the address, as in https://USER@HOST:PORT")
	}
	data, err := inputfile.Read(file, maxPassword)
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", text.Remedy(err, "write the password into this file"))
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// maxCAFile is the maximum size of the file with authorities, in bytes. That of a distribution has less than 1 MiB.
const maxCAFile = 16 << 20

// transport returns Go's own transport, which also trusts the authorities of a file.
func transport(caFile string, within time.Duration) (http.RoundTripper, error) {
	if caFile == "" {
		return http.DefaultTransport, nil
	}
	data, err := inputfile.Read(caFile, maxCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA file: %w", text.Remedy(err, "leave --ca-file out to trust the authorities of this system"))
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // there are none; those of the file are enough
	}
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the CA file: %s contains no PEM certificate", caFile)
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: within,
		MaxIdleConns:        4,
	}, nil
}
