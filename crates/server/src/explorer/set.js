// The unspent set: its figures now, and over time out of the index `stats`.

import { ask, on } from './api.js';
import { chart } from './chart.js';
import { el, facts, figure, figures, inUse, replace, section, skeleton } from './dom.js';
import { bytes, coins, count, hash, short } from './format.js';
import { title } from './title.js';

export async function set(main, _params, signal) {
  title('Unspent set');
  const top = el('div', { class: 'set-top' }, skeleton(1, 76));
  const over = el('div', { class: 'set-over' }, skeleton(2, 300));
  replace(main, el('h1', null, 'Unspent set'), top, over);
  const draw = async () => {
    const s = await ask('set?points=240', signal);
    replace(top, figures(figure('Unspent outputs', count(s.txouts)),
      figure('Worth', s.total_amount == null ? '–' : coins(s.total_amount)),
      figure('Size by Core’s measure', bytes(s.bogosize)),
      figure('Counted to', s.counted_to == null ? '–' : count(s.counted_to), s.counted_to == null ? 'the index stats is off' : null)),
    s.muhash && facts([['MuHash', hash(s.muhash)]]));
    const points = (field) => s.points.map((p) => ({ height: p.height, time: p.time, value: p[field] }));
    replace(over, s.points.length < 2
      ? el('p', { class: 'notice' }, 'Figures over time need the index stats: varve index add stats.')
      : [section('Outputs over time', { id: 'outs' }, chart({ name: 'Unspent outputs', points: points('txouts'), show: count, axis: short })),
        section('Value over time', { id: 'worth' }, chart({ name: 'Total amount', points: points('total_amount'), show: coins }))]);
  };
  await draw();
  on('tip', () => !inUse(over) && draw().catch((error) => {
    if (error.name !== 'AbortError') throw error;
  }), signal);
}
