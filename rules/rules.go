// SPDX-License-Identifier: Apache-2.0

// Package rules holds the alerting and recording rules that come with teescope, as files in Prometheus' format, which
// run unchanged on a stock Prometheus. docs/runbooks/ says what to do about each alert.
//
// It does not hold code: rules are evaluated by internal/server/prom.
package rules

import "embed"

// Files are the rule files, *.yaml.
//
//go:embed *.yaml
var Files embed.FS
