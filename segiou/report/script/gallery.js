// The gallery: which images are shown, in which order, and with which class laid over them.

const gallery = {
  build() {
    if (!data.gallery || !byId("gallery-kinds")) return;
    this.models = data.gallery.models;
    this.table = colorTable(data.gallery.colors);
    this.ignored = data.gallery.colors.length - 2;
    this.cards = all(".example").map((node) => ({
      node,
      info: data.gallery.examples[Number(node.dataset.number)],
      canvas: node.querySelector(".overlay"),
      picture: null,
    }));
    this.holder = document.querySelector(".examples");
    for (const id of ["gallery-kinds", "gallery-class", "gallery-sort"]) {
      byId(id).addEventListener("change", () => this.draw());
    }
    this.draw();
  },

  get chosen() {
    const value = byId("gallery-class").value;
    return value === "" ? null : Number(value);
  },

  get shown() {
    return this.cards.filter((card) => !card.node.classList.contains("gone"));
  },

  draw() {
    const kind = document.querySelector("[name=gallery-kind]:checked").value;
    for (const card of this.cards) {
      card.node.classList.toggle("gone", kind !== "" && card.info.kind !== kind);
    }
    this.order();
    this.drawKey();
    for (const card of this.cards) this.label(card);
    for (const card of this.shown) this.overlay(card);
  },

  order() {
    const lowest = byId("gallery-sort").checked;
    const score = ({ info }) =>
      (this.chosen === null ? info.scores.at(-1) : info.ious.at(-1)[this.chosen]) ?? Infinity;
    const cards = [...this.cards];
    if (lowest) cards.sort((a, b) => score(a) - score(b));
    this.holder.append(...cards.map((card) => card.node));
    this.ordered = cards;
  },

  label({ node, info }) {
    const name = byId("gallery-class").selectedOptions[0].textContent;
    const values = this.chosen === null ? null : info.ious.map((ious) => ious[this.chosen]);
    const target = node.querySelector(".class-iou");
    target.textContent = "";
    if (values === null) return;
    if (values.every((value) => value === null)) {
      target.textContent = `${name} is not in this image`;
      return;
    }
    target.append(`IoU of ${name} `, html("b", {}, values.map(percent).join(" and ")));
  },

  drawKey() {
    const key = byId("overlay-key");
    key.replaceChildren();
    for (const [kind, text] of kindsOf(this.models, this.chosen !== null)) {
      const span = html("span");
      const swatch = svg("svg", { class: "swatch", "aria-hidden": "true" });
      const fill = `rgb(${OVERLAY[kind].join(" ")})`;
      swatch.append(svg("rect", { width: "100%", height: "100%", fill }));
      span.append(swatch, text);
      key.append(span);
    }
  },

  async read(card) {
    const [truth, ...preds] = await Promise.all(
      all(".mask", card.node).map((image) => indicesOf(image, this.table)),
    );
    const ground = await groundOf(card.node.querySelector(".under"), truth.length);
    return { truth, preds, ground, ignored: this.ignored };
  },

  async overlay(card) {
    if (!card.canvas) return;
    card.picture ??= this.read(card);
    const picture = await card.picture;
    paint(card.canvas, picture, this.chosen);
    card.canvas.dataset.painted = this.chosen ?? "all";
  },
};
