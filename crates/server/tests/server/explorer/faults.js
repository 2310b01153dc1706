const faults = [];
const named = (node) => (node.getAttribute('aria-label') || node.textContent || node.title || '').trim();
const seen = (node) => node.getClientRects().length && !node.closest('[aria-hidden=true]');
for (const node of document.querySelectorAll('a, button, summary, [role=img], [role=group]')) {
  if (seen(node) && !named(node)) faults.push('no name: ' + node.outerHTML.slice(0, 120));
}
for (const node of document.querySelectorAll('input')) {
  if (!node.labels?.length && !node.getAttribute('aria-label')) faults.push('no label: ' + node.id);
}
for (const node of document.querySelectorAll('table')) {
  if (!node.caption) faults.push('no caption');
}
for (const name of ['header', 'nav', 'main', 'footer', '[role=search]', '[aria-live]']) {
  if (!document.querySelector(name)) faults.push('no landmark: ' + name);
}
if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
for (const id of new Set(ids)) {
  if (ids.filter((other) => other === id).length > 1) faults.push('twice: ' + id);
}
for (const node of document.querySelectorAll('[aria-labelledby]')) {
  if (!document.getElementById(node.getAttribute('aria-labelledby'))) faults.push('named by nothing');
}
if (document.documentElement.scrollWidth > innerWidth) {
  faults.push(`wider than the window: ${document.documentElement.scrollWidth}`);
}
return faults;
