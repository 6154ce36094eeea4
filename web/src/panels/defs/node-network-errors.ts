// SPDX-License-Identifier: Apache-2.0
import type { ChartDef } from "../types";

export const nodeNetworkErrors: ChartDef = {
  id: "node-network-errors",
  kind: "lines",
  title: "Errors and drops",
  question: "Is traffic lost?",
  unit: "per_second",
  queries: [
    { expr: "sum($rate(node_network_receive_errs_total{$nodes}[$window]))", legend: "received, errors" },
    { expr: "sum($rate(node_network_receive_drop_total{$nodes}[$window]))", legend: "received, dropped" },
    { expr: "sum($rate(node_network_transmit_errs_total{$nodes}[$window]))", legend: "sent, errors" },
    { expr: "sum($rate(node_network_transmit_drop_total{$nodes}[$window]))", legend: "sent, dropped" },
  ],
  help:
    "Of all interfaces. Packets that nobody on this machine wants, such as those of unknown protocols, are dropped as well.",
  empty: { text: "No metrics of the machine (node_*) in this time range." },
};
