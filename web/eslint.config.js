// SPDX-License-Identifier: Apache-2.0

import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/dist/", "**/node_modules/"] },
  {
    files: ["**/*.ts", "**/*.tsx"],
    extends: [js.configs.recommended, ...tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ["./tsconfig.json", "./tsconfig.node.json"],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      // Template strings of this page often contain numbers.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-unnecessary-condition": ["error", { allowConstantLoopConditions: true }],
      "no-restricted-globals": ["error", "event", "name"],
      "no-console": "error",
      "max-lines": ["error", 500],
      eqeqeq: "error",
    },
  },
  {
    files: ["**/test/browser/*.test.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        {
          selector: "CallExpression[callee.property.name='waitForFunction']",
          message: "The page's content policy forbids what waitForFunction evaluates: use holds() of browser.ts.",
        },
        {
          selector: "CallExpression[callee.name='expect'] > CallExpression.arguments:matches([callee.name='search'], [callee.property.name='url'])",
          message: "The address changes a moment after the input: use queryString() or shown() of browser.ts.",
        },
      ],
    },
  },
);
