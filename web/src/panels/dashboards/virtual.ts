// SPDX-License-Identifier: Apache-2.0

// Virtual machines: those of this host, and this machine if it is a confidential one. Both are on the page TEE, with the GPUs
// that a confidential machine uses, and with the traffic by vsock of enclaves and virtual machines.
import { newest } from "../../lib/promql";
import type { PanelDef, Query, Section } from "../types";

/** Adds the workload of a virtual machine to its series. */
const WITH_WORKLOAD = `on (vm, instance) group_left (workload) ${newest("teescope_vm_info{$workloads}", "vm, instance")}`;

const VM_TABLE: PanelDef = {
  id: "vm-table",
  kind: "table",
  title: "Virtual machines",
  question: "Which virtual machine leaves its guest often, and which TEE does it have?",
  unit: "count",
  keys: [
    { label: "vm", title: "Virtual machine" },
    { label: "workload", title: "Workload" },
    { label: "instance", title: "Node", several: true },
  ],
  info: {
    expr: "teescope_vm_info{$workloads}",
    labels: [
      { label: "tee", title: "TEE" },
      { label: "vmm", title: "VMM" },
      { label: "pod", title: "Pod" },
    ],
  },
  columns: [
    { title: "Exits", unit: "per_second", expr: `sum by (vm, instance) ($rate(teescope_vm_exits_total{reason!="hlt",$nodes}[$window])) * ${WITH_WORKLOAD}`, spark: true },
    { title: "Outside", unit: "seconds_per_second", expr: `sum by (vm, instance) ($rate(teescope_vm_exit_seconds_total{reason!="hlt",$nodes}[$window])) * ${WITH_WORKLOAD}`, spark: true },
    { title: "To the VMM", unit: "per_second", expr: `sum by (vm, instance) ($rate(teescope_vm_userspace_exits_total{$nodes}[$window])) * ${WITH_WORKLOAD}` },
  ],
  sortBy: 1,
  help: "Outside is the number of virtual CPUs that are outside of their guest on average, without those that wait for work (HLT). TEE is none for a plain virtual machine. The kernel of the host counts, so it can forge all of this.",
  empty: { text: "No virtual machine ran at the end of this time range, or the filter selects none.", probe: "vm_" },
};

/** The virtual machines of this host. */
export const VIRTUAL: Section = {
  id: "tee-virtual",
  title: "Virtual machines of this host",
  panels: [
    VM_TABLE,
    {
      id: "vm-exits",
      kind: "stacked",
      title: "Exits by reason",
      question: "Why do virtual machines leave their guests?",
      unit: "per_second",
      queries: [{ expr: "sum by (reason) ($rate(teescope_vm_exits_total{$nodes}[$window])) > 0", legend: "{{reason}}" }],
      top: 10,
      help: "Exits of all virtual machines. In a TEE, page_state is a conversion between private and shared memory, and attestation a request for a report. The runbook vm-exits has a remedy for each reason.",
      empty: { text: "No virtual machine left its guest in this time range.", probe: "vm_" },
    },
    {
      id: "vm-outside",
      kind: "stacked",
      title: "Time outside of the guests",
      question: "Which exits take the time of virtual CPUs?",
      unit: "seconds_per_second",
      queries: [{ expr: 'sum by (vm, reason, instance) ($rate(teescope_vm_exit_seconds_total{reason!="hlt",$nodes}[$window])) > 0', legend: "{{vm}}: {{reason}}" }],
      top: 10,
      help: "Virtual CPUs that are outside of their guest, on average, from the exit to the next entry. It includes the VMM and waiting for a processor, but not HLT, in which a guest has nothing to do.",
      empty: { text: "No virtual machine was outside of its guest in this time range.", probe: "vm_" },
    },
    {
      id: "vm-userspace",
      kind: "lines",
      title: "Exits to the VMM",
      question: "What does the kernel leave to the VMM?",
      unit: "per_second",
      queries: [{ expr: "sum by (vm, reason, instance) ($rate(teescope_vm_userspace_exits_total{$nodes}[$window])) > 0", legend: "{{vm}}: {{reason}}" }],
      top: 10,
      help: "An exit that the VMM handles takes several times as long as one that KVM handles. In a TEE, hypercall is a conversion of memory.",
      empty: { text: "No exit was handled by a VMM in this time range.", probe: "vm_" },
    },
  ],
};

/** This machine, if it is a confidential one. */
export const CONFIDENTIAL: Section = {
  id: "tee-confidential",
  title: "This confidential machine",
  panels: [
    {
      id: "bounce-pool",
      kind: "lines",
      title: "Bounce buffers",
      question: "How full are the bounce buffers?",
      unit: "bytes",
      queries: [
        { expr: "sum by (instance) (teescope_bounce_pool_used_bytes{$nodes})", legend: "in use" },
        { expr: "sum by (instance) (teescope_bounce_pool_used_max_bytes{$nodes})", legend: "most since boot" },
        { expr: "sum by (instance) (teescope_bounce_pool_bytes{$nodes})", legend: "size" },
      ],
      help: "Shared memory through which all data of devices is copied (swiotlb). Without room, disks wait and network devices drop packets. It is often full for shorter than the time between two samples. The values are for the whole machine: the workload filter does not apply.",
      empty: { text: "The kernel does not show its bounce buffers: debugfs is not mounted, or may not be read." },
    },
    {
      id: "bounce-bytes",
      kind: "stacked",
      title: "Copied through bounce buffers",
      question: "Which workload has its data copied?",
      unit: "bytes_per_second",
      queries: [{ expr: "sum by (workload, class, instance) ($rate(teescope_workload_bounce_bytes_total{$workloads}[$window]))", legend: "{{workload}}: {{class}}" }],
      top: 10,
      help: "Data of block devices and accelerators by the workload that submitted it. Packets count for the machine only, because the kernel maps them in interrupts.",
      empty: { text: "No workload had data copied in this time range.", probe: "cvm_bounced" },
    },
    {
      id: "bounce-failures",
      kind: "lines",
      title: "No room in the bounce buffers",
      question: "For which devices was there no room?",
      unit: "per_second",
      queries: [{
        expr: "sum by (class) ($rate(teescope_bounce_failures_total{$nodes}[$window])) and on (class) (sum by (class) (teescope_bounce_mappings_total{$nodes}) > 0 or sum by (class) (teescope_bounce_failures_total{$nodes}) > 0)",
        legend: "{{class}}",
      }],
      help: "Mappings that failed, for the classes of devices that use bounce buffers. Each retry counts.",
      empty: { text: "No mapping in the bounce buffers was counted.", probe: "cvm_bounced" },
    },
    {
      id: "guest-exceptions",
      kind: "stacked",
      title: "Exceptions in place of instructions",
      question: "Which instructions of the guest need the host?",
      unit: "per_second",
      queries: [{ expr: "sum by (reason, mode) ($rate(teescope_guest_exceptions_total{$nodes}[$window])) > 0", legend: "{{reason}}, {{mode}}" }],
      top: 10,
      help: "#VE of TDX and #VC of SEV-SNP. Most of them lead to an exit to the host. The kernel of this machine counts, so its host cannot change the numbers.",
      empty: { text: "No exception was counted in this time range. In SEV-SNP, counting them needs Linux 6.16 or later.", probe: "cvm_(?:virt|comm)" },
    },
    {
      id: "guest-conversions",
      kind: "lines",
      title: "Conversions of memory",
      question: "How much memory changes between private and shared?",
      unit: "bytes_per_second",
      queries: [{ expr: "sum by (to) ($rate(teescope_memory_converted_bytes_total{$nodes}[$window]))", legend: "to {{to}}" }],
      help: "A running machine should convert little. Drivers that free and allocate the memory of their devices again and again convert it each time.",
      empty: { text: "Conversions were not measured.", probe: "cvm_conver" },
    },
    {
      id: "guest-waits",
      kind: "lines",
      title: "Waits and interrupts between CPUs",
      question: "How often do CPUs wait for work and wake each other?",
      unit: "per_second",
      queries: [
        { expr: "sum($rate(teescope_idle_entries_total{$nodes}[$window]))", legend: "waits for work" },
        { expr: "sum by (kind) ($rate(teescope_ipis_total{$nodes}[$window]))", legend: "interrupts: {{kind}}" },
      ],
      help: "In a confidential machine, each wait and each interrupt can be an exit to the host. Fewer virtual CPUs, pinned threads and polling (haltpoll) cause fewer.",
      empty: { text: "Waits were not measured.", probe: "cvm_idle" },
    },
  ],
};

/** Returns a query for each kind of copy to or from a GPU. */
function byCopy(suffix: string): Query[] {
  return [["to", "to_gpu"], ["to, async", "to_gpu_async"], ["from", "from_gpu"], ["from, async", "from_gpu_async"]].map(([title = "", kind = ""]) => ({
    expr: `sum by (workload, instance) ($rate(teescope_user_cuda_${kind}_${suffix}{$workloads}[$window]))`,
    legend: `{{workload}}: ${title}`,
  }));
}

const GPU_FLAG = "--probes.file deploy/probes/libcuda.yaml";

/** Confidential GPUs, and what programs do with GPUs. */
export const GPUS: Section = {
  id: "tee-gpus",
  title: "GPUs",
  panels: [
    {
      id: "gpu-state",
      kind: "table",
      title: "Confidential GPUs",
      question: "Are the GPUs protected, and do they accept work?",
      unit: "count",
      keys: [{ label: "instance", title: "Node" }],
      info: {
        expr: "teescope_gpu_confidential_info{$nodes}",
        labels: [
          { label: "mode", title: "Mode" },
          { label: "environment", title: "Environment" },
          { label: "devtools", title: "Developer tools" },
        ],
      },
      columns: [{ title: "Ready", unit: "count", expr: "min by (instance) (teescope_gpu_ready{$nodes})" }],
      help: "All GPUs of a machine together. The modes protected_pcie and nvle are for several GPUs. The environment simulation, and developer tools that are on, do not protect. Ready is 0 if programs find no GPU.",
      empty: { text: "There is no driver of NVIDIA with confidential computing, or the agent may not ask it." },
    },
    {
      id: "gpu-copies",
      kind: "lines",
      title: "Copies to and from GPUs",
      question: "Which workload copies how much?",
      unit: "bytes_per_second",
      queries: byCopy("bytes_total"),
      top: 10,
      help: "In a confidential machine, each copy is encrypted. Copies of several dimensions, of graphs and between GPUs are not included.",
      empty: { text: "No copy was counted in this time range. Counting needs probes on libcuda.", flag: GPU_FLAG },
    },
    {
      id: "gpu-blocked",
      kind: "lines",
      title: "Threads blocked in copies",
      question: "How many threads wait for copies?",
      unit: "seconds_per_second",
      queries: byCopy("blocked_seconds_sum"),
      top: 10,
      help: "The mean number of threads in these calls. An asynchronous copy should return at once. In a confidential machine, it often returns later.",
      empty: { text: "No thread was blocked in a copy in this time range. Counting needs probes on libcuda.", flag: GPU_FLAG },
    },
    {
      id: "gpu-launches",
      kind: "lines",
      title: "Work for GPUs",
      question: "Which workload gives work to a GPU?",
      unit: "per_second",
      queries: [
        { expr: "sum by (workload, instance) ($rate(teescope_user_cuda_launches_total{$workloads}[$window]))", legend: "{{workload}}: kernels" },
        { expr: "sum by (workload, instance) ($rate(teescope_user_cuda_graph_launches_total{$workloads}[$window]))", legend: "{{workload}}: graphs" },
      ],
      top: 10,
      help: "A program that finds no GPU may continue on the CPU, and then launches nothing.",
      empty: { text: "Nothing was launched in this time range. Counting needs probes on libcuda.", flag: GPU_FLAG },
    },
  ],
};

/** Nitro Enclaves, and the traffic by vsock of enclaves and virtual machines. */
export const VSOCK: Section = {
  id: "tee-vsock",
  title: "Nitro Enclaves and vsock",
  panels: [
    {
      id: "nitro-table",
      kind: "table",
      title: "Nitro Enclaves",
      question: "Which enclaves run on this parent, and what do they hold?",
      unit: "count",
      keys: [
        { label: "pid", title: "Process" },
        { label: "instance", title: "Node", several: true },
      ],
      info: {
        expr: "teescope_nitro_enclave_info{$nodes}",
        labels: [
          { label: "name", title: "Name" },
          { label: "cid", title: "Address" },
        ],
      },
      columns: [
        { title: "CPUs", unit: "count", expr: "sum by (pid, instance) (teescope_nitro_enclave_cpus{$nodes})" },
        { title: "Memory", unit: "bytes", expr: "sum by (pid, instance) (teescope_nitro_enclave_memory_bytes{$nodes})" },
      ],
      help: "Name and address are empty unless they were given at the start.",
      empty: { text: "No Nitro Enclave ran at the end of this time range." },
    },
    {
      id: "vsock-bytes",
      kind: "lines",
      title: "Data by vsock",
      question: "What does each enclave or virtual machine exchange with this machine?",
      unit: "bytes_per_second",
      queries: [{ expr: "sum by (cid, direction, instance) ($rate(teescope_vsock_bytes_total{$nodes}[$window]))", legend: "{{cid}}: {{direction}}" }],
      top: 10,
      help: "By the address of the enclave or virtual machine. An enclave has no other network and no disk.",
      empty: { text: "No data was exchanged by vsock in this time range.", probe: "vsock_" },
    },
    {
      id: "vsock-packets",
      kind: "lines",
      title: "Packets by vsock",
      question: "How often do enclaves or virtual machines and this machine wake each other?",
      unit: "per_second",
      queries: [{ expr: "sum by (cid, direction, instance) ($rate(teescope_vsock_packets_total{$nodes}[$window]))", legend: "{{cid}}: {{direction}}" }],
      top: 10,
      help: "Each packet wakes the other side. Many packets with little data are slow: batch requests, or keep connections open.",
      empty: { text: "No packet was exchanged by vsock in this time range.", probe: "vsock_" },
    },
    {
      id: "vsock-resets",
      kind: "lines",
      title: "Connections by vsock",
      question: "Are connections refused?",
      unit: "per_second",
      queries: [
        { expr: "sum by (cid, direction, instance) ($rate(teescope_vsock_connection_requests_total{$nodes}[$window]))", legend: "{{cid}}: requests {{direction}}" },
        { expr: "sum by (cid, direction, instance) ($rate(teescope_vsock_resets_total{$nodes}[$window]))", legend: "{{cid}}: resets {{direction}}" },
      ],
      top: 10,
      help: "A reset as the answer to each request means that nothing listens on that port.",
      empty: { text: "No connection was requested by vsock in this time range.", probe: "vsock_" },
    },
  ],
};
