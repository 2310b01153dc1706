// Questions to the server, and what it reports by itself.
//
// One stream of events serves the whole page. `on('tip', f)` calls f with every new tip; a page
// that is left stops listening by its signal.

const ROOT = '/api/varve/v1';
const bus = new EventTarget();

export const state = { tip: null, network: null };

export class Failed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, signal) {
  let answer;
  try {
    answer = await fetch(`${ROOT}/${path}`, { signal, headers: { accept: 'application/json' } });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failed(0, 'The server does not answer.');
  }
  let body = null;
  try {
    body = await answer.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
  }
  if (!answer.ok) throw new Failed(answer.status, body?.error ?? `The server says ${answer.status}.`);
  if (body?.tip) seen(body.tip);
  return body;
}

function seen(tip) {
  if (state.tip?.hash === tip.hash) return;
  state.tip = tip;
  bus.dispatchEvent(new CustomEvent('seen', { detail: tip }));
}

export function on(name, listener, signal) {
  bus.addEventListener(name, (event) => listener(event.detail), { signal });
}

const report = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));

export function listen() {
  const stream = new EventSource(`${ROOT}/events`);
  const read = (event) => JSON.parse(event.data);
  stream.addEventListener('open', () => report('link', 'live'));
  stream.addEventListener('error', () => report('link', 'lost'));
  stream.addEventListener('tip', (event) => {
    const { tip } = read(event);
    seen(tip);
    report('tip', tip);
  });
  stream.addEventListener('mempool', (event) => report('mempool', read(event)));
  // A page that is left must not hold one of the browser's few connections; one that is come back
  // to listens again.
  addEventListener('pagehide', () => stream.close(), { once: true });
  addEventListener('pageshow', (event) => event.persisted && listen(), { once: true });
}
