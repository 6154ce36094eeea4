// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { type PanelQuery, panelQueries } from "../panels/panel-queries";
import { DASHBOARDS } from "../panels/dashboards";
import { inferUnit } from "./infer-unit";
import { fillTemplate } from "./promql";

describe("the unit of a query", () => {
  it.each([
    ["teescope_resident_memory_bytes", "bytes"],
    ['sum by (workload) (teescope_resident_memory_bytes{workload!="idle"})', "bytes"],
    ["topk(10, sum(rate(teescope_syscalls_total[1m])) by (workload, syscall))", "per_second"],
    ["rate(process_cpu_seconds_total{job=\"teescope\"}[1m])", "cores"],
    ["sum(irate(container_cpu_usage_seconds_total[1m]))", "cores"],
    ["rate(teescope_syscall_seconds_total[5m])", "seconds_per_second"],
    ["rate(node_network_receive_bytes_total[5m] offset 1h)", "bytes_per_second"],
    ["max(rate(node_pressure_io_stalled_seconds_total[1m]))", "ratio"],
    ["rate(container_cpu_cfs_throttled_seconds_total[1m])", "seconds_per_second"],
    ["increase(http_requests_total[1h])", "count"],
    ["http_requests_total", "count"],
    ["histogram_quantile(0.99, sum by (le) (rate(sgx_load_back_seconds_bucket[5m])))", "seconds"],
    ["rate(x_seconds_sum[1m]) / rate(x_seconds_count[1m])", "seconds"],
    ["sum(rate(x_bytes_sum[1m])) / on (a) group_left (b) sum(rate(x_bytes_count[1m]))", "bytes"],
    ["1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes", "ratio"],
    ["max_over_time(queue_ratio[1h:5m])", "ratio"],
    ["time() - process_start_time_seconds", "seconds"],
    ["avg(node_load_seconds) > 3", "seconds"],
    ["a_bytes and on (x) up == 0", "bytes"],
    ["a_bytes * on (enclave) group_left (workload) sgx_enclave_info", "bytes"],
    ["a_bytes or b_bytes # both", "bytes"],
    ["quantile(0.5, a_seconds)", "seconds"],
    ["-(a_bytes @ 1700000000)", "bytes"],
    ["count(up) by (job)", "count"],
    ["clamp_min(a_bytes - b_bytes, 0)", "bytes"],
  ])("%s is %s", (query, want) => {
    expect(inferUnit(query)).toBe(want);
  });

  it.each([
    "up",
    "teescope_processes",
    "process_start_time_seconds", // a moment
    "time()",
    "100 * a_ratio", // per cent
    "a_bytes * 8", // bits
    "a_bytes / 1024",
    "rate(switches_total[1m]) / rate(calls_total[1m])", // the numerator may not be a part of the denominator
    "sum(a_ratio)",
    "a_bytes + b_seconds",
    "rate(a_bytes[1m])", // not a counter
    "rate(x_sum[1m])", // of an unknown histogram
    "histogram_quantile(0.9, rate(x_bucket[1m]))",
    "rate(x_seconds_bucket[1m])",
    "sqrt(a_bytes)",
    "a_bytes == bool 1",
    'teescope:window_value_bytes{stat="median"}',
    '{__name__=~".+_bytes"}',
    "a_bytes or b_seconds",
    "sum_over_time(a_bytes[1h])",
    "node_temp_celsius",
    "a_bytes b_bytes",
    "sum(",
    "(((",
    '"unclosed',
    "a_bytes[5m",
    "§",
    "",
    `${"(".repeat(2000)}a_bytes${")".repeat(2000)}`,
  ])("the unit of %s is unknown", (query) => {
    expect(inferUnit(query)).toBeUndefined();
  });

  const all = DASHBOARDS.flatMap((d) => d.sections.flatMap((s) => s.panels)).flatMap((def) => panelQueries(def).map((query): [string, PanelQuery] => [def.id, query]));
  const plain = { workloads: [], step: 60, scrapeInterval: 5 };

  it.each(all)("is that of the panel %s, or is not said", (_, query) => {
    const found = inferUnit(fillTemplate(query.expr, plain));
    if (found !== undefined) expect(found, query.expr).toBe(query.unit);
  });

  it("is known for most panels", () => {
    const known = all.filter(([, query]) => inferUnit(fillTemplate(query.expr, plain)) !== undefined);
    expect(known.length).toBeGreaterThan(0.6 * all.length);
  });
});
