// "Shrink the object, keep the frame": the slider and its chart, which share one axis.

const SMALLEST = 5;
const CURVES = [
  { key: "pixel_accuracy", name: "pixel accuracy", class: "accuracy" },
  { key: "iou", name: "IoU", class: "iou" },
  { key: "nothing", name: "accuracy of predicting nothing", class: "nothing" },
];
// Left and right are the reach of the slider's thumb (24 px wide), and room for "100 %".
const PLOT = { left: 46, right: 12, top: 12, bottom: 8, height: 210 };

// Lines and per cent of an axis from 0 to 1.
function drawAxes(group, left, right, y) {
  group.replaceChildren();
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    svg("line", { class: value ? "axis" : "axis base", x1: left, x2: right, y1: y(value), y2: y(value) }, group);
    if (value % 0.5) continue;
    const text = svg("text", { class: "axis-text", x: left - 5, y: y(value) + 4, "text-anchor": "end" }, group);
    text.textContent = `${100 * value} %`;
  }
}

const shrink = {
  playing: 0,

  build() {
    this.svg = byId("chart");
    this.slider = byId("scale");
    this.axes = svg("g", { "aria-hidden": "true" }, this.svg);
    this.cursor = svg("line", { class: "cursor" }, this.svg);
    this.curves = CURVES.map((curve) => {
      const path = svg("path", { class: `curve ${curve.class}` }, this.svg);
      return { ...curve, path };
    });
    this.points = {
      pixel_accuracy: svg("circle", { class: "point accuracy", r: 6 }, this.svg),
      iou: svg("rect", { class: "point iou", width: 12, height: 12, rx: 1 }, this.svg),
    };
    this.buildKey();
    this.slider.addEventListener("input", () => this.slide(false));
    this.slider.addEventListener("change", () => this.slide(true));
    for (const radio of document.getElementsByName("mistake")) {
      radio.addEventListener("change", () => store.change({ mistake: radio.value }));
    }
    byId("play").addEventListener("click", () => (this.playing ? this.stop() : this.play()));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  },

  buildKey() {
    this.values = CURVES.map((curve) => {
      const item = html("span", {}, "", byId("chart-key"));
      const sample = svg("svg", { viewBox: "0 0 30 14", "aria-hidden": "true" }, item);
      svg("path", { class: `curve ${curve.class}`, d: "M0 7H30" }, sample);
      if (curve.key === "pixel_accuracy") svg("circle", { class: "point accuracy", cx: 15, cy: 7, r: 5 }, sample);
      if (curve.key === "iou") svg("rect", { class: "point iou", x: 10, y: 2, width: 10, height: 10, rx: 1 }, sample);
      item.append(curve.name);
      return [curve.key, html("b", {}, "", item)];
    });
  },

  slide(settled) {
    this.stop();
    store.change({ scale: Number(this.slider.value) }, settled);
  },

  // One step for each per cent, on whole pixels: the steps in the curves are the pixels.
  samples() {
    const { drawn, mistake, size } = store.state;
    const all = [];
    for (let percent = SMALLEST; percent <= 100; percent += 1) {
      const { truth, pred } = shrunkPair(drawn, percent, mistake, size);
      all.push({ percent, numbers: measure(truth, pred, size) });
    }
    return all;
  },

  draw() {
    const width = this.svg.clientWidth || 320;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${PLOT.height}`);
    this.svg.style.height = `${PLOT.height}px`;
    const x = (percent) => PLOT.left + ((percent - SMALLEST) / (100 - SMALLEST)) * (width - PLOT.left - PLOT.right);
    const y = (value) => PLOT.top + (1 - value) * (PLOT.height - PLOT.top - PLOT.bottom);
    drawAxes(this.axes, x(SMALLEST), x(100), y);
    const samples = this.samples();
    for (const { key, path } of this.curves) {
      const corners = samples.map((s) => `${x(s.percent).toFixed(1)} ${y(s.numbers[key]).toFixed(1)}`);
      path.setAttribute("d", `M${corners.join("L")}`);
    }
    this.drawCursor(x, y, store.numbers());
    this.drawWords(store.numbers());
  },

  drawCursor(x, y, numbers) {
    const at = x(store.state.scale);
    for (const [name, value] of [["x1", at], ["x2", at], ["y1", y(1)], ["y2", PLOT.height]]) this.cursor.setAttribute(name, value);
    this.points.pixel_accuracy.setAttribute("cx", at);
    this.points.pixel_accuracy.setAttribute("cy", y(numbers.pixel_accuracy));
    this.points.iou.setAttribute("x", at - 6);
    this.points.iou.setAttribute("y", y(numbers.iou) - 6);
  },

  drawWords(numbers) {
    const { scale, mistake } = store.state;
    this.slider.value = scale;
    this.slider.setAttribute(
      "aria-valuetext",
      `${scale} %, IoU ${percentText(numbers.iou)}, pixel accuracy ${percentText(numbers.pixel_accuracy)}`,
    );
    for (const radio of document.getElementsByName("mistake")) radio.checked = radio.value === mistake;
    for (const [key, node] of this.values) node.textContent = percentText(numbers[key]);
    byId("shrink-remark").textContent = this.remark(numbers).replaceAll(" %", "\u00a0%");
    this.svg.setAttribute(
      "aria-label",
      `Chart against the size of the object. At ${scale} %: pixel accuracy ` +
        `${percentText(numbers.pixel_accuracy)}, IoU ${percentText(numbers.iou)}, ` +
        `accuracy of predicting nothing ${percentText(numbers.nothing)}.`,
    );
  },

  remark(n) {
    const share = percentText(1 - n.nothing);
    const start = `At ${store.state.scale} % of what you drew, the object covers ${share} of the frame. `;
    if (n.iou === 0 && n.fp > 0) {
      return `${start}The prediction misses it entirely, and still ${percentText(n.pixel_accuracy)} of the pixels are correct.`;
    }
    if (n.iou === 1) return `${start}The prediction is exact, so both scores are 100 %, at any size.`;
    if (n.pixel_accuracy < n.nothing) {
      return `${start}By accuracy, this is worse than predicting nothing (${percentText(n.nothing)}). Its IoU is ${percentText(n.iou)}; predicting nothing would score 0 %.`;
    }
    return `${start}Accuracy is ${percentText(n.pixel_accuracy)}; predicting nothing would score ${percentText(n.nothing)} with IoU 0 %. This prediction has IoU ${percentText(n.iou)}.`;
  },

  // Runs from the full size down; in large steps for those who asked for less motion.
  play() {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const [step, pause] = calm ? [19, 900] : [1, 32];
    byId("play").textContent = "Stop";
    let scale = 100;
    this.playing = setInterval(() => {
      store.change({ scale }, false);
      scale -= step;
      if (scale < SMALLEST) this.stop();
    }, pause);
  },

  stop() {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = 0;
    byId("play").textContent = "Play";
    store.change({});
  },
};
