// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeNetworkReceived: ChartDef = {
  id: "node-network-received",
  kind: "lines",
  title: "Received, by interface",
  question: "How much arrives?",
  unit: "bytes_per_second",
  queries: [
    {
      expr: "sum by (device) ($rate(node_network_receive_bytes_total{device!=\"lo\",$nodes}[$window]))",
      legend: "{{device}}",
    },
  ],
  top: 10,
  help:
    "Traffic over loopback is left out. Bridges and the ends of containers have the same bytes as the interfaces behind them.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
