// SPDX-License-Identifier: Apache-2.0

// The page: header, a message if the server is unreachable, and the chosen page.
import { useEffect } from "preact/hooks";
import { useSession } from "../lib/session";
import { useStore } from "../lib/store";
import { formatClock, zoneName } from "../lib/time";
import { allFilters, type PageId } from "../lib/url";
import { Overview } from "./Overview";
import { lazyPages } from "./Lazy";
import { Header } from "./shell/Header";

const views = lazyPages(() => import("./Views"));
const Findings = views((m) => m.Findings);
const Tee = views((m) => m.Tee);
const System = views((m) => m.System);
const Containers = views((m) => m.Containers);
const Infrastructure = views((m) => m.Infrastructure);
const Status = views((m) => m.Status);
const Workload = lazyPages(() => import("./Workload"))((m) => m.Workload);
const Profile = lazyPages(() => import("./Profile"))((m) => m.Profile);
const Compare = lazyPages(() => import("./Compare"))((m) => m.Compare);
const explore = lazyPages(() => import("./Explore"));
const Dashboards = explore((m) => m.Dashboards);
const Fleet = explore((m) => m.Fleet);
const Explore = explore((m) => m.Explore);

const HEADLINE: Readonly<Record<PageId, string>> = {
  overview: "Overview",
  findings: "Findings: what slows the workloads down",
  tee: "TEE: enclaves and their costs",
  system: "System: what workloads do in the kernel",
  containers: "Containers",
  infrastructure: "Infrastructure: the machine as a whole",
  workload: "Workload: everything about one workload",
  compare: "Compare: two workloads, or two times of one",
  explore: "Explore: queries in PromQL",
  status: "Status of teescope",
  dashboards: "Dashboards",
  fleet: "Fleet",
  profile: "Profile: the code that takes the time",
};

export function App() {
  const session = useSession();
  const view = useStore(session.view);
  const { page } = view;
  const chosen = allFilters(view).map((f) => f.text).join(", ");
  const connection = useStore(session.connection);
  useEffect(() => {
    document.title = [...(chosen === "" ? [] : [chosen]), HEADLINE[page].split(":")[0] ?? "", "teescope"].join(" · ");
  }, [page, chosen]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the charts
      </a>
      <Header />
      <div role="status">
        {connection.failure && (
          <p class="banner">
            <strong>{connection.failure.message}</strong> {connection.failure.advice}
            {connection.lastAnswer !== undefined && ` Last answer at ${formatClock(connection.lastAnswer)} ${zoneName(connection.lastAnswer)}.`}
          </p>
        )}
      </div>
      <main id="main" key={view.zone} tabIndex={-1} data-page={page}>
        <h1 class="only-spoken">{HEADLINE[page]}</h1>
        {page === "overview" && <Overview />}
        {page === "findings" && <Findings />}
        {page === "tee" && <Tee />}
        {page === "system" && <System />}
        {page === "containers" && <Containers />}
        {page === "infrastructure" && <Infrastructure />}
        {page === "workload" && <Workload />}
        {page === "compare" && <Compare />}
        {page === "explore" && <Explore />}
        {page === "status" && <Status />}
        {page === "dashboards" && <Dashboards />}
        {page === "fleet" && <Fleet />}
        {page === "profile" && <Profile />}
      </main>
    </>
  );
}
