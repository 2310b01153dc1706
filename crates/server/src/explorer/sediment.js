// The database itself, as a section through its layers: the window in memory on top, sorted runs
// by age below it, and beside them how far each index goes and where bytes lie.

import { ask, on } from './api.js';
import { el, figure, figures, replace, section, skeleton, table } from './dom.js';
import { bytes, count, plural, short } from './format.js';
import { layer } from './strata.js';
import { title } from './title.js';

const EVERY = 2000;

export async function sediment(main, _params, signal) {
  title('Sediment');
  const top = el('div', { class: 'sediment-top' }, skeleton(1, 76));
  const core = el('div', { class: 'core sediment-core' }, skeleton(1, 560));
  const side = el('div', { class: 'side' }, skeleton(1, 260), skeleton(1, 260));
  replace(main, el('h1', null, 'Sediment'),
    el('p', { class: 'lead' }, 'The database itself. Coins of young blocks float in memory; what outlives the window settles into sorted runs, and runs merge into older, harder ones.'),
    top, el('div', { class: 'split' }, core, side));
  let last = '';
  const draw = async () => {
    const s = await ask('sediment', signal);
    const now = JSON.stringify(s);
    if (now === last) return;
    last = now;
    replace(top, figures(figure('Coins', short(s.coins), `${count(s.window.entries)} changes in memory`),
      figure('Transactions', short(s.transactions), `${plural(s.blocks, 'block')}, every branch`),
      figure('On disk', bytes(s.bytes), `${plural(s.stores.length, 'store')}`),
      figure('Commits', count(s.commits))));
    drawCore(core, s);
    replace(side, indexes(s), stores(s), memory(s));
  };
  const redraw = () => draw().catch((error) => {
    if (error.name !== 'AbortError') throw error;
  });
  await draw();
  on('tip', redraw, signal);
  const timer = setInterval(redraw, EVERY);
  signal.addEventListener('abort', () => clearInterval(timer));
}

const thick = (n, most) => 46 + Math.round(64 * Math.sqrt(n / Math.max(1, most)));

function drawCore(node, s) {
  const merging = new Map(s.merges.flatMap((m) => m.inputs.map((n) => [n, m])));
  const most = Math.max(1, ...s.runs.map((run) => run.bytes));
  const panes = [...s.window.panes].reverse().map((pane) => row(`pane ${pane.first}`, 52, 'pane', [
    el('span', { class: 'stratum-height' }, plural(pane.steps, 'block')),
    el('span', { class: 'stratum-main' }, el('span', null, `to height ${count(pane.height)}`),
      el('span', { class: 'stratum-miner' }, pane.flushing ? 'becoming a run now' : pane.sealed ? 'sealed, waits to settle' : 'taking blocks')),
    el('span', { class: 'stratum-fees' }, `${count(pane.living)} changes`),
    el('span', { class: 'stratum-size' }, bytes(pane.memory))]));
  const runs = s.runs.map((run, i) => {
    const merge = merging.get(run.number);
    return row(`run ${run.number}`, thick(run.bytes, most), merge ? 'run merging' : 'run', [
      el('span', { class: 'stratum-height' }, `Run ${count(run.number)}`),
      el('span', { class: 'stratum-main' },
        el('span', null, plural(run.adds, 'coin')),
        el('span', { class: 'stratum-miner' }, merge ? `merging into run ${count(merge.output)}` : `steps ${count(run.first)} – ${count(run.last)}`)),
      el('span', { class: 'stratum-fees' }, run.deletes ? plural(run.deletes, 'spend') : ''),
      el('span', { class: 'stratum-size' }, bytes(run.bytes))], i, s.runs.length);
  });
  replace(node,
    el('div', { class: 'water' }, el('div', { class: 'water-head' }, el('h2', null, 'Window'),
      el('p', null, `${plural(s.window.steps, 'block')} in memory, ${bytes(s.window.memory)}`))),
    el('ol', { class: 'strata', 'aria-label': 'Layers of the window, youngest first' }, panes),
    el('h2', { class: 'seam' }, plural(s.runs.length, 'run'), el('small', null, ' on disk, youngest first')),
    el('ol', { class: 'strata runs', 'aria-label': 'Runs, youngest first' }, runs),
    runs.length === 0 && el('p', { class: 'empty' }, 'Nothing has settled yet: all coins are younger than the window.'),
    el('p', { class: 'bed' }, s.merges.length
      ? `${plural(s.merges.length, 'merge')} under way` : 'No merge under way'));
}

function row(name, height, kind, cells, depth = 0, of = 1) {
  return el('li', {
    class: `stratum ${kind}`, 'data-depth': kind === 'pane' ? 'pane' : Math.min(10, Math.round(2 + (depth / Math.max(1, of - 1 || 1)) * 8)),
    style: { '--thick': `${height}px` },
  }, layer(name, height, 3), el('div', { class: 'stratum-in' }, cells));
}

function bar(share, kind) {
  return el('span', { class: `gauge ${kind ?? ''}`, 'aria-hidden': 'true' },
    el('span', { style: { width: `${Math.max(0, Math.min(100, share * 100))}%` } }));
}

function indexes(s) {
  const rows = s.indexes.map((index) => [index.name,
    bar(index.height == null ? 0 : (index.height + 1) / (s.tip.height + 1), index.height === s.tip.height ? 'good' : ''),
    index.damaged ? el('span', { class: 'badge bad', title: index.damaged }, 'damaged')
      : index.height == null ? 'not begun' : index.height === s.tip.height ? 'at the tip' : count(index.height)]);
  return section('Indexes', { id: 'indexes', lead: 'How far each goes' }, s.indexes.length
    ? table('Indexes and their heights', ['Index', { name: 'Reach', class: 'grow' }, { name: 'Height', class: 'num' }], rows, { class: 'bars' })
    : el('p', { class: 'empty' }, 'None is kept.'));
}

function stores(s) {
  const most = Math.max(1, ...s.stores.map((store) => store.bytes));
  return section('Bytes by store', { id: 'stores' }, table('Bytes by store',
    ['Store', { name: 'Share', class: 'grow' }, { name: 'Bytes', class: 'num' }],
    s.stores.map((store) => [store.name, bar(store.bytes / most), bytes(store.bytes)]), { class: 'bars' }));
}

function memory(s) {
  if (!s.memory) {
    return section('Memory', { id: 'memory' }, el('p', { class: 'empty' }, 'Nothing is written now.'));
  }
  const parts = s.memory.parts;
  const most = Math.max(1, ...parts.map((part) => part.bytes));
  return section('Memory', { id: 'memory', lead: `${bytes(s.memory.budget)} declared` }, table('Memory by part',
    ['Part', { name: 'Share', class: 'grow' }, { name: 'Bytes', class: 'num' }],
    parts.map((part) => [part.name, bar(part.bytes / most), bytes(part.bytes)]), { class: 'bars' }));
}
