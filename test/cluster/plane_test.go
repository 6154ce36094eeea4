// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startWithin is the time limit for the start of a program, on a machine with much other load.
const startWithin = 5 * time.Minute

// program is a process of the cluster. Its output is in .cache/cluster/logs.
type program struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start runs a program until stop.
func start(name, path string, args ...string) (*program, error) {
	return startCommand(name, exec.Command(path, args...))
}

func startCommand(name string, command *exec.Cmd) (*program, error) {
	logs := filepath.Join(binaries, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(logs, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &program{name: name, cmd: command, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL // nothing is left when the tests are killed
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // the log has the reason
		close(p.done)
	}()
	return p, nil
}

// stop ends a program, by force after a while.
func (p *program) stop(s syscall.Signal) {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(s) // it may have ended
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// log returns the end of what a program has written.
func (p *program) log() string {
	data, err := os.ReadFile(filepath.Join(binaries, "logs", p.name+".log"))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4000):])
}

// plane is the control plane of a cluster.
type plane struct {
	dir       string
	pki       *authority
	etcd, api *program
	others    []*program
	config    *rest.Config // of an administrator
	clients   *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
}

// startPlane starts all parts. What it returns must be stopped, also after an error.
func startPlane(dir string) (*plane, error) {
	p := &plane{dir: dir}
	var err error
	if p.pki, err = newAuthority(dir); err != nil {
		return p, err
	}
	if err := errors.Join(
		p.pki.issue("server", "kube-apiserver"),
		p.pki.issue("admin", "admin", "system:masters"),
		p.pki.issue("controllers", "system:kube-controller-manager"),
		p.pki.issue("scheduler", "system:kube-scheduler"),
		p.pki.issue("kubelet", "system:node:"+realNode, "system:nodes"),
	); err != nil {
		return p, err
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.pki.path("admin.conf")); err != nil {
		return p, err
	}
	p.config.QPS = -1 // no limit
	if p.clients, err = kubernetes.NewForConfig(p.config); err != nil {
		return p, err
	}
	if p.dynamic, err = dynamic.NewForConfig(p.config); err != nil {
		return p, err
	}
	if p.etcd, err = start("etcd", "/usr/bin/etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync"); err != nil {
		return p, err
	}
	if err := p.startAPI(); err != nil {
		return p, err
	}
	return p, p.startOthers()
}

// startAPI starts the API server and waits until it answers.
func (p *plane) startAPI() (err error) {
	p.api, err = start("kube-apiserver", filepath.Join(binaries, "kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address="+nodeIP,
		"--service-cluster-ip-range="+serviceRange, "--tls-cert-file="+p.pki.path("server.crt"), "--tls-private-key-file="+p.pki.path("server.key"),
		"--client-ca-file="+p.pki.path("ca.crt"), "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+p.pki.path("accounts.key"),
		"--service-account-signing-key-file="+p.pki.path("accounts.key"), "--cert-dir="+p.dir,
		"--kubelet-client-certificate="+p.pki.path("admin.crt"), "--kubelet-client-key="+p.pki.path("admin.key"),
		"--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true",
		"--feature-gates=SizeBasedListCostEstimate=false") // it needs a newer etcd than that of Debian 12
	if err != nil {
		return err
	}
	return within(startWithin, p.api, func(ctx context.Context) error {
		return p.clients.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (p *plane) startOthers() error {
	for name, args := range map[string]string{
		"kube-controller-manager": "--kubeconfig=" + p.pki.path("controllers.conf") + " --root-ca-file=" + p.pki.path("ca.crt") +
			" --use-service-account-credentials --service-account-private-key-file=" + p.pki.path("accounts.key") +
			// Simulated nodes report nothing after their first report.
			" --node-monitor-grace-period=1h",
		"kube-scheduler": "--kubeconfig=" + p.pki.path("scheduler.conf"),
	} {
		one, err := start(name, filepath.Join(binaries, name), strings.Fields(args+" --leader-elect=false --bind-address=127.0.0.1 --cert-dir="+p.dir)...)
		if err != nil {
			return err
		}
		p.others = append(p.others, one)
	}
	// The controller manager makes the account of each namespace.
	return within(startWithin, p.others[0], func(ctx context.Context) error {
		_, err := p.clients.CoreV1().ServiceAccounts("default").Get(ctx, "default", meta.GetOptions{})
		return err
	})
}

// stop ends all parts in the reverse order of their start.
func (p *plane) stop() {
	for _, one := range p.others {
		one.stop(syscall.SIGKILL) // they have no state
	}
	p.api.stop(syscall.SIGKILL)
	p.etcd.stop(syscall.SIGTERM)
}

// within waits until a condition holds. A program that has ended is an error at once. It may be nil.
func within(limit time.Duration, needed *program, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var ended chan struct{}
	if needed != nil {
		ended = needed.done
	}
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s has ended: %w\n%s", needed.name, err, needed.log())
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", limit, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
