// SPDX-License-Identifier: Apache-2.0

// Package debuginfod downloads programs and debug files by their build IDs from servers of debuginfod
// (https://sourceware.org/elfutils/Debuginfod.html). It stores them in the cache directory of the other clients of
// debuginfod.
//
// A server learns which programs were recorded, so nothing is downloaded unless the user asks for it. What a server sends is
// bounded in size, number and time. The reader of a file checks its build ID before the file is kept.
package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// maxFile and maxAll limit one file and all files of a client, in bytes. That of a browser has 1.5 GiB.
	maxFile, maxAll = 2 << 30, 8 << 30
	// headerLimit and fileLimit are the times until a server answers, and until a file is complete.
	headerLimit, fileLimit = 20 * time.Second, 10 * time.Minute
	// maxFailures is the number of requests that a server may leave without an answer. Then it is not asked again.
	maxFailures = 2
	// maxRequests and allLimit limit the requests of a client: a profile may have any number of build IDs, and a server may
	// answer as slowly as it is allowed to.
	maxRequests, allLimit = 2000, 30 * time.Minute
	maxRedirects          = 10
)

// errNone means that no server has a file.
var errNone = errors.New("no server of DEBUGINFOD_URLS has it")

// Client downloads files. It is for one goroutine.
type Client struct {
	servers  []string
	cache    string
	http     *http.Client
	progress func(string)
	left     int64          // bytes that may be downloaded
	requests int            // that were made
	until    time.Time      // when they end; zero before the first one
	failures map[string]int // by server
	missing  map[string]bool
}

// FromEnvironment returns a client for the servers in DEBUGINFOD_URLS, which are separated by spaces. Files are kept in
// DEBUGINFOD_CACHE_PATH, or in the user's directory for caches. progress is called with a line of text about each
// download; it may be nil.
func FromEnvironment(progress func(string)) (*Client, error) {
	cache := os.Getenv("DEBUGINFOD_CACHE_PATH")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("%w: name a directory in DEBUGINFOD_CACHE_PATH", err)
		}
		cache = filepath.Join(dir, "debuginfod_client")
	}
	return New(strings.Fields(os.Getenv("DEBUGINFOD_URLS")), cache, progress)
}

// New returns a client for servers, given by their URLs.
func New(servers []string, cache string, progress func(string)) (*Client, error) {
	if len(servers) == 0 {
		return nil, errors.New("DEBUGINFOD_URLS is empty: set it to the servers to ask, such as https://debuginfod.debian.net")
	}
	for _, s := range servers {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("DEBUGINFOD_URLS: %q is not a URL such as https://debuginfod.debian.net", text.Terminal(s))
		}
	}
	if progress == nil {
		progress = func(string) {}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck // the library's own is one
	transport.ResponseHeaderTimeout = headerLimit
	return &Client{
		servers: servers, cache: cache, progress: progress,
		http: &http.Client{Transport: transport, Timeout: fileLimit, CheckRedirect: redirect},
		left: maxAll, failures: map[string]int{}, missing: map[string]bool{},
	}, nil
}

// redirect decides whether a redirection is followed. A request over HTTPS is not redirected to HTTP.
func redirect(to *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirections", maxRedirects)
	}
	if via[0].URL.Scheme == "https" && to.URL.Scheme != "https" {
		return errors.New("redirected from https to http")
	}
	return nil
}

// errLimit is the error of requests beyond the limits.
var errLimit = fmt.Errorf("no more than %d requests are made to servers of debuginfod, in %v", maxRequests, allLimit)

var buildID = lazy.Regexp(`^[0-9a-f]{8,128}$`)

// Fetch returns the path of a program, or of its debug file, with a build ID in hexadecimal digits. It downloads the file if
// that is not in the cache. The function checks a file before it is kept and used.
func (c *Client) Fetch(id string, debug bool, check func(path string) error) (string, error) {
	kind := "executable"
	if debug {
		kind = "debuginfo"
	}
	if !buildID().MatchString(id) {
		return "", errors.New("the build ID is unusual")
	}
	path := filepath.Join(c.cache, id, kind)
	if info, err := os.Stat(path); err == nil && info.Size() > 0 && check(path) == nil { // other clients keep an empty file for one that is missing
		return path, nil
	}
	if c.missing[path] {
		return "", errNone
	}
	failed := errNone
	for _, s := range c.servers {
		if c.failures[s] >= maxFailures {
			continue
		}
		if c.until.IsZero() {
			c.until = time.Now().Add(allLimit)
		}
		if c.requests >= maxRequests || !time.Now().Before(c.until) {
			return "", errLimit
		}
		c.requests++
		err := c.download(s, id, kind, path, check)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, errNone) {
			c.failures[s]++
			failed = err
		}
	}
	c.missing[path] = true
	return "", failed
}

// download asks one server.
func (c *Client) download(server, id, kind, path string, check func(path string) error) (err error) {
	u, err := url.JoinPath(server, "buildid", id, kind)
	if err != nil {
		return err
	}
	c.progress("downloading " + u)
	ctx, cancel := context.WithDeadline(context.Background(), c.until)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err // it names the URL
	}
	defer func() { _ = response.Body.Close() }() // nothing was written
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errNone
	default:
		return fmt.Errorf("%s answered %s", u, text.Terminal(response.Status))
	}
	most := min(maxFile, c.left)
	if response.ContentLength > most {
		return fmt.Errorf("%s has %d MiB, and at most %d are downloaded", u, response.ContentLength>>20, most>>20)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), kind+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	n, err := io.Copy(file, io.LimitReader(response.Body, most+1))
	c.left -= n
	if err == nil && n > most {
		err = fmt.Errorf("more than %d MiB, and no more are downloaded", most>>20)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = check(file.Name())
	}
	if err != nil {
		return fmt.Errorf("downloading %s: %w", u, err)
	}
	return os.Rename(file.Name(), path)
}
