const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
};
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const fill = at.classList.contains('stratum') && at.querySelector('.fill');
    const found = fill ? rgba(getComputedStyle(fill).fill) : rgba(getComputedStyle(at).backgroundColor);
    if (found[3] > 200) return found;
    if (at.classList.contains('water')) return rgba(getComputedStyle(at).getPropertyValue('--water-2'));
  }
  return [255, 255, 255];
};
const faint = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !node.getClientRects().length || node.closest('svg, .sr, .skip, noscript, script')) continue;
  const style = getComputedStyle(node);
  const [one, other] = [light(rgba(style.color)), light(ground(node))].sort((a, b) => b - a);
  const ratio = (one + 0.05) / (other + 0.05);
  const large = parseFloat(style.fontSize) >= 24;
  if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${node.className}: ${walk.currentNode.data.slice(0, 40)}`);
}
return [...new Set(faint)].slice(0, 5);
