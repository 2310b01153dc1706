// Search with completion.
//
// `/` focuses the field, arrows choose, Enter opens, Escape closes. What is typed is asked for
// after a short pause; an answer that is overtaken is dropped.

import { ask } from './api.js';
import { el, replace } from './dom.js';

const PAUSE = 90;
const names = [
  ['mempool', '/mempool', 'unconfirmed transactions'], ['forks', '/forks', 'branches of the chain'],
  ['set', '/set', 'unspent outputs over time'], ['sediment', '/sediment', 'the database itself'],
  ['blocks', '/blocks', 'all blocks, newest first'],
];

export function search(go) {
  const field = document.getElementById('q');
  const list = document.getElementById('hits');
  let hits = [];
  let chosen = -1;
  let asking = new AbortController();
  let timer = 0;

  const close = () => {
    list.hidden = true;
    hits = [];
    chosen = -1;
    field.setAttribute('aria-expanded', 'false');
    field.removeAttribute('aria-activedescendant');
  };

  const choose = (at) => {
    chosen = at;
    [...list.querySelectorAll('[role=option]')].forEach((option, i) => {
      option.setAttribute('aria-selected', String(i === at));
      if (i === at) option.scrollIntoView({ block: 'nearest' });
    });
    if (at >= 0) field.setAttribute('aria-activedescendant', `hit-${at}`);
    else field.removeAttribute('aria-activedescendant');
  };

  const open = (hit) => {
    close();
    field.value = '';
    field.blur();
    go(hit.path);
  };

  const draw = (found, query) => {
    hits = found;
    list.hidden = false;
    field.setAttribute('aria-expanded', 'true');
    replace(list, found.length
      ? found.map((hit, i) => el('div', {
        id: `hit-${i}`, role: 'option', class: 'hit', 'aria-selected': 'false',
        mousedown: (event) => {
          event.preventDefault();
          open(hit);
        },
        mousemove: () => chosen !== i && choose(i),
      }, el('span', { class: 'hit-kind' }, hit.kind), el('span', { class: 'hit-name' }, hit.label),
      el('span', { class: 'hit-more' }, hit.detail ?? '')))
      : el('p', { class: 'hit-none' }, `Nothing is known by “${query.slice(0, 80)}”.`));
    choose(found.length ? 0 : -1);
  };

  const find = async (query) => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const pages = names.filter(([name]) => query.length > 1 && name.startsWith(query.toLowerCase()))
      .map(([label, path, detail]) => ({ kind: 'page', label, path, detail }));
    try {
      const answer = await ask(`search?q=${encodeURIComponent(query)}`, signal);
      if (!signal.aborted) draw([...answer.results, ...pages], query);
    } catch (error) {
      if (error.name !== 'AbortError') draw(pages, query);
    }
  };

  field.addEventListener('input', () => {
    clearTimeout(timer);
    const query = field.value.trim();
    if (!query) {
      asking.abort();
      close();
      return;
    }
    timer = setTimeout(() => find(query), PAUSE);
  });

  field.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length) {
      event.preventDefault();
      choose((chosen + step + hits.length) % hits.length);
    } else if (event.key === 'Escape') {
      if (list.hidden) field.blur();
      close();
    }
  });

  field.form.addEventListener('submit', async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    const query = field.value.trim();
    if (!query) return;
    if (list.hidden || !hits.length) await find(query);
    const hit = hits[Math.max(0, chosen)];
    if (hit) open(hit);
  });

  field.addEventListener('blur', close);
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}
