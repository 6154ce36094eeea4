// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerEpc: ChartDef = {
  id: "container-epc",
  kind: "stacked",
  title: "Enclave memory by container",
  question: "Which container holds enclave memory?",
  unit: "bytes",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) (container_misc_usage{resource=\"sgx_epc\",name!=\"\",container!=\"POD\",$nodes} $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help: "Pages of the enclave page cache (EPC) charged to the control group of the container.",
  empty: {
    text:
      "No container is charged for enclave memory. It needs SGX and a kernel that counts it in the misc control group.",
  },
};
