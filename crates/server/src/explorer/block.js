// A block with its transactions, and the list of all blocks.

import { ask, on } from './api.js';
import { el, facts, figure, figures, inUse, replace, section, skeleton, table } from './dom.js';
import { amount, bytes, coins, count, date, hash, plural, rate, time } from './format.js';
import { title } from './title.js';

const PAGE = 25;
const ROWS = 30;

export async function blocks(main, _params, signal) {
  title('Blocks');
  const body = el('div', { class: 'list-frame' }, skeleton(ROWS, 45));
  replace(main, el('h1', null, 'Blocks'), body);
  const before = new URLSearchParams(location.search).get('before');
  const from = /^\d{1,10}$/.test(before ?? '') ? `&before=${before}` : '';
  const draw = async () => {
    const list = await ask(`blocks?limit=${ROWS}${from}`, signal);
    const rows = list.blocks.map((b) => [
      el('a', { href: `/block/${b.hash}` }, count(b.height)), time(b.time),
      hash(b.hash, { href: `/block/${b.hash}`, copy: false }), count(b.tx_count), bytes(b.size),
      coins(b.fees), b.miner || '–']);
    const first = list.blocks[0];
    replace(body, table('Blocks, newest first', ['Height', 'Time', { name: 'Hash', class: 'grow' },
      { name: 'Transactions', class: 'num' }, { name: 'Size', class: 'num' },
      { name: 'Fees', class: 'num' }, { name: 'Coinbase text', class: 'text' }], rows, { class: 'list' }),
    pager(first && first.height < list.tip.height
      && `/blocks?before=${Math.min(first.height + 1 + ROWS, list.tip.height + 1)}`,
    list.next != null && `/blocks?before=${list.next}`, ['Newer', 'Older']));
  };
  await draw();
  if (!from) on('tip', () => !inUse(body) && draw().catch(() => {}), signal);
}

export function pager(back, on_, [backName, onName] = ['Back', 'More']) {
  return el('nav', { class: 'pager', 'aria-label': 'More of the list' },
    back ? el('a', { href: back, rel: 'prev' }, `← ${backName}`) : el('span'),
    on_ ? el('a', { href: on_, rel: 'next' }, `${onName} →`) : el('span'));
}

export async function block(main, { id }, signal) {
  title(/^\d+$/.test(id) ? `Block ${count(Number(id))}` : 'Block');
  const top = el('div', { class: 'block-top' }, skeleton(1, 300));
  const list = el('div', { class: 'tx-frame' }, skeleton(PAGE, 45));
  replace(main, top, list);
  const page = Math.max(0, Number(new URLSearchParams(location.search).get('from')) || 0);
  const [found, txs] = await Promise.all([
    ask(`block/${id}`, signal), ask(`block/${id}/txs?from=${page}&limit=${PAGE}`, signal)]);
  const b = found.block;
  title(`Block ${count(b.height)}`);
  drawBlock(top, found);
  const rows = txs.txs.map((tx) => [count(tx.position),
    hash(tx.txid, { href: `/tx/${tx.txid}`, copy: false, label: 'Transaction' }),
    `${count(tx.inputs)} → ${count(tx.outputs)}`, amount(tx.value), `${count(tx.vsize)} vB`,
    tx.fee == null ? (tx.coinbase ? 'coinbase' : '–') : `${rate(tx.rate)} sat/vB`]);
  const at = (n) => `/block/${b.hash}?from=${n}`;
  replace(list, section(plural(b.tx_count, 'transaction'), {
    id: 'txs', lead: b.tx_count > PAGE && `${count(txs.from + 1)} to ${count(txs.from + rows.length)}`,
  }, table('Transactions of the block', [{ name: '#', class: 'num' }, { name: 'Transaction', class: 'grow' },
    { name: 'In → out', class: 'num' }, { name: 'Value', class: 'num' }, { name: 'Size', class: 'num' },
    { name: 'Fee rate', class: 'num' }], rows, { class: 'list' }),
  pager(page > 0 && at(Math.max(0, page - PAGE)), page + PAGE < b.tx_count && at(page + PAGE),
    ['Previous', 'Next'])));
  on('tip', async () => {
    try {
      const now = await ask(`block/${id}`, signal);
      const open = top.querySelector('details').open;
      if (inUse(top)) return;
      drawBlock(top, now);
      top.querySelector('details').open = open;
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    }
  }, signal);
}

function drawBlock(top, { block: b, confirmations, tip }) {
  const badge = b.confirmed
    ? el('span', { class: 'badge good' }, plural(confirmations, 'confirmation'))
    : el('span', { class: 'badge bad' }, b.invalid ? 'invalid' : 'not in the chain');
  replace(top, el('div', { class: 'title-row' }, el('h1', null, 'Block ', el('span', { class: 'num' }, count(b.height))), badge,
    el('nav', { class: 'steps', 'aria-label': 'Neighbours' },
      b.previous && el('a', { href: `/block/${b.previous}`, rel: 'prev' }, '← below'),
      b.next && el('a', { href: `/block/${b.next}`, rel: 'next' }, 'above →'))),
  el('p', { class: 'id-row' }, hash(b.hash)),
  b.invalid && el('p', { class: 'notice bad' }, `This block was refused: ${b.invalid}`),
  !b.confirmed && !b.invalid && el('p', { class: 'notice' }, 'Another branch has more work. ',
    el('a', { href: '/forks' }, 'See the forks')),
  figures(figure('Time', time(b.time), `${date(b.time)} UTC`),
    figure('Size', bytes(b.size), `${count(b.weight)} WU`),
    figure('Fees', amount(b.fees), `${coins(b.subsidy)} subsidy`),
    figure('Fee rates', b.fee_rates ? `${rate(b.fee_rates.min)} – ${rate(b.fee_rates.max)}` : '–',
      b.fee_rates ? `median ${rate(b.fee_rates.median)} sat/vB` : 'not computed for so many inputs')),
  el('details', { class: 'more' }, el('summary', null, 'Header and coinbase'), facts([
    ['Previous', b.previous ? hash(b.previous, { href: `/block/${b.previous}` }) : 'none: this is genesis'],
    ['Merkle root', hash(b.merkle_root)], ['Version', el('code', null, `0x${(b.version >>> 0).toString(16).padStart(8, '0')}`)],
    ['Median time', `${date(b.median_time)} UTC`], ['Bits', el('code', null, b.bits)],
    ['Difficulty', b.difficulty.toLocaleString('en', { maximumFractionDigits: 3 })],
    ['Nonce', el('code', null, count(b.nonce))], ['Coinbase text', el('q', { class: 'text' }, b.miner || '–')],
    ['Read at', `tip ${count(tip.height)}`]])));
}
