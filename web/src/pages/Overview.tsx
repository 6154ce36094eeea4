// SPDX-License-Identifier: Apache-2.0

// The overview: verdict first, then what stands out, the workloads, their
// charts, and what watching costs.
import { useMemo } from "preact/hooks";
import { useSession } from "../lib/session";
import { AnyPanel } from "../panels/AnyPanel";
import { COST, OVERVIEW, WORKLOADS } from "../panels/defs";
import { useInstant } from "../panels/use-data";
import { FACT_EXPRS, type Facts, readFacts } from "./findings/facts";
import { findAll, type Finding } from "./findings/rules";
import { TopFindings } from "./findings/TopFindings";
import { verdicts } from "./findings/verdict";

export function Overview() {
  const loaded = useInstant(FACT_EXPRS, true);
  const facts = useMemo(() => (loaded.value ? readFacts(loaded.value) : undefined), [loaded.value]);
  return (
    <>
      <TopFindings />
      <VerdictStrip facts={facts} problem={loaded.error?.message} />
      <StandsOut facts={facts} />
      <AnyPanel def={WORKLOADS} />
      <div class="grid grid-threes">
        {OVERVIEW.map((def) => (
          <AnyPanel key={def.id} def={def} />
        ))}
      </div>
      <section aria-labelledby="cost-head">
        <h2 id="cost-head">What watching costs</h2>
        <div class="grid grid-figures">
          {COST.map((def) => (
            <AnyPanel key={def.id} def={def} />
          ))}
        </div>
      </section>
    </>
  );
}

function VerdictStrip({ facts, problem }: { facts: Facts | undefined; problem: string | undefined }) {
  if (!facts) {
    return (
      <section class="verdicts" aria-label="Verdict" aria-busy="true">
        <p class="verdict-wait">{problem ?? "Asking teescope what it sees…"}</p>
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

const MARK: Readonly<Record<Finding["severity"], string>> = { bad: "Broken", warn: "Look", note: "Note" };

function StandsOut({ facts }: { facts: Facts | undefined }) {
  const findings = useMemo(() => (facts ? findAll(facts) : []), [facts]);
  return (
    <section class="findings" aria-labelledby="findings-head">
      <h2 id="findings-head">
        What stands out <span class="aside">in the newest minute</span>
      </h2>
      {facts && findings.length === 0 && (
        <p class="nothing">Nothing: every target, collector and probe works, and no workload makes 500 system calls or context switches a second. No container is throttled or near its memory limit.</p>
      )}
      <ul>
        {findings.map((finding) => (
          <FindingItem key={finding.id} finding={finding} />
        ))}
      </ul>
    </section>
  );
}

function FindingItem({ finding }: { finding: Finding }) {
  const session = useSession();
  const { workload, page } = finding;
  return (
    <li class={`finding ${finding.severity}`}>
      <span class="mark">{MARK[finding.severity]}</span>
      <div>
        <p class="title">{finding.title}</p>
        <p class="detail">{finding.detail}</p>
      </div>
      {(workload !== undefined || page !== undefined) && (
        <button
          type="button"
          class="plain-button"
          onClick={() => {
            session.view.update((v) => ({ ...v, page: page ?? "system", workloads: workload === undefined ? v.workloads : [workload] }));
          }}
        >
          Its charts
        </button>
      )}
    </li>
  );
}
