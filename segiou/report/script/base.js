// Small helpers, and the data of the page.

const byId = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const data = JSON.parse(byId("data").textContent);

const SVG = "http://www.w3.org/2000/svg";

function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function html(name, attributes = {}, text = "") {
  const node = setAll(document.createElement(name), attributes);
  node.textContent = text;
  return node;
}

function svg(name, attributes = {}) {
  return setAll(document.createElementNS(SVG, name), attributes);
}

const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const number = (value) => (value === null || Number.isNaN(value) ? "–" : value.toFixed(4));

function percent(share) {
  if (!Number.isFinite(share)) return "–";
  if (share >= 0.9995 && share < 1) return ">99.9 %";
  return share && share < 0.001 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

function say(text) {
  byId("live").textContent = text;
}
