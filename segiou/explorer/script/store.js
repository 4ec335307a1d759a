// The one state of the page, its listeners, and its copy in the address.

const START = Object.freeze({
  size: { w: 64, h: 36 },
  drawn: { truth: { x: 12, y: 8, w: 30, h: 20 }, pred: { x: 18, y: 12, w: 30, h: 18 } },
  scale: 100,
  mistake: "stays",
});

function wholeNumbers(text, separator, howMany) {
  const parts = (text ?? "").split(separator);
  const numbers = parts.map((part) => (/^\d{1,6}$/.test(part) ? Number(part) : NaN));
  return numbers.length === howMany && !numbers.some(Number.isNaN) ? numbers : null;
}

function readRect(text, fallback, size) {
  const numbers = wholeNumbers(text, ",", 4);
  if (!numbers) return regridded(fallback, START.size, size);
  const [x, y, w, h] = numbers;
  return fitRect({ x, y, w, h }, size);
}

// A link may be mistyped: unreadable values fall back to the start, and large ones are clipped.
function fromFragment(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const numbers = wholeNumbers(given.get("size"), "x", 2);
  const size = numbers ? fitSize({ w: numbers[0], h: numbers[1] }) : { ...START.size };
  const scale = wholeNumbers(given.get("scale"), ",", 1);
  return {
    size,
    drawn: {
      truth: readRect(given.get("t"), START.drawn.truth, size),
      pred: readRect(given.get("p"), START.drawn.pred, size),
    },
    scale: scale ? clamp(scale[0], 5, 100) : 100,
    mistake: given.get("mistake") === "shrinks" ? "shrinks" : "stays",
  };
}

function toFragment(state) {
  const rect = (r) => [r.x, r.y, r.w, r.h].join(",");
  const { drawn, size, scale, mistake } = state;
  let text = `#t=${rect(drawn.truth)}&p=${rect(drawn.pred)}&size=${size.w}x${size.h}`;
  if (scale !== 100) text += `&scale=${scale}`;
  if (mistake !== "stays") text += `&mistake=${mistake}`;
  return text;
}

const store = {
  state: fromFragment(location.hash),
  active: "pred",
  listeners: [],
  addressTimer: 0,

  // The drawn pair on the canvas at the present scale.
  shown() {
    const { drawn, scale, mistake, size } = this.state;
    return shrunkPair(drawn, scale, mistake, size);
  },
  numbers() {
    const { truth, pred } = this.shown();
    return measure(truth, pred, this.state.size);
  },

  // `settled` is false while a gesture is under way: nothing is awarded or announced in passing.
  change(part, settled = true) {
    this.state = { ...this.state, ...part };
    this.notify(settled);
    if (settled) this.writeAddress();
  },
  // A rectangle changed by hand starts a new drawing from the present canvas.
  setRect(which, rect, settled = true) {
    this.change({ drawn: { ...this.shown(), [which]: rect }, scale: 100 }, settled);
  },
  setSize(wanted) {
    const { size: from, drawn } = this.state;
    const size = fitSize(wanted);
    const pair = { truth: regridded(drawn.truth, from, size), pred: regridded(drawn.pred, from, size) };
    this.change({ size, drawn: pair });
  },
  activate(which) {
    if (this.active === which) return;
    this.active = which;
    this.notify(false);
  },
  reset() {
    this.active = "pred";
    this.change({ ...START });
  },
  notify(settled) {
    for (const listener of this.listeners) listener(settled);
  },

  // Browsers refuse many changes of address in a short time, so the last one wins.
  writeAddress() {
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => {
      const fragment = toFragment(this.state);
      const plain = fragment === toFragment(START);
      try {
        history.replaceState(null, "", plain ? location.pathname + location.search : fragment);
      } catch {
        // An embedded document has no address and therefore no link.
      }
    }, 120);
  },
  link() {
    return location.href.split("#")[0] + toFragment(this.state);
  },
};
