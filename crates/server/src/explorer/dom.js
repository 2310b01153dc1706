// Elements out of plain values. Text is always set as text: nothing that comes from the chain is
// ever read as markup.

const SVG = 'http://www.w3.org/2000/svg';

// el('a', { class: 'hash', href: '/' }, 'text', child, …). A property that is a function is an
// event listener; one that is null or false is left out. Children may be nested lists.
export function el(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

// The same for a part of a drawing.
export function svg(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(node, properties, children) {
  for (const [key, value] of Object.entries(properties ?? {})) {
    if (value == null || value === false) continue;
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (key === 'style') Object.entries(value).forEach(([k, v]) => node.style.setProperty(k, v));
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child != null && child !== false) node.append(child);
  }
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

// Whether the keyboard's focus is inside: what is in use is not drawn again under the user's hands.
export const inUse = (node) => node.contains(document.activeElement);

// A number, a name below it, and perhaps a remark.
export function figure(name, value, remark) {
  return el('div', { class: 'figure' },
    el('dt', null, name), el('dd', null, value, remark && el('small', null, remark)));
}

export function figures(...list) {
  return el('dl', { class: 'figures' }, list);
}

// Rows of name and value.
export function facts(rows) {
  return el('dl', { class: 'facts' }, rows.filter(Boolean).map(([name, ...value]) =>
    el('div', null, el('dt', null, name), el('dd', null, value))));
}

export function section(title, { id, lead, aside } = {}, ...children) {
  return el('section', { class: 'part', 'aria-labelledby': id },
    el('div', { class: 'part-head' },
      el('h2', { id }, title), aside, lead && el('p', { class: 'lead' }, lead)),
    children);
}

// Grey bars of the size of what is to come, so that nothing moves when it does.
export function skeleton(rows, height = 44) {
  return el('div', { class: 'skeleton', 'aria-hidden': 'true' },
    Array.from({ length: rows }, () => el('div', { style: { height: `${height}px` } })));
}

export function table(caption, heads, rows, options = {}) {
  const head = heads.map((h) => (typeof h === 'string' ? { name: h } : h));
  const cell = (value, at) => el('td', { class: head[at].class, 'data-name': head[at].name }, value);
  return el('div', { class: 'scroll', tabindex: options.wide ? 0 : null },
    el('table', { class: options.class }, el('caption', { class: 'sr' }, caption),
      el('thead', null, el('tr', null, head.map((h) =>
        el('th', { scope: 'col', class: h.class }, h.name)))),
      el('tbody', null, rows.map((row) => el('tr', null, row.map(cell))))));
}
