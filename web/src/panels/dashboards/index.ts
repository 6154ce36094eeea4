// SPDX-License-Identifier: Apache-2.0

// Every panel of the page, in dashboards, as pure data. The Grafana dashboards are generated from it.
import type { Dashboard } from "../types";
import { CONTAINERS, CONTAINER_TABLE } from "./containers";
import { WINDOWS } from "./findings";
import { INFRASTRUCTURE } from "./infrastructure";
import { COST, OVERVIEW, WORKLOADS } from "./overview";
import { STATUS } from "./status";
import { SYSTEM } from "./system";
import { TEE, TEE_TABLES } from "./tee";
import { WORKLOAD } from "./workload";

export const DASHBOARDS: readonly Dashboard[] = [
  {
    id: "overview",
    title: "Overview",
    question: "Who asks the kernel for what, and what does watching cost?",
    sections: [
      { id: "workloads", title: "Workloads", panels: [WORKLOADS, ...OVERVIEW] },
      { id: "cost", title: "What watching costs", panels: COST },
    ],
  },
  {
    id: "findings",
    title: "Findings",
    question: "How do the workloads spread, and what is unlike?",
    sections: [{ id: "windows", title: "Box plots of the window", panels: [WINDOWS] }],
  },
  {
    id: "tee",
    title: "TEE",
    question: "Who holds the enclave memory, who waits for it, and how often are enclaves entered and left?",
    sections: [{ id: "enclaves", title: "Enclaves", panels: TEE_TABLES }, ...TEE],
  },
  { id: "system", title: "System", question: "What do workloads ask of the kernel?", sections: SYSTEM },
  {
    id: "containers",
    title: "Containers",
    question: "What do containers use, and what are they denied?",
    sections: [{ id: "containers", title: "Containers", panels: [CONTAINER_TABLE] }, ...CONTAINERS],
  },
  { id: "infrastructure", title: "Infrastructure", question: "How is the machine as a whole?", sections: INFRASTRUCTURE },
  { id: "workload", title: "Workload", question: "What does one workload ask of the kernel and of its TEE?", sections: WORKLOAD, single: true },
  {
    id: "status",
    title: "Status",
    question: "What does teescope see, what does it not, and why?",
    sections: [{ id: "status", title: "Status", panels: STATUS }],
  },
];
