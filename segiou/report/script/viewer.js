// One image of the gallery, large, with what the truth and the predictions say under the pointer.

const viewer = {
  build() {
    this.dialog = byId("viewer");
    if (!this.dialog) return;
    for (const card of gallery.cards) {
      card.node.querySelector(".open")?.addEventListener("click", () => this.open(card));
      // The button is what keyboards reach; the pictures are only larger targets.
      for (const image of all("img", card.node)) {
        image.addEventListener("click", () => this.open(card));
      }
    }
    byId("viewer-close").addEventListener("click", () => this.dialog.close());
    byId("viewer-previous").addEventListener("click", () => this.turn(-1));
    byId("viewer-next").addEventListener("click", () => this.turn(1));
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") this.turn(-1);
      if (event.key === "ArrowRight") this.turn(1);
    });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    byId("viewer-panels").addEventListener("pointermove", (event) => this.point(event));
  },

  open(card) {
    this.show(card);
    this.dialog.showModal();
  },

  turn(step) {
    const cards = gallery.ordered.filter((card) => card.canvas && gallery.shown.includes(card));
    const place = cards.indexOf(this.card) + step;
    this.show(cards[(place + cards.length) % cards.length]);
  },

  show(card) {
    this.card = card;
    byId("viewer-title").textContent = card.info.id;
    const panels = byId("viewer-panels");
    panels.replaceChildren();
    for (const figure of all(".panels figure", card.node)) {
      const copy = html("figure");
      const image = figure.querySelector("img");
      const shown = image ? image.cloneNode() : card.canvas.cloneNode();
      copy.append(shown, html("figcaption", {}, figure.querySelector("figcaption").textContent));
      panels.append(copy);
      if (!image) card.picture.then((picture) => paint(shown, picture, gallery.chosen));
    }
    byId("viewer-readout").textContent = "Point at a picture to read its labels.";
  },

  async point(event) {
    const shown = event.target;
    if (!shown.matches("img, canvas")) return;
    const { width, height } = this.card.canvas;
    const box = shown.getBoundingClientRect();
    const x = Math.min(Math.floor(((event.clientX - box.left) / box.width) * width), width - 1);
    const y = Math.min(Math.floor(((event.clientY - box.top) / box.height) * height), height - 1);
    const { truth, preds } = await this.card.picture;
    const place = y * width + x;
    const name = (index) => data.names[index] ?? (index === gallery.ignored ? "ignored" : "no class");
    const said = preds.map((pred, m) => `${gallery.models[m]}: ${name(pred[place])}`);
    byId("viewer-readout").textContent = [`truth: ${name(truth[place])}`, ...said].join(" · ");
  },
};
