// SPDX-License-Identifier: Apache-2.0

// Style sheets are imported for their effect only. Vite bundles them.
declare module "*.css";
