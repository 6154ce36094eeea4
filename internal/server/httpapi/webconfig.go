// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// maxWebConfig is the maximum size of the web configuration, in bytes.
const maxWebConfig = 1 << 20

// webFile is the file with TLS and passwords, in the format of the Prometheus exporter toolkit. It is read again for
// each request, so that passwords can be changed while the program runs. The toolkit's own handler serves everyone when
// the file becomes empty. This one refuses all requests as long as the file is invalid or protects less than at the start.
type webFile struct {
	path  string // empty for none
	log   *slog.Logger
	start protection

	mu   sync.Mutex
	read []byte // by the last reading
	conf *web.Config
	err  error
}

// protection is what a web configuration requires of clients.
type protection struct{ tls, users, certificates bool }

// authenticates reports whether a client must prove who it is.
func (p protection) authenticates() bool { return p.users || p.certificates }

func protectionOf(c *web.Config) protection {
	return protection{
		tls: c.TLSConfig.IsEnabled(), users: len(c.Users) > 0,
		certificates: c.TLSConfig.ClientAuth == "RequireAndVerifyClientCert",
	}
}

// openWebConfig reads the file for the first time.
func openWebConfig(path string, log *slog.Logger) (*webFile, error) {
	w := &webFile{path: path, log: log}
	if path == "" {
		return w, nil
	}
	c, err := w.current()
	if err != nil {
		return nil, err
	}
	w.start = protectionOf(c)
	return w, nil
}

// current returns the configuration, which is read again if the file has changed.
func (w *webFile) current() (*web.Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, err := inputfile.Read(w.path, maxWebConfig)
	if err != nil {
		err = fmt.Errorf("reading the web configuration: %w", text.Remedy(err, "leave --web.config-file out"))
	}
	if err == nil && w.read != nil && bytes.Equal(data, w.read) {
		return w.conf, w.err
	}
	before := w.err
	w.read, w.conf, w.err = data, nil, err
	if err == nil {
		w.conf, w.err = parseWebConfig(w.path, data, w.start)
	}
	switch {
	case w.err == nil && before != nil:
		w.log.Info("the web configuration is valid again", "file", w.path)
	case w.err != nil && (before == nil || before.Error() != w.err.Error()):
		w.log.Error("all requests are refused until the web configuration is valid", "err", w.err)
	}
	return w.conf, w.err
}

// currentOrNone returns nil without a file.
func (w *webFile) currentOrNone() (*web.Config, error) {
	if w.path == "" {
		return nil, nil
	}
	return w.current()
}

var (
	errEmpty = errors.New("it is empty: name users, or TLS, or start without --web.config-file")
	errLess  = errors.New("it protects less than at the start (users, TLS or client certificates are missing): restart teescope if this is intended")
)

// parseWebConfig checks a configuration. It must protect at least as much as the one of the start.
func parseWebConfig(path string, data []byte, start protection) (*web.Config, error) {
	wrong := func(err error) (*web.Config, error) {
		return nil, fmt.Errorf("reading the web configuration %s: %w", path, text.Remedy(err, ""))
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return wrong(errEmpty)
	}
	if err := checkKinds(path, data); err != nil {
		return wrong(err)
	}
	if err := web.Validate(path); err != nil {
		return wrong(err)
	}
	c := &web.Config{
		TLSConfig:  web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, PreferServerCipherSuites: true},
		HTTPConfig: web.HTTPConfig{HTTP2: true},
	}
	if err := yaml.Unmarshal(data, c); err != nil {
		return wrong(err)
	}
	c.TLSConfig.SetDirectory(filepath.Dir(path))
	now := protectionOf(c)
	if start.users && !now.users || start.tls && !now.tls || start.certificates && !now.certificates {
		return wrong(errLess)
	}
	return c, nil
}

// checkKinds refuses certificates and keys that are not regular files. The toolkit opens these files again by name, at each
// connection, and the open of a named pipe would never return. Invalid YAML is left to the toolkit.
func checkKinds(path string, data []byte) error {
	var c web.Config
	if yaml.Unmarshal(data, &c) != nil {
		return nil
	}
	c.TLSConfig.SetDirectory(filepath.Dir(path))
	return inputfile.Check(certificateFiles(&c)...)
}

func certificateFiles(c *web.Config) []string {
	return []string{c.TLSConfig.TLSCertPath, c.TLSConfig.TLSKeyPath, c.TLSConfig.ClientCAs}
}

// tlsConfig returns the configuration of TLS, which is read again for each connection, or nil without TLS.
func (w *webFile) tlsConfig() (*tls.Config, error) {
	if !w.start.tls {
		return nil, nil
	}
	config, err := w.readTLS()
	if err != nil {
		return nil, err
	}
	protocols := func() []string { return config.NextProtos } // the server adds HTTP/2 to config
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current, err := w.readTLS()
		if err != nil {
			return nil, err
		}
		current.NextProtos = protocols()
		return current, nil
	}
	return config, nil
}

func (w *webFile) readTLS() (*tls.Config, error) {
	c, err := w.current()
	if err != nil {
		return nil, err
	}
	config, err := (*tls.Config)(nil), inputfile.Check(certificateFiles(c)...)
	if err == nil {
		config, err = web.ConfigToTLSConfig(&c.TLSConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the web configuration %s: %w", w.path, err)
	}
	return config, nil
}
