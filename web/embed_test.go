// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"io/fs"
	"regexp"
	"testing"
)

func TestIndexRefersOnlyToEmbeddedFiles(t *testing.T) {
	index, err := fs.ReadFile(FS(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllSubmatch(index, -1)
	if len(found) < 3 {
		t.Fatalf("index.html has %d references, want script, style and icon", len(found))
	}
	for _, match := range found {
		name := string(bytes.TrimPrefix(match[1], []byte("./")))
		if _, err := fs.Stat(FS(), name); err != nil {
			t.Errorf("index.html refers to %q: %v", match[1], err)
		}
	}
	for _, forbidden := range []string{"<style", "style=", "onload="} {
		if bytes.Contains(index, []byte(forbidden)) {
			t.Errorf("index.html has %q, which the content security policy forbids", forbidden)
		}
	}
}

// TestNamesHaveNoHash keeps the names of files when their content changes, so that a change of the page is one diff. The
// server distinguishes versions by ETag.
func TestNamesHaveNoHash(t *testing.T) {
	plain := regexp.MustCompile(`^(assets/|report/)?[A-Za-z]+\.(js|css|svg|html)$`)
	walk(t, func(name string, _ []byte) {
		if !plain.MatchString(name) {
			t.Errorf("%s is not a plain name", name)
		}
	})
}

// TestPageNamesNoOtherHost holds the page to working offline. Namespaces are
// names, not addresses.
func TestPageNamesNoOtherHost(t *testing.T) {
	address := regexp.MustCompile(`https?://[a-zA-Z0-9.-]+`)
	walk(t, func(name string, data []byte) {
		for _, host := range address.FindAll(data, -1) {
			if string(host) != "http://www.w3.org" {
				t.Errorf("%s names %s", name, host)
			}
		}
	})
}

func walk(t *testing.T, visit func(name string, data []byte)) {
	t.Helper()
	err := fs.WalkDir(FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(FS(), name)
		if err != nil {
			return err
		}
		visit(name, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
