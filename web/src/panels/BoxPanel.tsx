// SPDX-License-Identifier: Apache-2.0

// The kind "box": box plots on one scale, one group at a time.
import { useMemo } from "preact/hooks";
import { fillTemplate } from "../lib/promql";
import { formatNumber, formatValue, type Unit, UNIT_LABEL } from "../lib/units";
import { type Box, boxPlace, type BoxScale, boxScale, boxTicks, metricTitle, metricUnit, toBoxes } from "./boxes";
import { Panel, panelState } from "./Panel";
import { useTable } from "./TablePanel";
import type { BoxDef } from "./types";
import { MINUTE, useNear, useShown } from "./use-data";
import { usePanel } from "./use-panel";

/** Maximum number of boxes. The panel says how many are omitted. */
const MOST_BOXES = 40;

export function BoxPanel({ def }: { def: BoxDef }) {
  const [root, near] = useNear();
  const filling = useShown();
  const loaded = useTable(def, near);
  const groups = useMemo(() => toBoxes(loaded.value ?? [], def.columns, filling.several), [def, loaded.value, filling.several]);
  const { state, set } = usePanel(def.id);
  const names = [...groups.keys()];
  const group = [state.pick ?? "", def.first].find((name) => groups.has(name)) ?? names[0] ?? "";
  const boxes = groups.get(group) ?? [];
  const scale = boxScale(boxes.slice(0, MOST_BOXES), state.scale && state.scale === "log");
  const unit = metricUnit(group);
  return (
    <Panel
      def={def}
      state={panelState(loaded, groups.size === 0)}
      error={loaded.error}
      stale={loaded.stale}
      note={UNIT_LABEL[unit]}
      exprs={def.columns.map((c) => fillTemplate(c.expr, { ...filling, step: MINUTE }))}
      root={root}
    >
      <div class="chart-bar">
        <label>
          {def.keys[0].title}{" "}
          <select
            value={group}
            onChange={(event) => {
              const pick = event.currentTarget.value;
              set({ pick: pick === def.first ? undefined : pick, scale: undefined });
            }}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {metricTitle(name)}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          class="chip"
          aria-pressed={scale.log}
          onClick={() => {
            set({ scale: scale.log ? "linear" : "log" });
          }}
        >
          Log scale
        </button>
      </div>
      <Boxes boxes={boxes.slice(0, MOST_BOXES)} scale={scale} unit={unit} title={def.title} name={def.keys[1].title} />
      {boxes.length > MOST_BOXES && <p class="at">{boxes.length - MOST_BOXES} more, whose medians are smaller, are left out.</p>}
    </Panel>
  );
}

interface BoxesProps {
  boxes: readonly Box[];
  scale: BoxScale;
  unit: Unit;
  title: string;
  name: string;
}

function Boxes({ boxes, scale, unit, title, name }: BoxesProps) {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label={`${title}, table`}>
      <table class="boxes">
        <thead>
          <tr>
            <th scope="col">{name}</th>
            <th scope="col" class="plot-head">
              <span class="only-spoken">Minimum, quartiles, median, maximum</span>
              <span class="ticks" aria-hidden="true">
                {boxTicks(scale).map((tick, i) => (
                  <span key={tick} ref={shift(boxPlace(tick, scale))}>
                    {scale.log && i === 0 && "≤ "}
                    {tick === 0 ? "0" : formatValue(tick, unit)}
                  </span>
                ))}
              </span>
            </th>
            <th scope="col" class="numeric">
              Median
            </th>
            <th scope="col" class="numeric">
              n
            </th>
          </tr>
        </thead>
        <tbody>
          {boxes.map((box) => (
            <tr key={box.name} title={boxText(box, unit)}>
              <th scope="row">{box.name}</th>
              <td class="box-cell">
                <span class="only-spoken">{boxText(box, unit)}</span>
                <BoxPicture box={box} scale={scale} />
              </td>
              <td class="numeric">{formatValue(box.median, unit)}</td>
              <td class="numeric">{box.n === null ? "–" : formatNumber(box.n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Describes a box in words. */
function boxText(box: Box, unit: Unit): string {
  const value = (v: number): string => formatValue(v, unit);
  const outliers = box.outliers === null || box.outliers === 0 ? "no outliers" : `${formatNumber(box.outliers)} outliers`;
  return `${box.name}: least ${value(box.min)}, quartiles ${value(box.q1)}, ${value(box.median)} and ${value(box.q3)}, greatest ${value(box.max)}, ${outliers}`;
}

function BoxPicture({ box, scale }: { box: Box; scale: BoxScale }) {
  const x = (value: number): number => 1 + 998 * boxPlace(value, scale);
  const width = Math.max(2, x(box.q3) - x(box.q1));
  return (
    <svg class="box" viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true">
      <path class="whisker" d={`M${x(box.low)} 8H${x(box.q1)}M${x(box.q3)} 8H${x(box.high)}M${x(box.low)} 4V12M${x(box.high)} 4V12`} />
      <rect class="middle" x={x(box.q1)} y={2} width={width} height={12} />
      <path class="median" d={`M${x(box.median)} 1V15`} />
      {box.min < box.low && <path class="outlier" d={`M${x(box.min)} 5V11`} />}
      {box.max > box.high && <path class="outlier" d={`M${x(box.max)} 5V11`} />}
    </svg>
  );
}

function shift(share: number): (element: HTMLElement | null) => void {
  return (element) => {
    if (element) element.style.left = `${share * 100}%`;
  };
}
