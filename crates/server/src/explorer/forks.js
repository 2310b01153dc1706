// Every fork that is known, drawn with both of its branches: the chain above, the other below.

import { ask, on } from './api.js';
import { el, inUse, replace, skeleton, svg } from './dom.js';
import { count, hash, plural } from './format.js';
import { title } from './title.js';


const [CELL, GAP, LANE, TOP] = [92, 22, 74, 14];

export async function forks(main, _params, signal) {
  title('Forks');
  const body = el('div', { class: 'forks' }, skeleton(3, 250));
  replace(main, el('h1', null, 'Forks'), body);
  const draw = async () => {
    const found = await ask('forks', signal);
    const others = found.branches.filter((branch) => branch.state !== 'active');
    replace(body, el('p', { class: 'lead' }, others.length
      ? `${plural(others.length, 'branch', 'branches')} beside the chain of ${count(found.tip.height)} blocks. Both sides stay readable: their blocks, transactions, spends and proofs.`
      : `No branch is known beside the chain of ${count(found.tip.height)} blocks.`),
    others.map(fork));
  };
  await draw();
  on('tip', () => !inUse(body) && draw().catch((error) => {
    if (error.name !== 'AbortError') throw error;
  }), signal);
}

const words = {
  stale: 'less work than the chain', invalid: 'refused', headers: 'headers alone have come',
};

function fork(branch) {
  const { fork: at } = branch;
  const drawn = Math.max(branch.blocks.length, branch.beside.length);
  const width = (drawn + 1) * (CELL + GAP) + 40;
  return el('article', { class: 'fork' },
    el('header', null, el('h2', null, `Fork at ${count(at.height)}`),
      el('span', { class: `badge ${branch.state === 'invalid' ? 'bad' : ''}` }, words[branch.state] ?? branch.state),
      el('p', { class: 'lead' }, `${plural(branch.length, 'block')} to ${count(branch.tip.height)}, `, hash(branch.tip.hash, { copy: false, href: `/block/${branch.tip.hash}` }),
        branch.reason && el('span', { class: 'text' }, `: ${branch.reason}`))),
    el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': `Both branches above ${count(at.height)}` },
      svg('svg', { class: 'tree', viewBox: `0 0 ${width} ${TOP + 2 * LANE}`, width, height: TOP + 2 * LANE },
        lines(branch, drawn), cell(0, 0.5, at, 'trunk'),
        lane(branch.beside, 0, 'active'), lane(branch.blocks, 1, branch.state))));
}

const x = (column) => 8 + column * (CELL + GAP);
const y = (row) => TOP + row * LANE;

function lines(branch) {
  const from = x(0) + CELL;
  const middle = y(0.5) + 24;
  const path = (row, list) => list.length && svg('path', {
    class: row ? 'twig' : 'limb',
    d: `M${from} ${middle} C${from + GAP} ${middle} ${from} ${y(row) + 24} ${x(1)} ${y(row) + 24} H${x(list.length) + CELL / 2}`,
  });
  const on_ = branch.beside_more && svg('path', { class: 'limb', d: `M${x(branch.beside.length) + CELL} ${y(0) + 24} h28` });
  return [path(0, branch.beside), path(1, branch.blocks), on_];
}

function lane(list, row, kind) {
  return list.map((block, i) => cell(i + 1, row, block, kind));
}

function cell(column, row, block, kind) {
  if (block.gap) {
    return svg('text', { class: 'gap', x: x(column) + CELL / 2, y: y(row) + 16 }, `+ ${count(block.gap)}`);
  }
  return svg('a', { href: `/block/${block.hash}`, class: `cell ${kind}`, 'aria-label': `Block ${block.height}, ${kind}` },
    svg('rect', { x: x(column), y: y(row), width: CELL, height: 48, rx: 6 }),
    svg('text', { x: x(column) + CELL / 2, y: y(row) + 20 }, count(block.height)),
    svg('text', { class: 'id', x: x(column) + CELL / 2, y: y(row) + 37 }, `…${block.hash.slice(-7)}`));
}
