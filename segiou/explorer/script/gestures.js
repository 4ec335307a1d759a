// Mouse, pen and touch through pointer events, and the keyboard, all ending in store.setRect.

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const gestures = {
  drag: null,

  build() {
    const { svg } = stage;
    svg.addEventListener("pointerdown", (event) => this.begin(event));
    svg.addEventListener("pointermove", (event) => this.follow(event));
    svg.addEventListener("pointerup", (event) => this.end(event, true));
    svg.addEventListener("pointercancel", (event) => this.end(event, false));
    // The frame scrolls the page, the shapes must not; the CSS for it (touch-action) is
    // not heeded everywhere on the parts of a drawing. The pointer event comes first and sets `drag`.
    svg.addEventListener("touchstart", (event) => {
      if (this.drag) event.preventDefault();
    }, { passive: false });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.drag) this.end({ pointerId: this.drag.pointer }, false);
    });
    for (const which of ["truth", "pred"]) {
      const { group } = stage.shapes[which];
      group.addEventListener("focus", () => store.activate(which));
      group.addEventListener("keydown", (event) => this.key(event, which));
    }
  },

  // If both are under the pointer: the inner one if one contains the other, else the active one.
  choose(event) {
    const { truth, pred } = store.shown();
    const bounds = stage.svg.getBoundingClientRect();
    const at = {
      x: (event.clientX - bounds.left - stage.left) / stage.cell,
      y: (event.clientY - bounds.top - stage.top) / stage.cell,
      w: 0, h: 0,
    };
    const [onTruth, onPred] = [holds(truth, at), holds(pred, at)];
    if (onTruth !== onPred) return onTruth ? "truth" : "pred";
    if (onTruth && !same(truth, pred)) {
      if (holds(truth, pred)) return "pred";
      if (holds(pred, truth)) return "truth";
    }
    if (onTruth) return store.active;
    return event.target.closest("[data-which]")?.dataset.which ?? null;
  },

  begin(event) {
    if (this.drag || event.button !== 0) return;
    const handle = event.target.closest(".handle");
    const which = handle ? store.active : this.choose(event);
    if (!which) return;
    event.preventDefault();
    shrink.stop();
    stage.svg.setPointerCapture(event.pointerId);
    stage.shapes[which].group.focus({ preventScroll: true, focusVisible: false });
    store.activate(which);
    this.drag = {
      which, pointer: event.pointerId, edges: handle ? handle.dataset.edges : null,
      from: store.shown()[which], before: store.state, x: event.clientX, y: event.clientY,
    };
  },

  follow(event) {
    const { drag } = this;
    if (!drag || event.pointerId !== drag.pointer) return;
    const dx = Math.round((event.clientX - drag.x) / stage.cell);
    const dy = Math.round((event.clientY - drag.y) / stage.cell);
    const { size } = store.state;
    const rect = drag.edges ? stretched(drag.from, drag.edges, dx, dy, size) : moved(drag.from, dx, dy, size);
    if (!same(rect, store.shown()[drag.which])) store.setRect(drag.which, rect, false);
  },

  end(event, keep) {
    const { drag } = this;
    if (!drag || event.pointerId !== drag.pointer) return;
    this.drag = null;
    store.change(keep ? {} : drag.before);
  },

  key(event, which) {
    const step = ARROWS[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    shrink.stop();
    const [rect, { size }] = [store.shown()[which], store.state];
    const next = event.shiftKey ? stretched(rect, "se", ...step, size) : moved(rect, ...step, size);
    if (!same(rect, next)) store.setRect(which, next);
  },
};
