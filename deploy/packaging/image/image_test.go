// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// program builds a small static program.
func program(t *testing.T, arch string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() { println(\"teescope\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "teescope")
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func license(t *testing.T) string {
	t.Helper()
	return filepath.Join("..", "..", "..", "LICENSE")
}

// unpack returns the directory of an archive.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s has a time or an owner: %v", h.Name, h)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The archive is a valid image for both processors: it holds the binary, the licence, and nothing else.
func TestImage(t *testing.T) {
	binaries := map[string]string{"amd64": program(t, "amd64"), "arm64": program(t, "arm64")}
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := write("example.org/teescope:1", license(t), out, []string{binaries["amd64"], binaries["arm64"]}); err != nil {
		t.Fatal(err)
	}
	outer, err := layout.ImageIndexFromPath(unpack(t, out))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil { // digests and sizes
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "example.org/teescope:1" {
		t.Fatalf("%+v, %v", manifest, err)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, m.Platform.Architecture, binaries[m.Platform.Architecture])
	}
}

func checkImage(t *testing.T, image v1.Image, arch, binary string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != arch || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/teescope" {
		t.Errorf("%s: %+v", arch, config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s: %d layers, %v", arch, len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	want := map[string]int64{"LICENSE": 0o644, "teescope": 0o755}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if mode, ok := want[h.Name]; !ok || h.Mode != mode {
			t.Errorf("%s: %s has the mode %o", arch, h.Name, h.Mode)
		}
		delete(want, h.Name)
		if h.Name == "teescope" {
			got, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(binary); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: the binary differs, %v", arch, err)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("%s: missing: %v", arch, want)
	}
}

// Two builds give the same bytes, at another time and of files with another time and mode.
func TestReproducible(t *testing.T) {
	var all [][]byte
	for i := range 2 {
		binary := program(t, "amd64") // in another directory each time
		then := time.Now().Add(-time.Duration(i) * 24 * time.Hour)
		if err := os.Chtimes(binary, then, then); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(binary, []os.FileMode{0o755, 0o500}[i]); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := write("example.org/teescope:1", license(t), out, []string{binary}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("two builds differ")
	}
}

func TestRefusedBinaries(t *testing.T) {
	binary := program(t, "amd64")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n# "+strings.Repeat("x", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string][]string{
		"are both for linux/amd64": {binary, binary},
		"bad magic number":         {text},
		"needs shared libraries":   {"/bin/sh"},
		"no such file":             {"/nonexistent"},
	} {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := write("example.org/teescope:1", license(t), out, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", files, err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: an archive was written", files)
		}
	}
}
