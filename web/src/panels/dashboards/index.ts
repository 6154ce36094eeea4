// SPDX-License-Identifier: Apache-2.0

// All dashboards with their panels as pure data. The Grafana dashboards are generated from it.
import type { Dashboard } from "../types";
import { CONTAINERS, CONTAINER_TABLE } from "./containers";
import { WINDOWS } from "./findings";
import { INFRASTRUCTURE } from "./infrastructure";
import { COST, OVERVIEW, WORKLOADS } from "./overview";
import { STATUS } from "./status";
import { SYSTEM } from "./system";
import { TEE, TEE_TABLES } from "./tee";
import { CONFIDENTIAL, GPUS, VIRTUAL, VSOCK } from "./virtual";
import { WORKLOAD } from "./workload";

export const DASHBOARDS: readonly Dashboard[] = [
  {
    id: "overview",
    title: "Overview",
    question: "What does each workload use, and what does monitoring cost?",
    sections: [
      { id: "workloads", title: "Workloads", panels: [WORKLOADS, ...OVERVIEW] },
      { id: "cost", title: "Cost of monitoring", panels: COST },
    ],
  },
  {
    id: "findings",
    title: "Findings",
    question: "How are the metrics of the workloads distributed?",
    sections: [{ id: "windows", title: "Box plots of the window", panels: [WINDOWS] }],
  },
  {
    id: "tee",
    title: "TEE",
    question: "Which workload holds enclave memory, how often are enclaves and virtual machines entered and left, and what does a confidential machine or its GPU copy?",
    sections: [{ id: "enclaves", title: "Enclaves", panels: TEE_TABLES }, ...TEE, VIRTUAL, CONFIDENTIAL, GPUS, VSOCK],
  },
  { id: "system", title: "System", question: "What do workloads do in the kernel?", sections: SYSTEM },
  {
    id: "containers",
    title: "Containers",
    question: "What do containers use, and which limits do they reach?",
    sections: [{ id: "containers", title: "Containers", panels: [CONTAINER_TABLE] }, ...CONTAINERS],
  },
  { id: "infrastructure", title: "Infrastructure", question: "How busy is the machine as a whole?", sections: INFRASTRUCTURE },
  { id: "workload", title: "Workload", question: "What does one workload do in the kernel and in its TEE?", sections: WORKLOAD, single: true },
  {
    id: "status",
    title: "Status",
    question: "What does teescope measure, what does it not measure, and why?",
    sections: [{ id: "status", title: "Status", panels: STATUS }],
  },
];
