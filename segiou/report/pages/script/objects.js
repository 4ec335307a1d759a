// The objects of an image: found, missed and false positive, filtered by size.

const objects = {
  keys: [["tp", "found"], ["fn", "missed"], ["fp", "false positive"], ["ignored", "ignored"]],

  build() {
    this.fields = ["objects-from", "objects-to"].map(byId);
    for (const field of this.fields) field.addEventListener("input", () => viewer.showObjects());
  },

  get sizes() {
    const [from, to] = this.fields.map((field) => field.value);
    return [from === "" ? 0 : Number(from), to === "" ? Infinity : Number(to)];
  },

  // Indexed by object: 0 ignored, 1 found, 2 missed or false positive; null if filtered out.
  outcomesOf(rows, question) {
    const [from, to] = this.sizes;
    const asked = (c, pixels) => from <= pixels && pixels <= to && (question.about ?? c) === c;
    return [null, ...rows.map(([outcome, c, pixels]) => (asked(c, pixels) ? outcome : null))];
  },

  // Number of objects found, missed, false positive and ignored for a model.
  counted({ outcomes }, model, question) {
    const [truth, pred] = outcomes[model].map((rows) => this.outcomesOf(rows, question));
    const number = (all, outcome) => all.filter((one) => one === outcome).length;
    return [number(truth, 1), number(truth, 2), number(pred, 2), number(truth, 0) + number(pred, 0)];
  },

  // The key of the colours, with the number of objects of each.
  describe(picture, models, question) {
    const target = byId("viewer-objects");
    target.replaceChildren();
    if (!picture.objects?.length) return;
    if (question.about !== null && !data.images.things.includes(question.about)) {
      target.append(`${classCalled(question.about)} is a stuff class: its ${data.unit} form a single segment.`);
      return;
    }
    const [from, to] = this.sizes;
    const range = to < Infinity ? `${from} to ${to} ${data.unit}` : `${from} ${data.unit} or more`;
    const sizes = from > 0 || to < Infinity ? `, ${range}` : "";
    const about = question.about === null ? "" : ` of ${classCalled(question.about)}`;
    const counts = models.map((_, m) => this.counted(picture, m, question));
    target.append(html("b", {}, `Objects${about}${sizes}: `));
    this.keys.forEach(([kind, text], place) => {
      const numbers = counts.map((found) => grouped(found[place])).join(" / ");
      target.append(keyEntry(`rgb(${OVERLAY[kind].join(" ")})`, `${text} ${numbers}`));
    });
    target.append(keyEntry(`rgb(${OVERLAY.wrong.join(" ")})`, "missed, with a false positive in its place"));
  },

  // The colour is darker along the border between two objects.
  colorsOf({ objects: [truth, ...preds], outcomes, width }, model, question) {
    const pred = preds[model];
    const [inTruth, inPred] = outcomes[model].map((rows) => this.outcomesOf(rows, question));
    const differs = (i, j) => truth[i] !== truth[j] || pred[i] !== pred[j];
    const begins = (i) => (i % width > 0 && differs(i, i - 1)) || (i >= width && differs(i, i - width));
    return (i) => {
      const [t, p] = [inTruth[truth[i]], inPred[pred[i]]];
      let kind = "";
      if (t === 2) kind = p === 2 ? "wrong" : "fn";
      else if (p === 2) kind = "fp";
      else if (t === 1 || p === 1) kind = "tp";
      else if (t === 0 || p === 0) kind = "ignored";
      const color = OVERLAY[kind];
      return color && begins(i) ? color.map((part) => Math.round(part * 0.55)) : color;
    };
  },
};
