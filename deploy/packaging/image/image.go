// SPDX-License-Identifier: Apache-2.0

// Command image writes a container image as an OCI archive, without a container engine: one static binary for each platform,
// the licence, and nothing else.
//
//	image -name ghcr.io/teescope/teescope:0.1.0 -license LICENSE -o bin/teescope.oci.tar bin/linux-amd64/teescope bin/linux-arm64/teescope
//
// The same binaries give the same bytes: the archive has no time, and its entries are sorted. podman load, docker load,
// ctr images import and skopeo copy oci-archive:FILE read it.
package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	name := flag.String("name", "", "the name of the image, with its tag")
	license := flag.String("license", "LICENSE", "the file with the licence")
	out := flag.String("o", "", "the archive to write")
	flag.Parse()
	if *name == "" || *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "image: name the image (-name), the archive (-o) and at least one binary")
		os.Exit(2)
	}
	if err := write(*name, *license, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes an archive with an image for each binary.
func write(name, license, out string, binaries []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]string{}
	for _, file := range binaries {
		arch, err := platform(file)
		if err != nil {
			return err
		}
		if other, ok := seen[arch]; ok {
			return fmt.Errorf("%s and %s are both for linux/%s", other, file, arch)
		}
		seen[arch] = file
		image, err := build(file, license, arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	// The outer index names the image. Engines differ in the annotation that they read.
	archive := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name,
		}},
	})
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, archive); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	return pack(dir, out)
}

// machines are the processors for which teescope is built.
var machines = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// platform returns the processor that a binary is for. A binary that needs a loader would not start in the image, which has none.
func platform(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", file, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", fmt.Errorf("%s needs shared libraries, and the image has none: build it with CGO_ENABLED=0", file)
		}
	}
	arch, ok := machines[f.Machine]
	if !ok {
		return "", fmt.Errorf("%s is for the processor %v: use a binary for linux/amd64 or linux/arm64", file, f.Machine)
	}
	return arch, nil
}

// build makes the image of one platform.
func build(binary, license, arch string) (v1.Image, error) {
	content, err := files(binary, license)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		"org.opencontainers.image.title":    "teescope",
		"org.opencontainers.image.source":   "https://github.com/teescope/teescope",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", binary, err)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			labels["org.opencontainers.image.revision"] = s.Value
		}
	}
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	// No user: an agent needs root's capabilities to start, and leaves root by itself. A server may run as any user.
	config.Config = v1.Config{Entrypoint: []string{"/teescope"}, WorkingDir: "/", Labels: labels}
	return mutate.ConfigFile(image, config)
}

// files returns the only layer.
func files(binary, license string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name, from string
		mode       int64
	}{{"LICENSE", license, 0o644}, {"teescope", binary, 0o755}} {
		data, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		if err := add(w, f.name, f.mode, data); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// add writes an entry of root without a time.
func add(w *tar.Writer, name string, mode int64, data []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// pack writes a directory as an archive, sorted by name.
func pack(dir, out string) error {
	temporary := out + ".new"
	f, err := os.Create(temporary)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(w, filepath.ToSlash(name), 0o644, data)
	})
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", out, err), os.Remove(temporary))
	}
	return os.Rename(temporary, out)
}
