// An address or a script: what it holds, its balance over time, its transactions page by page and
// its unspent outputs.

import { ask, on } from './api.js';
import { chart } from './chart.js';
import { el, facts, figure, figures, inUse, replace, section, skeleton, table } from './dom.js';
import { amount, coins, count, hash, kinds, plural, time } from './format.js';
import { title } from './title.js';

const PAGE = 25;

export async function address(main, { id }, signal) {
  title(id.slice(0, 12));
  const top = el('div', { class: 'address-top' }, skeleton(1, 190));
  const over = el('div', { class: 'over' }, skeleton(1, 300));
  const list = el('div', { class: 'history' }, skeleton(PAGE, 45));
  const held = el('div');
  replace(main, top, over, list, held);
  const first = await ask(`script/${id}`, signal);
  drawTop(top, first, id);
  const cursors = [null];
  const page = async () => {
    const cursor = cursors[cursors.length - 1];
    const from = cursor == null ? '' : `&cursor=${cursor}`;
    const found = await ask(`script/${id}/history?limit=${PAGE}${from}`, signal);
    drawHistory(list, found, cursors, page);
  };
  const points = async () => {
    const found = await ask(`script/${id}/balance-history`, signal);
    replace(over, section('Balance over time', {
      id: 'over', lead: found.complete ? null : `The last ${plural(found.points.length, 'change')}`,
    }, chart({
      name: 'Confirmed balance', step: true, show: (v) => coins(v),
      points: found.points.map((p) => ({ height: p.height, time: p.time, value: p.balance })),
    })));
  };
  await Promise.all([page(), points()]);
  let open = false;
  const utxos = async () => {
    const found = await ask(`script/${id}/utxos`, signal);
    const rows = found.utxos.slice(0, 500).map((u) => [
      hash(`${u.txid}:${u.vout}`, { href: `/tx/${u.txid}#out-${u.vout}`, copy: false, label: 'Output' }),
      u.height == null ? el('span', { class: 'badge wet' }, 'unconfirmed') : count(u.height), amount(u.value)]);
    replace(held, section('Unspent outputs', {
      id: 'held', lead: `${plural(found.utxos.length, 'output')}${found.utxos.length > 500 ? ', the first 500' : ''}`,
    }, rows.length ? table('Unspent outputs', [{ name: 'Output', class: 'grow' }, { name: 'Height', class: 'num' },
      { name: 'Value', class: 'num' }], rows, { class: 'list' }) : el('p', { class: 'empty' }, 'None.')));
    open = true;
  };
  replace(held, section('Unspent outputs', { id: 'held' }, el('button', {
    type: 'button', class: 'plain', click: () => utxos().catch((error) => {
      if (error.name !== 'AbortError') replace(held, el('p', { class: 'notice' }, error.message));
    }),
  }, `Show ${plural(first.counts.funded - first.counts.spent, 'unspent output')}`)));
  const fresh = async () => {
    try {
      drawTop(top, await ask(`script/${id}`, signal), id);
      if (cursors.length === 1 && !inUse(list)) await page();
      if (open && !inUse(held)) await utxos();
      if (!inUse(over)) await points();
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
    }
  };
  on('tip', fresh, signal);
}

function drawTop(node, s, id) {
  const script = s.script;
  replace(node, el('div', { class: 'title-row' }, el('h1', null, script.address ? 'Address' : 'Script'),
    script.type && el('span', { class: 'badge' }, kinds[script.type] ?? script.type)),
  el('p', { class: 'id-row' }, hash(script.address ?? id)),
  figures(figure('Balance', amount(s.balance.confirmed),
    s.balance.unconfirmed ? [amount(s.balance.unconfirmed, { sign: true }), ' unconfirmed'] : 'confirmed'),
  figure('Received', amount(s.received), plural(s.counts.funded, 'output')),
  figure('Sent', amount(s.sent), plural(s.counts.spent, 'output')),
  figure('Transactions', count(s.counts.txs), s.mempool.txs ? `${count(s.mempool.txs)} unconfirmed` : null)),
  facts([script.address && ['Script hash', hash(script.hash, { href: `/script/${script.hash}` })]]));
}

function drawHistory(node, found, cursors, page) {
  const move = (change) => async () => {
    change();
    await page();
    document.getElementById('history')?.scrollIntoView({ block: 'start' });
  };
  const change = (delta) => el('span', { class: delta < 0 ? 'minus' : 'plus' }, amount(delta, { sign: true }));
  const rows = [
    ...(found.unconfirmed ?? []).map((t) => [hash(t.txid, { href: `/tx/${t.txid}`, copy: false, label: 'Transaction' }),
      el('span', { class: 'badge wet' }, 'unconfirmed'), '–', change(t.received - t.sent)]),
    ...found.txs.map((t) => [hash(t.txid, { href: `/tx/${t.txid}`, copy: false, label: 'Transaction' }),
      el('a', { href: `/block/${t.block}` }, count(t.height)), time(t.time), change(t.received - t.sent)])];
  replace(node, section('Transactions', { id: 'history', lead: cursors.length > 1 && `Page ${cursors.length}` },
    table('Transactions, newest first', [{ name: 'Transaction', class: 'grow' }, { name: 'Height', class: 'num' },
      { name: 'Time', class: 'num' }, { name: 'Change', class: 'num' }], rows, { class: 'list' }),
    el('nav', { class: 'pager', 'aria-label': 'More of the list' },
      cursors.length > 1 ? el('button', { type: 'button', click: move(() => cursors.pop()) }, '← Newer') : el('span'),
      found.cursor != null ? el('button', { type: 'button', click: move(() => cursors.push(found.cursor)) }, 'Older →') : el('span'))));
}
