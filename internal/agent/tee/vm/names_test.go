// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/text"
)

const kata = "9c7b5a1d3e2f40516273849560a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3"

func TestIdentify(t *testing.T) {
	for _, tt := range []struct {
		what, cgroup, args string
		want               identity
	}{
		{
			"a domain of libvirt", `emulator/libvirt/machine-qemu\x2d3\x2dweb\x2dfront.scope/machine.slice`,
			"/usr/bin/qemu-system-x86_64 -name guest=web-front,debug-threads=on -S -object {\"qom-type\":\"tdx-guest\"}",
			identity{name: "web-front", vmm: "qemu"},
		},
		{
			"a domain of KubeVirt, whose cgroup is that of its pod", "cri-containerd-0123456789ab.scope",
			"/usr/libexec/qemu-kvm -name guest=default_my-vm,debug-threads=on", identity{name: "default_my-vm", vmm: "qemu"},
		},
		{
			"QEMU of Kata Containers", "kata_overhead",
			"/opt/kata/bin/qemu-system-x86_64 -name sandbox-" + kata + ",debug-threads=on -uuid x -qmp unix:path=/run/vc/vm/" + kata + "/qmp.sock,server=on",
			identity{name: kata[:12], vmm: "qemu", sandbox: kata[:12]},
		},
		{
			"cloud-hypervisor of Kata Containers", "", "/opt/kata/bin/cloud-hypervisor --api-socket /run/vc/vm/" + kata + "/clh-api.sock",
			identity{name: kata[:12], vmm: "cloud-hypervisor", sandbox: kata[:12]},
		},
		{
			"a domain of libvirt's driver for cloud-hypervisor", `machine-ch\x2d5\x2dweb\x2dfront.scope/machine.slice`,
			"/usr/bin/cloud-hypervisor --api-socket /run/libvirt/ch/other-socket", identity{name: "web-front", vmm: "cloud-hypervisor"},
		},
		{"cloud-hypervisor with a socket", "", "cloud-hypervisor --api-socket path=/run/vms/db.sock", identity{name: "db", vmm: "cloud-hypervisor"}},
		{"libvirt's cloud-hypervisor without its scope", "", "cloud-hypervisor --api-socket /run/libvirt/ch/web-socket", identity{name: "web", vmm: "cloud-hypervisor"}},
		{"cloud-hypervisor with a usual socket", "", "cloud-hypervisor --api-socket=/run/7/ch.sock", identity{vmm: "cloud-hypervisor"}},
		{"plain cloud-hypervisor", "", "cloud-hypervisor --platform sev_snp=on --kernel k", identity{vmm: "cloud-hypervisor"}},
		{"Firecracker", "", "/firecracker --id vm-7 --start-time-us 1", identity{name: "vm-7", vmm: "firecracker"}},
		{"Firecracker with an equals sign", "", "/usr/bin/firecracker-v1.7 --id=vm-8", identity{name: "vm-8", vmm: "firecracker"}},
		{"QEMU with a bare name", "", "kvm -m 1G -name db,process=x", identity{name: "db", vmm: "qemu"}},
		{"QEMU with two dashes", "", "qemu-system-x86_64 --name debug-threads=on,guest=late", identity{name: "late", vmm: "qemu"}},
		{"QEMU with a comma in its name", "", "qemu-system-x86_64 -name a,,b", identity{name: "a,b", vmm: "qemu"}},
		{"QEMU without a name", "", "qemu-system-x86_64 -nographic", identity{vmm: "qemu"}},
		{"QEMU whose last word is the option", "", "qemu-system-x86_64 -name", identity{vmm: "qemu"}},
		{"another program", "user.slice", "/usr/bin/my-vmm -name x --id y /run/vc/vm/abc/x", identity{vmm: "other"}},
		{"no arguments", "", "", identity{vmm: "other"}},
	} {
		var cgroups []string
		if tt.cgroup != "" {
			cgroups = strings.Split(tt.cgroup, "/")
		}
		if got := identify(cgroups, strings.Fields(tt.args)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.what, got, tt.want)
		}
	}
}

// FuzzForeign reads names that users choose, and files of the controller misc.
func FuzzForeign(f *testing.F) {
	f.Add(`machine-qemu\x2d1\x2da\x00b.scope`, "qemu\x00-name\x00guest=x\x1b[1m,y", []byte("sev 3\nsev_es 4\ntdx max\nsev 5\n"))
	f.Add(`machine-qemu\x2d1\x2d\xff\xzz.scope`, "/x/firecracker\x00--id\x00"+strings.Repeat("é", 300), []byte("tdx 18446744073709551615\ntdx"))
	f.Add("", "qemu-kvm\x00-name\x00sandbox-"+kata+"\x00/run/vc/vm/"+kata+"/x", []byte{})
	f.Fuzz(func(t *testing.T, group, args string, misc []byte) {
		id := identify(strings.Split(group, "/"), strings.Split(args, "\x00"))
		for _, s := range []string{id.name, id.sandbox, id.vmm} {
			if s != text.Label(s) || utf8.RuneCountInString(s) > maxName || len(s) > 4*maxName {
				t.Errorf("%q is not a label, or too long", s)
			}
		}
		if len(id.sandbox) > 4*shortID || id.vmm == "" {
			t.Errorf("%+v", id)
		}
		seen := map[string]bool{}
		parseKeys(misc, func(kind string, _ uint64) {
			if seen[kind] {
				t.Errorf("%s occurs twice", kind)
			}
			seen[kind] = true
		})
		if len(seen) > len(keyKinds) {
			t.Errorf("%v", seen)
		}
	})
}
