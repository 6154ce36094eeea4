// SPDX-License-Identifier: Apache-2.0

// The filters in force, each with a button that removes it, and facts about the selected workloads.
import type { Filter, Refused } from "../../lib/filters";
import { useSession } from "../../lib/session";
import { useStore } from "../../lib/store";
import { allFilters, clearFilters, dropPattern, toggleFilter } from "../../lib/url";
import { MOST_MAPPED, useMapping } from "../../panels/mapping";
import { useNodes } from "../../panels/nodes";
import { usePatternChecks } from "../../panels/patterns";
import { PatternProblem } from "./PatternProblem";

export function FilterBar() {
  const session = useSession();
  const view = useStore(session.view);
  const filters = allFilters(view);
  const unchecked = view.unchecked ?? [];
  const refused = view.refused ?? [];
  const count = filters.length + unchecked.length + refused.length;
  usePatternChecks();
  const { workloads, error } = useMapping();
  useNodes();
  if (count === 0) return null;
  return (
    <div class="chips" role="group" aria-label="Active filters">
      {filters.map((filter) => (
        <Chip
          key={JSON.stringify(filter)}
          filter={filter}
          onRemove={() => {
            session.view.update((v) => toggleFilter(v, filter));
          }}
        />
      ))}
      {unchecked.map((filter) => (
        <Chip
          key={JSON.stringify(filter)}
          filter={filter}
          onRemove={() => {
            session.view.update((v) => dropPattern(v, filter));
          }}
        />
      ))}
      {refused.map((filter) => (
        <RefusedChip
          key={JSON.stringify(filter)}
          filter={filter}
          onRemove={() => {
            session.view.update((v) => dropPattern(v, filter));
          }}
        />
      ))}
      {count > 1 && (
        <button
          type="button"
          class="plain-button"
          title="Show everything (c)"
          onClick={() => {
            session.view.update(clearFilters);
          }}
        >
          Clear all
        </button>
      )}
      <span class="chips-note" role="status">
        {error ? `The workloads that match these filters are not known: ${error.message}` : workloads && mapped(workloads)}
      </span>
    </div>
  );
}

function mapped(workloads: readonly string[]): string {
  const [first] = workloads;
  if (first === undefined) return "No workload matches all filters in this time range.";
  if (workloads.length >= MOST_MAPPED) return `The first ${MOST_MAPPED} workloads; choose fewer.`;
  return workloads.length === 1 ? `1 workload: ${first}` : `${workloads.length} workloads`;
}

/** A pattern of the address that the server refuses, with the reason. */
function RefusedChip({ filter, onRemove }: { filter: Refused; onRemove: () => void }) {
  return (
    <span class="refused">
      <Chip filter={filter} onRemove={onRemove} />
      <PatternProblem reason={filter.problem} />
      <span class="chips-note">This filter is not applied.</span>
    </span>
  );
}

function Chip({ filter, onRemove }: { filter: Filter; onRemove: () => void }) {
  const { kind, text, regex } = filter;
  return (
    <button
      type="button"
      class="chip"
      data-chip={`${kind}${regex ? "~" : "="}${text}`}
      title={`${kind} ${regex ? "matches" : "is"} ${text}: click to remove`}
      onClick={onRemove}
    >
      <span class="kind">{kind}</span> <span class={regex ? "name pattern" : "name"}>{text}</span>
      <span class="only-spoken">, remove this filter</span>
      <span aria-hidden="true">×</span>
    </button>
  );
}
