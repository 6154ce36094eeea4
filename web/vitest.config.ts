// SPDX-License-Identifier: Apache-2.0

// Unit tests: pure functions and the API client, no browser.
import { defineConfig } from "vitest/config";

export default defineConfig({
  // A test that takes long on a busy machine is not wrong.
  test: { include: ["src/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
});
