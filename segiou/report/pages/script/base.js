// The data of the page, and functions of all its scripts.

const data = JSON.parse(byId("data").textContent);

const imageNoun = data.unit === "voxels" ? "case" : "image";

// A number of pixels or voxels.
const measured = (n) => `${grouped(n)} ${n === 1 ? data.unit.replace(/s$/, "") : data.unit}`;

// The mark of a column that can be sorted.
function sortMark() {
  const mark = svg("svg", { class: "arrow", viewBox: "0 0 10 14", "aria-hidden": "true" });
  mark.append(svg("path", { class: "up", d: "M2 5.5 5 2.5l3 3" }), svg("path", { class: "down", d: "m2 8.5 3 3 3-3" }));
  return mark;
}

// A text whose words from right to left do not drag the numbers after them along.
const LEFTWARD = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:[ ._-]+[\u0590-\u08ff]+)*/g;
const isolated = (text) => text.replace(LEFTWARD, "\u2068$&\u2069");

function say(text) {
  byId("live").textContent = text;
}
