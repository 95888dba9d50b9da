// The time that is left, counted down in the browser.
import { html, useEffect, useState } from "./html.js";

export function Clock({ leftMs, t }) {
  const [ends, setEnds] = useState(null);
  const [, tick] = useState(0);
  useEffect(() => { setEnds(leftMs === null || leftMs === undefined ? null : performance.now() + leftMs); }, [leftMs]);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 500); return () => clearInterval(timer); }, []);
  if (ends === null) return null;
  const seconds = Math.max(0, Math.round((ends - performance.now()) / 1000));
  return html`<span class=${`badge${seconds < 10 ? " bad" : ""}`} role="timer" aria-label=${t("Clock")}>${t("{n} s", { n: seconds })}</span>`;
}
