// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// inside is set in the environment of the process in the namespaces.
	inside = "CLUSTER_TEST_INSIDE"
	// serviceIP is the address of the Service kubernetes, the first of the range. The API server listens on its port, so pods
	// reach it without kube-proxy.
	serviceIP, serviceRange = "10.96.0.1", "10.96.0.0/24"
	// nodeIP is the address of the API server's machine. An endpoint of a Service may not be a loopback address.
	nodeIP = "192.0.2.1"
	// accountDir is where a pod finds its credentials. The tests' own server finds them there too.
	accountDir = "/run/secrets/kubernetes.io/serviceaccount"
)

// root is the directory of the repository, and binaries that of the programs of Kubernetes.
var root, binaries string

// cluster is the control plane that all tests share.
var cluster *plane

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := enter(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		code = 1
	}
	os.Exit(code)
}

// enter runs the tests in a process with namespaces of its own.
func enter(m *testing.M) (int, error) {
	if os.Getenv(inside) != "" {
		return runAll(m)
	}
	if os.Geteuid() != 0 {
		return 0, errors.New("namespaces need root")
	}
	runtime.LockOSThread() // the kernel kills the child when the thread ends that has started it
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Env = append(os.Environ(), inside+"=yes")
	self.Stdout, self.Stderr = os.Stdout, os.Stderr
	self.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM) // the process inside stops what it has started
	err := self.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func runAll(m *testing.M) (code int, err error) {
	if root, err = filepath.Abs("../.."); err != nil {
		return 0, err
	}
	binaries = filepath.Join(root, ".cache", "cluster")
	for _, args := range []string{
		"link set lo up", "address add " + serviceIP + "/32 dev lo", "address add " + nodeIP + "/32 dev lo",
		// The API server looks for a default route.
		"link add nowhere type bridge", "link set nowhere up", "route add default dev nowhere src " + nodeIP,
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
	}
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cluster, err = startPlane(dir)
	defer cluster.stop()
	if err != nil {
		return 0, err
	}
	if err := defineOperator(context.Background()); err != nil {
		return 0, fmt.Errorf("installing the definitions of the Prometheus operator: %w", err)
	}
	return m.Run(), nil
}
