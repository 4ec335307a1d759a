// Small tasks, each a list of parts to be met, checked when a gesture ends.

const close = (value, wanted) => Math.abs(value - wanted) < 0.005;
const toEight = (n) =>
  close(n.iou, 0.8) ? "That is one of them. Now find a different kind."
    : `IoU is ${percentText(n.iou)}: ${n.iou < 0.8 ? "increase the overlap." : "reduce the overlap a little."}`;

const CHALLENGES = [
  {
    id: "half", title: "Half and half", ask: "Make IoU exactly 50 %.",
    parts: [{ met: (n) => 2 * n.tp === n.union }],
    hint: (n) => `IoU is ${fractionText(n.tp, n.union)} ${equalsText(n.iou)}. ${2 * n.tp < n.union ? "They must share more." : "They share too much."}`,
    done: "Exactly one half. Equal shapes must share two thirds of each.",
  },
  {
    id: "three", title: "Three different pairs with IoU 80 %", ask: "Rounded to a whole per cent, with three kinds of error:",
    parts: [
      { name: "the prediction is too small, and nothing else", met: (n) => close(n.iou, 0.8) && n.fp === 0 },
      { name: "the prediction is too large, and nothing else", met: (n) => close(n.iou, 0.8) && n.fn === 0 },
      { name: "it has both misses and false positives", met: (n) => close(n.iou, 0.8) && n.fp > 0 && n.fn > 0 },
    ],
    hint: toEight,
    done: "One score, three kinds of error. IoU measures the size of an error, not its kind.",
  },
  {
    id: "mirage", title: "Looks fine on paper", ask: "Pixel accuracy over 95 %, IoU under 20 %.",
    parts: [{ met: (n) => n.pixel_accuracy > 0.95 && n.iou < 0.2 }],
    hint: (n) => (n.pixel_accuracy <= 0.95
      ? `Accuracy is ${percentText(n.pixel_accuracy)}. Try a smaller object in the frame.`
      : `Accuracy is ${percentText(n.pixel_accuracy)}, good. But IoU is ${percentText(n.iou)}: miss the object more.`),
    done: "An impressive score, although the object is almost entirely missed.",
  },
  {
    id: "slip", title: "One pixel off", ask: "Shift an exact prediction by a single pixel, so that IoU is 50 % or less.",
    parts: [{ met: (n, t, p) => t.w === p.w && t.h === p.h && Math.abs(t.x - p.x) + Math.abs(t.y - p.y) === 1 && n.iou <= 0.5 }],
    hint: (n, t, p) => (t.w !== p.w || t.h !== p.h ? "Both need the same width and height."
      : Math.abs(t.x - p.x) + Math.abs(t.y - p.y) !== 1 ? "Now make the shift one pixel, in one direction."
        : `The shift is one pixel and IoU is ${percentText(n.iou)}. Thinner objects suffer more.`),
    done: "Poles, wires and road markings are this thin.",
  },
  {
    id: "apart", title: "Worse than zero", ask: "IoU 0 %, and generalised IoU below −50 %.",
    parts: [{ met: (n) => n.tp === 0 && n.giou < -0.5 }],
    hint: (n) => (n.tp > 0 ? "First, separate the rectangles." : `Generalised IoU is ${percentText(n.giou)}. Move them further apart or make them smaller.`),
    done: "IoU is 0 % for every miss. Generalised IoU still measures the distance.",
  },
  {
    id: "greedy", title: "Found it, and far too much", ask: "Recall 100 %, with precision under 50 %.",
    parts: [{ met: (n) => n.fn === 0 && n.precision < 0.5 }],
    hint: (n) => (n.fn > 0 ? `${countText(n.fn)} pixels of the object are still missed.` : `Recall is 100 %. Precision is ${percentText(n.precision)}: predict more.`),
    done: "Nothing is missed, but most of the prediction is false positive. Here IoU equals precision.",
  },
  {
    id: "dice", title: "The kinder cousin", ask: "Make Dice exceed IoU by 17 points or more.",
    parts: [{ met: (n) => n.dice - n.iou >= 0.17 }],
    hint: (n) => `Dice is ${percentText(n.dice)}, IoU ${percentText(n.iou)}: ${pointsText(n.dice - n.iou)} points between them. ` +
      (n.iou > 0.4142 ? "Reduce the overlap a little." : "Increase the overlap a little."),
    done: "The gap is widest where IoU is √2 − 1. Dice = 2 IoU / (1 + IoU): the same ranking, higher values.",
  },
  {
    id: "nothing", title: "Punished for trying", ask: "IoU of 30 % or more, yet accuracy lower than predicting nothing.",
    parts: [{ met: (n) => n.iou >= 0.3 && n.pixel_accuracy < n.nothing }],
    hint: (n) => (n.iou < 0.3 ? `IoU is ${percentText(n.iou)}: find more of the object.`
      : `Accuracy is ${percentText(n.pixel_accuracy)}; predicting nothing gets ${percentText(n.nothing)}. Add more false positives than true ones.`),
    done: "A model that is rewarded for accuracy learns to predict nothing.",
  },
];

function buildBadge(parent) {
  const picture = svg("svg", { class: "badge", viewBox: "0 0 24 24", "aria-hidden": "true" }, parent);
  svg("circle", { cx: 12, cy: 12, r: 10.5 }, picture);
  svg("path", { d: "M7 12.5l3.5 3.5 6.5-7.5" }, picture);
}

const challenges = {
  build() {
    this.items = CHALLENGES.map((challenge) => {
      const item = html("li", { id: `challenge-${challenge.id}` }, "", byId("challenges"));
      buildBadge(item);
      const title = html("h3", {}, challenge.title, item);
      const state = html("span", { class: "hidden-visually" }, "", title);
      html("p", {}, challenge.ask, item);
      const list = challenge.parts.length > 1 ? html("ul", {}, "", item) : null;
      const parts = challenge.parts.map((part) => ({ ...part, found: false, node: this.buildPart(part, list) }));
      return { ...challenge, item, state, parts, note: html("p", { class: "hint" }, "", item) };
    });
  },

  buildPart(part, list) {
    if (!list) return null;
    const node = html("li", {}, "", list);
    buildBadge(node);
    node.append(part.name);
    return { node, state: html("span", { class: "hidden-visually" }, "", node) };
  },

  solved() {
    return this.items.filter((c) => c.parts.every((part) => part.found)).map((c) => c.id);
  },

  look(settled) {
    const { truth, pred } = store.shown();
    const numbers = store.numbers();
    const before = this.solved();
    for (const challenge of this.items) {
      for (const part of challenge.parts) {
        if (settled && part.met(numbers, truth, pred)) part.found = true;
      }
      this.show(challenge, numbers, truth, pred);
    }
    const now = this.solved();
    byId("tally").textContent = now.length ? `${now.length} of ${this.items.length} solved.` : "";
    const fresh = this.items.filter((c) => now.includes(c.id) && !before.includes(c.id));
    if (fresh.length) {
      byId("news").textContent = fresh.map((c) => `Solved: ${c.title}. ${c.done}`).join(" ") + ` ${now.length} of ${this.items.length}.`;
    }
  },

  show(challenge, numbers, truth, pred) {
    const done = challenge.parts.every((part) => part.found);
    challenge.item.classList.toggle("done", done);
    challenge.state.textContent = done ? " (solved)" : "";
    for (const { node, found } of challenge.parts) {
      if (!node) continue;
      node.node.classList.toggle("met", found);
      node.state.textContent = found ? " (found)" : "";
    }
    const metNow = challenge.parts.length === 1 && challenge.parts[0].met(numbers, truth, pred);
    challenge.note.textContent = done ? challenge.done : metNow ? "Done. Release to confirm." : challenge.hint(numbers, truth, pred);
  },
};
