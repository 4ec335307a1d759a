// The scores of a class in an image, in colours that are grey below a threshold.

// Viridis in steps of a tenth: its lightness rises evenly.
const SCALE = [
  ...["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c"],
  ...["#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"],
].map(channelsOf);

const scores = {
  // The chosen class, or "" for none; null is that of the question, or else the one with most wrong pixels.
  chosen: null,

  build() {
    [this.field, this.select, this.slider] = ["scores-field", "scores-class", "scores-threshold"].map(byId);
    this.select.addEventListener("change", () => {
      this.chosen = this.select.value && Number(this.select.value);
      viewer.showScores();
    });
    this.slider.addEventListener("input", () => this.color());
  },

  // The classes of a picture, the one to show, and its scores for each model, in hundredths.
  async read(picture, question) {
    const { scored = [], maps } = picture;
    if (question !== this.question && this.chosen !== "") this.chosen = null;
    this.question = question;
    const [first] = [this.chosen, question.about, ...scored].filter((c) => scored.includes(c));
    if (first === undefined || this.chosen === "") return { scored, levels: [] };
    const size = isVolume(picture) ? null : picture;
    const sheets = await Promise.all(maps.map((of) => of.length && indicesOf(of[scored.indexOf(first)], size)));
    // Greys repeat their level.
    const levelsOf = (sheet) => (size ? sheet : unstacked(sheet, picture)).map((grey) => grey & 255);
    const levels = sheets.map((sheet) => sheet && levelsOf(sheet));
    return { scored, shown: first, levels };
  },

  offer({ scored, shown }) {
    this.field.hidden = !scored.length;
    const options = [...scored].sort((a, b) => a - b).map((c) => html("option", { value: c }, className(c)));
    this.select.replaceChildren(html("option", { value: "" }, "none"), ...options);
    this.select.value = shown ?? "";
    this.slider.parentElement.hidden = shown === undefined;
    if (shown === this.shown) return;
    this.shown = shown;
    this.row = data.curves[data.images.curves]?.find(({ row }) => row === className(shown));
    this.follow(this.row);
  },

  // The slider starts at the threshold that the curves of the class show.
  follow(row) {
    if (row !== this.row) return;
    this.slider.value = row ? Math.round(100 * Object.values(row.series)[0][row.at ?? row.best]) : 50;
    this.color();
  },

  color() {
    const from = Number(this.slider.value);
    this.threshold = (from / 100).toFixed(2);
    this.slider.setAttribute("aria-valuetext", this.threshold);
    this.slider.nextElementSibling.textContent = this.threshold;
    this.table = Array.from({ length: 101 }, (_, level) => {
      const place = Math.min(Math.floor(level / 10), 9);
      const [low, high] = SCALE.slice(place);
      const color = low.map((channel, k) => channel + (level / 10 - place) * (high[k] - channel));
      return level < from ? Array(3).fill(0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]) : color;
    });
    viewer.drawScores();
  },

  colorsOf({ levels }, model) {
    return (i) => this.table[levels[model][i]];
  },

  // The key of the colours.
  describe() {
    const target = byId("viewer-scores");
    target.replaceChildren();
    if (this.shown === undefined) return;
    const canvas = html("canvas", { class: "scale", width: 101, height: 1, role: "img", "aria-label": "colours from 0 to 1" });
    const context = canvas.getContext("2d");
    const image = context.createImageData(101, 1);
    this.table.forEach((color, level) => image.data.set([...color, 255], 4 * level));
    context.putImageData(image, 0, 0);
    const entry = html("span", {}, "0 ");
    entry.append(canvas, " 1");
    target.append(html("b", {}, `Score of ${classCalled(this.shown)}: `), entry);
    if (Number(this.threshold)) target.append(html("span", {}, `grey below ${this.threshold}`));
  },
};
