// A chart of one figure: a line or steps over heights, with a reading under the pointer or the
// arrow keys. The same points are in a table that is read aloud instead of the drawing.

import { el, svg, table } from './dom.js';
import { count, date } from './format.js';

const WIDTH = 800;
const HEIGHT = 220;
const PAD = { left: 8, right: 8, top: 14, bottom: 22 };

export function chart({ name, points, show, axis = show, step = false, table: rows = 12 }) {
  if (points.length < 2) return el('p', { class: 'empty' }, 'Too few points for a chart yet.');
  const xs = points.map((p) => p.height);
  const ys = points.map((p) => p.value);
  const [x0, x1] = [xs[0], xs[xs.length - 1]];
  const top = Math.max(...ys, 1);
  const x = (h) => PAD.left + ((h - x0) / Math.max(1, x1 - x0)) * (WIDTH - PAD.left - PAD.right);
  const y = (v) => HEIGHT - PAD.bottom - (v / top) * (HEIGHT - PAD.top - PAD.bottom);
  let line = '';
  points.forEach((p, i) => {
    const [px, py] = [x(p.height).toFixed(1), y(p.value).toFixed(1)];
    line += i === 0 ? `M${px} ${py}` : step ? ` H${px} V${py}` : ` L${px} ${py}`;
  });
  const ground = HEIGHT - PAD.bottom;
  const area = `${line} V${ground} H${x(x0).toFixed(1)} Z`;
  const grid = [0.25, 0.5, 0.75, 1].map((share) => svg('line', {
    class: 'grid', x1: PAD.left, x2: WIDTH - PAD.right, y1: y(top * share), y2: y(top * share),
  }));
  const cursor = svg('line', { class: 'cursor away', y1: PAD.top, y2: ground });
  const dot = svg('ellipse', { class: 'point away', rx: 4, ry: 4 });
  const drawing = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true',
  }, grid, svg('path', { class: 'area', d: area }), svg('path', { class: 'line', d: line }), cursor, dot);

  const reading = el('p', { class: 'reading', 'aria-live': 'off' });
  let at = points.length - 1;
  const read = (i, mark) => {
    at = Math.max(0, Math.min(points.length - 1, i));
    const p = points[at];
    reading.textContent = `${show(p.value)} at ${count(p.height)}${p.time ? `, ${date(p.time).slice(0, 10)}` : ''}`;
    const px = x(p.height);
    cursor.setAttribute('x1', px);
    cursor.setAttribute('x2', px);
    dot.setAttribute('cx', px);
    dot.setAttribute('cy', y(p.value));
    // The drawing is stretched to the width of the page; the point stays round.
    dot.setAttribute('rx', (4 * WIDTH) / Math.max(1, drawing.clientWidth));
    for (const part of [cursor, dot]) part.classList.toggle('away', !mark);
  };
  read(at, false);
  const nearest = (event) => {
    const box = drawing.getBoundingClientRect();
    const height = x0 + ((event.clientX - box.left) / box.width) * (x1 - x0);
    let best = 0;
    xs.forEach((h, i) => {
      if (Math.abs(h - height) < Math.abs(xs[best] - height)) best = i;
    });
    read(best, true);
  };
  const plot = el('div', {
    class: 'plot', tabindex: 0, role: 'img',
    'aria-label': `${name}: from ${show(ys[0])} at ${count(x0)} to ${show(ys[ys.length - 1])} at ${count(x1)}, at most ${show(Math.max(...ys))}`,
    pointermove: nearest,
    pointerleave: () => read(points.length - 1, false),
    keydown: (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10 }[event.key];
      if (!by) return;
      event.preventDefault();
      read(at + by, true);
    },
  }, drawing, el('span', { class: 'axis-top' }, axis(top)),
  el('span', { class: 'axis-left' }, count(x0)), el('span', { class: 'axis-right' }, count(x1)));
  const every = Math.max(1, Math.ceil(points.length / rows));
  const listed = points.filter((_, i) => i % every === 0 || i === points.length - 1);
  return el('figure', { class: 'chart' }, el('figcaption', null, el('span', null, name), reading), plot,
    el('div', { class: 'sr' }, table(name, ['Height', 'Value'],
      listed.map((p) => [count(p.height), show(p.value)]))));
}
