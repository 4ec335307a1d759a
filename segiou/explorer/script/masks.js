// A truth and a prediction of several classes, pixel by pixel: counts that follow every stroke.

const SCENE = {
  names: ["sky", "building", "road", "car", "pole", "person"],
  colors: ["#7db7dd", "#a98b76", "#6e6e78", "#d9a441", "#5b3f8c", "#c2453f"],
  size: [72, 44],
  // Class, left, top, width, height; later ones are on top.
  truth: [[0, 0, 0, 72, 44], [1, 0, 8, 30, 22], [1, 46, 4, 26, 26], [2, 0, 28, 72, 16], [3, 14, 23, 20, 10], [4, 41, 10, 1, 22], [5, 52, 22, 3, 10]],
  pred: [[0, 0, 0, 72, 44], [1, 0, 9, 32, 21], [1, 44, 5, 28, 25], [2, 0, 29, 72, 15], [3, 12, 24, 23, 9], [5, 53, 25, 2, 6]],
};
const STROKES_KEPT = 60;

const masks = {
  strokes: [],

  build() {
    const given = byId("masks");
    const source = given ? JSON.parse(given.textContent) : SCENE;
    Object.assign(this, { names: source.names, colors: source.colors });
    this.include = source.include ?? source.names.map(() => true);
    [this.width, this.height] = source.size;
    this.given = Boolean(given);
    // A class is its index; in the truth one more means ignored, in the prediction no class.
    this.none = this.names.length;
    const read = given ? (runs) => this.unrolled(runs) : (boxes) => this.drawn(boxes);
    this.start = { truth: read(source.truth), pred: read(source.pred) };
    this.reset();
  },

  unrolled(runs) {
    const codes = new Uint16Array(this.width * this.height);
    let at = 0;
    for (let i = 0; i < runs.length; i += 2) {
      codes.fill(runs[i], at, at + runs[i + 1]);
      at += runs[i + 1];
    }
    return codes;
  },

  drawn(boxes) {
    const codes = new Uint16Array(this.width * this.height);
    for (const [code, x, y, w, h] of boxes) {
      for (let row = y; row < y + h; row += 1) codes.fill(code, row * this.width + x, row * this.width + x + w);
    }
    return codes;
  },

  reset() {
    this.truth = this.start.truth.slice();
    this.pred = this.start.pred.slice();
    this.strokes = [];
    this.count();
  },

  count() {
    const side = this.none + 1;
    this.table = new Float64Array(side * side);
    for (let i = 0; i < this.truth.length; i += 1) this.table[this.truth[i] * side + this.pred[i]] += 1;
  },

  // One pixel changes one cell of the table into another.
  put(which, index, code) {
    const side = this.none + 1;
    this.table[this.truth[index] * side + this.pred[index]] -= 1;
    this[which][index] = code;
    this.table[this.truth[index] * side + this.pred[index]] += 1;
  },

  beginStroke(which) {
    this.strokes.push({ which, changed: new Map() });
    if (this.strokes.length > STROKES_KEPT) this.strokes.shift();
  },

  // A disc of the brush's diameter, which is odd; `code` is null if pixels take the class of the truth.
  dab(x, y, diameter, code) {
    const { which, changed } = this.strokes.at(-1);
    const radius = diameter / 2;
    const reach = Math.ceil(radius);
    for (let row = Math.max(0, y - reach); row <= Math.min(this.height - 1, y + reach); row += 1) {
      for (let column = Math.max(0, x - reach); column <= Math.min(this.width - 1, x + reach); column += 1) {
        if (Math.hypot(row - y, column - x) > radius) continue;
        const index = row * this.width + column;
        const next = code ?? this.truth[index];
        // Ignored pixels stay ignored: they belong to the masks, not to the classes.
        if (this[which][index] === next || this.truth[index] === this.none) continue;
        if (!changed.has(index)) changed.set(index, this[which][index]);
        this.put(which, index, next);
      }
    }
  },

  undo() {
    const last = this.strokes.pop();
    if (last) for (const [index, code] of last.changed) this.put(last.which, index, code);
  },

  // Rows of the truth, unchanged or with another share of one class at the same rates.
  rows(index = -1, share = 0) {
    const C = this.none;
    const rows = Array.from({ length: C }, (_, t) => Array.from(this.table.subarray(t * (C + 1), (t + 1) * (C + 1))));
    if (index < 0) return rows;
    const sums = rows.map((row) => row.reduce((a, b) => a + b, 0));
    const others = sums.reduce((a, b) => a + b, 0) - sums[index];
    return rows.map((row, t) => {
      const weight = t === index ? share : ((1 - share) * sums[t]) / others;
      return row.map((n) => (sums[t] ? (weight * n) / sums[t] : 0));
    });
  },

  scores(rows = this.rows()) {
    const truth = rows.map((row) => row.reduce((a, b) => a + b, 0));
    const pred = rows.map((_, p) => rows.reduce((sum, row) => sum + row[p], 0));
    const hit = rows.map((row, c) => row[c]);
    const total = truth.reduce((a, b) => a + b, 0);
    const iou = hit.map((n, c) => ratio(n, truth[c] + pred[c] - n));
    const recall = hit.map((n, c) => ratio(n, truth[c]));
    const mean = (values) => {
      const taken = values.filter((value, c) => this.include[c] && !Number.isNaN(value));
      return { value: ratio(taken.reduce((a, b) => a + b, 0), taken.length), classes: taken.length };
    };
    return {
      total, iou, recall,
      share: truth.map((n) => ratio(n, total)),
      right: hit.reduce((a, b) => a + b, 0),
      accuracy: ratio(hit.reduce((a, b) => a + b, 0), total),
      meanIou: mean(iou), meanAccuracy: mean(recall),
    };
  },
};
