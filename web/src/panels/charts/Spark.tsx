// SPDX-License-Identifier: Apache-2.0

// A sparkline: SVG, no axes, with gaps.
interface SparkProps {
  values: readonly (number | null)[];
  width: number;
  height: number;
}

/** Returns the path of a sparkline, from zero to the maximum. Gaps interrupt the path. */
export function sparkPath(values: readonly (number | null)[], width: number, height: number): string {
  const greatest = values.reduce<number>((max, v) => Math.max(max, v ?? 0), 0);
  const dx = values.length > 1 ? width / (values.length - 1) : width;
  const scale = greatest > 0 ? (height - 2) / greatest : 0;
  let path = "";
  let down = false;
  values.forEach((value, i) => {
    if (value === null) {
      down = false;
      return;
    }
    const x = (i * dx).toFixed(1);
    const y = (height - 1 - value * scale).toFixed(1);
    const alone = !down && (values[i + 1] ?? null) === null;
    path += alone ? `M${x} ${y}h.1` : `${down ? "L" : "M"}${x} ${y}`;
    down = true;
  });
  return path;
}

export function Spark({ values, width, height }: SparkProps) {
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} preserveAspectRatio="none" aria-hidden="true">
      <path d={sparkPath(values, width, height)} />
    </svg>
  );
}
