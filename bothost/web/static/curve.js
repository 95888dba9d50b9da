// The value of a hand over its positions. A click on the curve goes to the nearest position.
import { html, useEffect, useRef } from "./html.js";
import uPlot from "./vendor/uplot.mjs";

const VALUE = "Value over the hand";
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

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

/** `lines`: [{label, points: Map(position → value)}]; `last`: number of the last position. */
export function Curve({ lines, last, at, onMove, title = VALUE, t }) {
  const place = useRef(null);
  const plot = useRef(null);
  const here = useRef(at);
  const given = lines.filter((line) => line.points.size > 1);
  const key = JSON.stringify(given.map((line) => [line.label, line.points.size, [...line.points.values()].at(-1)]));
  useEffect(() => {
    if (!given.length || !place.current) return undefined; // the page may have gone before it was drawn
    const xs = Array.from({ length: last + 1 }, (_, i) => i);
    const strokes = ["--accent", "--suit-blue", "--suit-gold", "--suit-red", "--dim"];
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui" };
    const options = {
      width: place.current.clientWidth, height: 150, scales: { x: { time: false, range: [0, Math.max(1, last)] } },
      axes: [{ ...axis, size: 32, incrs: [1, 2, 5, 10, 20, 50] }, { ...axis, size: 60 }], cursor: { y: false, drag: { x: false } },
      legend: { show: given.length > 1, live: false },
      series: [{ label: t("Move") }, ...given.map((line, i) => ({ label: line.label, stroke: colour(strokes[i % strokes.length]), width: 2, spanGaps: true, points: { show: true, size: 5 } }))],
      hooks: { draw: [marker(() => here.current)] },
    };
    const made = new uPlot(options, [xs, ...given.map((line) => xs.map((x) => line.points.get(x) ?? null))], place.current);
    made.over.addEventListener("click", () => made.cursor.idx !== null && onMove(made.cursor.idx));
    const resize = new ResizeObserver(([entry]) => made.setSize({ width: entry.contentRect.width, height: 150 }));
    resize.observe(place.current);
    plot.current = made;
    return () => { resize.disconnect(); made.destroy(); plot.current = null; };
  }, [key, last]);
  useEffect(() => { here.current = at; plot.current?.redraw(); }, [at]);
  if (!given.length) return null;
  return html`<section class="panel curve" aria-label=${t(title)}><h2>${t(title)}</h2>${title === VALUE && html`<p class="count">${t("What the seat expects to score, move by move. A click goes to that move.")}</p>`}<div ref=${place}></div></section>`;
}
