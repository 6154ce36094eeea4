// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// untar writes the guest's files below a directory. The guest is not trusted to choose paths: os.Root refuses
// paths that lead out of it.
func untar(r io.Reader, dir string) error {
	in := tar.NewReader(r)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = untarOne(dir, header, in)
		}
		if err != nil {
			return fmt.Errorf("bringing files back: %w", err)
		}
	}
}

func untarOne(dir string, header *tar.Header, data io.Reader) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	name := filepath.Clean(header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(f, data)
		return errors.Join(err, f.Close())
	}
	return fmt.Errorf("%s is neither a file nor a folder", header.Name)
}
