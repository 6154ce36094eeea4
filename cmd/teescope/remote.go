// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/lib/remote"
)

// serverFlags adds the flags for the server to query and for access to it.
func serverFlags(cmd *cobra.Command, server *string, a *remote.Access) {
	cmd.Flags().StringVar(server, "server", "http://"+defaultAgent, "`URL` or host:port of the server, with any path before its /api/v1")
	complete(cmd, "server", cobra.NoFileCompletions)
	accessFlags(cmd, "server", a)
}

// accessFlags adds the flags for access to the server that another flag names.
func accessFlags(cmd *cobra.Command, named string, a *remote.Access) {
	cmd.Flags().StringVar(&a.CAFile, "ca-file", "", "with --"+named+": `file` with the certificate (PEM) of the authority to trust")
	cmd.Flags().StringVar(&a.PasswordFile, "password-file", "", "with --"+named+": `file` with the password of the user in the URL")
	cmd.Flags().StringVar(&a.HTTPConfigFile, "http-config-file", "", "with --"+named+": `file` with TLS and credentials, also a client certificate, in the format of Prometheus' http_config")
}

// serverFlagNames are the flags of serverFlags.
func serverFlagNames() []string {
	return []string{"server", "ca-file", "password-file", "http-config-file"}
}
