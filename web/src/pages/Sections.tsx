// SPDX-License-Identifier: Apache-2.0

// Sections of panels, each with a heading and a grid.
import { AnyPanel } from "../panels/AnyPanel";
import type { Section } from "../panels/types";

export function Sections({ sections }: { sections: readonly Section[] }) {
  return (
    <>
      {sections.map((section) => (
        <section key={section.id} aria-labelledby={`section-${section.id}`}>
          <h2 id={`section-${section.id}`}>{section.title}</h2>
          <div class={`grid ${section.panels.length % 3 === 0 ? "grid-threes" : "grid-pairs"}`}>
            {section.panels.map((def) => (
              <AnyPanel key={def.id} def={def} />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}
