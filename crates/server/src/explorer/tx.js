// A transaction: what it spends on the left, what it makes on the right, each with a link to the
// transaction on the other side.

import { ask, on } from './api.js';
import { el, facts, figure, figures, replace, section, skeleton } from './dom.js';
import { amount, bytes, coins, copyButton, count, date, hash, kinds, plural, rate, time } from './format.js';
import { title } from './title.js';

export async function tx(main, { txid }, signal) {
  title(`Transaction ${txid.slice(0, 8)}`);
  const top = el('div', { class: 'tx-top' }, skeleton(1, 250));
  const sides = el('div', { class: 'sides' }, skeleton(3, 84), skeleton(3, 84));
  const rest = el('div');
  replace(main, top, sides, rest);
  const page = Math.max(0, Number(new URLSearchParams(location.search).get('from')) || 0);
  let drawn = '';
  const draw = async () => {
    const t = await ask(`tx/${txid}?from=${page}`, signal);
    drawTop(top, t);
    const now = JSON.stringify([t.inputs, t.outputs, t.blocks, t.mempool]);
    if (now === drawn) return;
    drawn = now;
    const open = [...sides.querySelectorAll('details[open]')].map((node) => node.parentNode.id);
    drawSides(sides, t, page);
    open.forEach((id) => document.getElementById(id)?.querySelector('details')?.setAttribute('open', ''));
    drawRest(rest, t);
  };
  await draw();
  aim();
  const redraw = () => draw().catch((error) => {
    if (error.name !== 'AbortError') throw error;
  });
  on('tip', redraw, signal);
}

// Shows the input or output that the address names.
function aim() {
  const aimed = /^#(in|out)-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (!aimed) return;
  aimed.classList.add('aimed');
  aimed.scrollIntoView({ block: 'center' });
}

function badge(t) {
  const words = {
    confirmed: ['good', plural(t.confirmations, 'confirmation')],
    mempool: ['wet', 'unconfirmed'],
    stale: ['bad', 'not in the chain'],
  };
  const [kind, word] = words[t.state];
  return el('span', { class: `badge ${kind}` }, word);
}

function drawTop(node, t) {
  const where = t.block
    ? ['Block', el('a', { href: `/block/${t.block.hash}` }, count(t.block.height)), time(t.block.time)]
    : ['Seen', t.mempool ? time(t.mempool.time) : '–', 'waits for a block'];
  replace(node, el('div', { class: 'title-row' }, el('h1', null, t.coinbase ? 'Coinbase' : 'Transaction'), badge(t)),
    el('p', { class: 'id-row' }, hash(t.txid)),
    t.state === 'stale' && el('p', { class: 'notice bad' },
      'No block of the chain holds it: it was replaced, or waits to come back. ', el('a', { href: '/forks' }, 'See the forks')),
    figures(figure(...where), figure('Value', amount(t.value), `${plural(t.inputs_total, 'input')}, ${plural(t.outputs_total, 'output')}`),
      figure('Fee', t.fee == null ? '–' : amount(t.fee), t.rate == null ? (t.coinbase ? 'a coinbase pays none' : 'inputs not known') : `${rate(t.rate)} sat/vB`),
      figure('Size', `${count(t.vsize)} vB`, `${bytes(t.size)}, ${count(t.weight)} WU`)));
}

function drawSides(node, t, page) {
  const more = (total, shown) => total > page + shown
    && el('p', null, el('a', { href: `/tx/${t.txid}?from=${page + shown}` }, `${count(total - page - shown)} more →`));
  const back = page > 0 && el('p', null, el('a', { href: `/tx/${t.txid}` }, '← from the beginning'));
  replace(node,
    section(plural(t.inputs_total, 'input'), { id: 'ins' }, back, el('ol', { class: 'puts', start: page },
      t.inputs.map((input) => inputRow(input, t))), more(t.inputs_total, t.inputs.length)),
    section(plural(t.outputs_total, 'output'), { id: 'outs' }, back, el('ol', { class: 'puts', start: page },
      t.outputs.map((output) => outputRow(output))), more(t.outputs_total, t.outputs.length)));
}

function owner(script) {
  if (script.address) {
    return hash(script.address, { href: `/address/${script.address}`, copy: false, label: 'Address' });
  }
  if (script.message) return el('q', { class: 'text' }, script.message);
  return el('a', { href: `/script/${script.hash}`, class: 'kind' }, kinds[script.type] ?? script.type);
}

function scriptText(name, script) {
  if (!script?.hex) return null;
  const asm = script.asm.split(' ').map((word, i) => [i ? ' ' : '',
    el('span', { class: word.startsWith('OP_') ? 'op' : 'push' }, word)]);
  return [el('h4', null, name, copyButton(script.hex)),
    el('p', { class: 'asm', tabindex: 0 }, asm, script.cut && el('em', null, ' … cut here'))];
}

function witnessText(items) {
  if (!items?.length) return null;
  return [el('h4', null, `Witness, ${plural(items.length, 'item')}`),
    el('ol', { class: 'witness' }, items.map((item) => el('li', null,
      item.size === 0 ? el('em', null, 'empty') : item.hex, item.hex.length < item.size * 2 && el('em', null, ` … ${bytes(item.size)} in all`))))];
}

function inputRow(input, t) {
  const from = input.prevout;
  const head = t.coinbase
    ? el('div', { class: 'put-head' }, el('span', { class: 'kind' }, 'New coins'), amount(t.value))
    : el('div', { class: 'put-head' },
      from ? owner(from.script) : el('span', { class: 'kind' }, 'output not known'),
      amount(from?.value));
  const foot = t.coinbase
    ? el('div', { class: 'put-foot' }, el('q', { class: 'text' }, input.text ?? ''))
    : el('div', { class: 'put-foot' }, el('span', { class: 'arrow', 'aria-hidden': 'true' }, '←'),
      hash(input.txid, { href: `/tx/${input.txid}#out-${input.vout}`, copy: false, label: 'Made by' }),
      el('span', { class: 'num' }, `:${input.vout}`));
  return el('li', { class: 'put', id: `in-${input.n}` }, head, foot, details([
    from && facts([['Kind', kinds[from.script.type] ?? from.script.type], ['Made at', count(from.height)],
      ['Sequence', el('code', null, `0x${input.sequence.toString(16).padStart(8, '0')}`)]]),
    from && scriptText('Output script', from.script), scriptText('Input script', input.script),
    scriptText('Redeem script', input.redeem_script), scriptText('Witness script', input.witness_script),
    witnessText(input.witness)]));
}

function outputRow(output) {
  const spender = output.spent_by;
  const foot = spender
    ? el('div', { class: 'put-foot' }, el('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
      hash(spender.txid, { href: `/tx/${spender.txid}#in-${spender.vin}`, copy: false, label: 'Spent by' }),
      el('span', { class: 'num' }, spender.height == null ? 'unconfirmed' : `at ${count(spender.height)}`))
    : el('div', { class: 'put-foot' }, output.spendable
      ? el('span', { class: 'unspent' }, 'unspent') : el('span', null, 'cannot be spent'));
  return el('li', { class: 'put', id: `out-${output.n}` },
    el('div', { class: 'put-head' }, owner(output.script), amount(output.value)), foot,
    details([facts([['Kind', kinds[output.script.type] ?? output.script.type],
      ['Script hash', hash(output.script.hash, { href: `/script/${output.script.hash}` })],
      output.other_spends?.length && ['Spent elsewhere', output.other_spends.map((s) =>
        el('div', null, hash(s.txid, { href: `/tx/${s.txid}`, copy: false }), ` in block ${count(s.height)} of another branch`))]]),
    scriptText('Output script', output.script)]));
}

const details = (content) => el('details', null, el('summary', null, 'Script'), content);

function drawRest(node, t) {
  const blocks = t.blocks.map((b) => el('li', null,
    el('a', { href: `/block/${b.hash}` }, `Block ${count(b.height)}`), ' ', hash(b.hash, { copy: false }), ' ',
    b.confirmed ? el('span', { class: 'badge good' }, 'in the chain') : el('span', { class: 'badge bad' }, 'stale branch')));
  const kin = (name, list, sum) => [`${name}`, `${plural(sum.count - 1, 'transaction')}, ${coins(sum.fees)}`,
    list.map((id) => el('div', null, hash(id, { href: `/tx/${id}`, copy: false })))];
  replace(node,
    t.mempool && section('In the mempool', { id: 'pool' }, facts([
      ['Arrived', `${date(t.mempool.time)} UTC`],
      kin('Builds on', t.mempool.parents, t.mempool.ancestors),
      kin('Built on by', t.mempool.children, t.mempool.descendants),
      ['Rate with ancestors', `${rate(t.mempool.ancestors.rate)} sat/vB`]])),
    section(t.blocks.length > 1 ? 'Blocks that hold it, on every branch' : 'Details', { id: 'held' },
      t.blocks.length > 0 && el('ul', { class: 'held' }, blocks),
      facts([['Version', count(t.version)], ['Lock time', count(t.lock_time)],
        t.wtxid && t.wtxid !== t.txid && ['Witness txid', hash(t.wtxid)],
        t.block && ['Position in block', count(t.block.position)],
        ['Raw', el('a', { href: `/api/tx/${t.txid}/hex` }, 'bytes in hex')],
        t.block && ['Proof', el('a', { href: `/api/varve/v1/proof/${t.txid}` }, 'merkle proof')]])));
}
