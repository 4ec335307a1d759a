// The view with the brush: two canvases, tools, and the effect of every stroke on the scores.

const SIDES = { truth: "Truth", pred: "Prediction" };
const AS_TRUE = "as-true";
// With more classes, only those that occur have a row.
const CLASSES_SHOWN = 20;

const brush = {
  stroke: null,
  chosen: 0,
  timer: 0,

  build() {
    this.size = Math.min(masks.width, masks.height) / 14;
    this.chosen = Math.min(masks.none - 1, masks.given ? 0 : 4);
    byId("brush-opening").textContent = masks.given
      ? "These are your masks. Paint over either of them and watch the scores move; nothing is saved."
      : "A street in six classes. Paint over the truth or the prediction and watch the scores move. " +
        "The missed pole costs little accuracy but a lot of mean IoU.";
    this.rgb = [...masks.colors, "#d6d3cb"].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    this.noClass = [255, 0, 170];
    this.sides = Object.fromEntries(Object.keys(SIDES).map((which) => [which, this.buildSide(which)]));
    this.buildPalette();
    this.buildTools();
    this.buildTable();
    this.draw();
  },

  buildSide(which) {
    const figure = html("figure", { class: "mask" }, "", byId("canvases"));
    html("figcaption", { id: `caption-${which}` }, SIDES[which], figure);
    const holder = html("div", { class: "holder" }, "", figure);
    const canvas = html("canvas", {
      id: `paint-${which}`, width: masks.width, height: masks.height, tabindex: 0, role: "application",
      "aria-roledescription": "mask to paint", "aria-describedby": "brush-keys",
    }, "", holder);
    const ring = html("span", { class: "ring", "aria-hidden": "true", hidden: "" }, "", holder);
    const context = canvas.getContext("2d");
    const picture = context.createImageData(masks.width, masks.height);
    const side = { canvas, ring, context, picture, at: [masks.width >> 1, masks.height >> 1] };
    canvas.addEventListener("pointerdown", (event) => this.begin(event, which));
    canvas.addEventListener("pointermove", (event) => this.follow(event, which));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, () => this.end());
    canvas.addEventListener("pointerleave", () => (ring.hidden = document.activeElement !== canvas));
    canvas.addEventListener("keydown", (event) => this.key(event, which));
    canvas.addEventListener("focus", () => this.showRing(which));
    canvas.addEventListener("blur", () => (ring.hidden = true));
    return side;
  },

  buildPalette() {
    const add = (value, text, color, key) => {
      const label = html("label", { class: "swatch" }, "", byId("palette"));
      const radio = html("input", { type: "radio", name: "class", value }, "", label);
      const square = svg("svg", { class: "chip", viewBox: "0 0 16 16", "aria-hidden": "true" }, label);
      if (color) svg("rect", { width: 16, height: 16, rx: 3, fill: color }, square);
      else svg("path", { d: "M3 8.5l3.5 3.5 6.5-8", class: "tick" }, square);
      html("span", {}, text, label);
      if (key) html("kbd", {}, key, label);
      radio.addEventListener("change", () => (this.chosen = value === AS_TRUE ? null : value));
      return radio;
    };
    // If there are many classes, those that occur come first.
    const { iou } = masks.scores();
    this.order = masks.names.map((_, c) => c).sort((a, b) => Number.isNaN(iou[a]) - Number.isNaN(iou[b]) || a - b);
    this.radios = [];
    this.order.forEach((c, k) => (this.radios[c] = add(c, masks.names[c], masks.colors[c], k < 9 ? String(k + 1) : "")));
    this.radios.push(add(AS_TRUE, "correct (prediction)", null, "0"));
    this.choose(this.chosen);
  },

  choose(code) {
    const radio = code === null ? this.radios.at(-1) : this.radios[code];
    if (!radio) return;
    radio.checked = true;
    this.chosen = code;
  },

  buildTools() {
    const slider = byId("brush-size");
    slider.max = 2 * Math.ceil(Math.min(masks.width, masks.height) / 4) + 1;
    slider.addEventListener("input", () => this.resize(Number(slider.value)));
    this.resize(this.size);
    byId("brush-undo").addEventListener("click", () => this.change(() => masks.undo()));
    byId("brush-reset").addEventListener("click", () => this.change(() => masks.reset()));
    byId("brush-wrong").addEventListener("change", () => this.paintPart());
    for (const box of document.querySelectorAll("#view-brush input, #view-brush select")) {
      // Some browsers restore earlier input; the page starts from its defaults.
      if (box.type === "checkbox") box.checked = box.defaultChecked;
    }
    document.addEventListener("keydown", (event) => {
      if (!byId("view-brush").hidden && (event.ctrlKey || event.metaKey) && event.key === "z") {
        event.preventDefault();
        this.change(() => masks.undo());
      }
    });
  },

  resize(size) {
    // Odd, so that a pixel is in the middle.
    this.size = clamp(2 * Math.round((size - 1) / 2) + 1, 1, Number(byId("brush-size").max));
    byId("brush-size").value = this.size;
    byId("brush-size-text").textContent = `${this.size} pixel${this.size === 1 ? "" : "s"} wide`;
  },

  buildTable() {
    this.rows = masks.names.map((name, c) => {
      const row = html("tr", { id: `class-${c}` }, "", byId("class-scores"));
      const head = html("th", { scope: "row" }, "", row);
      const chip = svg("svg", { class: "chip", viewBox: "0 0 16 16", "aria-hidden": "true" }, head);
      svg("rect", { width: 16, height: 16, rx: 3, fill: masks.colors[c] }, chip);
      head.append(masks.include[c] ? name : `${name} (not in the mean)`);
      return ["share", "recall", "iou"].map((key) => html("td", { "data-key": key }, "", row));
    });
  },

  change(action) {
    this.end();
    action();
    this.draw();
    this.say();
  },

  place(event, which) {
    const box = this.sides[which].canvas.getBoundingClientRect();
    return [
      clamp(Math.floor(((event.clientX - box.left) / box.width) * masks.width), 0, masks.width - 1),
      clamp(Math.floor(((event.clientY - box.top) / box.height) * masks.height), 0, masks.height - 1),
    ];
  },

  begin(event, which) {
    if (event.button !== 0 || this.stroke) return;
    event.preventDefault();
    this.sides[which].canvas.setPointerCapture(event.pointerId);
    this.sides[which].canvas.focus({ preventScroll: true });
    this.stroke = { which, pointer: event.pointerId, at: this.place(event, which) };
    masks.beginStroke(which);
    this.lineTo(this.stroke.at);
  },

  follow(event, which) {
    this.sides[which].at = this.place(event, which);
    this.showRing(which);
    if (this.stroke?.pointer === event.pointerId) this.lineTo(this.place(event, which));
  },

  // Discs along the way, so that a quick stroke has no gaps.
  lineTo([x, y]) {
    const [fromX, fromY] = this.stroke.at;
    const steps = Math.max(1, Math.abs(x - fromX), Math.abs(y - fromY));
    for (let step = 0; step <= steps; step += 1) {
      const part = step / steps;
      masks.dab(Math.round(fromX + part * (x - fromX)), Math.round(fromY + part * (y - fromY)), this.size, this.chosen);
    }
    this.stroke.at = [x, y];
    this.touch(Math.min(x, fromX), Math.min(y, fromY), Math.max(x, fromX), Math.max(y, fromY));
    // The stroke may end, and draw all, before the frame.
    if (!this.waiting) this.waiting = requestAnimationFrame(() => this.touched && this.draw(this.touched));
  },

  // Changes since the last drawing; large masks are not redrawn for every dab.
  touch(left, top, right, bottom) {
    const old = this.touched ?? [masks.width, masks.height, 0, 0];
    this.touched = [
      Math.max(0, Math.min(old[0], left - this.size)), Math.max(0, Math.min(old[1], top - this.size)),
      Math.min(masks.width, Math.max(old[2], right + this.size + 1)),
      Math.min(masks.height, Math.max(old[3], bottom + this.size + 1)),
    ];
  },

  end() {
    if (!this.stroke) return;
    this.stroke = null;
    this.draw(this.touched ?? [0, 0, 0, 0]);
    this.say();
  },

  key(event, which) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const side = this.sides[which];
    const step = ARROWS[event.key];
    if (step) {
      const far = event.shiftKey ? this.size : 1;
      side.at = [
        clamp(side.at[0] + far * step[0], 0, masks.width - 1),
        clamp(side.at[1] + far * step[1], 0, masks.height - 1),
      ];
    } else if (event.key === " " || event.key === "Enter") {
      masks.beginStroke(which);
      masks.dab(...side.at, this.size, this.chosen);
      this.draw();
      this.say();
    } else if (event.key === "[" || event.key === "]") this.resize(this.size + (event.key === "]" ? 2 : -2));
    else if (/^\d$/.test(event.key)) this.choose(event.key === "0" ? null : this.order[Number(event.key) - 1]);
    else return;
    event.preventDefault();
    this.showRing(which);
  },

  showRing(which) {
    const { canvas, ring, at } = this.sides[which];
    const scale = canvas.clientWidth / masks.width;
    const width = Math.max(6, this.size * scale);
    ring.hidden = false;
    ring.style.width = ring.style.height = `${width}px`;
    ring.style.left = `${(at[0] + 0.5) * scale - width / 2}px`;
    ring.style.top = `${(at[1] + 0.5) * scale - width / 2}px`;
  },

  draw(part) {
    this.waiting = 0;
    this.touched = null;
    this.paintPart(part);
    const scores = masks.scores();
    for (const [key, value, words] of [
      ["accuracy", scores.accuracy, `${countText(scores.right)} of ${countText(scores.total)} pixels are correct`],
      ["mean-iou", scores.meanIou.value, `mean over ${scores.meanIou.classes} of ${masks.none} classes`],
    ]) {
      byId(`brush-${key}`).textContent = percentText(value);
      byId(`brush-${key}-words`).textContent = words;
      byId(`brush-${key}-bar`).setAttribute("width", `${Number.isNaN(value) ? 0 : 100 * value}%`);
    }
    const { accuracy, meanAccuracy, meanIou } = scores;
    byId("brush-gap").textContent = Number.isNaN(accuracy - meanIou.value) ? "" :
      `The gap is ${pointsText(accuracy - meanIou.value)} points: ${pointsText(accuracy - meanAccuracy.value)} because ` +
      `accuracy weighs pixels and mean IoU weighs classes, ${pointsText(meanAccuracy.value - meanIou.value)} because ` +
      "accuracy does not penalise false positives.";
    this.rows.forEach((cells, c) => {
      cells[0].parentNode.hidden = Number.isNaN(scores.iou[c]) && masks.none > CLASSES_SHOWN;
      for (const cell of cells) cell.textContent = percentText(scores[cell.dataset.key][c]);
    });
    // The curve waits until the gesture ends.
    if (!this.stroke) rarer.draw();
  },

  paintPart([left, top, right, bottom] = [0, 0, masks.width, masks.height]) {
    const wrong = byId("brush-wrong").checked;
    for (const [which, side] of Object.entries(this.sides)) {
      const codes = masks[which];
      const { data } = side.picture;
      for (let y = top; y < bottom; y += 1) {
        for (let i = y * masks.width + left; i < y * masks.width + right; i += 1) {
          const ignored = masks.truth[i] === masks.none;
          const color = ignored ? this.rgb[masks.none] : codes[i] === masks.none ? this.noClass : this.rgb[codes[i]];
          // Correct pixels fade and errors keep their colour.
          const fade = wrong && !ignored && masks.truth[i] === masks.pred[i] ? 0.86 : 0;
          for (let k = 0; k < 3; k += 1) data[4 * i + k] = color[k] + fade * (250 - color[k]);
          data[4 * i + 3] = 255;
        }
      }
      if (right > left) side.context.putImageData(side.picture, 0, 0, left, top, right - left, bottom - top);
      side.canvas.setAttribute("aria-label", `${SIDES[which]}, ${masks.width} by ${masks.height} pixels`);
    }
  },

  // Announced when the gesture ends.
  say() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { accuracy, meanIou } = masks.scores();
      byId("live").textContent = `Pixel accuracy ${percentText(accuracy)}, mean IoU ${percentText(meanIou.value)}.`;
    }, 500);
  },
};
