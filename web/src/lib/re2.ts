// SPDX-License-Identifier: Apache-2.0

// The grammar of RE2, as the database that is asked has it (Go's
// regexp/syntax with its Perl flags), so that a pattern is judged while it is
// typed: the browser's own expressions have another grammar. re2-cases.json
// holds both to the same verdicts.

export interface RegexProblem {
  /** Index of the character that is wrong. */
  at: number;
  message: string;
}

/** The greatest number of repetitions, nested ones multiplied. */
const MOST_REPEATS = 1000;

/** Longer ones were not typed by a person. */
export const LONGEST_PATTERN = 500;

const POSIX = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit".split(" ");

class Problem extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** What is wrong with a pattern, or nothing. */
export function regexProblem(pattern: string): RegexProblem | undefined {
  if (pattern.length > LONGEST_PATTERN) return { at: LONGEST_PATTERN, message: `longer than ${LONGEST_PATTERN} characters` };
  try {
    new Parser(pattern).parse();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof Problem) return { at: thrown.at, message: thrown.message };
    throw thrown;
  }
}

/** The same pattern for the browser, to show what it means; nothing where the browser cannot say it. */
export function browserRegex(pattern: string): RegExp | undefined {
  const [, flags = "", rest = ""] = /^(?:\(\?([is]+)\))?(.*)$/s.exec(pattern) ?? [];
  try {
    return new RegExp(`^(?:${rest.replace(/\(\?P</g, "(?<")})$`, `u${flags.includes("i") ? "i" : ""}s`);
  } catch {
    return undefined;
  }
}

class Parser {
  private readonly text: string;
  private pos = 0;

  constructor(text: string) {
    this.text = text;
  }

  parse(): void {
    this.alternatives();
    if (this.pos < this.text.length) throw new Problem(this.pos, "this “)” closes nothing");
  }

  private at(what: string): boolean {
    return this.text.startsWith(what, this.pos);
  }

  private take(expression: RegExp): RegExpExecArray | undefined {
    const sticky = new RegExp(expression.source, "uy");
    sticky.lastIndex = this.pos;
    const found = sticky.exec(this.text) ?? undefined;
    if (found) this.pos += found[0].length;
    return found;
  }

  /** Reads up to a closing parenthesis or the end; gives the greatest number of repetitions within. */
  private alternatives(): number {
    let most = 1;
    let last: number | undefined; // repetitions of what the next operator would repeat
    let repeated = false;
    while (this.pos < this.text.length && !this.at(")")) {
      const start = this.pos;
      const times = this.repetition();
      if (times !== undefined) {
        if (last === undefined) throw new Problem(start, `“${this.text[start] ?? ""}” repeats what stands before it, and nothing does; write .* for anything`);
        if (repeated) throw new Problem(start, "what is repeated is repeated again; put it in parentheses");
        last = times === 0 ? 0 : last * Math.max(times, 1);
        if (times > 1 && last > MOST_REPEATS) throw new Problem(start, `more than ${MOST_REPEATS} repetitions, nested ones multiplied`);
        most = Math.max(most, last);
        repeated = true;
        continue;
      }
      repeated = false;
      if (this.take(/\|/)) last = undefined;
      else last = this.item() ?? last;
      most = Math.max(most, last ?? 1);
    }
    return most;
  }

  /** An operator of repetition: how often it repeats at most, 1 for any number of times. */
  private repetition(): number | undefined {
    const start = this.pos;
    if (this.take(/[*+?]\??/)) return 1;
    const found = this.take(/\{(0|[1-9]\d*)(,(0|[1-9]\d*)?)?\}\??/);
    if (!found) return undefined;
    const low = Number(found[1]);
    const high = found[2] === undefined ? low : found[3] === undefined ? undefined : Number(found[3]);
    if (low > MOST_REPEATS || (high ?? 0) > MOST_REPEATS) throw new Problem(start, `more than ${MOST_REPEATS} repetitions`);
    if (high !== undefined && high < low) throw new Problem(start, `at least ${low} and at most ${high} times is impossible`);
    return high ?? Math.max(low, 1);
  }

  /** One thing that can be repeated; nothing if it only sets flags. */
  private item(): number | undefined {
    const start = this.pos;
    if (this.at("[")) this.brackets();
    else if (this.at("\\")) return this.escape();
    else if (this.take(/\(/)) return this.group(start);
    else this.take(/./su);
    return 1;
  }

  private group(start: number): number | undefined {
    if (this.take(/\?/)) {
      if (this.take(/P?</)) this.named(start);
      else {
        const flags = this.take(/([imsU]*)(-[imsU]+)?([:)])/);
        if (!flags) {
          const looks = this.take(/[=!]/) !== undefined;
          throw new Problem(start, looks ? "RE2 cannot look ahead" : "after “(?” come flags (i, m, s, U) and “:” or “)”, or <name>");
        }
        if (flags[3] === ")") return undefined;
      }
    }
    const most = this.alternatives();
    if (!this.take(/\)/)) throw new Problem(start, "this “(” is not closed");
    return most;
  }

  private named(start: number): void {
    if (this.at("=") || this.at("!")) throw new Problem(start, "RE2 cannot look behind");
    if (!this.take(/\w+>/)) throw new Problem(start, "a name has letters, digits and _ alone, and ends with “>”");
  }

  /** A backslash outside of brackets. */
  private escape(): number | undefined {
    if (this.take(/\\Q/)) {
      const end = this.text.indexOf("\\E", this.pos);
      const empty = end === this.pos || this.pos === this.text.length;
      this.pos = end < 0 ? this.text.length : end + 2;
      return empty ? undefined : 1;
    }
    if (this.take(/\\[AbBzdDsSwWC]/)) {
      if (this.text[this.pos - 1] === "C") throw new Problem(this.pos - 2, "“\\C” is not known");
      return 1;
    }
    if (!this.property()) this.character();
    return 1;
  }

  /** \pN, \p{Greek} and their opposites. */
  private property(): boolean {
    const start = this.pos;
    if (!this.at("\\p") && !this.at("\\P")) return false;
    const found = this.take(/\\[pP](?:\{\^?(\w+)\}|(\w))/);
    const name = found?.[1] ?? found?.[2];
    if (name === undefined || !isProperty(name)) throw new Problem(start, "no such class of characters");
    return true;
  }

  /** One character, escaped or not; gives its number. */
  private character(): number {
    const start = this.pos;
    const char = this.take(/./su)?.[0] ?? "";
    if (char !== "\\") return char.codePointAt(0) ?? 0;
    if (this.pos === this.text.length) throw new Problem(start, "a backslash at the end escapes nothing");
    const octal = this.take(/0[0-7]{0,2}|[1-7][0-7]{1,2}/);
    if (octal) return parseInt(octal[0], 8);
    const hex = this.take(/x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))/);
    if (hex) {
      const code = parseInt(hex[1] ?? hex[2] ?? "", 16);
      if (code <= 0x10ffff) return code;
      throw new Problem(start, "no such character");
    }
    const control = this.take(/[afnrtv]/);
    if (control) return "\x07\f\n\r\t\v".charCodeAt("afnrtv".indexOf(control[0]));
    const code = this.text.codePointAt(this.pos) ?? 0;
    const next = String.fromCodePoint(code);
    if (code < 0x80 && !/[a-zA-Z0-9]/.test(next)) {
      this.pos++;
      return code;
    }
    const back = next >= "1" && next <= "9";
    throw new Problem(start, back ? "RE2 cannot refer back to a group" : `“\\${next}” is not known`);
  }

  private brackets(): void {
    const start = this.pos;
    this.take(/\[\^?/);
    for (let first = true; first || !this.at("]"); first = false) {
      if (this.pos >= this.text.length) throw new Problem(start, "this “[” is not closed");
      const posix = this.take(/\[:\^?([^\]]*?):\]/);
      if (posix) {
        if (!POSIX.includes(posix[1] ?? "")) throw new Problem(this.pos - posix[0].length, "no such class of characters");
        continue;
      }
      if (this.property() || this.take(/\\[dDsSwW]/)) continue;
      const from = this.pos;
      const low = this.character();
      if (!this.at("-") || this.at("-]") || this.pos + 1 >= this.text.length) continue;
      this.take(/-/);
      if (this.character() < low) throw new Problem(from, `the range ${this.text.slice(from, this.pos)} is the wrong way round`);
    }
    this.take(/\]/);
  }
}

/** Whether there is a category or script of that name, in upper or lower case. */
function isProperty(written: string): boolean {
  const name = written.charAt(0).toUpperCase() + written.slice(1).toLowerCase();
  if (name === "Any") return true;
  return [`Script=${name}`, ...(name.length <= 2 ? [name] : [])].some((property) => {
    try {
      new RegExp(`\\p{${property}}`, "u");
      return true;
    } catch {
      return false;
    }
  });
}
