// SPDX-License-Identifier: Apache-2.0

// Every panel of the page, in dashboards, as pure data: `npm run dashboards` writes it down for the renderer of
// Grafana's, so that both show the same.
import { CONTAINERS, CONTAINER_TABLE, COST, INFRASTRUCTURE, OVERVIEW, STATUS, SYSTEM, TEE, TEE_TABLES, WINDOWS, WORKLOADS } from "./defs";
import type { Section } from "./types";
import { WORKLOAD } from "./workload";

export interface Dashboard {
  id: string;
  title: string;
  /** The question that it answers. */
  question: string;
  sections: readonly Section[];
  /** It is about one workload, which has to be chosen. */
  single?: true;
}

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
