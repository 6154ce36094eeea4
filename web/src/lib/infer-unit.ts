// SPDX-License-Identifier: Apache-2.0

// Infers the unit of a PromQL query's values from the names of its metrics (rules in lib/quantity.ts).
import { AGGREGATIONS } from "./promql-complete";
import { ofAggregation, ofFunction, ofMetric, ofOperator, type Quantity, unitOf } from "./quantity";
import type { Unit } from "./units";

/** Returns the unit of a query's values, or undefined where it is not certain. */
export function inferUnit(query: string): Unit | undefined {
  try {
    return unitOf(new Parser(query).whole());
  } catch (thrown) {
    if (thrown instanceof Unreadable) return undefined;
    throw thrown;
  }
}

class Unreadable extends Error {}

const TOKEN =
  /\s+|#[^\n]*|(?<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)|(?<number>0x[\da-fA-F]+|(?:\d+(?:ms|[smhdwy]))+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[a-zA-Z_:][\w:]*)|(?<sign>==|!=|=~|!~|[<>]=?|[-+*/%^@(){}[\],=])/y;

interface Token {
  kind: "text" | "number" | "name" | "sign";
  text: string;
}

function tokens(query: string): Token[] {
  const all: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < query.length) {
    const groups = TOKEN.exec(query)?.groups;
    if (!groups) throw new Unreadable();
    for (const kind of ["text", "number", "name", "sign"] as const) {
      if (groups[kind] !== undefined) all.push({ kind, text: groups[kind] });
    }
  }
  return all;
}

const PRECEDENCE: readonly (readonly string[])[] = [["or"], ["and", "unless"], ["==", "!=", "<", ">", "<=", ">="], ["+", "-"], ["*", "/", "%", "atan2"], ["^"]];
/** The aggregations that are offered, and two that are experimental. */
const KNOWN = new Set([...AGGREGATIONS, "limit_ratio", "limitk"]);
const MATCHING = new Set(["on", "ignoring", "group_left", "group_right"]);
/** Limit of nested parentheses. */
const DEEPEST = 100;

/** Reads a query as far as its unit depends on it. It stops at what it does not understand. */
class Parser {
  private readonly all: readonly Token[];
  private at = 0;
  private depth = 0;

  constructor(query: string) {
    this.all = tokens(query);
  }

  whole(): Quantity {
    const found = this.expression(0);
    if (this.at < this.all.length) throw new Unreadable();
    return found;
  }

  private peek(): string {
    const token = this.all[this.at];
    return token === undefined || token.kind === "text" ? "" : token.text;
  }

  private take(text: string): boolean {
    const found = this.peek() === text;
    if (found) this.at++;
    return found;
  }

  private want(text: string): void {
    if (!this.take(text)) throw new Unreadable();
  }

  private expression(level: number): Quantity {
    if (++this.depth > DEEPEST) throw new Unreadable();
    let left = this.unary();
    for (;;) {
      const operator = this.peek().toLowerCase();
      const of = PRECEDENCE.findIndex((same) => same.includes(operator));
      if (of < level || of < 0) break;
      this.at++;
      const isBool = this.take("bool");
      while (MATCHING.has(this.peek().toLowerCase())) {
        this.at++;
        if (this.peek() === "(") this.labels();
      }
      const right = this.expression(of + 1);
      left = isBool ? undefined : ofOperator(operator, left, right);
    }
    this.depth--;
    return left;
  }

  private unary(): Quantity {
    if (this.take("-") || this.take("+")) return this.unary();
    return this.modified(this.operand());
  }

  /** Reads what may follow an operand: a range, an offset, a moment. */
  private modified(of: Quantity): Quantity {
    for (;;) {
      if (this.take("[")) this.skipTo("]");
      else if (this.peek().toLowerCase() === "offset") {
        this.at++;
        this.take("-");
        this.at++;
      } else if (this.take("@")) {
        this.at++;
        if (this.take("(")) this.want(")");
      } else return of;
    }
  }

  private operand(): Quantity {
    if (this.take("(")) {
      const inner = this.expression(0);
      this.want(")");
      return inner;
    }
    if (this.peek() === "{") {
      this.labels();
      return undefined; // may match several metrics
    }
    const token = this.all[this.at++];
    if (token?.kind === "number" || /^(?:inf|nan)$/i.test(token?.text ?? "")) return { is: "number" };
    if (token?.kind === "text") return undefined;
    if (token?.kind !== "name") throw new Unreadable();
    const name = token.text.toLowerCase();
    if (KNOWN.has(name) && /^(?:\(|by|without)$/i.test(this.peek())) return this.aggregation(name);
    if (this.peek() === "(") return ofFunction(name, this.args());
    if (this.peek() === "{") this.labels();
    return ofMetric(token.text);
  }

  private aggregation(name: string): Quantity {
    const grouping = (): void => {
      if (!/^(?:by|without)$/i.test(this.peek())) return;
      this.at++;
      this.labels();
    };
    grouping();
    const args = this.args();
    grouping();
    return ofAggregation(name, args);
  }

  private args(): Quantity[] {
    this.want("(");
    const all: Quantity[] = [];
    while (!this.take(")")) {
      if (all.length > 0) this.want(",");
      all.push(this.expression(0));
    }
    return all;
  }

  /** Skips matchers or a list of labels. */
  private labels(): void {
    const open = this.peek();
    if (open !== "{" && open !== "(") throw new Unreadable();
    this.at++;
    this.skipTo(open === "{" ? "}" : ")");
  }

  private skipTo(close: string): void {
    while (this.peek() !== close) {
      if (this.at >= this.all.length) throw new Unreadable();
      this.at++;
    }
    this.at++;
  }
}
