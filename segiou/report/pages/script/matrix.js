// The heat map: views, a cell under the pointer or the keyboard, and one class looked at closely.

const matrix = {
  build() {
    this.map = byId("heat-map");
    this.section = byId("confusions");
    const { matrix: rows, unassigned } = data.confusion;
    const { names } = data;
    this.names = names;
    this.columns = unassigned ? [...names, "no class"] : names;
    this.rows = rows.map((row, t) => (unassigned ? [...row, unassigned[t]] : row));
    this.rowSums = this.rows.map((row) => row.reduce((a, b) => a + b, 0));
    this.columnSums = this.columns.map((_, p) => this.rows.reduce((sum, row) => sum + row[p], 0));
    this.cell = Number(this.map.dataset.cell);
    this.at = null;
    byId("heat-views").addEventListener("change", (event) => {
      this.section.dataset.view = event.target.value;
    });
    byId("heat-large")?.addEventListener("change", (event) => this.enlarge(event.target.checked));
    this.map.addEventListener("pointermove", (event) => this.point(event));
    this.map.addEventListener("pointerdown", (event) => this.point(event));
    this.map.addEventListener("keydown", (event) => this.walk(event));
    if (data.images) this.map.addEventListener("click", () => this.follow());
    byId("lens").addEventListener("change", (event) => this.look(event.target.value));
    byId("lens").value = data.confusion.lens ?? "";
    this.look(byId("lens").value);
  },

  enlarge(large) {
    byId("heat").classList.toggle("large", large);
    if (large) this.map.setAttribute("width", Math.max(900, 13 * this.columns.length + 260));
    else this.map.removeAttribute("width");
    // A width attribute alone loses against the style sheet.
    this.map.style.width = large ? `${this.map.getAttribute("width")}px` : "";
  },

  point(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(
      this.map.getScreenCTM().inverse(),
    );
    const [p, t] = [Math.floor(place.x / this.cell), Math.floor(place.y / this.cell)];
    if (t >= 0 && p >= 0 && t < this.rows.length && p < this.columns.length) this.show(t, p);
  },

  // To the images that have the pixels of a cell.
  follow() {
    if (this.at) location.hash = this.address(...this.at);
  },

  address(t, p) {
    return address.of({ t: this.names[t], p: this.columns[p] });
  },

  walk(event) {
    if (event.key === "Enter" && data.images) this.follow();
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!(event.key in step)) return;
    event.preventDefault();
    const [down, right] = step[event.key];
    const [t, p] = this.at ?? [0, 0];
    const within = (place, length) => Math.min(Math.max(place, 0), length - 1);
    if (this.at === null) this.show(0, 0);
    else this.show(within(t + down, this.rows.length), within(p + right, this.columns.length));
  },

  show(t, p) {
    if (this.at && this.at[0] === t && this.at[1] === p) return;
    this.at = [t, p];
    const size = this.cell;
    const [width, height] = [size * this.columns.length, size * this.rows.length];
    const place = (id, x, y, w, h) =>
      setAll(byId(id), { x, y, width: w, height: h, visibility: "visible" });
    place("heat-row", 0, t * size, width, size);
    place("heat-column", p * size, 0, size, height);
    place("heat-cell", p * size, t * size, size, size);
    this.read(t, p);
  },

  read(t, p) {
    const pixels = this.rows[t][p];
    const readout = byId("heat-readout");
    const [truth, pred] = [this.names[t], this.columns[p]].map(called);
    readout.replaceChildren();
    const line = html("div");
    if (t === p) line.append(html("b", {}, truth), ": correct");
    else line.append(html("b", {}, truth), " predicted as ", html("b", {}, pred));
    readout.append(
      line,
      html("div", {}, measured(pixels)),
      html("div", {}, `${percent(pixels / this.rowSums[t])} of true ${truth}`),
      html("div", {}, `${percent(pixels / this.columnSums[p])} of predicted ${pred}`),
    );
    if (data.images && pixels) readout.append(html("a", { href: this.address(t, p) }, `see the ${imageNoun}s (Enter)`));
  },

  look(value) {
    byId("lens-lists").hidden = value === "";
    if (value === "") return;
    const index = Number(value);
    for (const name of all(".lens-name")) name.textContent = called(this.names[index]);
    const row = this.rows[index].map((n, p) => [this.columns[p], n, p === index, this.address(index, p)]);
    const column = this.rows.map((cells, t) => [this.names[t], cells[index], t === index, this.address(t, index)]);
    this.list(byId("lens-row"), row, this.rowSums[index]);
    this.list(byId("lens-column"), column, this.columnSums[index]);
  },

  list(target, cells, sum) {
    const filled = cells.filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
    const shown = filled.slice(0, 8);
    const rest = filled.slice(8).reduce((total, [, n]) => total + n, 0);
    if (rest) shown.push([filled.length === 9 ? "1 other" : `${filled.length - 8} others`, rest, false]);
    target.replaceChildren();
    for (const [name, n, right, href] of shown) {
      const line = html("li");
      const track = svg("svg", { "aria-hidden": "true" });
      const kind = right ? "right" : "wrong";
      track.append(svg("rect", { class: `bar ${kind}`, width: `${(100 * n) / sum}%`, height: "100%" }));
      const named = data.images && href ? html("a", { href }, name) : html("span", {}, name);
      line.append(named, track, html("span", { class: "of" }, percent(n / sum)));
      target.append(line);
    }
    if (!shown.length) target.append(html("li", {}, "nothing"));
  },
};
