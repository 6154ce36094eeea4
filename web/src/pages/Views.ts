// SPDX-License-Identifier: Apache-2.0

// The pages whose panels are known in advance. They load together, because a finding leads to the panels of all others.
export { Containers } from "./Containers";
export { Findings } from "./Findings";
export { Infrastructure } from "./Infrastructure";
export { Status } from "./Status";
export { System } from "./System";
export { Tee } from "./Tee";
