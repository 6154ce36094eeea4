// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// runImage writes a Docker container that started some seconds after the machine.
func runImage(t *testing.T, root string, n, since int, name, image, imageID string) {
	t.Helper()
	hostfstest.Write(t, root, group(n)+"/memory.current", "1\n")
	hostfstest.Write(t, root, group(n)+"/cgroup.procs", fmt.Sprintln(1000+n))
	hostfstest.Write(t, root, "proc/stat", "btime 1700000000\n")
	hostfstest.Write(t, root, fmt.Sprintf("proc/%d/stat", 1000+n), fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0\n", 1000+n, 100*since))
	hostfstest.Write(t, root, "docker/"+id(n)+"/config.v2.json", fmt.Sprintf(`{"Name":"/%s","Image":%q,"Config":{"Image":%q}}`, name, imageID, image))
}

func TestContainersThatFollowOthers(t *testing.T) {
	root := empty(t)
	c := fake(root)
	second := 0
	c.now = func() time.Time { return time.Unix(1_700_000_000+int64(second), 0) }
	expect := func(at int, name, want string) {
		t.Helper()
		second = at
		text := exposition(t, c)
		got := ""
		for _, what := range []string{workload.Restart, workload.Deployment} {
			if v := sample(t, text, "teescope_container_change_timestamp_seconds", `name="`+name+`"`, `change="`+what+`"`); v != "" {
				started, err := strconv.ParseFloat(v, 64)
				if err != nil {
					t.Fatal(err)
				}
				got += fmt.Sprint(what, " at ", started-1_700_000_000)
			}
		}
		if got != want {
			t.Errorf("after %d s %s has %q, want %q", at, name, got, want)
		}
	}
	gone := func(n int) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(root, group(n))); err != nil {
			t.Fatal(err)
		}
	}
	runImage(t, root, 0, 100, "shop", "shop:1", "sha256:a")
	expect(110, "shop", "")
	// A health check and a program that a user executes in the container are processes of it.
	hostfstest.Write(t, root, group(0)+"/cgroup.procs", "1999\n1000\n")
	expect(120, "shop", "")
	gone(0)
	runImage(t, root, 1, 130, "shop", "shop:1", "sha256:a")
	expect(140, "shop", "restart at 130")
	gone(1)
	runImage(t, root, 2, 150, "shop", "shop:2", "sha256:b")
	expect(160, "shop", "deployment at 150")
	expect(170, "shop", "deployment at 150") // the series continues
	gone(2)
	runImage(t, root, 3, 180, "shop", "shop:2", "sha256:c") // the same tag, pulled again
	expect(190, "shop", "deployment at 180")
	// A start long after the end is a new run of a job, unless the image differs.
	gone(3)
	runImage(t, root, 4, 1000, "shop", "shop:2", "sha256:c")
	expect(1010, "shop", "")
	gone(4)
	runImage(t, root, 5, 2000, "shop", "shop:3", "")
	expect(2010, "shop", "deployment at 2000")
	// A second container of the same image at the same time is no change.
	runImage(t, root, 6, 2020, "shop", "shop:3", "")
	expect(2030, "shop", "deployment at 2000")
	expect(2040, "shop", "deployment at 2000")
	// Neither is a container with another name.
	runImage(t, root, 7, 2040, "other", "shop:4", "")
	expect(2050, "other", "")
}

func TestPlacesOfContainers(t *testing.T) {
	for want, d := range map[string]details{
		"{ns shop app} true":        {container: "app", pod: "shop-7d4f9c5b68-x2k9p", namespace: "ns"},
		"{ns node-agent app} true":  {container: "app", pod: "node-agent-x2k9p", namespace: "ns"},
		"{ns db-0 app} true":        {container: "app", pod: "db-0", namespace: "ns"},
		"{ns nightly app} true":     {container: "app", pod: "nightly-28401120-x2k9p", namespace: "ns"},
		"{  shop} true":             {name: "shop"},
		"{  } false":                {name: "0123456789ab"},
		"{  } false ":               {container: sandbox, pod: "shop-7d4f9c5b68-x2k9p", namespace: "ns"},
		"{  } false of no details ": {},
	} {
		at, ok := roleOf(&container{id: "0123456789ab", details: d})
		if got := fmt.Sprint(at, ok); !strings.HasPrefix(want, got) {
			t.Errorf("%+v has the role %s, want %s", d, got, want)
		}
	}
}

func TestRolesAreBounded(t *testing.T) {
	root := empty(t)
	c := fake(root)
	c.opts.Max = 2
	for n := range 20 {
		runImage(t, root, n, 100+n, fmt.Sprint("c", n), "x:1", "")
		exposition(t, c)
		if err := os.RemoveAll(filepath.Join(root, group(n))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.latest); n > 4 {
		t.Errorf("%d roles are stored, want at most 4", n)
	}
}
