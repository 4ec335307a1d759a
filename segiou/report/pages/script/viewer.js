// One image: its pictures side by side or one at a time, within the page or as large as the window.

// Three pictures fit in a row from this width each, in CSS pixels.
const LEAST = 150;

const viewer = {
  build() {
    this.dialog = byId("viewer");
    this.holder = byId("viewer-panels");
    this.models = images.models;
    this.number = null;
    this.front = 0;
    this.dialog.setAttribute("open", "");
    panels.build(this.holder);
    objects.build();
    scores.build();
    const on = (id, use) => byId(id).addEventListener("click", use);
    on("viewer-previous", () => images.walk(-1));
    on("viewer-next", () => images.walk(1));
    on("viewer-enlarge", () => this.enlarge(!this.large));
    on("zoom-in", () => panels.zoom(1.5));
    on("zoom-out", () => panels.zoom(1 / 1.5));
    on("zoom-reset", () => panels.reset());
    on("zoom-to", () => panels.show(fullestPlace(this.planes[0], this.question)));
    byId("viewer-mode").addEventListener("change", () => this.arrange());
    byId("viewer-content").addEventListener("change", (event) => this.flip(Number(event.target.value)));
    byId("viewer-opacity").addEventListener("input", () => this.draw());
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    this.dialog.addEventListener("close", () => this.dialog.open || this.enlarge(false));
    for (const kind of ["pointermove", "pointerdown"]) {
      this.holder.addEventListener(kind, (event) => this.point(event));
    }
    addEventListener("resize", () => this.frames && this.arrange());
  },

  get large() {
    return this.dialog.matches(":modal");
  },

  enlarge(large) {
    if (large !== this.large) this.dialog.close();
    if (large && !this.large) this.dialog.showModal();
    if (!large) this.dialog.setAttribute("open", "");
    byId("viewer-enlarge").textContent = large ? "Close" : "Enlarge";
    byId("viewer-enlarge").focus({ preventScroll: true });
    if (this.frames) this.arrange();
  },

  get flipping() {
    return this.dialog.querySelector("[name=viewer-mode]:checked").value === "one";
  },

  async show(number, question) {
    const moved = number !== this.number;
    [this.number, this.question] = [number, question];
    // Until its own pictures are decoded, those below are of the image before.
    this.dialog.ariaBusy = String(moved);
    byId("viewer-title").replaceChildren(nameOf(images.ids[number]));
    byId("viewer-facts").textContent = images.factsOf(number);
    const picture = await pictures.of(number);
    const found = await scores.read(picture, question);
    if (this.number !== number || this.question !== question) return;
    this.dialog.ariaBusy = "false";
    if (moved) panels.reset();
    this.picture = { ...picture, levels: found.levels };
    scores.offer(found);
    this.drawKey();
    byId("viewer-problem").textContent = picture.problem;
    byId("viewer-text").textContent = isolated(picture.text ?? "");
    byId("opacity-field").hidden = !picture.grey;
    this.place = isVolume(picture) ? largestError(picture, question) : null;
    byId("viewer-size").textContent = this.sizeOf(picture);
    byId("objects-field").hidden = !picture.objects?.length;
    this.slide();
    this.fill();
  },

  sizeOf(picture) {
    const { full, depth, height, width } = picture;
    if (!full) return "";
    const solid = isVolume(picture);
    const shown = (solid ? [depth, height, width] : [height, width]).reverse().join(" × ");
    const whole = [...full].reverse().join(" × ");
    const size = `${whole} ${solid ? "voxels" : "pixels"}${shown === whole ? "" : `, shown as ${shown}`}`;
    if (!solid || data.unit !== "voxels") return size; // arrays have any orientation
    const patient = "Radiological view: the patient's right is on the left. Slices are numbered from the top, front and right.";
    return `${size}. ${patient}`;
  },

  // Shows the scores of another class.
  async showScores() {
    const [{ number }, { chosen }] = [this, scores];
    const found = await scores.read(this.picture, this.question);
    if (this.number !== number || scores.chosen !== chosen) return;
    this.picture = { ...this.picture, levels: found.levels };
    scores.offer(found);
    this.slide();
    this.fill();
  },

  // A slider for each direction of a volume.
  slide() {
    const holder = byId("viewer-slices");
    holder.replaceChildren();
    this.planes = planesOf(this.picture, this.place);
    if (!this.place) return;
    const { depth, height, width } = this.picture;
    [depth, height, width].forEach((length, axis) => {
      if (length < 2 || !this.planes.some(({ name }) => name === PLANES[axis])) return;
      const label = html("label", { class: "field" }, PLANES[axis]);
      const shown = html("span", { "aria-hidden": "true" }, `${this.place[axis] + 1} of ${length}`);
      const slider = html("input", { type: "range", min: 1, max: length });
      slider.value = this.place[axis] + 1;
      slider.addEventListener("input", () => {
        this.place[axis] = slider.value - 1;
        shown.textContent = `${slider.value} of ${length}`;
        const planes = planesOf(this.picture, this.place);
        for (const frame of this.frames) frame.plane = planes.find(({ name }) => name === frame.plane.name);
        this.draw();
      });
      label.append(slider, shown);
      holder.append(label);
    });
  },

  get contents() {
    const shown = [["truth", "truth"], ...this.models.map((name, m) => [m, name]), ["difference", "difference"]];
    if (this.picture.objects?.length) {
      const several = this.models.length > 1;
      shown.push(...this.models.map((name, model) => [{ model }, several ? `objects of ${name}` : "objects"]));
    }
    this.picture.levels.forEach((levels, score) => {
      const title = `score of ${classCalled(scores.shown)}`;
      if (levels) shown.push([{ score }, this.models.length > 1 ? `${this.models[score]}: ${title}` : title]);
    });
    return this.picture.grey ? [["image", "image"], ...shown] : shown;
  },

  fill() {
    this.front = Math.min(this.front, this.planes.length ? this.contents.length - 1 : 0);
    this.holder.replaceChildren();
    this.frames = [];
    for (const [content, name] of this.contents) {
      for (const plane of this.planes) {
        const title = plane.name ? `${plane.name}: ${name}` : name;
        const figure = html("figure");
        figure.classList.toggle("on-paper", content === "difference" && !this.picture.grey);
        const frame = html("div", { class: "frame" });
        const canvas = html("canvas", { role: "img", "aria-label": `${title} of ${images.ids[this.number]}` });
        canvas.style.aspectRatio = plane.aspect;
        frame.append(canvas);
        // Only the first plane names the reading.
        figure.append(frame, html("figcaption", {}, plane === this.planes[0] ? title : plane.name));
        this.holder.append(figure);
        this.frames.push({ figure, canvas, plane, content });
      }
    }
    this.offer();
    this.draw();
    this.arrange();
    const { c } = this.question;
    byId("zoom-to").hidden = this.planes.length !== 1;
    byId("zoom-to").textContent = `Zoom to ${c === null ? "errors" : classCalled(c)}`;
    byId("viewer-readout").textContent = "Hover over or tap a picture to read its labels.";
    this.dialog.dataset.shown = address.of({ ...images.state, image: images.ids[this.number] }).slice(1);
  },

  // A button for each picture, to show one at a time.
  offer() {
    const choice = byId("viewer-content");
    const buttons = this.contents.map(([, name], place) => {
      const label = html("label");
      label.append(html("input", { type: "radio", name: "viewer-content", value: place }), html("span", {}, name));
      return label;
    });
    choice.replaceChildren(choice.firstElementChild, ...buttons);
  },

  showObjects() {
    this.draw();
    say(byId("viewer-objects").textContent);
  },

  draw() {
    objects.describe(this.picture, this.models, this.question);
    scores.describe();
    const opacity = byId("viewer-opacity").value / 100;
    for (const { canvas, plane, content } of this.frames) {
      paint(canvas, plane, content, this.question, opacity);
    }
    panels.apply();
  },

  drawScores() {
    scores.describe();
    for (const { canvas, plane, content } of this.frames ?? []) {
      if (content.score !== undefined) paint(canvas, plane, content, this.question, 1);
    }
  },

  arrange() {
    if (!this.frames.length) return;
    const one = this.flipping;
    const planes = this.planes.length;
    byId("viewer-content").hidden = !one;
    all("input", byId("viewer-content")).forEach((button, place) => (button.checked = place === this.front));
    this.frames.forEach(({ figure }, place) => {
      figure.hidden = one && Math.floor(place / planes) !== this.front;
    });
    const number = one ? 1 : this.contents.length;
    const layoutOf = (below) => {
      this.dialog.classList.toggle("notes-below", below);
      return planes > 1 ? this.layoutOfPlanes(number) : this.layoutOfImages(number);
    };
    // In the whole window the notes are next to the pictures or below, whichever makes these larger.
    const spacious = matchMedia("(min-width: 60rem) and (min-height: 45rem)").matches;
    const below = this.large ? !spacious || layoutOf(true).scale > layoutOf(false).scale : !images.beside;
    const { columns, rows, widths } = layoutOf(below);
    // A key too long to be seen whole can be scrolled by keys.
    const keys = byId("viewer-keys");
    keys.tabIndex = keys.scrollHeight > keys.clientHeight ? 0 : -1;
    setStyle(this.holder, {
      gridAutoFlow: rows ? "column" : "row",
      gridTemplateRows: rows ? `repeat(${rows}, auto)` : "",
      // Never wider than the holder, which may shrink before the next call.
      gridTemplateColumns: columns.map((width) => `minmax(0, ${Math.floor(Math.max(width, 24))}px)`).join(" "),
    });
    this.frames.forEach(({ canvas }, place) => {
      setStyle(canvas.parentElement, { width: widths ? `${Math.max(widths[place % planes], 24)}px` : "" });
    });
  },

  // Width and height available for the pictures of a grid, without gaps and captions.
  room(columns, rows) {
    const [gap, caption] = [10, 24];
    const wide = this.holder.clientWidth;
    let high = wide > 500 ? 0.75 * wide : Infinity;
    if (this.large && wide > 500) {
      const notes = this.holder.nextElementSibling;
      const others = [...this.dialog.children].filter((node) => node !== this.holder && node !== notes);
      // Notes below can be scrolled to; only the colours stay in view.
      if (this.dialog.classList.contains("notes-below")) others.push(byId("viewer-keys"));
      high = others.reduce((left, node) => left - node.offsetHeight - gap, innerHeight - 50);
    } else if (images.beside) {
      // The list and the pictures fit the window together; three planes need more.
      const list = byId("image-list").getBoundingClientRect();
      const above = this.holder.getBoundingClientRect().top - list.top;
      high = Math.max(innerHeight - above - 70, this.planes.length > 1 ? 560 : 0);
    }
    return [wide - (columns - 1) * gap, Math.max(high, 260) - (rows - 1) * gap - rows * caption];
  },

  // As many pictures in a row as makes them largest; at least three if these fit, two in the whole window,
  // and none alone in the last row.
  layoutOfImages(number) {
    const widthOf = (columns) => {
      const rows = Math.ceil(number / columns);
      const [wide, high] = this.room(columns, rows);
      return Math.min(wide / columns, (high / rows) * this.planes[0].aspect);
    };
    const least = this.holder.clientWidth < 3 * LEAST ? 1 : Math.min(this.large ? 2 : 3, number);
    const fits = (columns) => columns >= least && (least === 1 || number % columns !== 1);
    const every = Array.from({ length: number }, (_, k) => k + 1).filter(fits);
    const best = every.reduce((a, b) => (widthOf(b) > widthOf(a) ? b : a));
    return { scale: widthOf(best), columns: Array(best).fill(widthOf(best)) };
  },

  // All planes of a volume have one scale: the largest of readings as columns, as rows, and all in a row.
  layoutOfPlanes(number) {
    const across = this.planes.map((plane) => plane.across);
    const down = this.planes.map((plane) => plane.across / plane.aspect);
    const sum = (sizes) => sizes.reduce((a, b) => a + b);
    const layouts = [
      { rows: across.length, columns: Array(number).fill(Math.max(...across)), high: sum(down) },
      { rows: 0, columns: across, high: number * Math.max(...down) },
      { rows: 0, columns: Array(number).fill(across).flat(), high: Math.max(...down) },
    ].map(({ rows, columns, high }, place) => {
      const [wide, most] = this.room(columns.length, [rows, number, 1][place]);
      const scale = Math.min(wide / sum(columns), Math.max(most, 100) / high);
      const scaled = (sizes) => sizes.map((size) => scale * size);
      return { scale, rows, columns: scaled(columns), widths: scaled(across) };
    });
    return layouts.reduce((a, b) => (b.scale > a.scale ? b : a));
  },

  flip(place) {
    if (!this.flipping) this.dialog.querySelector("[value=one]").checked = true;
    this.front = place < this.contents.length ? place : 0;
    this.arrange();
    say(this.contents[this.front][1]);
  },

  key(event) {
    if (event.target.matches("select, input:not([type=radio])") || event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    const letter = key.toLowerCase();
    if (event.target.matches("input, .keys") && key.startsWith("Arrow")) return;
    if (panels.key(key)) event.preventDefault();
    else if (key === "ArrowLeft") images.walk(-1);
    else if (key === "ArrowRight") images.walk(1);
    else if (letter === "f") this.flip(this.flipping ? this.front + 1 : 0);
    else if (letter === "e") this.enlarge(!this.large);
    else if (/^[1-9]$/.test(key)) this.flip(key - 1);
  },

  drawKey() {
    const key = byId("overlay-key");
    key.replaceChildren();
    const under = this.picture.grey ? "elsewhere: photo in greyscale" : "elsewhere";
    const kinds = [...kindsOf(this.models, this.question), ["ignored", "ignored (not scored)"]];
    for (const [kind, text] of kinds) key.append(keyEntry(`rgb(${OVERLAY[kind].join(" ")})`, text));
    const paper = this.picture.grey ? [120, 120, 120] : OVERLAY.paper;
    key.append(keyEntry(`rgb(${paper.join(" ")})`, under));
    const [classes, names] = [byId("class-key"), byId("key-names")];
    classes.replaceChildren();
    names.replaceChildren();
    const ious = images.classIous(this.number);
    for (const index of images.classesOf(this.number)) {
      const link = html("a", { href: address.of({ c: className(index), image: images.ids[this.number] }) });
      const color = data.images.colors[index < data.names.length ? index : index + 1];
      link.append(...keyEntry(color, className(index)).childNodes);
      names.append(keyEntry(color, className(index)));
      const entry = html("li");
      entry.append(link, ` ${ious(index)}`);
      classes.append(entry);
    }
    const ignored = html("li");
    ignored.append(...keyEntry(data.images.colors[pictures.ignored], "ignored (not scored)").childNodes);
    classes.append(ignored);
    names.append(keyEntry(data.images.colors[pictures.ignored], "ignored"));
    const several = this.models.length > 1;
    byId("class-key-title").textContent = `IoU in this ${imageNoun}${several ? `, ${this.models.join(" / ")}` : ""}`;
  },

  point(event) {
    const place = panels.placeOf(event);
    const frame = this.frames?.find(({ canvas }) => event.target.contains(canvas) || event.target === canvas);
    if (!place || !frame) return;
    const { width, height, truth, preds, levels = [] } = frame.plane;
    const { scale, x, y } = panels.view;
    const at = (part, offset, length) =>
      Math.min(Math.max(Math.floor(((part - offset) / scale) * length), 0), length - 1);
    const pixel = at(place[1], y, height) * width + at(place[0], x, width);
    const name = (index) => (index === pictures.ignored ? "ignored" : classCalled(index));
    const answers = preds.map((pred, m) => `${this.models[m]}: ${name(pred[pixel])}`);
    const shares = levels.filter(Boolean).map((of) => (of[pixel] / 100).toFixed(2));
    if (shares.length) answers.push(`score of ${classCalled(scores.shown)}: ${shares.join(" / ")}`);
    byId("viewer-readout").textContent = [`truth: ${name(truth[pixel])}`, ...answers].join(" · ");
  },
};

function keyEntry(fill, text) {
  const entry = html("span");
  const swatch = svg("svg", { class: "swatch", "aria-hidden": "true" });
  swatch.append(svg("rect", { width: "100%", height: "100%", rx: 3, fill }));
  entry.append(swatch, text);
  return entry;
}
