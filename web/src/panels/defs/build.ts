// SPDX-License-Identifier: Apache-2.0
import type { TableDef } from "../types";

export const build: TableDef = {
  id: "build",
  kind: "table",
  title: "Build",
  question: "Which teescope is this?",
  unit: "yes_no",
  keys: [
    { label: "instance", title: "Instance" },
    { label: "version", title: "Version" },
    { label: "revision", title: "Revision" },
    { label: "goversion", title: "Go" },
  ],
  columns: [
    {
      title: "Running for",
      unit: "seconds",
      expr:
        "max by (instance, version, revision, goversion) (teescope_build_info{$nodes} * on (instance, job) group_left () (time() - process_start_time_seconds{$nodes}))",
    },
  ],
  help: "Reported by each agent; the last column is how long its process has run.",
  empty: { text: "No agent has reported its build." },
};
