// SPDX-License-Identifier: Apache-2.0

// Which parts of the page TEE have something to show, by the metrics that have series.
import { CONFIDENTIAL, GPUS, VIRTUAL, VSOCK } from "../panels/dashboards/virtual";
import type { Section } from "../panels/types";

const PARTS: readonly [string, Section][] = [
  ["teescope_vm_info", VIRTUAL],
  ["teescope_guest_info", CONFIDENTIAL],
  ["teescope_(?:gpu|user_cuda)_.+", GPUS],
  ["teescope_(?:vsock|nitro_enclave)_.+", VSOCK],
];
const ENCLAVES = "sgx_source_info";

/** Selects the metrics that this file judges by. */
export const TEE_NAMES = `{__name__=~"${[ENCLAVES, ...PARTS.map(([names]) => names)].join("|")}",$nodes}`;

/** Returns whether enclaves are shown, and the other parts. As long as the names are not known, enclaves are. */
export function partsAmong(names: readonly string[] | undefined): { enclaves: boolean; parts: Section[] } {
  return {
    enclaves: !names || names.includes(ENCLAVES),
    parts: PARTS.filter(([pattern]) => names?.some((name) => new RegExp(`^(?:${pattern})$`).test(name))).map(([, section]) => section),
  };
}
