// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"net/http"

	commonconfig "github.com/prometheus/common/config"

	"github.com/teescope/teescope/internal/lib/httpconfig"
)

// exclusive reports access that is given twice.
func (a Access) exclusive() error {
	if a.HTTPConfigFile != "" && (a.CAFile != "" || a.PasswordFile != "") {
		return errors.New("--http-config-file excludes --ca-file and --password-file: write ca_file into its tls_config, and the user and the password into its basic_auth")
	}
	return nil
}

// client reads the file of an HTTP client. Secure is true for a file with settings of TLS.
func (a Access) client() (transport http.RoundTripper, secure bool, err error) {
	c, err := httpconfig.Check(a.HTTPConfigFile)
	if err != nil {
		return nil, false, fmt.Errorf("--http-config-file: %w", err)
	}
	transport, err = commonconfig.NewRoundTripperFromConfig(c, "remote")
	if err != nil {
		return nil, false, fmt.Errorf("--http-config-file: %s: %w", a.HTTPConfigFile, err)
	}
	return transport, c.TLSConfig != commonconfig.TLSConfig{}, nil
}

// advice returns how to do something about access: with the file of the HTTP client if there is one, else with a flag.
func (s *Server) advice(inFile, flag string) string {
	if s.config != "" {
		return inFile + " in " + s.config
	}
	return flag
}
