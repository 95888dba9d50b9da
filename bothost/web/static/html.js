// Preact with htm: the one place that joins the two.
import { h } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export { render, Fragment } from "./vendor/preact.mjs";
export { useState, useEffect, useMemo, useRef, useCallback, useReducer, useErrorBoundary } from "./vendor/preact-hooks.mjs";
export const html = htm.bind(h);
