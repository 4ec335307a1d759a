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

const setStyle = (node, properties) => Object.assign(node.style, properties);

const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");

// A number of pixels or voxels.
const measured = (n) => `${grouped(n)} ${n === 1 ? data.unit.replace(/s$/, "") : data.unit}`;

// Formats as the page does: two decimals, and only exact values read 0 or 100 %.
function percent(share) {
  if (!Number.isFinite(share)) return "–";
  if (share >= 0.99995 && share < 1) return ">99.99 %";
  return share > 0 && share < 0.00005 ? "<0.01 %" : `${(100 * share).toFixed(2)} %`;
}

// The mark of a column that can be sorted.
function sortMark() {
  const mark = svg("svg", { class: "arrow", viewBox: "0 0 10 14", "aria-hidden": "true" });
  mark.append(svg("path", { class: "up", d: "M2 5.5 5 2.5l3 3" }), svg("path", { class: "down", d: "m2 8.5 3 3 3-3" }));
  return mark;
}

function say(text) {
  byId("live").textContent = text;
}
