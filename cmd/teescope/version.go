// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/agent/collector/build"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  teescope version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "teescope", version())
			return err
		},
	}
}

func version() string {
	i := buildInfo()
	return fmt.Sprintf("%s (revision %s, %s, %s/%s)", i.Version, i.Revision, i.GoVersion, runtime.GOOS, runtime.GOARCH)
}

// buildInfo reads the build information that the Go tool embeds in the binary.
func buildInfo() build.Info {
	info := build.Info{Version: "dev", Revision: "unknown", GoVersion: runtime.Version()}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if v := b.Main.Version; v != "" && v != "(devel)" {
		info.Version = v
	}
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" {
			info.Revision = s.Value
		}
	}
	return info
}
