// SPDX-License-Identifier: Apache-2.0

// The answers of /api/dashboards/own, validated: the dashboards that users keep.
import { SHOWS, type ExploreShow } from "../lib/page-params";
import { isUnit, type Unit } from "../lib/units";
import { malformed } from "./errors";
import { type Decoder, list, number, shape, text, withDefault } from "./validate";

export interface BoardPanel {
  title: string;
  /** PromQL. */
  expr: string;
  show: ExploreShow;
  /** Empty for a plain number. */
  unit: Unit | "";
}

export interface Board {
  id: string;
  /** A change names the version that it is of. */
  version: number;
  title: string;
  panels: BoardPanel[];
  /** The last author, if a password or a certificate was checked; else empty. */
  changedBy: string;
  /** RFC 3339. */
  changedAt: string;
}

const show: Decoder<ExploreShow> = (value, path) => {
  const found = SHOWS.find((s) => s === value);
  if (found === undefined) throw malformed(path, `expected chart or table, found ${JSON.stringify(value)}`);
  return found;
};

/** A unit of a newer server is a plain number. */
const unit: Decoder<Unit | ""> = (value) => (typeof value === "string" && isUnit(value) ? value : "");

const word = withDefault(text, "");

export const board = shape<Board>({
  id: text,
  version: number,
  title: text,
  panels: list(shape<BoardPanel>({ title: text, expr: text, show, unit })),
  changedBy: word,
  changedAt: word,
});

export const boards: Decoder<Board[]> = list(board);
