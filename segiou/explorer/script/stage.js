// The canvas: the frame of pixels, the four kinds as fills, two outlines and the handles.

const PAD = 13;
const NAMES = { truth: "truth", pred: "prediction" };
const EDGES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];
function place(node, box) {
  node.setAttribute("x", box.x);
  node.setAttribute("y", box.y);
  node.setAttribute("width", Math.max(0, box.w));
  node.setAttribute("height", Math.max(0, box.h));
}

function buildShape(which, parent) {
  const group = svg("g", {
    class: `shape ${which}`, id: `shape-${which}`, "data-which": which, tabindex: "0", role: "application",
    "aria-roledescription": "movable rectangle", "aria-describedby": "keys",
  }, parent);
  const shape = { group };
  for (const part of ["grip", "halo", "line"]) shape[part] = svg("rect", { class: part }, group);
  return shape;
}

function buildTag(which, parent) {
  const node = svg("g", { class: `tag ${which}`, "data-which": which, "aria-hidden": "true" }, parent);
  const plate = svg("rect", { rx: 4, height: 19 }, node);
  const label = svg("text", { x: 7, y: 13.5 }, node);
  label.textContent = NAMES[which];
  const width = Math.ceil(label.getComputedTextLength()) + 14;
  plate.setAttribute("width", width);
  return { node, width };
}

function buildHandles(parent) {
  const group = svg("g", { "aria-hidden": "true" }, parent);
  const handles = EDGES.map((edges) => {
    const node = svg("g", { class: `handle ${edges}`, "data-edges": edges }, group);
    svg("circle", { class: "spot" }, node);
    svg("rect", { class: "knob", x: -5, y: -5, width: 10, height: 10, rx: 2 }, node);
    return { edges, node };
  });
  return { group, handles };
}

const stage = {
  svg: byId("stage"),
  cell: 1,
  left: PAD,
  top: PAD,
  reach: matchMedia("(pointer: coarse)").matches ? 17 : 11,

  build() {
    const layer = (name) => svg("rect", { class: name }, this.svg);
    this.frame = layer("frame");
    this.fills = { fn: layer("kind-fn"), fp: layer("kind-fp"), tp: layer("kind-tp") };
    this.grid = svg("path", { class: "grid" }, this.svg);
    this.hull = layer("hull");
    this.shapes = { truth: buildShape("truth", this.svg), pred: buildShape("pred", this.svg) };
    this.tags = { truth: buildTag("truth", this.svg), pred: buildTag("pred", this.svg) };
    this.grips = buildHandles(this.svg);
    new ResizeObserver(() => this.draw()).observe(this.svg);
    // If the figure stays in view, targets of scrolling must stop below it.
    new ResizeObserver(([entry]) => {
      document.documentElement.style.setProperty("--figure", `${entry.borderBoxSize[0].blockSize}px`);
    }).observe(this.svg.parentElement);
  },

  box(rect) {
    const { cell, left, top } = this;
    return { x: left + rect.x * cell, y: top + rect.y * cell, w: rect.w * cell, h: rect.h * cell };
  },

  draw() {
    const { size } = store.state;
    this.fitTo(size);
    const { truth, pred } = store.shown();
    place(this.frame, this.box({ x: 0, y: 0, ...size }));
    this.drawFills(truth, pred);
    this.drawGrid(size);
    place(this.hull, this.box(hullOf(truth, pred)));
    this.drawShape("truth", truth);
    this.drawShape("pred", pred);
    this.drawHandles(store.active, store.active === "truth" ? truth : pred);
  },

  fitTo(size) {
    const width = this.svg.clientWidth || 320;
    const stays = matchMedia("(max-width: 61.99rem) and (min-height: 38rem)").matches;
    const tallest = clamp(stays ? innerHeight * 0.32 : innerHeight - 350, 160, 560);
    this.cell = Math.min((width - 2 * PAD) / size.w, tallest / size.h);
    this.left = (width - this.cell * size.w) / 2;
    const height = this.cell * size.h + 2 * PAD;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.style.height = `${height}px`;
  },

  // The overlap is opaque and on top, so each fill may be the whole rectangle.
  drawFills(truth, pred) {
    place(this.fills.fn, this.box(truth));
    place(this.fills.fp, this.box(pred));
    const x = Math.max(truth.x, pred.x);
    const y = Math.max(truth.y, pred.y);
    const w = overlapLength(truth.x, truth.w, pred.x, pred.w);
    const h = overlapLength(truth.y, truth.h, pred.y, pred.h);
    place(this.fills.tp, this.box({ x, y, w: h ? w : 0, h: w ? h : 0 }));
  },

  drawGrid(size) {
    const step = this.cell >= 5 ? 1 : 8;
    const end = this.box({ x: size.w, y: size.h, w: 0, h: 0 });
    let path = "";
    for (let x = step; x < size.w; x += step) path += `M${this.left + x * this.cell} ${this.top}V${end.y}`;
    for (let y = step; y < size.h; y += step) path += `M${this.left} ${this.top + y * this.cell}H${end.x}`;
    this.grid.setAttribute("d", path);
    byId("grid-note").textContent = step === 1 ? "" : `A grid line every ${step} pixels.`;
  },

  drawShape(which, rect) {
    const shape = this.shapes[which];
    const box = this.box(rect);
    const grow = Math.max(0, (24 - Math.min(box.w, box.h)) / 2);
    place(shape.grip, { x: box.x - grow, y: box.y - grow, w: box.w + 2 * grow, h: box.h + 2 * grow });
    place(shape.halo, box);
    place(shape.line, box);
    const at = this.tagPlace(which, box);
    this.tags[which].node.setAttribute("transform", `translate(${at.x} ${at.y})`);
    shape.group.setAttribute(
      "aria-label",
      `${NAMES[which]}, ${rect.w} by ${rect.h} pixels, left ${rect.x}, top ${rect.y}`,
    );
  },

  // Truth is labelled above its left end, the prediction below its right end: they rarely meet.
  tagPlace(which, box) {
    const { width } = this.tags[which];
    const { size } = store.state;
    const out = which === store.active ? this.outward(box.h) : 0;
    const [right, bottom] = [this.left + size.w * this.cell, this.top + size.h * this.cell];
    const wanted = which === "truth"
      ? { x: box.x + 12, y: box.y - 25 - out }
      : { x: box.x + box.w - width - 12, y: box.y + box.h + 6 + out };
    if (which === "truth" && wanted.y < this.top - 8) wanted.y = box.y + 8;
    if (which === "pred" && wanted.y + 19 > bottom + 8) wanted.y = box.y + box.h - 27;
    return { x: clamp(wanted.x, this.left + 2, right - width - 2), y: wanted.y };
  },

  // Handles of a small rectangle step outward and leave its inside free to be dragged.
  outward(side) {
    return clamp((2 * this.reach + 8 - side) / 2, 0, this.reach);
  },

  drawHandles(which, rect) {
    const box = this.box(rect);
    this.grips.group.setAttribute("class", `handles ${which}`);
    const [ox, oy] = [this.outward(box.w), this.outward(box.h)];
    for (const { edges, node } of this.grips.handles) {
      const x = edges.includes("w") ? box.x - ox : edges.includes("e") ? box.x + box.w + ox : box.x + box.w / 2;
      const y = edges.includes("n") ? box.y - oy : edges.includes("s") ? box.y + box.h + oy : box.y + box.h / 2;
      node.setAttribute("transform", `translate(${x} ${y})`);
      node.firstChild.setAttribute("r", this.reach);
      const side = edges === "n" || edges === "s" ? box.w : box.h;
      const crowded = edges.length === 1 && side < 4 * this.reach;
      node.setAttribute("display", crowded ? "none" : "inline");
    }
  },
};
