// Wiring: tools, theme, address, and a window for tests.

const PRESETS = [[16, 9], [32, 18], [64, 36], [128, 72], [256, 144], [16, 16], [64, 64], [128, 128]];

const tools = {
  build() {
    this.preset = byId("size-preset");
    this.preset.addEventListener("change", () => {
      const [w, h] = this.preset.value.split("x").map(Number);
      store.setSize({ w, h });
    });
    byId("swap").addEventListener("click", () => {
      const { truth, pred } = store.state.drawn;
      store.change({ drawn: { truth: pred, pred: truth } });
    });
    byId("match").addEventListener("click", () => store.setRect("pred", store.shown().truth));
    byId("reset").addEventListener("click", () => {
      shrink.stop();
      store.reset();
    });
    byId("copy").addEventListener("click", () => this.copy());
  },

  drawSizes() {
    const { w, h } = store.state.size;
    const value = `${w}x${h}`;
    if (this.preset.value === value && this.preset.options.length) return;
    const known = PRESETS.some(([pw, ph]) => pw === w && ph === h);
    const sizes = known ? PRESETS : [...PRESETS, [w, h]];
    this.preset.replaceChildren();
    for (const [pw, ph] of sizes) html("option", { value: `${pw}x${ph}` }, `${pw} × ${ph}`, this.preset);
    this.preset.value = value;
  },

  async copy() {
    const field = byId("link");
    field.value = store.link();
    try {
      await navigator.clipboard.writeText(field.value);
      field.hidden = true;
      byId("copy").textContent = "Copied";
      byId("news").textContent = "Link copied.";
      setTimeout(() => (byId("copy").textContent = "Copy link"), 1600);
    } catch {
      // Without a clipboard, show the link selected so that it can be copied by hand.
      field.hidden = false;
      field.select();
    }
  },
};

function publicState() {
  const { truth, pred } = store.shown();
  const { size, scale, mistake } = store.state;
  const n = store.numbers();
  const keys = ["tp", "fp", "fn", "tn", ...SCORES.map((score) => score.key)];
  const numbers = Object.fromEntries(keys.map((key) => [key, n[key]]));
  return { size, truth, pred, scale, mistake, numbers, solved: challenges.solved(), cell: stage.cell };
}

buildTheme();
stage.build();
readout.build();
shrink.build();
challenges.build();
tools.build();
gestures.build();
masks.build();
rarer.build();
rarer.start();
brush.build();
store.listeners.push(
  () => stage.draw(),
  (settled) => readout.draw(settled),
  () => shrink.draw(),
  (settled) => challenges.look(settled),
  () => tools.drawSizes(),
);
addEventListener("hashchange", () => {
  shrink.stop();
  store.state = fromFragment(location.hash);
  store.notify(false);
});
// Not settled: the state of a link is not yet an action of the reader.
store.notify(false);
views.build();
window.segiou = Object.freeze({
  state: publicState,
  painted: () => ({
    truth: Array.from(masks.truth), pred: Array.from(masks.pred), size: [masks.width, masks.height],
    scores: masks.scores(), rarer: rarer.shown,
  }),
});
