// The start page: the water (what is unconfirmed), and below it the last blocks as layers, the
// youngest on top. A layer is as thick as its block is heavy.

import { ask, on } from './api.js';
import { el, figure, figures, inUse, replace, skeleton } from './dom.js';
import { about, bytes, coins, count, hash, plural, rate, short, time } from './format.js';
import { layer } from './strata.js';
import { title } from './title.js';
import { feeChart, projected, recent } from './waiting.js';

const LAYERS = 11;
const CALM = 2000;
// A thousandth of the greatest weight: thickness grows with the logarithm, so that blocks of test
// chains differ too.
const LIGHT = 4_000;

export async function home(main, _params, signal) {
  title('');
  const head = el('div', { class: 'readings' }, skeleton(1, 76));
  const water = el('div', { class: 'water' }, skeleton(1, 96));
  const column = el('ol', { class: 'strata', 'aria-label': 'The last blocks, newest first' },
    Array.from({ length: LAYERS }, (_, i) => el('li', { class: 'stratum hollow', 'data-depth': i })));
  const side = el('div', { class: 'side' }, skeleton(1, 300), skeleton(1, 420));
  const bed = el('a', { class: 'bed', href: '/blocks' }, 'Older blocks');
  replace(main, el('h1', { class: 'sr' }, 'The chain now'), head,
    el('div', { class: 'split' }, el('div', { class: 'core' }, water, column, bed), side));

  let [list, set, top] = [null, null, null];
  const blocks = async () => {
    [list, set] = await Promise.all([
      ask(`blocks?limit=${LAYERS}`, signal), ask('set?points=0', signal)]);
    drawLayers(column, list.blocks, top);
    bed.href = `/blocks?before=${list.next ?? 0}`;
    bed.hidden = list.next == null;
    top = list.tip.height;
  };
  const pool = async () => {
    const found = await ask('mempool', signal);
    if (list) drawReadings(head, list, found, set);
    drawWater(water, found);
    if (!inUse(side)) replace(side, feeChart(found), recent(found));
  };
  await blocks();
  await pool();
  const due = new Set();
  let busy = false;
  const draw = async (...parts) => {
    parts.forEach((part) => due.add(part));
    if (busy) return;
    busy = true;
    try {
      while (due.size) {
        const next = [...due];
        due.clear();
        for (const part of next) await part();
      }
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    } finally {
      busy = false;
    }
  };
  on('tip', () => draw(blocks, pool), signal);
  // Many transactions come in a second; the picture follows every two.
  let waits = 0;
  on('mempool', () => {
    waits ||= setTimeout(() => {
      waits = 0;
      draw(pool);
    }, CALM);
  }, signal);
  signal.addEventListener('abort', () => clearTimeout(waits));
}

function drawReadings(node, list, pool, set) {
  const newest = list.blocks[0];
  const estimate = (n) => pool.estimates.find((e) => e.blocks === n)?.rate;
  replace(node, figures(
    figure('Height', count(list.tip.height), newest && time(newest.time)),
    figure('Unconfirmed', count(pool.count), `${short(pool.vsize)} vB`),
    figure('Fee, next block', [rate(estimate(1)), el('span', { class: 'unit' }, ' sat/vB')],
      pool.live ? `${rate(estimate(6))} within the hour` : 'no mempool is followed'),
    figure('Unspent outputs', short(set.txouts),
      set.total_amount == null ? null : coins(Math.round(set.total_amount / 1e8) * 1e8))));
}

function drawWater(node, pool) {
  replace(node,
    el('div', { class: 'water-head' }, el('h2', null, 'Unconfirmed'),
      el('p', null, pool.count
        ? `${plural(pool.count, 'transaction')} in suspension, ${coins(pool.fees)} in fees`
        : pool.live ? 'The water is clear: nothing waits.' : 'No mempool is followed now.')),
    projected(pool));
}

function drawLayers(column, blocks, oldTop) {
  const have = new Map([...column.children].map((node) => [node.dataset.hash, node]));
  const rows = blocks.map((block, depth) => {
    const old = have.get(block.hash);
    if (old) {
      old.dataset.depth = depth;
      return old;
    }
    const isNew = oldTop != null && block.height > oldTop;
    return stratum(block, depth, isNew);
  });
  while (rows.length < LAYERS) {
    rows.push(el('li', { class: 'stratum hollow', 'data-depth': rows.length }));
  }
  const focused = inUse(column) ? document.activeElement : null;
  column.replaceChildren(...rows);
  focused?.focus({ preventScroll: true });
}

function stratum(block, depth, isNew) {
  const share = Math.min(1, Math.log(1 + block.weight / LIGHT) / Math.log(1001));
  const lines = Math.min(6, 1 + Math.round(Math.log10(Math.max(1, block.tx_count)) * 1.3));
  const thick = 44 + Math.round(share * 26);
  return el('li', {
    class: isNew ? 'stratum fresh' : 'stratum', 'data-hash': block.hash, 'data-depth': depth,
    style: { '--thick': `${thick}px` },
  }, layer(block.hash, thick, lines),
  el('a', { class: 'stratum-in', href: `/block/${block.hash}` },
    el('span', { class: 'stratum-height' }, count(block.height)),
    el('span', { class: 'stratum-main' },
      el('span', { class: 'stratum-txs' }, plural(block.tx_count, 'transaction')),
      el('span', { class: 'stratum-miner' }, block.miner || hash(block.hash, { copy: false }))),
    el('span', { class: 'stratum-fees' }, about(block.fees), el('small', null, ' fees')),
    el('span', { class: 'stratum-size' }, bytes(block.size)),
    el('span', { class: 'stratum-time' }, time(block.time))));
}

