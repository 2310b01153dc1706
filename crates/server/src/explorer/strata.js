// Layers of sediment as drawings.
//
// The upper edge of a layer is a slow wave whose shape comes from its name (a block's hash, a
// run's number): the same layer always looks the same, and no two look alike. Fine lines within
// it, the laminae, follow the edge.

import { svg } from './dom.js';

const WIDTH = 1000;
// How far an edge may rise into the layer above, in pixels.
export const RISE = 9;

// A small repeatable generator over the characters of a name.
function draws(name) {
  let h = 2166136261;
  for (const c of String(name)) h = Math.imul(h ^ c.charCodeAt(0), 16777619);
  return () => {
    h = Math.imul(h ^ (h >>> 15), 2246822507);
    h = Math.imul(h ^ (h >>> 13), 3266489909);
    h ^= h >>> 16;
    return (h >>> 0) / 4294967296;
  };
}

function wave(random, top, swing) {
  const points = 5;
  const step = WIDTH / points;
  const at = () => top + (random() - 0.5) * swing;
  let path = `M0 ${at().toFixed(1)}`;
  let slope = (random() - 0.5) * swing;
  let y = at();
  path += ` C${step / 3} ${y.toFixed(1)} ${(step * 2) / 3} ${(y - slope).toFixed(1)} ${step} ${y.toFixed(1)}`;
  for (let i = 2; i <= points; i += 1) {
    const next = at();
    const turn = (random() - 0.5) * swing;
    const x = step * (i - 1);
    path += ` C${x + step / 3} ${(y + slope).toFixed(1)} ${x + (step * 2) / 3} ${(next - turn).toFixed(1)} ${x + step} ${next.toFixed(1)}`;
    y = next;
    slope = turn;
  }
  return path;
}

// The ground of one layer: `height` pixels and the rise above it, `lines` laminae.
export function layer(name, height, lines = 2) {
  const random = draws(name);
  // It reaches below its own lower end, where the next layer covers it.
  const full = height + 2 * RISE;
  const edge = wave(random, RISE, RISE * 1.4);
  const fine = Array.from({ length: lines }, (_, i) => {
    const top = RISE + ((i + 0.7 + random() * 0.5) * height) / (lines + 0.6);
    return svg('path', { class: 'lamina', d: wave(random, top, 5) });
  });
  return svg('svg', {
    class: 'ground', viewBox: `0 0 ${WIDTH} ${full}`, preserveAspectRatio: 'none',
    'aria-hidden': 'true', focusable: 'false',
  }, svg('path', { class: 'fill', d: `${edge} V${full} H0 Z` }), fine,
  svg('path', { class: 'edge', d: edge }));
}
