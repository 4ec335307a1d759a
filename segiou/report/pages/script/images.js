// The table of all images: filtered, sorted, and drawn only where it is visible.

const MOST_ON_PAPER = 200;
const LONG_NAME = 28;

const images = {
  height: 60,

  build() {
    const found = data.images;
    this.ids = found.ids;
    this.shared = sharedEnds(found.ids);
    // JSON has no infinity.
    this.scores = found.scores.map((values) => values.map((x) => (x === "inf" ? Infinity : x)));
    this.score = found.score;
    this.models = found.models.map(isolated);
    this.objects = found.objects;
    this.cells = found.cells.map((packed) => this.unpacked(packed));
    this.scroller = byId("image-rows");
    this.body = byId("image-table").tBodies[0];
    this.spaces = ["", ""].map(() => html("tr", { class: "space", "aria-hidden": "true" }));
    this.rows = new Map();
    this.sorting = null;
    pictures.build(found);
    viewer.build();
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    byId("image-find").addEventListener("input", () => {
      this.list();
      this.select(0, false);
    });
    byId("image-class").addEventListener("change", (event) => {
      location.hash = address.of({ slice: this.state.slice, beside: this.state.beside, c: event.target.value || null });
    });
    addEventListener("resize", () => this.draw());
    history.scrollRestoration = "manual";
    addEventListener("scroll", () => this.keepSoon());
    this.scroller.addEventListener("scroll", () => this.keepSoon());
    // Links are followed after this.
    for (const kind of ["click", "change", "keydown"]) {
      addEventListener(kind, (event) => (event.key ?? "Enter") === "Enter" && this.keep(), true);
    }
    addEventListener("hashchange", () => this.turn());
    this.turn(true);
  },

  keepSoon() {
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.keep(), 150);
  },

  // Saves the reader's place in the browser's history, for the way back.
  keep() {
    clearTimeout(this.keeping);
    // Between a new address and its event, the place is still that of the old address.
    if (location.hash !== this.hash) return;
    const { sorting, scroller } = this;
    const find = byId("image-find").value;
    history.replaceState({ find, sorting, top: scroller.scrollTop, y: scrollY }, "");
  },

  // Goes to a new address, or back to a visited one, which is restored as it was.
  turn(first = false) {
    clearTimeout(this.keeping);
    this.hash = location.hash;
    const kept = history.state;
    if (kept) {
      byId("image-find").value = kept.find;
      [this.sorting, this.asked] = [kept.sorting, null];
    }
    this.follow(!kept && location.hash.length > 1, first);
    if (!kept) return;
    this.scroller.scrollTop = kept.top;
    const back = () => scrollTo({ top: kept.y, behavior: "instant" });
    back();
    // Pictures that load later move the content below them.
    this.shown?.then(back);
  },

  // The cells of each image: their starts, truth, prediction and pixels.
  unpacked({ sizes, steps, pixels }) {
    const columns = data.names.length + 1;
    const starts = new Uint32Array(sizes.length + 1);
    const truth = new Uint16Array(steps.length);
    const pred = new Uint16Array(steps.length);
    let at = 0;
    sizes.forEach((size, i) => {
      let cell = 0;
      for (let k = 0; k < size; k += 1, at += 1) {
        cell += steps[at];
        truth[at] = Math.floor(cell / columns);
        pred[at] = cell % columns;
      }
      starts[i + 1] = at;
    });
    return { starts, truth, pred, pixels };
  },

  // Applies the address.
  follow(go, first = false) {
    let state = address.read();
    let question = state && questionOf(state);
    const unknown = state ? unknownIn(state) : "";
    byId("images-unknown").textContent = unknown;
    if (unknown && !question) byId("image-list").scrollIntoView();
    if (!question && !first) return;
    // An address of something else or of an unknown class leaves the table unchanged.
    if (!question) [state, question] = [{}, questionOf({})];
    const asked = JSON.stringify({ ...state, image: undefined });
    const changed = asked !== this.asked;
    [this.state, this.asked] = [state, asked];
    if (changed) {
      this.question = question;
      this.count();
      this.list();
    }
    const place = this.order.indexOf(this.ids.indexOf(state.image));
    this.select(Math.max(place, 0));
    if (go && address.read() && location.hash !== "#images") this.arrive(changed);
  },

  // Whether the page is wide enough for the viewer's notes next to the table.
  get beside() {
    return matchMedia("(min-width: 60rem)").matches;
  },

  arrive(changed) {
    const box = byId("image-list").getBoundingClientRect();
    if (this.state.image !== undefined && !this.beside) this.bring(changed);
    else if (box.top < 0 || box.top > innerHeight / 2) byId("image-list").scrollIntoView();
    if (changed && !viewer.large) this.scroller.focus({ preventScroll: true });
  },

  // Scrolls to the pictures if they are below the table.
  async bring(changed) {
    if (changed) viewer.dialog.scrollIntoView();
    await this.shown;
    viewer.holder.firstElementChild?.scrollIntoView({ block: "nearest" });
  },

  // For each model and image: the pixels that the question is about, and the IoU of its class.
  count() {
    const { question } = this;
    const { about } = question;
    this.concerned = this.cells.map(({ starts, truth, pred, pixels }) => {
      const sums = new Float64Array(this.ids.length);
      for (let i = 0; i < sums.length; i += 1) {
        for (let k = starts[i]; k < starts[i + 1]; k += 1) {
          if (question.holds(truth[k], pred[k])) sums[i] += pixels[k];
        }
      }
      return sums;
    });
    this.ious = about === null ? null : this.cells.map((cells) => this.iousOf(cells, about));
  },

  iousOf({ starts, truth, pred, pixels }, about) {
    return this.ids.map((_, i) => {
      let [both, any] = [0, 0];
      for (let k = starts[i]; k < starts[i + 1]; k += 1) {
        if (truth[k] !== about && pred[k] !== about) continue;
        any += pixels[k];
        if (truth[k] === pred[k]) both += pixels[k];
      }
      return any ? both / any : null;
    });
  },

  get columns() {
    const { models, score, scores, concerned, ious } = this;
    const two = models.length > 1;
    const columns = [{ key: "image", title: capital(imageNoun), first: 1, value: (i) => this.ids[i] }];
    scores.forEach((values, m) =>
      columns.push({ key: `score${m}`, title: two ? models[m] : capital(score.title), first: 1, value: (i) => values[i], text: (x) => scored(x, score.unit) }),
    );
    if (two) {
      const value = (i) => this.differenceOf(i);
      columns.push({ key: "difference", title: "Difference", first: 1, value, text: (x) => change(x, score.unit) });
    }
    const { slice, beside } = this.state;
    if (beside !== undefined) {
      const value = (i) => [slice, beside].filter((name) => data.slices[name].includes(i)).join(", ");
      columns.push({ key: "slice", title: "Slice", first: 1, value, text: (x) => x });
    }
    // For two models the viewer shows it, in the key of the colours.
    if (ious && !two) {
      const title = `IoU of ${classCalled(this.question.about)}`;
      columns.push({ key: "iou", title, first: 1, value: (i) => ious[0][i], text: percent });
    }
    // For two models the viewer shows the false positives.
    const numbered = [[2, "Missed objects"], [1, "False positive objects"]].slice(0, two ? 1 : 2);
    for (const [place, title] of this.objects ? numbered : []) {
      const numbers = (i) => this.objects.map((rows) => rows[i][place]);
      const value = (i) => numbers(i).reduce((sum, number) => sum + number, 0);
      columns.push({ key: title, title, first: -1, value, text: (_, i) => numbers(i).map(grouped).join(" / ") });
    }
    const title = this.question.pixels;
    columns.push({
      key: "pixels",
      title: two ? `${title}, ${models.join(" / ")}` : title,
      first: -1,
      value: (i) => this.total(i),
      text: (_, i) => concerned.map((values) => grouped(values[i])).join(" / "),
    });
    return columns;
  },

  get filtered() {
    return this.question.text !== "";
  },

  differenceOf(i) {
    const [a, b] = this.scores.map((values) => values[i]);
    // Two infinite distances have no difference.
    return a === null || b === null || (a === Infinity && b === Infinity) ? null : b - a;
  },

  // A name without the ends that all names share.
  shortened(id) {
    const [start, end] = this.shared;
    return `${start ? "…\u2060" : ""}${id.slice(start, id.length - end)}${end ? "…" : ""}`;
  },

  // The pixels of an image that the question is about, for all models.
  total(i) {
    return this.concerned.reduce((sum, values) => sum + values[i], 0);
  },

  // The images that are listed, in their order.
  list() {
    const { state, filtered } = this;
    const name = byId("image-find").value.trim().toLowerCase();
    const score = (i) => (this.models.length > 1 ? this.differenceOf(i) : this.scores[0][i]);
    const [from, to] = [state.from, state.to].map((text) => (text === undefined ? null : Number(text)));
    const inside = imagesIn(state);
    this.order = this.ids.map((_, i) => i).filter((i) => {
      // An image named by the address is always listed.
      if (this.ids[i] === state.image) return true;
      if (filtered && !this.total(i)) return false;
      if (inside && !inside.has(i)) return false;
      if (from !== null && (score(i) === null || score(i) < from || score(i) >= to)) return false;
      return !name || this.ids[i].toLowerCase().includes(name);
    });
    const columns = this.columns;
    const usual = filtered ? { key: "pixels", sign: -1 } : { key: "score0", sign: 1 };
    const chosen = columns.some(({ key }) => key === this.sorting?.key);
    this.sorted = chosen ? this.sorting : usual;
    const { value } = columns.find(({ key }) => key === this.sorted.key);
    if (chosen || filtered || this.models.length === 1) this.sort(value, this.sorted.sign);
    else {
      this.sorted = null;
      this.sort((i) => this.differenceOf(i) && Math.abs(this.differenceOf(i)), -1);
    }
    this.head(columns);
    this.describe(from, to);
    showSlices(this);
    this.scroller.scrollTop = 0;
    this.fresh = true;
    this.draw();
  },

  // Undefined values come last in either direction.
  sort(value, sign) {
    const values = new Map(this.order.map((i) => [i, value(i)]));
    this.order.sort((i, j) => {
      const [x, y] = [values.get(i), values.get(j)];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * (typeof x === "string" ? collator.compare(x, y) : x - y) || i - j;
    });
  },

  head(columns) {
    const row = byId("image-table").tHead.rows[0];
    row.replaceChildren();
    for (const { key, title, first } of columns) {
      const heading = html("th", { scope: "col", class: key === "image" ? "text" : "number" });
      const button = html("button", { type: "button", class: "sort", "data-key": key }, title);
      button.addEventListener("click", () => {
        const sign = this.sorted?.key === key ? -this.sorted.sign : first;
        this.sorting = { key, sign };
        this.list();
        this.select(0, false);
        row.querySelector(`[data-key="${key}"]`).focus();
        say(`Sorted by ${title}, ${sign > 0 ? "ascending" : "descending"}.`);
      });
      button.append(sortMark());
      if (this.sorted?.key === key) {
        heading.setAttribute("aria-sort", this.sorted.sign > 0 ? "ascending" : "descending");
      }
      heading.append(button);
      row.append(heading);
    }
  },

  describe(from, to) {
    const target = byId("images-asked");
    const number = this.order.length;
    const every = this.ids.length;
    target.replaceChildren();
    const parts = [];
    const { slice, beside } = this.state;
    if (slice !== undefined) parts.push(beside === undefined ? slice : `${slice} and ${beside}`);
    if (this.filtered) parts.push(this.question.text);
    if (from !== null) parts.push(this.rangeOf(from, to));
    if (parts.length) target.append(html("b", {}, parts.join("; ")), " · ");
    target.append(`${grouped(number)} of ${grouped(every)} ${imageNoun}s`);
    const pixels = this.order.reduce((sum, i) => sum + this.total(i), 0);
    if (this.filtered) target.append(`, ${measured(pixels)}`);
    if (parts.length) target.append(" · ", html("a", { href: "#images" }, `all ${imageNoun}s`));
    const { c } = this.question;
    const asked = byId("image-question");
    asked.textContent = this.question.text;
    if (c === null && this.filtered) asked.selected = true;
    else byId("image-class").value = c === null ? "" : className(c);
    say(target.textContent);
  },

  // The scores or the differences of a bar of the histogram, as its label has them.
  rangeOf(from, to) {
    const { title, unit } = this.score;
    if (this.models.length > 1) return `difference ${change(from, unit)} to ${change(to, unit)} ${unitText(unit || "points")}`.trimEnd();
    return `${title} ${fixed(unit ? from : 100 * from, digitsOf(unit))} to ${scored(to, unit)}`;
  },

  draw() {
    const { order, height, scroller } = this;
    // The list is never higher than half the window and a few rows.
    const seen = Math.ceil(innerHeight / 2 / height);
    const from = this.onPaper ? 0 : Math.max(Math.floor(scroller.scrollTop / height) - 4, 0);
    const to = Math.min(this.onPaper ? MOST_ON_PAPER : from + seen + 8, order.length);
    if (this.fresh) this.rows.clear();
    const rows = new Map();
    for (let place = from; place < to; place += 1) rows.set(place, this.rows.get(place) ?? this.row(place));
    const [above, below] = this.spaces;
    above.style.height = `${from * height}px`;
    below.style.height = `${(order.length - to) * height}px`;
    if (this.fresh || from !== this.from || to !== this.to) {
      for (const [place, row] of this.rows) if (!rows.has(place)) row.remove();
      if (this.fresh) this.body.replaceChildren(above, ...rows.values(), below);
      else this.insert(rows);
    }
    [this.rows, this.from, this.to, this.fresh] = [rows, from, to, false];
    this.mark();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.thumbnails(), 60);
  },

  // On paper nothing can be scrolled.
  print(onPaper) {
    this.onPaper = onPaper;
    byId("images-printed").hidden = !onPaper || this.order.length <= MOST_ON_PAPER;
    this.draw();
  },

  // Rows that stay keep their place in the document, and with it the focus.
  insert(rows) {
    let next = this.spaces[1];
    for (const row of [...rows.values()].reverse()) {
      if (row.nextSibling !== next) next.before(row);
      next = row;
    }
  },

  row(place) {
    const i = this.order[place];
    const row = html("tr", { "aria-rowindex": place + 2, "data-number": i });
    for (const { key, value, text } of this.columns) {
      if (key === "image") {
        const cell = html("th", { scope: "row" });
        const link = html("a", { href: address.of({ ...this.state, image: this.ids[i] }) });
        if (pictures.has(i)) link.append(html("canvas", { class: "thumb", "aria-hidden": "true" }));
        link.append(nameOf(this.shortened(this.ids[i])));
        cell.append(link);
        row.append(cell);
      } else {
        const known = value(i);
        row.append(html("td", { class: `number ${key}` }, known === null ? "–" : text(known, i)));
      }
    }
    return row;
  },

  async thumbnails() {
    const { question } = this;
    // The viewer comes first.
    await this.shown;
    for (const row of this.rows.values()) {
      const canvas = row.querySelector(".thumb:not([data-painted])");
      if (!canvas) continue;
      canvas.dataset.painted = "";
      const picture = await pictures.of(Number(row.dataset.number), true);
      if (question !== this.question) return;
      if (picture.truth) this.thumbnail(canvas, picture, 144);
    }
  },

  thumbnail(canvas, picture, widest) {
    const { question } = this;
    const whole = document.createElement("canvas");
    const [plane] = planesOf(picture, isVolume(picture) ? largestError(picture, question) : null);
    paint(whole, plane, "difference", question, 0.75);
    const width = Math.min(widest, (widest / 1.5) * plane.aspect);
    [canvas.width, canvas.height] = [width, width / plane.aspect].map((n) => Math.max(1, Math.round(n)));
    canvas.getContext("2d").drawImage(whole, 0, 0, canvas.width, canvas.height);
  },

  select(place, scroll = true) {
    this.place = place;
    const number = this.order[place];
    viewer.dialog.hidden = number === undefined;
    if (number === undefined) return;
    const [top, room] = [place * this.height, this.scroller.clientHeight - this.height];
    if (scroll && (top < this.scroller.scrollTop || top > this.scroller.scrollTop + room - this.height)) {
      this.scroller.scrollTop = top - room / 3;
    }
    this.mark();
    this.shown = viewer.show(number, this.question);
    // The next image is the likeliest to be asked for.
    const next = this.order[place + 1];
    if (next !== undefined) this.shown.then(() => pictures.of(next));
  },

  mark() {
    for (const [place, row] of this.rows) {
      if (place === this.place) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  },

  // Shows a neighbour; walking through images adds nothing to the history.
  walk(step) {
    const place = Math.min(Math.max(this.place + step, 0), this.order.length - 1);
    const id = this.ids[this.order[place]];
    if (id !== undefined) location.replace(address.of({ ...this.state, image: id }));
  },

  key(event) {
    const page = Math.max(Math.floor(this.scroller.clientHeight / this.height) - 1, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.target.matches("button") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) {
      event.preventDefault();
      this.walk(steps[event.key]);
    } else if (event.key === "Enter" && event.target === this.scroller) {
      event.preventDefault();
      viewer.enlarge(true);
    }
  },

  factsOf(i) {
    const own = this.columns.slice(1).map(({ title, value, text }) => [title, value(i), text]);
    return own.map(([title, known, text]) => `${title} ${(known === null ? "–" : text(known, i)).replaceAll(" / ", "\u00a0/\u00a0")}`).join(" · ");
  },

  // The IoU of a class in an image for each model, as text; a dash if the class is absent.
  classIous(i) {
    const all = this.cells.map(({ starts, truth, pred, pixels }) => {
      const [both, any] = [new Map(), new Map()];
      const add = (sums, key, n) => sums.set(key, (sums.get(key) ?? 0) + n);
      for (let k = starts[i]; k < starts[i + 1]; k += 1) {
        add(any, truth[k], pixels[k]);
        if (truth[k] === pred[k]) add(both, truth[k], pixels[k]);
        else add(any, pred[k], pixels[k]);
      }
      return (c) => (any.has(c) ? percent((both.get(c) ?? 0) / any.get(c)) : "–");
    });
    return (c) => (c < data.names.length ? all.map((iou) => iou(c)).join(" / ") : "");
  },

  // Classes in the truth or the predictions of an image.
  classesOf(i) {
    const found = new Set();
    for (const { starts, truth, pred } of this.cells) {
      for (let k = starts[i]; k < starts[i + 1]; k += 1) found.add(truth[k]).add(pred[k]);
    }
    return [...found].sort((a, b) => a - b);
  },
};

// Numbers of characters that several long names share at the start and the end, up to a separator.
function sharedEnds(ids) {
  if (ids.length < 2 || Math.max(...ids.map((id) => id.length)) <= LONG_NAME) return [0, 0];
  const shared = (names) => {
    const length = [...names[0]].findIndex((letter, k) => names.some((name) => name[k] !== letter));
    return length < 0 ? 0 : names[0].slice(0, length).search(/[^_./-]*$/);
  };
  const start = shared(ids);
  // The same characters are not both.
  return [start, shared(ids.map((id) => [...id.slice(start)].reverse().join("")))];
}

// A name that may break at its separators.
function nameOf(id) {
  const name = html("span", { class: "name" });
  for (const part of id.split(/(?<=[_./-])/)) name.append(part, html("wbr"));
  return name;
}

const collator = new Intl.Collator(undefined, { numeric: true });
const capital = (text) => text[0].toUpperCase() + text.slice(1);
// A score, and a difference without its unit: in points, or in the unit of the score.
const unitText = (unit) => (["number", "coefficient", "count"].includes(unit) ? "" : unit);
const digitsOf = (unit) => (unit === "coefficient" ? 4 : 2);
const scored = (x, unit) => (unit && x === Number(x) ? `${fixed(x, digitsOf(unit))} ${unitText(unit)}`.trimEnd() : percent(x));
const change = (x, unit) => {
  const size = unit ? x : 100 * x;
  return `${size >= 0.5 * 10 ** -digitsOf(unit) ? "+" : ""}${fixed(size, digitsOf(unit))}`;
};
