// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

const OF = "on (enclave, pid, instance) group_left (workload) sgx_enclave_info{$workloads}";

export const teeEnclaveTable: TableDef = {
  id: "tee-enclave-table",
  kind: "table",
  title: "Enclaves that there are",
  question: "Which enclave holds what, and which one pages?",
  unit: "count",
  keys: [
    { label: "workload", title: "Workload" },
    { label: "pid", title: "PID" },
    { label: "enclave", title: "Enclave" },
    { label: "instance", title: "Node", several: true },
  ],
  info: {
    expr: "sgx_enclave_info{$workloads}",
    labels: [{ label: "debug", title: "Debug" }],
  },
  columns: [
    { title: "Size", unit: "bytes", expr: `sgx_enclave_size_bytes{$nodes} * ${OF}` },
    { title: "Resident", unit: "bytes", expr: `sgx_enclave_resident_bytes{$nodes} * ${OF}`, spark: true },
    { title: "Paged out", unit: "bytes", expr: `sgx_enclave_paged_out_bytes{$nodes} * ${OF}`, spark: true },
    { title: "Working set", unit: "bytes", expr: `sgx_enclave_working_set_bytes{$nodes} * ${OF}` },
    { title: "Loaded back", unit: "per_second", expr: `$rate(sgx_enclave_pages_loaded_back_total{$nodes}[$window]) * ${OF}`, spark: true },
    { title: "Evicted", unit: "per_second", expr: `$rate(sgx_enclave_pages_evicted_total{$nodes}[$window]) * ${OF}`, spark: true },
    { title: "Threads", unit: "count", expr: `sgx_enclave_threads{$nodes} * ${OF}` },
    { title: "Age", unit: "seconds", expr: `(time() - sgx_enclave_start_time_seconds{$nodes}) * ${OF}` },
  ],
  sortBy: 4,
  help:
    "At most 64 enclaves have rows of their own. The process is the one that created the enclave. Threads is how many can be inside at once (TCS). Debug enclaves can be read from outside: never in production.",
  empty: { text: "No enclave was there at the end of this time range, or none that the filter chose.", probe: "sgx_" },
};
