// SPDX-License-Identifier: Apache-2.0

// Package cluster contains tests of the Helm chart, the server's discovery and the agent in a real Kubernetes: etcd, API server,
// controller manager and scheduler, and a kubelet with containerd. `make cluster` builds them from their modules and runs
// the tests.
//
// Everything runs in a network and a mount namespace of its own, so it listens nowhere on this machine and leaves no mount. The
// kubelet and containerd run in a virtual machine in that network.
package cluster
