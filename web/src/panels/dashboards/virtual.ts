// SPDX-License-Identifier: Apache-2.0

// Virtual machines: those of this host, and this machine if it is a confidential one. Both are on the page TEE.
import type { PanelDef, Section } from "../types";

/** Adds the workload of a virtual machine to its series. */
const WITH_WORKLOAD = "on (vm, instance) group_left (workload) teescope_vm_info{$workloads}";

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
  help: "Outside is the number of virtual CPUs that are outside of their guest on average, without those that wait for work (HLT). TEE is none for a plain virtual machine.",
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
      queries: [{ expr: "sum by (reason) ($rate(teescope_vm_exits_total{$nodes}[$window]))", legend: "{{reason}}" }],
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
      queries: [{ expr: 'sum by (vm, reason, instance) ($rate(teescope_vm_exit_seconds_total{reason!="hlt",$nodes}[$window]))', legend: "{{vm}}: {{reason}}" }],
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
      kind: "gauge",
      title: "Bounce buffers",
      question: "How full are the bounce buffers?",
      unit: "bytes",
      queries: [
        { expr: "sum(teescope_bounce_pool_used_bytes{$nodes})", legend: "in use" },
        { expr: "sum(teescope_bounce_pool_bytes{$nodes})", legend: "size" },
      ],
      thresholds: [{ at: 0.8, level: "warn" }, { at: 0.95, level: "bad" }],
      help: "Shared memory through which all data of devices is copied (swiotlb). Without room, disks wait and network devices drop packets. The value is for the whole machine: the workload filter does not apply.",
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
      queries: [{ expr: "sum by (class) ($rate(teescope_bounce_failures_total{$nodes}[$window]))", legend: "{{class}}" }],
      help: "Mappings that failed. Each retry counts.",
      empty: { text: "Failed mappings were not measured.", probe: "cvm_bounced" },
    },
    {
      id: "guest-exceptions",
      kind: "stacked",
      title: "Exceptions in place of instructions",
      question: "Which instructions of the guest need the host?",
      unit: "per_second",
      queries: [{ expr: "sum by (reason, mode) ($rate(teescope_guest_exceptions_total{$nodes}[$window]))", legend: "{{reason}}, {{mode}}" }],
      top: 10,
      help: "#VE of TDX and #VC of SEV-SNP. Most of them lead to an exit to the host.",
      empty: { text: "The handler of these exceptions is not watched: SEV-SNP needs Linux 6.16 or later.", probe: "cvm_(?:virt|comm)" },
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
