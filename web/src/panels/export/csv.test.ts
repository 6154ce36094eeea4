// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { TableDef } from "../types";
import { field, frameCsv, instantCsv, moment, tableCsv } from "./csv";

describe("a field", () => {
  it("is quoted where it has to be, and is no formula", () => {
    expect(field("plain")).toBe("plain");
    expect(field('a "b", c\nd')).toBe('"a ""b"", c\nd"');
    expect(field("=1+1")).toBe("'=1+1");
    expect(field("-x,y")).toBe('"\'-x,y"');
  });
});

describe("a chart", () => {
  it("has one column per series with its unit, times in UTC, and empty fields for missing values", () => {
    const frame = { times: [0, 5.25], series: [{ name: "a", values: [1, null] }, { name: "b,c", values: [0, 2.5] }] };
    expect(frameCsv(frame, "bytes_per_second")).toBe(
      'time,a (bytes per second),"b,c (bytes per second)"\r\n1970-01-01T00:00:00Z,1,0\r\n1970-01-01T00:00:05.250Z,,2.5\r\n',
    );
    expect(moment(1763772000)).toBe("2025-11-22T00:40:00Z");
  });
});

describe("a table", () => {
  it("has one line per row: keys, infos, values", () => {
    const def = {
      keys: [{ label: "workload", title: "Workload" }],
      info: { expr: "i", labels: [{ label: "kind", title: "Kind" }] },
      columns: [{ title: "Calls", unit: "per_second", expr: "c" }],
    } as unknown as TableDef;
    const rows = [{ key: "r", keys: ["redis"], infos: ["unit"], cells: [{ value: null }] }];
    expect(tableCsv(def, rows)).toBe("Workload,Kind,Calls (per second)\r\nredis,unit,\r\n");
    expect(tableCsv(def, rows, true)).toBe("Workload,Kind,Calls\r\nredis,unit,\r\n");
  });
});

describe("the parts of a whole", () => {
  it("have a line each", () => {
    const query = { expr: "x", legend: "{{n}}", unit: "count" as const };
    expect(instantCsv([{ query, samples: [{ metric: { n: "read" }, value: [10, 3] }] }])).toBe(
      "time,name,value (count)\r\n1970-01-01T00:00:10Z,read,3\r\n",
    );
  });
});
