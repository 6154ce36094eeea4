// SPDX-License-Identifier: Apache-2.0

// Sections of panels, each with a heading and a grid. Panels that cannot have data are one line each, below the others.
import { AnyPanel } from "../panels/AnyPanel";
import type { PanelDef, Section } from "../panels/types";
import { Folded } from "./Folded";
import { useAbsent } from "./use-absent";

/** Counts the panels that are not tables. In a grid of three columns, a table takes a whole row. */
const charts = (panels: readonly PanelDef[]): number => panels.filter((def) => def.kind !== "table").length;

export function Sections({ sections }: { sections: readonly Section[] }) {
  const absent = useAbsent(sections.flatMap((s) => s.panels));
  return (
    <>
      {sections.map((section) => {
        const drawn = section.panels.filter((def) => !absent.has(def.id));
        const threes = charts(section.panels) % 3 === 0 && charts(drawn) !== 2;
        return (
          <section key={section.id} aria-labelledby={`section-${section.id}`}>
            <h2 id={`section-${section.id}`}>{section.title}</h2>
            <div class={`grid ${threes ? "grid-threes" : "grid-pairs"}`}>
              {drawn.map((def) => (
                <AnyPanel key={def.id} def={def} />
              ))}
              {section.panels
                .filter((def) => absent.has(def.id))
                .map((def) => (
                  <Folded key={def.id} def={def} />
                ))}
            </div>
          </section>
        );
      })}
    </>
  );
}
