// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A film is the series of a scene on one machine, while they are made.
type film struct {
	*scene
	random   *rand.Rand
	instance string
	times    []time.Time
	series   map[string]*track
	step     int     // index of the values that are made
	dropped  int     // steps before the first value
	last     int     // step at which the scene ends
	seconds  float64 // between steps
	load     map[string]float64
	week     *week // nil: the load varies around one level, and no program is restarted
}

type track struct {
	labels map[string]string
	values []float64
	sum    float64
}

// series returns all series of a scene.
func (s *scene) series() (all []*track, times []time.Time) {
	missing := func(t *track) bool {
		return slices.ContainsFunc(s.Without, func(prefix string) bool { return strings.HasPrefix(t.labels["__name__"], prefix) })
	}
	for i, instance := range s.Machines {
		f := &film{scene: s, instance: instance, seconds: time.Duration(s.Interval).Seconds(), series: map[string]*track{},
			random: rand.New(rand.NewPCG(s.Seed+uint64(i), uint64(len(s.name))+uint64(s.name[0])<<8)), load: map[string]float64{}}
		f.last = int(sceneHistory.Seconds() / f.seconds)
		f.advance(f.last + 1)
		for _, id := range slices.Sorted(maps.Keys(f.series)) {
			if !missing(f.series[id]) {
				all = append(all, f.series[id])
			}
		}
		times = f.times
	}
	return all, times
}

// advance makes further steps.
func (f *film) advance(steps int) {
	names := slices.Sorted(maps.Keys(f.Workloads))
	keep := math.Exp(-f.seconds / 60)
	for range steps {
		at := begin.Add(time.Duration(float64(f.dropped+f.step) * f.seconds * float64(time.Second)))
		f.times = append(f.times, at)
		left := float64(f.last-f.dropped-f.step) * f.seconds
		var m machineLoad
		for _, name := range names {
			a := f.Workloads[name]
			f.load[name] = keep*f.load[name] + math.Sqrt(1-keep*keep)*f.random.NormFloat64()
			sd := cmp.Or(a.SD, 0.1)
			load := math.Exp(sd*f.load[name] - sd*sd/2)
			if f.week != nil {
				load, a = load*f.week.level(f, name, at), f.week.restarted(f, name, a, left)
			}
			f.workload(name, a, left, load, &m)
		}
		f.machine(m)
		f.step++
	}
}

// forget drops all values but the last ones.
func (f *film) forget(but int) {
	cut := max(0, f.step-but)
	f.times = slices.Delete(f.times, 0, cut)
	for _, t := range f.series {
		t.values = slices.Delete(t.values, 0, min(cut, len(t.values)))
	}
	f.step, f.dropped = f.step-cut, f.dropped+cut
}

// sorted returns figures by name, so that the noise of each is the same in every run.
func sorted(figures map[string]float64) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			if !yield(name, figures[name]) {
				return
			}
		}
	}
}

// counter adds to a counter. What is not done is no series until it was done once.
func (f *film) counter(name string, perSecond float64, labels ...string) {
	t := f.track(name, labels)
	if perSecond > 0 {
		t.sum += perSecond * f.seconds * max(0, 1+0.03*f.random.NormFloat64())
	}
	t.values = append(t.values[:f.step], t.sum) // a second part of one step replaces the first
}

func (f *film) gauge(name string, v float64, labels ...string) {
	t := f.track(name, labels)
	t.values = append(t.values[:f.step], v)
}

func (f *film) track(name string, labels []string) *track {
	id := name + "\xff" + strings.Join(labels, "\xff")
	t := f.series[id]
	if t == nil {
		t = &track{labels: map[string]string{"__name__": name, "instance": f.instance}}
		for i := 0; i < len(labels); i += 2 {
			t.labels[labels[i]] = labels[i+1]
		}
		f.series[id] = t
	}
	for len(t.values) < f.step {
		t.values = append(t.values, math.NaN())
	}
	return t
}

// machineLoad is the sum over the programs of a machine.
type machineLoad struct {
	user, system, wait, loaded, stall, births, starting, inside, bytes, io, mem, bounced float64
}

// workload adds one step of a program. Its load varies, and its threads cannot run more than all the time.
func (f *film) workload(name string, a *actor, left, load float64, m *machineLoad) {
	d := a.doing
	if a.Began > 0 && left > a.Began {
		return
	}
	if a.Was != nil && left > a.Changed {
		d = *a.Was
		if d.Threads == 0 {
			d.Threads, d.Processes, d.Container, d.Limit, d.RSS, d.Resident, d.TCS, d.Inside = a.Threads, a.Processes, a.Container, a.Limit, a.RSS, a.Resident, a.TCS, a.Inside
		}
	}
	if a.Every > 0 && math.Mod(left, a.Every) >= a.For {
		load = 0
	}
	threads, processes := max(1, d.Threads), max(1, d.Processes)
	cores := d.User + d.System
	if most := min(threads, float64(f.CPUs)); cores*load > most {
		load = most / cores
	}
	if d.Busiest*load > 1 {
		load = 1 / d.Busiest
	}
	w := []string{"workload", name}
	with := func(more ...string) []string { return append(slices.Clone(w), more...) }
	start := 0.0
	if a.Began > 0 && a.Began-left < 10 {
		start = 1
	}
	kind := a.Kind
	if kind == "" {
		kind = "program"
		if d.Container {
			kind = "container"
		}
	}
	f.gauge("teescope_workload_info", 1, with("kind", kind, "tee", cmp.Or(a.TEE, f.TEE), "runtime", a.Runtime)...)
	f.gauge("teescope_processes", processes, w...)
	f.gauge("teescope_threads", threads, w...)
	f.counter("teescope_cpu_seconds_total", d.User*load, with("mode", "user")...)
	f.counter("teescope_cpu_seconds_total", d.System*load+0.3*start, with("mode", "system")...)
	busiest := cmp.Or(d.Busiest, min(1, cores/threads*1.4))
	f.gauge("teescope_busiest_thread_cpu_ratio", min(1, busiest*load), w...)
	f.counter("teescope_run_queue_wait_seconds_total", d.Wait*load+0.02*cores*load, w...)
	f.counter("teescope_context_switches_total", d.Waits*load+1, with("kind", "voluntary")...)
	f.counter("teescope_context_switches_total", d.Preempted*load+4*cores*load, with("kind", "involuntary")...)
	calls := d.Calls
	if calls == nil {
		calls = map[string]float64{"epoll_wait": 2}
	}
	for call, n := range sorted(calls) {
		f.counter("teescope_syscalls_total", n*load, with("syscall", call)...)
	}
	f.counter("teescope_syscalls_total", 400*start, with("syscall", "mmap")...)
	f.counter("teescope_syscalls_total", 300*start+0.1, with("syscall", "openat")...)
	for call, n := range sorted(d.CallTime) {
		f.counter("teescope_syscall_seconds_total", n*load, with("syscall", call)...)
	}
	faults := map[string]float64{}
	maps.Copy(faults, d.Faults)
	faults["no_page_found"] += 3
	all := 0.0
	for reason, n := range sorted(faults) {
		f.counter("teescope_page_faults_total", n*load+8000*start, with("mode", "user", "reason", reason)...)
		all += n*load + 8000*start
	}
	f.counter("teescope_page_faults_handled_total", all, with("type", "minor")...)
	f.counter("teescope_page_faults_handled_total", d.Major*load+30*start, with("type", "major")...)
	f.counter("teescope_forks_total", d.Forks*load, w...)
	f.counter("teescope_exits_total", d.Forks*load, w...)
	f.counter("teescope_execs_total", d.Execs*load, w...)
	f.counter("teescope_thread_starts_total", d.Starts*load+threads*start/10, w...)
	misses := cmp.Or(d.Misses, 1e6*cores)
	f.counter("teescope_llc_misses_total", misses*load, w...)
	f.counter("teescope_llc_references_total", 8*misses*load, w...)
	f.counter("teescope_cpu_migrations_total", d.Migrated*load+0.5*cores*load, w...)
	f.counter("teescope_page_cache_ops_total", d.Pages*load+0.2, with("op", "access")...)
	f.counter("teescope_page_cache_ops_total", d.Pages*load/10, with("op", "dirty_page")...)
	f.gauge("teescope_resident_memory_bytes", max(40, d.Memory)*(1<<20), w...)
	f.enclave(a, d, load, with, m)
	for reason, n := range sorted(d.Exceptions) {
		f.counter("teescope_workload_guest_exceptions_total", n*load, with("reason", reason, "mode", "kernel")...)
	}
	if d.Bounced > 0 {
		f.counter("teescope_workload_bounce_bytes_total", d.Bounced*load, with("class", "storage")...)
	}
	for reason, n := range sorted(d.VM) {
		f.gauge("teescope_vm_info", 1, "vm", name, "pid", "77", "tee", f.TEE, "vmm", "qemu", "workload", name)
		f.counter("teescope_vm_exits_total", n*load, "vm", name, "reason", reason)
		f.counter("teescope_vm_exit_seconds_total", d.Outside[reason]*load, "vm", name, "reason", reason)
	}
	if d.Container {
		f.container(name, d, load)
	}
	m.user, m.system, m.wait = m.user+d.User*load, m.system+d.System*load, m.wait+d.Wait*load
	m.bytes, m.io, m.mem, m.bounced = m.bytes+d.Bytes*load, max(m.io, d.IO), max(m.mem, d.MemSome), m.bounced+d.Bounced*load
}

// enclave adds the series of the enclaves of a program.
func (f *film) enclave(a *actor, d doing, load float64, with func(...string) []string, m *machineLoad) {
	if a.TEE != "sgx" {
		return
	}
	if source := a.Source; source != "" {
		f.counter("teescope_enclave_transitions_total", d.Exits*load, with("kind", "eexit", "source", source)...)
		f.counter("teescope_enclave_transitions_total", d.Exits*load, with("kind", "eenter", "source", source)...)
		f.counter("teescope_enclave_transitions_total", d.AEX*load+250*(d.User+d.System)*load, with("kind", "aex", "source", source)...)
		for call, n := range sorted(d.OCALLs) {
			f.counter("teescope_ocalls_total", n*load, with("ocall", call, "mode", "normal", "source", source)...)
			if d.Within != nil {
				f.counter("teescope_ocall_seconds_count", n*load, with("ocall", call, "source", source)...)
				f.counter("teescope_ocall_seconds_sum", max(d.Within[call], 4e-6*n)*load, with("ocall", call, "source", source)...)
			}
		}
		for call, n := range sorted(d.ECALLs) {
			f.counter("teescope_ecalls_total", n*load, with("ecall", call, "mode", "normal", "source", source)...)
		}
		if source == "gramine_counters" {
			f.counter("teescope_enclave_signals_total", d.Traps*load, with("kind", "sync", "source", source)...)
		}
	}
	for cause, n := range sorted(d.Causes) {
		f.counter("teescope_enclave_aex_total", n*load, with("cause", cause, "source", "interrupts")...)
	}
	inside := max(16, d.Inside)
	f.counter("sgx_workload_pages_loaded_back_total", d.Loaded*load, with()...)
	f.counter("sgx_workload_pages_evicted_total", d.Loaded*load, with()...)
	f.counter("sgx_workload_faults_total", d.Loaded*load+d.Added*load+0.5, with()...)
	f.counter("sgx_workload_pages_augmented_total", d.Added*load, with()...)
	f.counter("sgx_workload_enclaves_created_total", d.Births*load, with()...)
	f.gauge("sgx_workload_enclaves", 1, with()...)
	f.gauge("sgx_workload_resident_bytes", inside*(1<<20), with()...)
	f.gauge("sgx_workload_size_bytes", 4*inside*(1<<20), with()...)
	f.gauge("sgx_workload_paged_out_bytes", max(0, d.Set-inside)*(1<<20), with()...)
	f.gauge("sgx_workload_working_set_bytes", max(d.Set, 0.8*inside)*(1<<20), with()...)
	if d.TCS > 0 {
		id := []string{"enclave", with()[1], "pid", "11"}
		f.gauge("sgx_enclave_info", 1, append(slices.Clone(id), "workload", with()[1], "debug", "false", "seen", "created")...)
		f.gauge("sgx_enclave_threads", d.TCS, id...)
	}
	m.loaded, m.stall, m.inside = m.loaded+d.Loaded*load, m.stall+max(d.Stall, d.Loaded*12e-6)*load, m.inside+inside
	m.births, m.starting = m.births+d.Births*load, m.starting+d.Births*d.Starting*load
}

// container adds the group of a program.
func (f *film) container(name string, d doing, load float64) {
	id := "/kubepods/pod1/" + name
	f.gauge("teescope_container_info", 1, "workload", name, "id", id, "name", name, "image", "app")
	c := func(metric string, perSecond float64, more ...string) {
		f.counter("container_"+metric, perSecond, append([]string{"id", id, "name", name, "image", "app"}, more...)...)
	}
	g := func(metric string, v float64) {
		f.gauge("container_"+metric, v, "id", id, "name", name, "image", "app")
	}
	c("cpu_usage_seconds_total", (d.User+d.System)*load, "cpu", "total")
	if d.Quota > 0 {
		c("cpu_cfs_periods_total", 10)
		c("cpu_cfs_throttled_periods_total", 10*d.Throttled*min(1, load))
		c("cpu_cfs_throttled_seconds_total", d.Stopped*load)
	}
	g("spec_memory_limit_bytes", d.Limit*(1<<20))
	limit := cmp.Or(d.Limit, 1024)
	g("memory_rss", max(d.RSS, 0.2)*limit*(1<<20))
	g("memory_working_set_bytes", max(d.Resident, d.RSS, 0.25)*limit*(1<<20))
	c("oom_events_total", d.Kills)
	f.counter("teescope_oom_kills_total", d.Kills, "workload", name)
	c("pressure_io_waiting_seconds_total", d.IO+0.002)
	c("pressure_io_stalled_seconds_total", d.IOFull+0.001)
	c("pressure_memory_waiting_seconds_total", d.MemSome)
	c("pressure_memory_stalled_seconds_total", d.MemFull)
	c("network_receive_bytes_total", d.Bytes*load/2, "interface", "eth0")
	c("network_transmit_bytes_total", d.Bytes*load/2, "interface", "eth0")
}

// machine adds one step of the machine.
func (f *film) machine(m machineLoad) {
	cpus := float64(f.CPUs)
	idle := max(0.005*cpus, cpus-m.user-m.system-f.Steal-0.03)
	for i := range f.CPUs {
		cpu := fmt.Sprint(i)
		for mode, cores := range sorted(map[string]float64{
			"user": m.user, "system": m.system, "idle": idle * (1 - min(0.5, m.io)), "iowait": idle * min(0.5, m.io), "steal": f.Steal, "softirq": 0.02, "irq": 0, "nice": 0,
		}) {
			f.counter("node_cpu_seconds_total", cores/cpus, "cpu", cpu, "mode", mode)
		}
		f.gauge("node_cpu_frequency_max_hertz", f.GHz*1e9, "cpu", cpu)
	}
	f.counter("node_pressure_cpu_waiting_seconds_total", min(0.95, m.wait))
	f.counter("node_pressure_io_waiting_seconds_total", max(m.io, 0.004))
	f.counter("node_pressure_io_stalled_seconds_total", m.io/2)
	f.counter("node_pressure_memory_waiting_seconds_total", max(f.Reclaim, m.mem))
	f.counter("node_pressure_memory_stalled_seconds_total", max(f.Reclaim, m.mem)/3)
	f.counter("node_vmstat_pswpin", 2000*f.Reclaim)
	f.counter("node_vmstat_pswpout", 2000*f.Reclaim)
	f.counter("node_netstat_Tcp_OutSegs", cmp.Or(f.Network.Sent, 500+m.bytes/1000))
	f.counter("node_netstat_Tcp_RetransSegs", f.Network.Resent+0.1)
	f.counter("node_netstat_TcpExt_ListenDrops", f.Network.Drops)
	for _, device := range []string{"lo", "eth0"} {
		f.counter("node_network_receive_bytes_total", m.bytes/2+20000, "device", device)
		f.counter("node_network_transmit_bytes_total", m.bytes/2+20000, "device", device)
	}
	f.gauge("node_network_speed_bytes", 1.25e9, "device", "eth0")
	disk := 20 + 400*m.io
	f.counter("node_disk_reads_completed_total", disk/4, "device", "nvme0n1")
	f.counter("node_disk_writes_completed_total", disk, "device", "nvme0n1")
	f.counter("node_disk_read_time_seconds_total", disk/4*f.DiskMS/1000, "device", "nvme0n1")
	f.counter("node_disk_write_time_seconds_total", disk*f.DiskMS/1000, "device", "nvme0n1")
	if f.EPC > 0 {
		for node := range f.Nodes {
			f.gauge("sgx_epc_size_bytes", f.EPC/float64(f.Nodes)*(1<<20), "node", fmt.Sprint(node))
		}
		f.gauge("sgx_epc_free_bytes", max(0, f.EPC-m.inside)*(1<<20))
		f.counter("sgx_epc_pages_loaded_back_total", m.loaded)
		f.counter("sgx_epc_pages_evicted_total", m.loaded)
		f.counter("sgx_load_back_seconds_sum", m.stall)
		f.counter("sgx_load_back_seconds_count", m.loaded)
		f.counter("sgx_load_back_seconds_bucket", m.loaded*0.9, "le", "0.0001")
		f.counter("sgx_load_back_seconds_bucket", m.loaded, "le", "+Inf")
		f.counter("sgx_enclave_start_seconds_sum", m.starting)
		f.counter("sgx_enclave_start_seconds_count", m.births)
	}
	if f.TEE != "none" {
		f.counter("teescope_bounce_bytes_total", m.bounced+1000, "class", "storage", "direction", "from_device")
		f.gauge("teescope_bounce_pool_bytes", 64<<20)
	}
	for series, perSecond := range sorted(f.Extra) {
		name, labels := parsedSeries(series)
		f.counter(name, perSecond, labels...)
	}
	for series, v := range sorted(f.Gauges) {
		name, labels := parsedSeries(series)
		f.gauge(name, v, labels...)
	}
}

// parsedSeries returns the name and the labels of a series.
func parsedSeries(series string) (name string, labels []string) {
	name, rest, _ := strings.Cut(series, "{")
	for _, l := range labelled.FindAllStringSubmatch(rest, -1) {
		labels = append(labels, l[1], l[2])
	}
	return name, labels
}
