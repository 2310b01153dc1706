// The frame: which page an address means, moving between pages, colours, and the tip.
//
// A page is a function (main, params, signal) that draws into `main` and goes on listening until
// `signal` is aborted, which happens when another page is opened.

import { el, replace } from './dom.js';
import { ask, listen, on, state } from './api.js';
import { count, keepTimes, unit } from './format.js';
import { title } from './title.js';
import { search } from './search.js';
import { home } from './home.js';

const later = (file, name) => async (...given) => (await import(`./${file}.js`))[name](...given);

const pages = [
  [/^\/$/, 'home', home],
  [/^\/blocks$/, 'blocks', later('block', 'blocks')],
  [/^\/block\/(?<id>[0-9a-f]{64}|\d{1,10})$/i, 'blocks', later('block', 'block')],
  [/^\/tx\/(?<txid>[0-9a-f]{64})$/i, 'tx', later('tx', 'tx')],
  [/^\/(?:address|script)\/(?<id>[0-9a-z]{14,90})$/i, 'address', later('address', 'address')],
  [/^\/mempool$/, 'mempool', later('mempool', 'mempool')],
  [/^\/forks$/, 'forks', later('forks', 'forks')],
  [/^\/set$/, 'set', later('set', 'set')],
  [/^\/sediment$/, 'sediment', later('sediment', 'sediment')],
];

const main = document.getElementById('main');
let leaving = new AbortController();

function go(path) {
  history.pushState(null, '', path);
  show(true);
}

async function show(moved) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const path = decodeURI(location.pathname).replace(/(.)\/$/, '$1');
  const found = pages.map(([shape, name, page]) => ({ match: shape.exec(path), name, page }))
    .find(({ match }) => match);
  for (const link of document.querySelectorAll('.nav a')) {
    const here = link.getAttribute('href') === (found ? `/${found.name}` : '');
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (moved) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  try {
    if (!found) throw new Error('There is no such page.');
    main.dataset.page = found.name;
    await found.page(main, found.match.groups ?? {}, signal);
    main.dataset.ready = path;
  } catch (error) {
    if (error.name === 'AbortError' || signal.aborted) return;
    failed(error);
    main.dataset.ready = path;
  }
}

function failed(error) {
  title('Not found');
  replace(main, el('section', { class: 'notice' },
    el('h1', null, error.status === 404 || !error.status ? 'Nothing here' : 'That did not work'),
    el('p', null, error.message),
    el('p', null, el('a', { href: '/' }, 'To the start page'))));
}

// Links within the explorer do not load the page again.
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey
    || event.altKey) return;
  const link = event.target.closest?.('a[href]');
  if (!link || link.target || link.origin !== location.origin) return;
  if (link.pathname.startsWith('/api')) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
});
addEventListener('popstate', () => show(false));

// Colours: as the system has them, light, dark.
const button = document.getElementById('theme');
const root = document.documentElement;
const words = { auto: 'as the system has them', light: 'light', dark: 'dark' };
const label = () =>
  button.setAttribute('aria-label', `Colours: ${words[root.dataset.theme ?? 'auto']}`);
button.addEventListener('click', () => {
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
  const order = isDark ? ['auto', 'light', 'dark'] : ['auto', 'dark', 'light'];
  const next = order[(order.indexOf(root.dataset.theme ?? 'auto') + 1) % order.length];
  if (next === 'auto') delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    if (next === 'auto') localStorage.removeItem('theme');
    else localStorage.setItem('theme', next);
  } catch {
    // The choice then lasts as long as the page.
  }
  label();
});
label();

// The tip, in the footer for the eye and in a live region for the ear.
const tipText = document.getElementById('tip');
const link = document.getElementById('state');
on('seen', (tip) => {
  replace(tipText, `Tip ${count(tip.height)} `, el('code', null, tip.hash.slice(-8)));
});
on('tip', (tip) => {
  document.getElementById('news').textContent = `New block ${count(tip.height)}`;
});
on('link', (word) => {
  link.dataset.state = word;
  link.title = word === 'live' ? 'Live' : 'The connection is lost; trying again';
});

search(go);
keepTimes();
ask('status').then((status) => {
  state.network = status.network;
  if (status.network.startsWith('bsv')) unit.name = 'BSV';
  root.dataset.network = status.network;
}).catch(() => {});
show(false).then(() => setTimeout(listen, 0));

