// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const containerNetworkReceived: ChartDef = {
  id: "container-network-received",
  kind: "lines",
  title: "Received",
  question: "Which container receives?",
  unit: "bytes_per_second",
  queries: [
    {
      expr:
        "sum by (name, pod, container, instance) ($rate(container_network_receive_bytes_total{name!=\"\",$nodes}[$window]) $containers)",
      legend: "{{pod}}/{{container}}|{{pod}}|{{name}}",
    },
  ],
  top: 10,
  help:
    "Of all interfaces in the network namespace of the container. Containers that share one, as in a pod, are counted once. Those on the network of the machine are not in it.",
  empty: { text: "No container with a network of its own ran in this time range." },
};
