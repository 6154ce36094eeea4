// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/teescope/teescope/testbed/machine/job"
)

// bring writes files and folders as a tar archive, named by their last elements. It reads files completely,
// because files of /sys and /proc have no size.
func bring(paths []string, w io.Writer) error {
	if len(paths) == 0 {
		return nil
	}
	out := tar.NewWriter(w)
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(job.Dir, path)
		}
		if err := bringOne(out, filepath.Clean(path)); err != nil {
			return fmt.Errorf("bringing %s back: %w", path, err)
		}
	}
	return out.Close()
}

func bringOne(out *tar.Writer, path string) error {
	return filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(path), file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		header := tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}
		if err := out.WriteHeader(&header); err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	})
}
