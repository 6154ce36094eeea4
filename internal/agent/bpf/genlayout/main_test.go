// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageIsWritten(t *testing.T) {
	const object = "../../tee/sgx/driver/sgx.bpf.o" // has types for driver and attribution
	all, err := packages(object)
	if slices.Sort(all); err != nil || !slices.Equal(all, []string{"attribution", "driver"}) {
		t.Fatalf("packages are %q (%v)", all, err)
	}
	dir := t.TempDir()
	driver, attribution := filepath.Join(dir, "driver"), filepath.Join(dir, "attribution")
	for _, name := range []string{driver, attribution} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{object, driver, object, attribution, "--", object}); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{object, driver}, {object, attribution, "--", object}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "no argument names its folder") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestNames(t *testing.T) {
	for c, want := range map[string][2]string{
		"calls": {"Calls", "calls"}, "call_ns": {"CallNS", "callNS"}, "tgid": {"TGID", "tgid"}, "llc_misses": {"LLCMisses", "llcMisses"},
		"pid_unknown": {"PIDUnknown", "pidUnknown"}, "role_sdk_ecall": {"RoleSDKECall", "roleSDKECall"}, "nsync": {"Nsync", "nsync"},
	} {
		if got := exported(c); got != want[0] {
			t.Errorf("%s is exported as %s, want %s", c, got, want[0])
		}
		if got := unexported(exported(c)); got != want[1] {
			t.Errorf("%s is %s within a package, want %s", c, got, want[1])
		}
	}
}
