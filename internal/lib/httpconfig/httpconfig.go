// SPDX-License-Identifier: Apache-2.0

// Package httpconfig reads the configuration of an HTTP client from a file in the format of Prometheus' http_config.
//
// It does not depend on which servers a client queries, and sends nothing.
package httpconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	commonconfig "github.com/prometheus/common/config"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// maxFile is the maximum size of the file, in bytes. It may contain certificates.
const maxFile = 1 << 20

// Read reads a file with keys such as basic_auth and tls_config. File names in it are relative to its directory. Without
// a file it returns the defaults.
func Read(file string) (commonconfig.HTTPClientConfig, error) {
	if file == "" {
		return commonconfig.DefaultHTTPClientConfig, nil
	}
	c, err := load(file)
	if errors.Is(err, fs.ErrNotExist) {
		return commonconfig.HTTPClientConfig{}, text.Remedy(err, "leave it out")
	}
	if err != nil {
		return commonconfig.HTTPClientConfig{}, fmt.Errorf("reading %s: %w (its format is http_config of Prometheus' configuration)", file, withoutValues(err))
	}
	// The library opens the files that this one names again, by name, when it creates a client and later. A pipe without a
	// writer would block it. This check finds the common mistake, not a file that is replaced afterwards.
	if err := inputfile.Check(slices.Concat(secretFiles(*c), certificateFiles(*c))...); err != nil {
		return commonconfig.HTTPClientConfig{}, fmt.Errorf("reading a file that %s names: %w", file, err)
	}
	return *c, nil
}

// load is LoadHTTPConfigFile of the library for a file of limited size.
func load(file string) (*commonconfig.HTTPClientConfig, error) {
	data, err := inputfile.Read(file, maxFile)
	if err != nil {
		return nil, err
	}
	c, err := commonconfig.LoadHTTPConfig(string(data))
	if err != nil {
		return nil, err
	}
	c.SetDirectory(filepath.Dir(file))
	return c, nil
}

// withoutValues removes quoted values from an error of the YAML library. A password in the wrong place would be one.
func withoutValues(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	text := strings.NewReplacer("unmarshal errors:\n  ", "", "\n  ", "; ").Replace(err.Error()) // on one line
	return errors.New(regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "value"))
}

// Check reads a file as Read does, and checks that the files that it names can be read. The client reads them again when
// they change.
func Check(file string) (commonconfig.HTTPClientConfig, error) {
	c, err := Read(file)
	if err != nil {
		return c, err
	}
	for _, name := range secretFiles(c) {
		f, err := inputfile.Open(name)
		if err != nil {
			return c, fmt.Errorf("reading %s, which %s names: %w", name, file, err)
		}
		_ = f.Close() // nothing was written
	}
	// A certificate, its key and the certificates of authorities are parsed here.
	if _, err := commonconfig.NewTLSConfigWithContext(context.Background(), &c.TLSConfig); err != nil {
		return c, fmt.Errorf("%s: tls_config: %w", file, err)
	}
	return c, nil
}

// secretFiles lists the files with credentials that a configuration names.
func secretFiles(c commonconfig.HTTPClientConfig) []string {
	var all []string
	if c.BasicAuth != nil {
		all = append(all, c.BasicAuth.UsernameFile, c.BasicAuth.PasswordFile)
	}
	if c.Authorization != nil {
		all = append(all, c.Authorization.CredentialsFile)
	}
	if c.OAuth2 != nil {
		all = append(all, c.OAuth2.ClientSecretFile, c.OAuth2.ClientCertificateKeyFile)
	}
	if c.HTTPHeaders != nil {
		for _, h := range c.HTTPHeaders.Headers {
			all = append(all, h.Files...)
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// certificateFiles lists the files with certificates and their keys that a configuration names.
func certificateFiles(c commonconfig.HTTPClientConfig) []string {
	all := []string{c.TLSConfig.CAFile, c.TLSConfig.CertFile, c.TLSConfig.KeyFile}
	if c.OAuth2 != nil {
		all = append(all, c.OAuth2.TLSConfig.CAFile, c.OAuth2.TLSConfig.CertFile, c.OAuth2.TLSConfig.KeyFile)
	}
	return all
}
