// SPDX-License-Identifier: Apache-2.0

// Package cluster contains tests of the Helm chart and of the server's discovery with a real control plane of Kubernetes: etcd, API
// server, controller manager and scheduler. `make cluster` builds them from their modules and runs the tests. Nodes are
// simulated: no container runs.
//
// Everything runs in a network and a mount namespace of its own, so it listens nowhere on this machine and leaves no mount.
package cluster
