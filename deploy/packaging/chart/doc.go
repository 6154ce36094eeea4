// SPDX-License-Identifier: Apache-2.0

// Package chart contains the tests of the Helm chart deploy/helm/teescope: helm's linter, its objects for several sets of
// values, decoded strictly as the types of Kubernetes and of the Prometheus operator, and what the chart promises about
// privileges. They need no cluster.
package chart
