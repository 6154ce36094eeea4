// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// looked lists the files whose content is read.
var looked = []string{
	"proc/cpuinfo", "proc/sys/kernel/osrelease", "proc/sys/kernel/perf_event_paranoid", "proc/sys/kernel/unprivileged_bpf_disabled",
	"proc/sys/net/core/bpf_jit_enable", "proc/driver/nvidia/params", "sys/kernel/security/lockdown", "sys/module/nvidia/version",
	"sys/module/nvidia/parameters/NVreg_RegistryDwords", "sys/devices/system/node/node0/x86/sgx_total_bytes",
	"sys/module/kvm_intel/parameters/tdx", "sys/module/kvm_amd/parameters/sev",
}

// FuzzMachine puts any text into one of the files that are read. The report is for terminals and programs.
func FuzzMachine(f *testing.F) {
	for i := range looked {
		for _, text := range []string{intel, amd, "6.1.0-52-amd64", "none [integrity] confidentiality", "[a\x1b[31m\xff\u0085]", "Y\n", "134217728\n", strings.Repeat("\xff", 300)} {
			f.Add(byte(i), text)
		}
	}
	root := f.TempDir()
	for _, name := range append([]string{"dev/sgx_enclave", "dev/nvidia0"}, looked...) {
		hostfstest.Write(f, root, name, "")
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		path := filepath.Join(root, looked[int(which)%len(looked)])
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := Run(at(root))
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		checkReport(t, r)
		if v, err := parseRelease(text); err == nil && (v[0] < 0 || v[1] < 0) {
			t.Errorf("%q is release %v", text, v)
		}
		if mode := parseLockdown(text); mode != "" && !strings.Contains(text, "["+mode+"]") {
			t.Errorf("%q is no mode of %q", mode, text)
		}
		if once := printable(text); printable(once) != once || len(once) > 200 {
			t.Errorf("%q is printed as %q", text, once)
		}
	})
}

// checkReport: every check has a status and a detail, and both forms are printable.
func checkReport(t *testing.T, r *Report) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == "" || c.Group == "" || c.Status == "" || c.Detail == "" || len(c.Detail) > 500 {
			t.Errorf("the check says too little, or too much: %+v", c)
		}
	}
	var table, report bytes.Buffer
	if err := r.Table(&table); err != nil {
		t.Fatal(err)
	}
	if err := r.JSON(&report); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(report.Bytes()) {
		t.Errorf("%q is no JSON", report.String())
	}
	for _, s := range []string{table.String(), report.String()} {
		if !utf8.ValidString(s) || strings.ContainsFunc(strings.ReplaceAll(s, "\n", ""), unicode.IsControl) {
			t.Errorf("%q is not printable", s)
		}
	}
}
