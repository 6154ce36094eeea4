// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// Each template loads with constants that leave nothing out, for each way of reading a value.
func TestTemplatesLoad(t *testing.T) {
	privilegetest.Alone(t)
	obj, err := bpf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer obj.Close()
	k := &kernelSide{object: obj, cpus: 1}
	if err := k.resize(nil, 8, -1); err != nil {
		t.Fatal(err)
	}
	if err := obj.CreateMaps(); err != nil {
		t.Fatal(err)
	}
	for _, origin := range []uint32{fromRecord, fromRegister, fromMemory, fromConstant, fromCpu, fromDuration} {
		for kind := range uint32(kindHistogram + 1) {
			v := fetch{Origin: origin, Offset: 8, Size: 4, IsSigned: 1, IsError: 1}
			for _, program := range []string{"record", "function", "function_begin"} {
				prog, err := bpf.Variant{Program: program, Constants: map[string]any{
					"probe_number": uint32(15), "what_counts": kind, "keys_used": uint32(3), "most_series": uint64(5), "first_bucket": uint32(1), "last_bucket": uint32(33),
					"only_how": uint32(onlyHasBit), "only_number": int64(1), "only_value": v, "value": v, "key_0": v, "key_1": v, "key_2": fetch{Origin: fromComm},
				}}.Load(obj)
				if err != nil {
					t.Fatalf("%s that reads by %d and counts by %d: %v", program, origin, kind, err)
				}
				if err := prog.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// The program calls the function work once. It has a USDT probe at two sites, and another probe that its semaphore switches on.
func TestCountsOfAProgram(t *testing.T) {
	privilegetest.Alone(t)
	dir := t.TempDir()
	program := boundarytest.Build(t, filepath.Join(dir, "usdtprobed"), "-O2", "../tee/sgx/boundary/testdata/usdt.c")
	file := filepath.Join(dir, "probes.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(`probes:
  - {name: work, help: A., uprobe: {file: PROGRAM, symbol: work}, keys: {n: "arg1:s32", cpu: cpu}}
  - {name: time, help: A., uretprobe: {file: PROGRAM, symbol: work}, value: {histogram: duration}}
  - {name: result, help: A., uretprobe: {file: PROGRAM, symbol: work}, value: {sum: return}}
  - {name: step, help: A., usdt: {file: PROGRAM, provider: app, name: step}, value: {sum: arg1, unit: bytes, scale: 512}}
  - {name: last, help: A., usdt: {file: PROGRAM, provider: app, name: guarded}, only: arg1 == 3}
  - {name: first, help: A., usdt: {file: PROGRAM, provider: app, name: guarded}, only: arg1 != 3}
  - {name: second, help: A., usdt: {file: PROGRAM, provider: app, name: step}, value: {sum: arg2}}
`, "PROGRAM", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	b := New(Options{File: file, Proc: "/proc", Sys: "/sys", Cgroup: "/sys/fs/cgroup", MaxWorkloads: 64, Log: slog.New(slog.DiscardHandler)})
	if err := b.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for i := range 10 {
		_ = exec.Command(program, strings.Fields(strings.Repeat("x ", i))...).Run() // its status is its result
	}
	got := map[string]float64{}
	attached := map[string]string{}
	if err := b.Collect(context.Background(), func(m prometheus.Metric) {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Error(err)
		}
		name := strings.TrimPrefix(strings.Split(m.Desc().String(), "\"")[1], "teescope_")
		for _, l := range out.Label {
			if name == "probe_attached" && l.GetName() == "reason" {
				attached[fmt.Sprint(out.Label[1].GetValue())] = l.GetValue()
			}
			if l.GetName() == "workload" && l.GetValue() == "usdtprobed" {
				got[name] += out.GetCounter().GetValue() + float64(out.GetHistogram().GetSampleCount())
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	// argc is 1 to 10: its sum is 55, and work returns one more. step has n and 7 n, in units of 512 bytes.
	for name, want := range map[string]float64{
		"user_work_total": 10, "user_time_seconds": 10, "user_result_total": 65, "user_step_bytes_total": 8 * 55 * 512, "user_last_total": 1, "user_first_total": 9,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	// The second argument exists at one of the two sites only.
	if reason := attached["user/second"]; got["user_second_total"] != 0 || !strings.Contains(reason, "the USDT probe has 1 arguments, and no arg2") {
		t.Errorf("second is attached, or for another reason not: %q", reason)
	}
}
