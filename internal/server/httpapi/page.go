// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// page serves a built single-page application: its files, and index.html for every path that is a view rather than a
// file.
type page struct {
	fsys  fs.FS
	mu    sync.Mutex
	cache map[string]*file
}

type file struct {
	data, gzipped []byte // gzipped is nil if it would not be smaller
	etag          string
}

func newPage(fsys fs.FS) *page { return &page{fsys: fsys, cache: map[string]*file{}} }

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if path.Ext(name) == "" {
		name = "index.html"
	}
	f := p.file(name)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	h.Set("ETag", f.etag)
	h.Set("Vary", "Accept-Encoding")
	// A browser may keep a file but checks by ETag whether it has changed, because names do not identify versions.
	h.Set("Cache-Control", "no-cache")
	data := f.data
	if f.gzipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		data = f.gzipped
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
}

// file reads and compresses a file at its first request. The files are embedded and few.
func (p *page) file(name string) *file {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.cache[name]; ok {
		return f
	}
	data, err := fs.ReadFile(p.fsys, name)
	if err != nil {
		return nil // fs.FS also refuses invalid names
	}
	hash := sha256.New()
	hash.Write(data)
	if name == "index.html" {
		p.addAll(hash)
	}
	f := &file{data: data, etag: `"` + hex.EncodeToString(hash.Sum(nil)[:8]) + `"`, gzipped: compress(data)}
	p.cache[name] = f
	return f
}

// addAll adds all files to the hash of index.html. A page that was loaded before an update of the server compares it before it uses
// a script that it loads later: the names of files do not identify versions, and scripts of two versions do not work together.
func (p *page) addAll(hash io.Writer) {
	_ = fs.WalkDir(p.fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(p.fsys, name)
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", name, len(data), data)
		return err
	}) // the files are embedded; with another error the hash is that of fewer files
}

func compress(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		return nil
	}
	if err := w.Close(); err != nil || b.Len() >= len(data)*9/10 {
		return nil
	}
	return b.Bytes()
}

// contentType does not use the mime package, whose results depend on files of the host.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".webmanifest":
		return "application/manifest+json"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
