// The unconfirmed transactions as a whole.

import { ask, on } from './api.js';
import { el, figure, figures, inUse, replace, skeleton } from './dom.js';
import { bytes, coins, count, rate, short } from './format.js';
import { title } from './title.js';
import { feeChart, projected, recent } from './waiting.js';

// Between two pictures, however fast transactions come.
const CALM = 2000;

export async function mempool(main, _params, signal) {
  title('Mempool');
  const top = el('div', { class: 'mempool-top' }, skeleton(1, 76));
  const water = el('div', { class: 'water' }, skeleton(1, 120));
  const fees = el('div', null, skeleton(1, 340));
  const last = el('div', null, skeleton(1, 640));
  replace(main, el('h1', null, 'Mempool'), top, water, el('div', { class: 'halves' }, fees, last));
  const draw = async () => {
    const pool = await ask('mempool', signal);
    const estimate = (n) => pool.estimates.find((e) => e.blocks === n)?.rate;
    replace(top, figures(figure('Transactions', count(pool.count), `${short(pool.vsize)} vB`),
      figure('Fees', coins(pool.fees), pool.live ? null : 'no mempool is followed now'),
      figure('Lowest rate taken', [rate(pool.min_rate), el('span', { class: 'unit' }, ' sat/vB')]),
      figure('Memory', bytes(pool.memory))));
    replace(water, el('div', { class: 'water-head' }, el('h2', null, 'The next blocks, if they were made now'),
      el('p', null, `Estimates: ${rate(estimate(1))} sat/vB for the next block, ${rate(estimate(3))} within three, `
        + `${rate(estimate(6))} within six, ${rate(estimate(144))} within a day`)), projected(pool));
    replace(fees, feeChart(pool));
    if (!inUse(last)) replace(last, recent(pool, 15));
  };
  await draw();
  const redraw = () => draw().catch((error) => {
    if (error.name !== 'AbortError') throw error;
  });
  on('tip', redraw, signal);
  let waits = 0;
  on('mempool', () => {
    waits ||= setTimeout(() => {
      waits = 0;
      redraw();
    }, CALM);
  }, signal);
  signal.addEventListener('abort', () => clearTimeout(waits));
}
