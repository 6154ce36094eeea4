// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/waittest"
)

const (
	uid    = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	static = "0123456789abcdef0123456789abcdef"
)

func makeLogs(t *testing.T, root, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, name, "app"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// complete asks until there is an answer.
func complete(t *testing.T, n *Names, uid string) string {
	t.Helper()
	var id workload.Identity
	waittest.Until(t, "an answer for "+uid, func() bool {
		id = workload.Identity{Pod: uid}
		return n.Complete(&id)
	})
	return id.Namespace + "/" + id.Pod
}

func TestNamesOfPods(t *testing.T) {
	root := t.TempDir()
	makeLogs(t, root, "shop_cart-7d4b9c-x2x9z_"+uid)
	makeLogs(t, root, "kube-system_etcd-node.example.org_"+static)
	const linked = "11111111-4e5f-6071-8293-a4b5c6d7e8f9"
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "default_linked_"+linked)); err != nil {
		t.Fatal(err)
	}
	n := New(root)
	if err := n.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	for asked, want := range map[string]string{
		uid: "shop/cart-7d4b9c-x2x9z", static: "kube-system/etcd-node.example.org", linked: "/" + linked,
		"22222222-4e5f-6071-8293-a4b5c6d7e8f9": "/22222222-4e5f-6071-8293-a4b5c6d7e8f9", "": "/",
	} {
		if got := complete(t, n, asked); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
	// A pod lives for two seconds and is requested after its end.
	const short = "33333333-4e5f-6071-8293-a4b5c6d7e8f9"
	makeLogs(t, root, "default_short_"+short)
	waittest.Until(t, "the pod to be seen", func() bool { return n.knows(short) })
	if err := os.RemoveAll(filepath.Join(root, "default_short_"+short)); err != nil {
		t.Fatal(err)
	}
	if got := complete(t, n, short); got != "default/short" {
		t.Errorf("after its end the pod is %s", got)
	}
	// The answer stays, also when the directory appears later.
	makeLogs(t, root, "default_late_22222222-4e5f-6071-8293-a4b5c6d7e8f9")
	n.look()
	if got := complete(t, n, "22222222-4e5f-6071-8293-a4b5c6d7e8f9"); got != "/22222222-4e5f-6071-8293-a4b5c6d7e8f9" {
		t.Errorf("the label changes to %s", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (n *Names) knows(uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.found[uid]
	return known
}

// A disk that does not answer delays a name for two seconds.
func TestPatience(t *testing.T) {
	now := time.Unix(1000, 0)
	n := New(t.TempDir())
	n.now = func() time.Time { return now }
	id := workload.Identity{Pod: uid}
	if n.Complete(&id) {
		t.Error("the answer comes without a look")
	}
	now = now.Add(patience)
	if !n.Complete(&id) || id.Pod != uid {
		t.Errorf("%+v after %v", id, patience)
	}
}

// A caller that asks again after seconds gets the answer, however often the directory changes for other pods in the meantime.
func TestLooksForOthersDelayNoName(t *testing.T) {
	now := time.Unix(1000, 0)
	n := New(t.TempDir())
	n.now = func() time.Time { return now }
	id := workload.Identity{Pod: uid}
	if n.Complete(&id) {
		t.Fatal("the answer comes without a look")
	}
	for range 5 { // seconds, which is the longest interval between two questions
		now = now.Add(time.Second)
		n.look()
	}
	if !n.Complete(&id) {
		t.Error("after 5 s and 5 looks there is no answer")
	}
}

func TestPodsAreBounded(t *testing.T) {
	n := New(t.TempDir())
	n.look()
	for i := range 3 * maxPods {
		id := workload.Identity{Pod: fmt.Sprintf("%08x-4e5f-6071-8293-a4b5c6d7e8f9", i)}
		n.Complete(&id)
		if i%maxPods == 0 {
			n.look()
		}
		n.Complete(&id)
	}
	if len(n.asked) > maxPods || len(n.said) > 2*maxPods || len(n.found) > maxPods {
		t.Errorf("%d asked, %d said, %d found", len(n.asked), len(n.said), len(n.found))
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"shop_cart-7d4b9c-x2x9z_" + uid, "kube-system_etcd-node.example.org_" + static,
		"shop_cart_" + strings.ToUpper(uid), "a_b_c_" + uid, "__" + uid, "shop_-cart_" + uid, "sh.op_cart_" + uid,
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		uid, p, ok := parse(name)
		if !ok {
			return
		}
		if name != p.namespace+"_"+p.name+"_"+uid || len(p.namespace) > 63 || len(p.name) > 253 || p.name == "" || p.namespace == "" {
			t.Errorf("%q: %q, %+v", name, uid, p)
		}
		if strings.Trim(p.namespace+p.name+uid, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			t.Errorf("%q passes through", name)
		}
	})
}
