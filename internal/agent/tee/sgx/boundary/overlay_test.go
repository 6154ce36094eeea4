// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mounted mounts an overlay of a directory, as an engine does for each container of an image.
func mounted(t *testing.T, lower string) string {
	t.Helper()
	over, empty := t.TempDir(), t.TempDir()
	if err := unix.Mount("overlay", over, "overlay", unix.MS_RDONLY, fmt.Sprintf("lowerdir=%s:%s", lower, empty)); err != nil {
		t.Skipf("this machine cannot mount an overlay: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(over, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return over
}

// The containers of one image have a mount each of the same files, with inodes of their own. The kernel registers probes on
// the files below, once for each registration. Each call of three containers is counted once.
func TestContainersOfOneImageAreCountedOnce(t *testing.T) {
	const name, containers = "sdk-layers", 3
	b := start(t, modeOn, 0)
	app := sdkApp(t, name)
	var all [containers]*target
	for i := range all {
		over := mounted(t, filepath.Dir(app))
		all[i] = ready(t, b, filepath.Join(over, name))
	}
	if n := b.files.Len(); n != 2 {
		t.Errorf("%d files are probed, want the application and its library", n)
	}
	before, ecalls, ocalls := scrape(t, b), 0.0, [3]float64{}
	for _, app := range all {
		n := numbers(t, app.do(t, "ecall 500 4 1"))
		ecalls += n[0]
		for i := range ocalls {
			ocalls[i] += n[1+i]
		}
	}
	if ecalls != 500*containers {
		t.Fatalf("the programs made %v ECALLs", ecalls)
	}
	grown(t, before, scrape(t, b), ofApp(name, ecalls, map[string]float64{
		"app_ocall_print": ocalls[0], "app_ocall_read": ocalls[1], "app_ocall_wait": ocalls[2],
	}))
}
