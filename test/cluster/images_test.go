// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Images of the pods that are watched. The agent's is that of `make image`.
const (
	busyboxImage = "docker.io/test/busybox:1"
	redisImage   = "docker.io/test/redis:1"
)

// makeImage writes an image with some files of this machine, in the format of docker save.
func makeImage(archive, name string, files map[string]string, command ...string) error {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for to, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := add(w, strings.TrimPrefix(to, "/"), data, 0o755); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(layer.Bytes())
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": command},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w = tar.NewWriter(&out)
	for _, part := range []struct {
		name string
		data []byte
	}{{"layer.tar", layer.Bytes()}, {"config.json", config}, {"manifest.json", manifest}} {
		if err := add(w, part.name, part.data, 0o644); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o600)
}

func add(w *tar.Writer, name string, data []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// library is a line of ldd.
var library = regexp.MustCompile(`(/\S+) \(0x`)

// withLibraries returns a program and the libraries that it loads.
func withLibraries(name string) (map[string]string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("/usr/bin/ldd", path).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", path, err)
	}
	files := map[string]string{"/bin/" + name: path}
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		files[m[1]] = m[1]
	}
	return files, nil
}

// archives writes the images of the watched pods.
func archives(dir string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	redis, err := withLibraries("redis-server")
	if err != nil {
		return err
	}
	if err := makeImage(filepath.Join(dir, "busybox.tar"), busyboxImage, map[string]string{"/bin/busybox": busybox}, "/bin/busybox", "sleep", "1000000"); err != nil {
		return err
	}
	return makeImage(filepath.Join(dir, "redis.tar"), redisImage, redis, "/bin/redis-server", "--save", "", "--protected-mode", "no")
}
