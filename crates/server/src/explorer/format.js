// How figures, hashes, amounts and times are shown.

import { el } from './dom.js';

const whole = new Intl.NumberFormat('en');
const COIN = 100_000_000;

// What a coin is called: the network decides, once it is known.
export const unit = { name: 'BTC' };

export const count = (n) => (n == null ? '–' : whole.format(n));
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export function bytes(n) {
  if (n == null) return '–';
  const names = ['B', 'kB', 'MB', 'GB', 'TB'];
  let at = 0;
  while (n >= 1000 && at < names.length - 1) {
    n /= 1000;
    at += 1;
  }
  return `${at === 0 ? n : n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0)} ${names[at]}`;
}

export function short(n) {
  if (n == null) return '–';
  if (n < 10_000) return whole.format(n);
  const [size, name] = n < 1e6 ? [1e3, 'k'] : n < 1e9 ? [1e6, 'M'] : [1e9, 'G'];
  const many = n / size;
  return `${many.toFixed(many < 10 ? 2 : many < 100 ? 1 : 0)} ${name}`;
}

export const rate = (r) =>
  (r == null ? '–' : r >= 100 ? Math.round(r).toString() : r >= 10 ? r.toFixed(1) : r.toFixed(2));

// Satoshi as coins, all eight decimals, the zeros at the end quieter.
export function amount(sat, { sign = false } = {}) {
  if (sat == null) return el('span', { class: 'amount' }, '–');
  const minus = sat < 0;
  const size = Math.abs(sat);
  const coins = whole.format(Math.floor(size / COIN));
  const rest = String(size % COIN).padStart(8, '0');
  const kept = rest.replace(/0+$/, '');
  const mark = minus ? '−' : sign ? '+' : '';
  const quiet = rest.slice(kept.length);
  return el('span', { class: 'amount' },
    `${mark}${coins}.${kept}`, quiet && el('span', { class: 'quiet' }, quiet),
    el('span', { class: 'unit' }, ` ${unit.name}`));
}

export const coins = (sat) =>
  (sat == null ? '–' : `${(sat / COIN).toLocaleString('en', { maximumFractionDigits: 8 })} ${unit.name}`);

// The same rounded to four digits behind the point, for rows that are compared at a glance.
export const about = (sat) => (sat == null ? '–' : `${(sat / COIN).toFixed(4)} ${unit.name}`);

export function ago(seconds, now = Date.now() / 1000) {
  const past = Math.max(0, Math.round(now - seconds));
  const steps = [[86400 * 365.25, 'y'], [86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [length, name] of steps) {
    if (past >= length) return `${Math.floor(past / length)} ${name} ago`;
  }
  return past < 5 ? 'just now' : `${past} s ago`;
}

export function date(seconds) {
  const text = new Date(seconds * 1000).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

// A moment as its age, which goes on, with the date in its title.
export function time(seconds) {
  if (seconds == null) return '–';
  const iso = new Date(seconds * 1000).toISOString();
  return el('time', { datetime: iso, title: `${date(seconds)} UTC`, 'data-since': seconds },
    ago(seconds));
}

export function keepTimes() {
  setInterval(() => {
    for (const node of document.querySelectorAll('time[data-since]')) {
      const text = ago(Number(node.dataset.since));
      if (node.textContent !== text) node.textContent = text;
    }
  }, 1000);
}

// A hash: its head gives way, its last eight characters stay, so the middle is what is left out.
export function hash(text, { href, copy = true, whole: all = false, label } = {}) {
  const body = all
    ? el('span', { class: 'hash all' }, text)
    : el('span', { class: 'hash' }, el('span', { class: 'head' }, text.slice(0, -8)),
      el('span', { class: 'tail' }, text.slice(-8)));
  const shown = href ? el('a', { href, class: 'hash-link', title: text, 'aria-label': label ? `${label} ${text}` : null }, body) : body;
  return el('span', { class: 'hashed' }, shown, copy && copyButton(text));
}

export function copyButton(text) {
  const button = el('button', {
    type: 'button', class: 'copy', 'aria-label': `Copy ${text.slice(0, 12)}…`,
    click: async (event) => {
      event.preventDefault();
      try {
        await navigator.clipboard.writeText(text);
        button.dataset.done = 'yes';
        document.getElementById('news').textContent = 'Copied';
      } catch {
        document.getElementById('news').textContent = 'The browser does not allow copying';
      }
      setTimeout(() => delete button.dataset.done, 1200);
    },
  });
  return button;
}

export const kinds = {
  P2PK: 'public key', P2PKH: 'key hash', P2SH: 'script hash', P2WPKH: 'SegWit key hash',
  P2WSH: 'SegWit script hash', P2TR: 'Taproot', P2A: 'anchor', OP_RETURN: 'data',
};
