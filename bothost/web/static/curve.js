// The value of a hand over its positions, or the figures of a training over its iterations.
import { html, useEffect, useRef } from "./html.js";

const VALUE = "Value over the hand";
const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].flatMap((step) => [step, 2 * step, 5 * step]);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const stroke = (name) => () => colour(name); // asked at each drawing: the theme may have changed
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** uPlot is half of all code, so a page is drawn before it comes. */
const loaded = () => import("./vendor/uplot.mjs").then((module) => module.default);

/** The vertical line at the position that is shown. */
function marker(at) {
  return (plot) => {
    if (at() === null) return;
    const x = plot.valToPos(at(), "x", true);
    plot.ctx.save();
    plot.ctx.strokeStyle = colour("--ink");
    plot.ctx.setLineDash([4, 4]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, plot.bbox.top);
    plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
    plot.ctx.stroke();
    plot.ctx.restore();
  };
}

/** `lines`: [{label, points: Map(position → value)}]. `at`: the position that is shown; a click goes to another, `onMove`. */
export function Curve({ lines, last, at = null, onMove, title = VALUE, t }) {
  const place = useRef(null);
  const plot = useRef(null);
  const here = useRef(at);
  const move = useRef();
  move.current = onMove; // it may be another one than when the curve was drawn
  const given = lines.filter((line) => line.points.size > 1);
  const key = JSON.stringify(given.map((line) => [line.label, line.points.size, [...line.points.values()].at(-1)]));
  const draw = (uPlot) => {
    const xs = onMove ? Array.from({ length: last + 1 }, (_, i) => i) : [...new Set(given.flatMap((line) => [...line.points.keys()]))].sort((a, b) => a - b);
    const { format } = new Intl.NumberFormat(document.documentElement.lang, { notation: "compact", maximumSignificantDigits: 4 });
    const strokes = ["--accent", "--suit-blue", "--suit-gold", "--suit-red", "--dim"];
    const axis = { stroke: stroke("--dim"), grid: { stroke: stroke("--line"), width: 1 }, ticks: { stroke: stroke("--line") }, font: "12px system-ui", values: (_, found) => found.map(format) };
    const options = {
      width: place.current.clientWidth, height: 150, scales: { x: { time: false, range: [0, Math.max(1, xs.at(-1))] } },
      axes: [{ ...axis, size: 32, incrs: WHOLE }, { ...axis, size: 60 }], cursor: { y: false, drag: { x: false } },
      legend: { show: given.length > 1, live: false },
      series: [{ label: t("Move") }, ...given.map((line, i) => ({ label: line.label, stroke: stroke(strokes[i % strokes.length]), width: 2, spanGaps: true, points: { show: true, size: 5 } }))],
      hooks: { draw: [marker(() => here.current)] },
    };
    const made = new uPlot(options, [xs, ...given.map((line) => xs.map((x) => line.points.get(x) ?? null))], place.current);
    made.over.addEventListener("click", () => made.cursor.idx !== null && move.current?.(made.cursor.idx));
    const resize = new ResizeObserver(([entry]) => made.setSize({ width: entry.contentRect.width, height: 150 }));
    resize.observe(place.current);
    const redraw = () => made.redraw();
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributes: true });
    DARK.addEventListener("change", redraw);
    plot.current = made;
    return () => { DARK.removeEventListener("change", redraw); theme.disconnect(); resize.disconnect(); made.destroy(); plot.current = null; };
  };
  useEffect(() => {
    if (!given.length) return undefined;
    let [gone, clear] = [false, () => {}];
    loaded().then((uPlot) => { if (!gone && place.current) clear = draw(uPlot); }, () => {}); // without it there is no curve
    return () => { gone = true; clear(); };
  }, [key, last]);
  useEffect(() => { here.current = at; plot.current?.redraw(); }, [at]);
  if (!given.length) return null;
  return html`<section class="panel curve" aria-label=${t(title)}><h2>${t(title)}</h2>${title === VALUE && html`<p class="count">${t("What the seat expects to score, move by move. A click goes to that move.")}</p>`}<div ref=${place}></div></section>`;
}
