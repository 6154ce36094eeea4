// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// machine creates a fake machine: files by path, symbolic links as "-> target". Each process gets a stat file.
func machine(t *testing.T, files map[string]string) Roots {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		hostfstest.Write(t, root, path, content)
		if parts := strings.Split(path, "/"); parts[0] == "proc" && len(parts) > 2 && parts[2] != "task" {
			stat(t, root, parts[1], "a program", 100)
		}
	}
	return Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}
}

func stat(t *testing.T, root, pid, comm string, start int) {
	t.Helper()
	hostfstest.Write(t, root, "proc/"+pid+"/task/"+pid+"/stat", fmt.Sprintf("%s (%s) S 1%s %d 0\n", pid, comm, strings.Repeat(" 0", 17), start))
}

const (
	enclaveMap = "7f0000000000-7f0040000000 rw-s 00000000 00:06 1 /dev/sgx_enclave\n"
	libs       = "/usr/lib/x86_64-linux-gnu/"
)

func mapOf(paths ...string) string {
	var b strings.Builder
	b.WriteString("55d0c0000000-55d0c0001000 rw-p 00000000 00:00 0                          [heap]\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "7f1000000000-7f1000001000 r-xp 00001000 fe:00 12345                      %s\n", p)
	}
	return b.String()
}

func args(a ...string) string { return strings.Join(a, "\x00") + "\x00" }

func TestDetector(t *testing.T) {
	gramine := libs + "gramine"
	for name, tt := range map[string]struct {
		files     map[string]string
		available string
		kind      teelabel.Kind
		runtime   teelabel.Runtime
	}{
		"nothing":           {nil, "", "none", ""},
		"SGX, not used":     {map[string]string{"dev/sgx_enclave": "", "proc/7/maps": "00-01 r-xp 0 00:06 1 /bin/sh\n"}, "sgx", "none", ""},
		"SGX, gone":         {map[string]string{"dev/sgx_enclave": ""}, "sgx", "none", ""},
		"SGX in use":        {map[string]string{"dev/sgx_enclave": "", "proc/7/maps": enclaveMap}, "sgx", "sgx", ""},
		"legacy SGX":        {map[string]string{"dev/isgx": "", "proc/7/maps": "0-1 rw-s 0 00:06 1 /dev/isgx\n"}, "sgx", "sgx", ""},
		"DCAP's node":       {map[string]string{"dev/sgx/enclave": "", "proc/7/maps": mapOf("/dev/sgx/enclave")}, "sgx", "sgx", ""},
		"node removed":      {map[string]string{"proc/7/maps": mapOf("/dev/sgx_enclave (deleted)")}, "", "sgx", ""},
		"node of others":    {map[string]string{"proc/7/maps": enclaveMap}, "", "sgx", ""}, // in a container with the device, not in ours
		"provisioning only": {map[string]string{"dev/sgx_enclave": "", "proc/7/maps": mapOf("/dev/sgx_provision")}, "sgx", "none", ""},
		"opened only":       {map[string]string{"dev/sgx_enclave": "", "proc/7/maps": "", "proc/7/fd/0": "-> /dev/null", "proc/7/fd/5": "-> /dev/sgx_enclave"}, "sgx", "sgx", ""},
		"a file like it":    {map[string]string{"dev/isgx": "", "proc/7/maps": "0-1 rw-s 0 00:06 1 /tmp/dev/isgx\n", "proc/7/fd/3": "-> /dev/isgx2"}, "sgx", "none", ""},
		"a name like it":    {map[string]string{"proc/7/maps": mapOf("/tmp/a b /dev/isgx")}, "", "none", ""},

		"Gramine":              {map[string]string{"dev/sgx_enclave": "", "proc/7/maps": enclaveMap, "proc/7/exe": "-> " + gramine + "/sgx/loader"}, "sgx", "sgx", "gramine-sgx"},
		"Gramine, updated":     {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> " + gramine + "/sgx/loader (deleted)"}, "", "sgx", "gramine-sgx"},
		"Gramine, exe hidden":  {map[string]string{"proc/7/cmdline": args("/x/gramine/sgx/loader", "/x/gramine/sgx/libpal.so", "init", "redis")}, "", "none", "gramine-sgx"},
		"Gramine's child":      {map[string]string{"proc/7/cmdline": args("/x/gramine/sgx/loader", "/x/gramine/sgx/libpal.so", "child", "4")}, "", "none", "gramine-sgx"},
		"Gramine's command":    {map[string]string{"proc/7/cmdline": args("sh", "/x/gramine/sgx/libpal.so", "ls")}, "", "none", ""},
		"gramine-direct":       {map[string]string{"proc/7/exe": "-> " + gramine + "/direct/libpal.so"}, "", "none", "gramine-direct"},
		"gramine-direct, SGX":  {map[string]string{"dev/sgx_enclave": "", "proc/7/exe": "-> " + gramine + "/direct/libpal.so"}, "sgx", "none", "gramine-direct"},
		"direct, exe hidden":   {map[string]string{"proc/7/cmdline": args("/x/direct/loader", "/x/direct/libpal.so", "init", "redis", "a", "b", "c", "d", "e")}, "", "none", "gramine-direct"},
		"SCONE":                {map[string]string{"proc/7/maps": enclaveMap + mapOf("/opt/scone/lib/libc.scone-x86_64.so.1")}, "", "sgx", "scone"},
		"SCONE's loader":       {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> /opt/scone/lib/ld-scone-x86_64.so.1"}, "", "sgx", "scone"},
		"SCONE's loader, run":  {map[string]string{"proc/7/cmdline": args("/lib/ld-scone-x86_64.so.1", "/app")}, "", "none", "scone"},
		"Occlum":               {map[string]string{"proc/7/maps": enclaveMap + mapOf("/opt/occlum/build/lib/libocclum-pal.so.0.29.7")}, "", "sgx", "occlum"},
		"Occlum's runner":      {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> /srv/app/build/bin/occlum-run"}, "", "sgx", "occlum"},
		"EGo":                  {map[string]string{"proc/7/maps": enclaveMap + mapOf(libs+"libsgx_urts.so.2"), "proc/7/exe": "-> /opt/ego/bin/ego-host"}, "", "sgx", "ego"},
		"EGo, exe hidden":      {map[string]string{"proc/7/cmdline": args("host", "/opt/ego/share/ego-enclave:srv/app")}, "", "none", "ego"},
		"no EGo":               {map[string]string{"proc/7/cmdline": args("vi", "/opt/ego/share/ego-enclave")}, "", "none", ""},
		"Edgeless RT":          {map[string]string{"proc/7/exe": "-> /opt/edgelessrt/bin/erthost"}, "", "none", "openenclave"},
		"Open Enclave":         {map[string]string{"proc/7/maps": enclaveMap + mapOf(libs+"libsgx_enclave_common.so.1")}, "", "sgx", "openenclave"},
		"SDK":                  {map[string]string{"proc/7/maps": enclaveMap + mapOf(libs+"libsgx_enclave_common.so.1.2", libs+"libsgx_urts.so.2.0")}, "", "sgx", "sgx-sdk"},
		"SDK, simulated":       {map[string]string{"proc/7/maps": mapOf("/opt/intel/sgxsdk/sdk_libs/libsgx_urts_sim.so")}, "", "none", "sgx-sdk"},
		"Fortanix EDP":         {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> /home/u/.cargo/bin/ftxsgx-runner"}, "", "sgx", "fortanix-edp"},
		"SGX-LKL":              {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> /opt/sgx-lkl/bin/sgx-lkl-run-oe"}, "", "sgx", "sgx-lkl"},
		"Graphene":             {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> /graphene/Runtime/pal-Linux-SGX"}, "", "sgx", "graphene-sgx"},
		"Graphene, installed":  {map[string]string{"proc/7/maps": enclaveMap, "proc/7/exe": "-> /usr/lib/graphene/sgx/loader"}, "", "sgx", "graphene-sgx"},
		"Graphene, by its PAL": {map[string]string{"proc/7/maps": enclaveMap, "proc/7/cmdline": "loader\x00/r/libpal-Linux-SGX.so\x00init\x00redis-server\x00"}, "", "sgx", "graphene-sgx"},

		"TDX host":         {map[string]string{"sys/module/kvm_intel/parameters/tdx": "Y\n"}, "tdx", "none", ""},
		"TDX host, off":    {map[string]string{"sys/module/kvm_intel/parameters/tdx": "N\n"}, "", "none", ""},
		"SEV host":         {map[string]string{"sys/module/kvm_amd/parameters/sev": "1\n"}, "sev", "none", ""},
		"inside a TD":      {map[string]string{"dev/tdx_guest": ""}, "tdx", "tdx", ""},
		"inside an SEV VM": {map[string]string{"dev/sev-guest": ""}, "sev", "sev", ""},
		"in an Arm realm":  {map[string]string{"sys/devices/platform/arm-cca-dev/uevent": ""}, "cca", "cca", ""},
		"direct in a TD":   {map[string]string{"dev/tdx_guest": "", "proc/7/exe": "-> " + gramine + "/direct/libpal.so"}, "tdx", "tdx", "gramine-direct"},
	} {
		d := NewDetector(machine(t, tt.files), nil)
		var available []string
		for kind, ok := range d.Available() {
			if ok {
				available = append(available, string(kind))
			}
		}
		if got := strings.Join(available, " "); got != tt.available {
			t.Errorf("%s: available %q, want %q", name, got, tt.available)
		}
		if kind, runtime := d.Workload([]uint32{0, 7}); kind != tt.kind || runtime != tt.runtime {
			t.Errorf("%s: workload in %q under %q, want %q under %q", name, kind, runtime, tt.kind, tt.runtime)
		}
	}
}

// A workload is in a TEE if one of its processes is. Its runtime is the runtime of that process.
func TestTheProcessWithTheEnclaveDecides(t *testing.T) {
	r := machine(t, map[string]string{
		"proc/1/exe":  "-> /bin/sh",
		"proc/2/exe":  "-> /usr/lib/gramine/direct/libpal.so",
		"proc/3/maps": enclaveMap, "proc/3/exe": "-> /opt/ego/bin/ego-host",
		"proc/4/maps": enclaveMap,
	})
	for _, tt := range []struct {
		tgids   []uint32
		kind    teelabel.Kind
		runtime teelabel.Runtime
	}{
		{[]uint32{1, 2}, "none", "gramine-direct"},
		{[]uint32{1, 2, 3}, "sgx", "ego"},
		{[]uint32{2, 4, 3}, "sgx", "ego"},
		{[]uint32{4, 2}, "sgx", ""},
		{nil, "none", ""},
	} {
		if kind, runtime := NewDetector(r, nil).Workload(tt.tgids); kind != tt.kind || runtime != tt.runtime {
			t.Errorf("%v: %q under %q, want %q under %q", tt.tgids, kind, runtime, tt.kind, tt.runtime)
		}
	}
}
