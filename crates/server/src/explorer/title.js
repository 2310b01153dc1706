// What the window and the history list call the page.

export function title(text) {
  document.title = text ? `${text} · Varve` : 'Varve';
}
