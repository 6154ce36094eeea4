// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
)

// How far families are proven.
const (
	called         = "decoded from injected events: a test's module calls the unmodified function of Linux 6.12. Not run on TDX or SEV-SNP hardware"
	bothExceptions = "#VE: " + called + ". #VC: the program gets codes and registers that a test makes, and was never called by a handler"
	uncompared     = "run in an emulated machine and compared with no other count; not run on TDX or SEV-SNP hardware"
	ofFiles        = "decoded from files that a test writes, not run on TDX or SEV-SNP hardware"
)

// describeState describes all families except bounce buffers.
func (f *families) describeState() {
	counter := func(name, unit, help, origin, proven string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{Name: name, Kind: metric.Counter, Unit: unit, Help: help, Labels: labels, Source: metric.Guest, Origin: origin, Proven: proven})
	}
	const (
		handlers = "tdx_handle_virt_exception, vc_raw_handle_exception (fentry)"
		causes   = " reason is cpuid, hlt, io, mmio, msr_read, msr_write, hypercall or other. mode is user or kernel. The handler of SEV-SNP can be watched from Linux 6.16 on; before, there are no samples."
		convert  = "__set_memory_enc_pgtable (fentry, fexit)"
		to       = " to is shared or private."
	)
	f.exceptions = counter("teescope_guest_exceptions_total", "exceptions",
		"Exceptions that a confidential virtual machine got in place of an instruction that needs the host: #VE of TDX, #VC of SEV-SNP. Most lead to an exit to the host."+causes, handlers, bothExceptions, "reason", "mode")
	f.workloadExceptions = counter("teescope_workload_guest_exceptions_total", "exceptions",
		"The exceptions of teescope_guest_exceptions_total, by the workload that ran. In mode kernel it may have been interrupted by something else. Threads of the kernel and the idle CPU are left out.",
		handlers, bothExceptions, "workload", "container", "pod", "namespace", "reason", "mode")
	f.conversions = counter("teescope_memory_conversions_total", "conversions",
		"Conversions of memory between private and shared that have succeeded. Drivers convert the memory that their devices use; each conversion is a request to the host."+to, convert, called, "to")
	f.converted = counter("teescope_memory_converted_bytes_total", "bytes", "Memory that was converted between private and shared."+to, convert, called, "to")
	f.converting = counter("teescope_memory_conversion_seconds_total", "seconds", "Time of conversions between private and shared memory, also of those that failed."+to, convert, called, "to")
	f.accepts = counter("teescope_memory_accepts_total", "calls",
		"Requests to accept memory since the agent started. A guest of TDX or SEV-SNP accepts its memory before the first use. The remaining memory is node_memory_Unaccepted_bytes.", "accept_memory (fentry, fexit), Linux 6.5 and later", called)
	f.accepting = counter("teescope_memory_accept_seconds_total", "seconds",
		"Time of accepting memory since the agent started.", "accept_memory (fentry, fexit), Linux 6.5 and later", called)
	f.idle = counter("teescope_idle_entries_total", "entries",
		"How often CPUs of a confidential virtual machine began to wait for work. Without polling, each wait is an exit to the host, and so is the interrupt that ends it.", "tracepoint power:cpu_idle", uncompared)
	f.polling = counter("teescope_idle_poll_seconds_total", "seconds",
		"Time for which idle CPUs of a confidential virtual machine have polled for work in place of waiting for it. It is CPU time of the host. Work that comes meanwhile saves the exit of a wait, and the interrupt that ends it. "+
			"Absent without a driver of cpuidle whose first state is to poll, such as haltpoll, and while a CPU is offline.", "/sys/devices/system/cpu/cpu*/cpuidle/state0/time", ofFiles)
	f.ipis = counter("teescope_ipis_total", "interrupts",
		"Interrupts between CPUs of a confidential virtual machine, at the receiver. Sending one is an exit to the host unless the processor delivers it. kind is reschedule, call or tlb. A call that flushes a TLB is of both kinds.", "/proc/interrupts", uncompared, "kind")
	f.info = metric.New(metric.Desc{
		Name: "teescope_guest_info", Kind: metric.Info, Source: metric.Guest, Labels: []string{"tee", "halt", "idle_driver"},
		Help: "Always 1 in a confidential virtual machine. halt is direct if the kernel of a trust domain always halts by a call to the host, without a #VE. It is exception if some halts cause a #VE. Before Linux 6.15 and its stable updates, halts for contended locks and of the ACPI idle driver do, and halts of the usual idle loop do not. It is empty elsewhere. " +
			"idle_driver is that of cpuidle; with haltpoll, CPUs poll before they wait.",
		Origin: "/dev, types of the kernel, /sys/devices/system/cpu/cpuidle/current_driver", Proven: ofFiles,
	})
	f.missing = metric.New(metric.Desc{
		Name: "teescope_guest_cpu_feature_missing", Kind: metric.Gauge, Unit: "features", Source: metric.Kernel, Labels: []string{"feature"},
		Help: "1 for each feature for cryptography or vectors that processors of this family and model have, and this confidential virtual machine lacks. The host chooses the features of a guest. " +
			"Absent if the model is unknown, for example because the host shows the model of another processor.",
		Origin: "/proc/cpuinfo", Proven: ofFiles,
	})
}

// haltsBy returns how a trust domain halts. Linux 6.15, and the stable kernels that have its change, call tdx_halt wherever
// they halt ("x86/tdx: Fix arch_safe_halt() execution for TDX VMs"). Older ones ask the host directly in the usual idle loop
// only (tdx_safe_halt), and elsewhere execute an instruction that causes a #VE.
func haltsBy(guest teelabel.Kind, has func(function string) bool) string {
	switch {
	case guest != teelabel.TDX:
		return ""
	case has("tdx_halt"):
		return "direct"
	}
	return "exception"
}

const (
	// maxInterrupts bounds /proc/interrupts, which has a column for each CPU.
	maxInterrupts = 8 << 20
	maxDriver     = 64
)

// emitState emits the state of the machine that files contain.
func (b *Backend) emitState(emit func(prometheus.Metric)) error {
	f := b.families
	proc := hostfs.At(b.opts.Roots.Proc)
	driver, err := hostfs.At(b.opts.Roots.Sys).Read(maxDriver, "devices/system/cpu/cpuidle/current_driver")
	if err != nil {
		driver = nil // a kernel without cpuidle
	}
	emit(f.info.Value(1, string(b.guest), b.halts, text.Label(strings.TrimSpace(string(driver)))))
	if polled, ok := polling(hostfs.At(b.opts.Roots.Sys)); ok {
		emit(f.polling.Value(polled.Seconds()))
	}
	interrupts, err := proc.ReadLines(maxInterrupts, "interrupts")
	parseIPIs(interrupts, func(kind string, n uint64) { emit(f.ipis.Value(float64(n), kind)) })
	if b.guest == teelabel.None {
		return unlessAbsent(err) // the copies were requested, and the processor is that of any machine
	}
	cpu, cpuErr := proc.Processor()
	for _, feature := range missing(cpu) {
		emit(f.missing.Value(1, feature))
	}
	return errors.Join(unlessAbsent(err), unlessAbsent(cpuErr))
}

// polling returns the time for which all CPUs have polled. The first state of cpuidle is to poll where it is named so
// (drivers/cpuidle/poll_state.c). A CPU that is offline has no time, so the sum is then unknown.
func polling(sys hostfs.Root) (sum time.Duration, ok bool) {
	cpus, err := sys.CPUs("present")
	if err != nil {
		return 0, false
	}
	for i, cpu := range cpus {
		dir := filepath.Join("devices/system/cpu", "cpu"+strconv.Itoa(cpu), "cpuidle/state0")
		if i == 0 {
			name, err := sys.Read(maxDriver, dir, "name")
			if err != nil || strings.TrimSpace(string(name)) != "POLL" {
				return 0, false
			}
		}
		us, err := sys.Number(dir, "time")
		if err != nil || us > math.MaxInt64/uint64(time.Microsecond)-uint64(sum/time.Microsecond) {
			return 0, false
		}
		sum += time.Duration(us) * time.Microsecond
	}
	return sum, len(cpus) > 0
}

func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ipiKinds are the lines of /proc/interrupts that count interrupts between CPUs (arch/x86/kernel/irq.c).
var ipiKinds = map[string]string{"RES:": "reschedule", "CAL:": "call", "TLB:": "tlb"}

// parseIPIs calls each once for each kind that has a line.
func parseIPIs(interrupts []byte, each func(kind string, n uint64)) {
	seen := map[string]bool{}
	for line := range bytes.Lines(interrupts) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kind := ipiKinds[string(fields[0])]
		if kind == "" || seen[kind] {
			continue
		}
		sum, columns := uint64(0), 0
		for _, field := range fields[1:] {
			n, err := strconv.ParseUint(string(field), 10, 64)
			if err != nil {
				break // the description follows the columns
			}
			sum, columns = sum+n, columns+1
		}
		if columns > 0 {
			seen[kind] = true
			each(kind, sum)
		}
	}
}
