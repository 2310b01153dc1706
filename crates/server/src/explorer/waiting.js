// What waits: the next blocks as they would be, fees by size, and the last arrivals.

import { el, section } from './dom.js';
import { about, hash, plural, rate, short } from './format.js';

// The blocks that would be made of the best-paying transactions, nearest the ground first.
export function projected(pool) {
  const next = pool.projected.slice(0, 4);
  return el('ol', { class: 'projected', 'aria-label': 'Blocks that would be made now' },
    Array.from({ length: 4 }, (_, i) => {
      const block = next[i];
      if (!block) return el('li', { class: 'drop none', 'aria-hidden': 'true' });
      const full = Math.min(1, block.vsize / 1e6);
      return el('li', { class: 'drop', style: { '--full': `${Math.round(full * 100)}%` } },
        el('span', { class: 'drop-rate' }, `${rate(block.median_rate)}`, el('small', null, ' sat/vB')),
        el('span', { class: 'drop-range' }, `${rate(block.min_rate)} – ${rate(block.max_rate)}`),
        el('span', { class: 'drop-txs' }, plural(block.count, 'tx', 'txs')));
    }));
}

// Virtual bytes by fee rate: a bar a bin, widest where most waits.
export function feeChart(pool) {
  const bins = group(pool.histogram);
  const most = Math.max(1, ...bins.map((bin) => bin.vsize));
  const bars = bins.map((bin) => el('li', { class: 'bin' },
    el('span', { class: 'bin-rate' }, bin.label),
    el('span', { class: 'bin-bar' },
      el('span', { style: { width: `${Math.max(bin.vsize ? 1 : 0, (bin.vsize / most) * 100)}%` } })),
    el('span', { class: 'bin-size' }, bin.vsize ? `${short(bin.vsize)} vB` : '–')));
  return section('Fees that wait', { id: 'fees', lead: 'Virtual bytes by sat/vB' },
    el('ol', { class: 'bins', 'aria-labelledby': 'fees' }, bars));
}

const EDGES = [100, 50, 30, 20, 10, 5, 3, 2, 1, 0];

function group(histogram) {
  const bins = EDGES.map((from, i) => ({
    from, vsize: 0, label: i === 0 ? `${from}+` : from === 0 ? '< 1' : `${from} – ${EDGES[i - 1]}`,
  }));
  for (const { rate: paid, vsize } of histogram) bins.find((bin) => paid >= bin.from).vsize += vsize;
  return bins;
}

export function recent(pool, rows = 8) {
  const list = pool.recent.slice(0, rows);
  return section('Last arrivals', { id: 'recent' },
    el('ul', { class: 'arrivals', 'aria-labelledby': 'recent' },
      Array.from({ length: rows }, (_, i) => {
        const tx = list[i];
        if (!tx) return el('li', { class: 'arrival none', 'aria-hidden': 'true' });
        return el('li', { class: 'arrival' },
          hash(tx.txid, { href: `/tx/${tx.txid}`, copy: false, label: 'Transaction' }),
          el('span', { class: 'num' }, about(tx.value)),
          el('span', { class: 'num' }, `${rate(tx.rate)} sat/vB`));
      })));
}
