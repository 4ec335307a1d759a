// Everything that shows counts and scores: bars, kinds, table, inputs, code, live region.

const KINDS = [
  ["tp", "TP", "true positive", "in truth and prediction"],
  ["fp", "FP", "false positive", "only in the prediction"],
  ["fn", "FN", "false negative", "only in the truth"],
  ["tn", "TN", "true negative", "in neither"],
];
const BARS = [
  { key: "iou", name: "IoU", kinds: ["tp", "fn", "fp"], whole: "union", good: (n) => n.tp },
  { key: "pixel_accuracy", name: "Pixel accuracy", kinds: ["tp", "tn", "fn", "fp"], whole: "total", good: (n) => n.tp + n.tn },
];
const FIELDS = [["x", "left"], ["y", "top"], ["w", "width"], ["h", "height"]];

const readout = {
  timer: 0,

  build() {
    this.buildBars();
    this.buildKinds();
    this.buildScores();
    this.buildInputs();
    new ResizeObserver(() => this.drawBars(store.numbers())).observe(byId("bars"));
  },

  buildBars() {
    this.bars = BARS.map((bar) => {
      const row = html("div", { class: "bar", id: `bar-${bar.key}` }, "", byId("bars"));
      const words = html("div", {}, "", row);
      html("div", { class: "name" }, bar.name, words);
      const sum = html("div", { class: "sum" }, "", words);
      const picture = svg("svg", { "aria-hidden": "true" }, row);
      const pieces = bar.kinds.map((kind) => svg("rect", { class: `piece kind-${kind}`, y: 0, height: "70%" }, picture));
      const measureLine = svg("line", { class: "measure", x1: 0, y1: "88%", y2: "88%" }, picture);
      return { ...bar, svg: picture, pieces, measureLine, value: html("b", {}, "", sum), fraction: html("span", {}, "", sum) };
    });
  },

  drawBars(numbers) {
    for (const bar of this.bars) {
      const width = bar.svg.clientWidth;
      let x = 0;
      bar.pieces.forEach((piece, i) => {
        const length = (width * numbers[bar.kinds[i]]) / numbers[bar.whole];
        piece.setAttribute("x", x);
        piece.setAttribute("width", length);
        x += length;
      });
      bar.measureLine.setAttribute("x2", width * numbers[bar.key]);
      bar.value.textContent = percentText(numbers[bar.key]);
      bar.fraction.textContent = fractionText(bar.good(numbers), numbers[bar.whole]);
    }
  },

  buildKinds() {
    this.kinds = KINDS.map(([kind, short, name, words]) => {
      const row = html("div", {}, "", byId("kinds"));
      const swatch = svg("svg", { "aria-hidden": "true", viewBox: "0 0 42 42" }, row);
      svg("rect", { class: `kind-${kind}`, x: 0.5, y: 0.5, width: 41, height: 41, rx: 4 }, swatch);
      const term = html("dt", {}, "", row);
      html("b", {}, `${short} ${name}`, term);
      term.append(`: ${words}`);
      return [kind, html("dd", { id: `count-${kind}` }, "", row)];
    });
  },

  buildScores() {
    this.scores = SCORES.map((score, index) => {
      const row = html("tr", index === 0 ? { class: "first" } : {}, "", byId("scores"));
      const head = html("th", { scope: "row" }, score.name, row);
      html("span", { class: "formula" }, score.formula, head);
      const fraction = html("td", { class: "fraction", id: `fraction-${score.key}` }, "", row);
      return { ...score, cell: fraction, value: html("td", { class: "value", id: `value-${score.key}` }, "", row) };
    });
  },

  buildInputs() {
    this.inputs = [];
    for (const which of ["truth", "pred", "frame"]) {
      const row = html("tr", {}, "", byId("exact"));
      html("th", { scope: "row" }, NAMES[which] ?? "frame", row);
      for (const [key, word] of FIELDS) {
        const cell = html("td", {}, "", row);
        if (which === "frame" && (key === "x" || key === "y")) continue;
        const input = html("input", {
          type: "number", step: 1, inputmode: "numeric", id: `${which}-${key}`,
          "aria-label": `${NAMES[which] ?? "frame"} ${word}`,
        }, "", cell);
        input.addEventListener("change", () => this.typed(which, key, input));
        this.inputs.push({ which, key, input });
      }
    }
  },

  typed(which, key, input) {
    const value = Math.round(input.valueAsNumber);
    const { size } = store.state;
    if (!Number.isFinite(value)) this.drawInputs();
    else if (which === "frame") store.setSize({ ...size, [key]: value });
    else store.setRect(which, fitRect({ ...store.shown()[which], [key]: value }, size));
  },

  drawInputs() {
    const { size } = store.state;
    const shown = { ...store.shown(), frame: size };
    for (const { which, key, input } of this.inputs) {
      const side = key === "x" || key === "w" ? "w" : "h";
      input.min = which === "frame" ? LIMITS.least : key === side ? 1 : 0;
      input.max = which === "frame" ? LIMITS[key] : key === side ? size[side] : size[side] - shown[which][side];
      input.value = shown[which][key];
    }
  },

  draw(settled) {
    const numbers = store.numbers();
    this.drawBars(numbers);
    for (const [kind, cell] of this.kinds) cell.textContent = countText(numbers[kind]);
    for (const score of this.scores) {
      score.cell.textContent = score.fraction(numbers);
      score.value.textContent = equalsText(numbers[score.key]);
    }
    this.drawInputs();
    byId("python").textContent = this.python();
    if (settled) this.announce(numbers);
  },

  python() {
    const { truth, pred } = store.shown();
    const { size } = store.state;
    const slice = (r) => `${r.y}:${r.y + r.h}, ${r.x}:${r.x + r.w}`;
    return [
      "import numpy as np",
      "import segiou",
      "",
      `truth = np.zeros((${size.h}, ${size.w}), dtype=np.uint8)`,
      "pred = np.zeros_like(truth)",
      `truth[${slice(truth)}] = 1`,
      `pred[${slice(pred)}] = 1`,
      "",
      "cm = segiou.ConfusionMatrix(2)",
      "cm.update(truth, pred)",
      `iou = cm.iou()[1]  # ${store.numbers().iou}`,
    ].join("\n");
  },

  // Announced when the gesture ends: a number for every pixel of a drag would drown everything else.
  announce(n) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      byId("live").textContent =
        `IoU ${percentText(n.iou)}, ${n.tp} of ${n.union}. Pixel accuracy ${percentText(n.pixel_accuracy)}, ` +
        `${n.tp + n.tn} of ${n.total}. TP ${n.tp}, FP ${n.fp}, FN ${n.fn}, TN ${n.tn}. ` +
        `Dice ${percentText(n.dice)}, precision ${percentText(n.precision)}, recall ${percentText(n.recall)}, ` +
        `generalised IoU ${percentText(n.giou)}.`;
    }, 500);
  },
};
