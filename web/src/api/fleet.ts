// SPDX-License-Identifier: Apache-2.0

// The answer of /api/fleet, validated. Values that were not measured are absent.
import { type Cause, cause, optional } from "./findings";
import { type Decoder, flag, list, number, shape, text, withDefault } from "./validate";

/** Without `high` the upper end is not known. */
export interface Range {
  low: number;
  high: number | undefined;
}

const figure = optional(number);
const range = optional(shape<Range>({ low: number, high: figure }));
const change = shape({ node: text, epc_available_bytes: figure, pressure_before: range, pressure_after: range });
const evictions = list(shape({ node: text, workload: text, by: text, pages_per_second: number }));
const pods = list(
  shape({
    name: text, node: text, workloads: withDefault(list(text), []), resident_bytes: figure, working_set_bytes: range,
    loaded_back_pages_per_second: figure, exits_per_second: figure, cost_cores: range,
  }),
);

/** The answer in the format of this version of the page. */
export const fleet = shape({
  nodes: list(
    shape({
      name: text, silent: flag, tees: optional(list(text)), version: withDefault(text, ""), pods: number, unmeasured: number, epc_bytes: figure,
      epc_used_bytes: figure, epc_requested_bytes: figure, working_set_bytes: range, pressure: range, evicted_pages_per_second: figure,
    }),
  ),
  tees: list(shape({ tee: text, nodes: number, epc_bytes: figure, epc_used_bytes: figure })),
  versions: list(shape({ version: text, nodes: number })),
  hottest: pods,
  pods: withDefault(pods, []),
  evictions,
  placement: shape({
    fits: list(
      shape({
        pod: text, node: text, working_set_bytes: range, nodes: number, unknown: withDefault(number, 0), room: withDefault(text, ""),
        cells: withDefault(list(shape({ fits: text, pressure: range })), []),
      }),
    ),
    columns: withDefault(list(text), []),
    moves: list(shape({ pod: text, from: text, to: text, bytes: number })),
    crowded: number,
    relieved: number,
    unjudged: withDefault(number, 0),
  }),
  what_if: optional(shape({ pod: text, from: change, to: change, fits: text, notes: list(text), evictions: withDefault(evictions, []) })),
  causes: list<Cause>(cause),
  left_out: shape({ nodes: number, pods: number, fits: number, columns: withDefault(number, 0), moves: number, evictions: number, causes: number }),
  problems: list(shape({ error: text })),
});

type Decoded<T> = T extends Decoder<infer V> ? V : never;
export type FleetView = Decoded<typeof fleet>;
export type Pod = FleetView["hottest"][number];
