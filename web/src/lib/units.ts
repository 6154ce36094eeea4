// SPDX-License-Identifier: Apache-2.0

// Units and the format of their values. A value keeps three significant digits. Bytes have IEC prefixes, all others
// SI prefixes.

export type Unit =
  /** Events per second. */
  | "per_second"
  /** A plain number. */
  | "count"
  /** Bytes, IEC prefixes. */
  | "bytes"
  /** Bytes per second, IEC prefixes. */
  | "bytes_per_second"
  /** A duration in seconds. */
  | "seconds"
  /** CPU seconds per second: the number of busy processors. */
  | "cores"
  /** Seconds per second, summed over threads. */
  | "seconds_per_second"
  /** A share, 0 to 1. */
  | "ratio"
  /** 1 is yes, 0 is no. */
  | "yes_no";

/** The unit on the axis and in the head of a panel. */
export const UNIT_LABEL: Readonly<Record<Unit, string>> = {
  per_second: "per second",
  count: "count",
  bytes: "bytes",
  bytes_per_second: "bytes per second",
  seconds: "seconds",
  cores: "CPU cores",
  seconds_per_second: "seconds per second",
  ratio: "share",
  yes_no: "yes or no",
};

export function isUnit(text: string): text is Unit {
  return Object.hasOwn(UNIT_LABEL, text);
}

/** Text for a missing value. */
export const ABSENT = "–";

/** Formats three significant digits without an exponent and without trailing zeros. */
function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return trimZeros(value.toFixed(1));
  if (size >= 1) return trimZeros(value.toFixed(2));
  const digits = Math.min(12, 2 - Math.floor(Math.log10(size)));
  return trimZeros(value.toFixed(digits));
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function scaled(value: number, base: number, prefixes: readonly string[]): [string, string] {
  let rest = value;
  let index = 0;
  // 999.5 would round to 1000, which belongs to the next prefix.
  while (Math.abs(rest) >= base - 0.5 && index < prefixes.length - 1) {
    rest /= base;
    index++;
  }
  return [threeDigits(rest), prefixes[index] ?? ""];
}

const SI = ["", "k", "M", "G", "T", "P"];
const IEC = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a number with an SI prefix: 1234567 is "1.23M". Below 0.001 the text says so. */
export function formatNumber(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.001) return "<0.001";
  return scaled(value, 1000, SI).join("");
}

/** Formats a duration with the unit that fits: 0.0000012 is "1.2 µs". */
export function formatSeconds(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 0.9995e-6) return `${threeDigits(value * 1e9)} ns`;
  if (size < 0.9995e-3) return `${threeDigits(value * 1e6)} µs`;
  if (size < 0.9995) return `${threeDigits(value * 1e3)} ms`;
  if (size < 120) return `${threeDigits(value)} s`;
  if (size < 7200) return `${threeDigits(value / 60)} min`;
  if (size < 172_800) return `${threeDigits(value / 3600)} h`;
  return `${threeDigits(value / 86_400)} d`;
}

/** Reports whether values of several series may be added. Ratios and durations may not. */
export function isAdditive(unit: Unit): boolean {
  return unit !== "ratio" && unit !== "seconds" && unit !== "yes_no";
}

/** Formats a value with its unit; null, undefined and NaN are absent. */
export function formatValue(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return ABSENT;
  switch (unit) {
    case "per_second":
      return `${formatNumber(value)}/s`;
    case "count":
      return formatNumber(value);
    case "bytes":
      return scaled(value, 1024, IEC).join(" ");
    case "bytes_per_second":
      return `${scaled(value, 1024, IEC).join(" ")}/s`;
    case "seconds":
      return formatSeconds(value);
    case "cores":
      return value !== 0 && Math.abs(value) < 0.001 ? "<0.001" : threeDigits(Number(value.toFixed(3)));
    case "seconds_per_second":
      return `${formatSeconds(value)}/s`;
    case "ratio":
      return formatShare(value);
    case "yes_no":
      return value > 0 ? "yes" : "no";
  }
}

/** Formats a share as percent. A share above zero is never written as 0 %. */
export function formatShare(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 0.01) return "<0.01 %";
  if (percent > 99.9 && percent < 100) return ">99.9 %";
  if (percent >= 10) return `${trimZeros(percent.toFixed(percent < 99.5 ? 0 : 1))} %`;
  return `${threeDigits(Number(percent.toPrecision(2)))} %`;
}
