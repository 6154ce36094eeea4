// SPDX-License-Identifier: Apache-2.0

// The overview: the verdict first, then workloads, their charts, and the cost of monitoring. Limits of these figures
// come last, unless they are severe.
import { useMemo } from "preact/hooks";
import { useSession } from "../lib/session";
import { AnyPanel } from "../panels/AnyPanel";
import { COST, OVERVIEW, WORKLOADS } from "../panels/dashboards/overview";
import { useInstant, useShown } from "../panels/use-data";
import { FACT_EXPRS, type Facts, readFacts } from "./findings/facts";
import { findGaps, type Gap } from "./findings/gaps";
import { TopFindings } from "./findings/TopFindings";
import { verdicts } from "./findings/verdict";

export function Overview() {
  const { several } = useShown();
  const loaded = useInstant(FACT_EXPRS, true);
  const facts = useMemo(() => (loaded.value ? readFacts(loaded.value, several) : undefined), [loaded.value, several]);
  const gaps = useMemo(() => (facts ? findGaps(facts) : []), [facts]);
  const grave = gaps.some((gap) => gap.severity !== "note");
  return (
    <>
      <TopFindings />
      <VerdictStrip facts={facts} problem={loaded.error?.message} />
      {grave && <Gaps gaps={gaps} />}
      <AnyPanel def={WORKLOADS} />
      <div class="grid grid-threes">
        {OVERVIEW.map((def) => (
          <AnyPanel key={def.id} def={def} />
        ))}
      </div>
      <section aria-labelledby="cost-head">
        <h2 id="cost-head">Cost of monitoring</h2>
        <div class="grid grid-figures">
          {COST.map((def) => (
            <AnyPanel key={def.id} def={def} />
          ))}
        </div>
      </section>
      {!grave && gaps.length > 0 && <Gaps gaps={gaps} />}
    </>
  );
}

export function VerdictStrip({ facts, problem }: { facts: Facts | undefined; problem: string | undefined }) {
  if (!facts) {
    return (
      <section class="verdicts" aria-label="Verdict" aria-busy="true">
        <p class="verdict-wait">{problem ?? "Loading…"}</p>
      </section>
    );
  }
  return (
    <section class="verdicts" aria-label="Verdict">
      {verdicts(facts).map((verdict) => (
        <div class="verdict" key={verdict.id} data-verdict={verdict.id}>
          <h2>{verdict.label}</h2>
          <p class="answer">{verdict.answer}</p>
          <p class="detail">{verdict.detail}</p>
        </div>
      ))}
    </section>
  );
}

const MARK: Readonly<Record<Gap["severity"], string>> = { bad: "Error", warn: "Warning", note: "Note" };

export function Gaps({ gaps }: { gaps: readonly Gap[] }) {
  return (
    <section class="findings" aria-labelledby="gaps-head" data-panel="gaps">
      <h2 id="gaps-head">Limits of these figures</h2>
      <ul>
        {gaps.map((gap) => (
          <GapItem key={gap.id} gap={gap} />
        ))}
      </ul>
    </section>
  );
}

function GapItem({ gap }: { gap: Gap }) {
  const session = useSession();
  const { page } = gap;
  return (
    <li class="finding">
      <span class={`mark ${gap.severity}`}>{MARK[gap.severity]}</span>
      <div>
        <p class="title">{gap.title}</p>
        <p class="detail">{gap.detail}</p>
      </div>
      {page !== undefined && session.recorded !== true && (
        <button
          type="button"
          class="plain-button"
          onClick={() => {
            session.view.update((v) => ({ ...v, page }));
          }}
        >
          More
        </button>
      )}
    </li>
  );
}
