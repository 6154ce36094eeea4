// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { CONFIDENTIAL, GPUS, VIRTUAL, VSOCK } from "../panels/dashboards/virtual";
import { families } from "../panels/families";
import { partsAmong, TEE_NAMES } from "./tee-parts";

it("shows the parts that have series", () => {
  expect(partsAmong(undefined)).toEqual({ enclaves: true, parts: [] });
  expect(partsAmong([])).toEqual({ enclaves: false, parts: [] });
  expect(partsAmong(["teescope_vm_info", "sgx_source_info"])).toEqual({ enclaves: true, parts: [VIRTUAL] });
  expect(partsAmong(["teescope_guest_info", "teescope_gpu_confidential_info"])).toEqual({ enclaves: false, parts: [CONFIDENTIAL, GPUS] });
});

it.each([GPUS, VSOCK].flatMap((section) => section.panels.map((def) => [def.id, def, section] as const)))("shows the part of %s when it has data", (_, def, section) => {
  const asked = new RegExp(`^(?:${/"(.*)"/.exec(TEE_NAMES)?.[1] ?? ""})$`);
  for (const name of families(def)) {
    expect(name).toMatch(asked);
    expect(partsAmong([name]).parts).toEqual([section]);
  }
});
