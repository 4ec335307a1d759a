// Helpers of all pages: elements, and numbers as segiou writes them.

const byId = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const setStyle = (node, properties) => Object.assign(node.style, properties);

function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function html(name, attributes = {}, text = "", parent = null) {
  const node = setAll(document.createElement(name), attributes);
  if (text !== "") node.textContent = text;
  parent?.append(node);
  return node;
}

function svg(name, attributes = {}, parent = null) {
  const node = setAll(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
  parent?.append(node);
  return node;
}

const grouped = (n, blank = "\u202f") => String(n).replace(/\B(?=(\d{3})+$)/g, blank);

// Two decimals, and only exact values read 0 or 100 %.
function percent(share, undefined = "–") {
  if (!Number.isFinite(share)) return undefined;
  const sign = share < 0 ? "\u2212" : "";
  const size = Math.abs(share);
  if (size >= 0.99995 && size < 1) return `>${sign}99.99 %`;
  return size > 0 && size < 0.00005 ? `<${sign}0.01 %` : `${sign}${(100 * size).toFixed(2)} %`;
}
