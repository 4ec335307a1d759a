// "Make one class rarer": the same model on a truth in which a class has another share.

const LINES = [
  { key: "accuracy", name: "pixel accuracy", class: "accuracy" },
  { key: "iou", name: "IoU of the class", class: "iou" },
  { key: "mean", name: "mean IoU", class: "nothing" },
];
// Steps of the slider; the last is a ten-thousandth of the share.
const DECADES = 4;

const rarer = {
  build() {
    this.svg = byId("rarer-chart");
    this.slider = byId("rarer-share");
    this.axes = svg("g", { "aria-hidden": "true" }, this.svg);
    this.cursor = svg("line", { class: "cursor" }, this.svg);
    this.paths = LINES.map((line) => svg("path", { class: `curve ${line.class}` }, this.svg));
    this.values = LINES.map((line) => {
      const item = html("span", {}, "", byId("rarer-key"));
      const sample = svg("svg", { "aria-hidden": "true", viewBox: "0 0 30 14" }, item);
      svg("path", { class: `curve ${line.class}`, d: "M1 7H29" }, sample);
      item.append(line.name);
      return html("b", { id: `rarer-${line.key}` }, "", item);
    });
    this.select = byId("rarer-class");
    masks.names.forEach((name, c) => html("option", { value: c }, name, this.select));
    this.select.addEventListener("change", () => this.draw());
    this.slider.addEventListener("input", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.svg);
  },

  start() {
    // The rarest class that is found and has false positives: the IoU of others does not change.
    const { share, recall, iou } = masks.scores();
    const falling = share.map((s, c) => [s, c]).filter(([, c]) => iou[c] > 0 && iou[c] < recall[c]);
    this.select.value = falling.length ? falling.sort((a, b) => a[0] - b[0])[0][1] : 0;
  },

  at(index, share) {
    const scores = masks.scores(masks.rows(index, share));
    return { share, accuracy: scores.accuracy, iou: scores.iou[index], mean: scores.meanIou.value };
  },

  draw() {
    const index = Number(this.select.value);
    const now = masks.scores().share[index];
    const possible = now > 0 && now < 1;
    byId("rarer-remark").textContent = "";
    this.slider.disabled = !possible;
    if (!possible) {
      for (const value of this.values) value.textContent = "";
      for (const path of this.paths) path.setAttribute("d", "");
      byId("rarer-remark").textContent = `The truth has ${now > 0 ? "only" : "no"} ${masks.names[index]} pixels. Paint some${now > 0 ? " of another class" : ""}.`;
      return;
    }
    const share = (step) => now * 10 ** (-DECADES * (1 - step / 100));
    const shown = this.at(index, share(Number(this.slider.value)));
    this.shown = shown;
    this.drawChart(Array.from({ length: 51 }, (_, i) => this.at(index, share(2 * i))));
    LINES.forEach((line, k) => (this.values[k].textContent = percentText(shown[line.key])));
    const name = masks.names[index];
    byId("rarer-text").textContent = `${name} is ${percentText(shown.share)} of the truth`;
    this.slider.setAttribute("aria-valuetext", `${percentText(shown.share)} of the truth, IoU ${percentText(shown.iou)}`);
    const there = this.at(index, now);
    byId("rarer-remark").textContent = shown.share === now
      ? `Move the slider: the model stays the same, ${name} becomes rare.`
      : `The model's error rates on ${name} are unchanged. Its IoU goes from ${percentText(there.iou)} to ` +
        `${percentText(shown.iou)}${shown.iou < there.iou ? ", because false positives weigh more" : ""}; pixel ` +
        `accuracy goes from ${percentText(there.accuracy)} to ${percentText(shown.accuracy)}.`;
  },

  drawChart(samples) {
    const width = this.svg.clientWidth || 320;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${PLOT.height}`);
    this.svg.style.height = `${PLOT.height}px`;
    const x = (step) => PLOT.left + (step / 100) * (width - PLOT.left - PLOT.right);
    const y = (value) => PLOT.top + (1 - value) * (PLOT.height - PLOT.top - PLOT.bottom);
    drawAxes(this.axes, x(0), x(100), y);
    LINES.forEach((line, k) => {
      const corners = samples.map((sample, i) => `${x(2 * i).toFixed(1)} ${y(sample[line.key]).toFixed(1)}`);
      this.paths[k].setAttribute("d", `M${corners.join("L")}`);
    });
    const at = x(Number(this.slider.value));
    for (const [name, value] of [["x1", at], ["x2", at], ["y1", y(1)], ["y2", y(0)]]) this.cursor.setAttribute(name, value);
  },
};

const views = {
  build() {
    this.buttons = { rectangles: byId("to-rectangles"), brush: byId("to-brush") };
    for (const [view, button] of Object.entries(this.buttons)) {
      button.addEventListener("click", () => {
        this.show(view);
        try {
          history.replaceState(null, "", view === "brush" ? "#brush" : toFragment(store.state));
        } catch {
          // An embedded page has no address.
        }
      });
    }
    addEventListener("hashchange", () => this.follow());
    this.follow();
  },

  follow() {
    this.show(location.hash === "#brush" || (masks.given && !location.hash) ? "brush" : "rectangles");
  },

  show(view) {
    for (const [name, button] of Object.entries(this.buttons)) {
      byId(`view-${name}`).hidden = name !== view;
      button.setAttribute("aria-pressed", String(name === view));
    }
    if (view === "brush") brush.draw();
    else store.notify(false);
  },
};
