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

// Digits as Python writes them: a tie goes to the even digit, and the minus is true.
function fixed(value, digits = 2) {
  const size = Math.abs(value);
  if (size === Infinity) return value < 0 ? "\u2212∞" : "∞";
  let text = size.toFixed(digits);
  const tied = (2 ** (digits + 1) * size) % 2 === 1;
  if (tied && text.at(-1) % 2) text = (size - 10 ** -digits / 2).toFixed(digits);
  return value < 0 && Number(text) ? `\u2212${text}` : text;
}

// Two decimals, and only exact values read 0 or 100 %.
function percent(share, undefined = "–") {
  if (!Number.isFinite(share)) return undefined;
  if (share >= 0.99995 && share < 1) return ">99.99 %";
  if (share !== 0 && Math.abs(share) < 0.00005) return share > 0 ? "<0.01 %" : ">\u22120.01 %";
  return `${fixed(100 * share)} %`;
}
