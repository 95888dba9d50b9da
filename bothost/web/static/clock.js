// Times as people read them, and the time that is left, counted down in the browser.
import { html, useEffect, useState } from "./html.js";

/** The two largest units of a time: 93784 s → "1 d 2 h". */
export function duration(seconds, t) {
  const parts = [["d", Math.floor(seconds / 86400)], ["h", Math.floor(seconds / 3600) % 24], ["min", Math.floor(seconds / 60) % 60], ["s", Math.floor(seconds) % 60]];
  const first = parts.findIndex(([, count]) => count > 0);
  return parts.slice(first < 0 ? -1 : first).slice(0, 2).map(([unit, count]) => `${count} ${t(unit)}`).join(" ");
}

/** What is left of a clock: 59 → "59 s", 300 → "5:00". */
export const left = (seconds, t) => (seconds < 60 ? duration(seconds, t) : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`);

export function Clock({ leftMs, t }) {
  const [ends, setEnds] = useState(null);
  const [, tick] = useState(0);
  useEffect(() => { setEnds(leftMs === null || leftMs === undefined ? null : performance.now() + leftMs); }, [leftMs]);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 500); return () => clearInterval(timer); }, []);
  if (ends === null) return null;
  const seconds = Math.max(0, Math.round((ends - performance.now()) / 1000));
  return html`<span class=${`badge${seconds < 10 ? " bad" : ""}`} role="timer" aria-label=${t("Clock")}>${left(seconds, t)}</span>`;
}
