// Zoom and pan, of all panels of the viewer at once: wheel, one and two fingers, keys.

const MOST_ZOOM = 32;

const panels = {
  build(holder) {
    this.holder = holder;
    this.pointers = new Map();
    this.reset();
    holder.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    holder.addEventListener("pointerdown", (event) => this.press(event));
    holder.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) {
      holder.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
    holder.addEventListener("dblclick", () => this.reset());
  },

  reset() {
    this.view = { scale: 1, x: 0, y: 0 };
    this.apply();
  },

  get zoomed() {
    return this.view.scale > 1;
  },

  // The place under a point stays under it. Places are parts of a panel.
  zoom(factor, [px, py] = [0.5, 0.5]) {
    const { scale, x, y } = this.view;
    const next = Math.min(Math.max(scale * factor, 1), MOST_ZOOM);
    const kept = (place, offset) => place - ((place - offset) * next) / scale;
    this.view = { scale: next, x: kept(px, x), y: kept(py, y) };
    this.apply();
  },

  // Enlarges a place, part of a panel, so that small objects can be seen.
  show([px, py]) {
    const scale = Math.max(this.view.scale, 4);
    this.view = { scale, x: 0.5 - scale * px, y: 0.5 - scale * py };
    this.apply();
  },

  pan(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.apply();
  },

  apply() {
    const { scale } = this.view;
    const within = (offset) => Math.min(Math.max(offset, 1 - scale), 0);
    this.view.x = within(this.view.x);
    this.view.y = within(this.view.y);
    for (const canvas of all("canvas", this.holder)) {
      canvas.style.transform = `translate(${100 * this.view.x}%, ${100 * this.view.y}%) scale(${scale})`;
    }
    this.holder.classList.toggle("zoomed", this.zoomed);
    byId("zoom-reset").textContent = `${Math.round(100 * scale)} %`;
  },

  placeOf(event) {
    const frame = event.target.closest(".frame");
    if (!frame) return null;
    const box = frame.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height, box];
  },

  wheel(event) {
    // The page scrolls on, unless the pictures are large, were clicked, or Ctrl asks for it.
    const wanted = event.ctrlKey || viewer.large || this.holder.contains(document.activeElement);
    const place = this.placeOf(event);
    if (!wanted || !place) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY / 300), place);
  },

  press(event) {
    if (!this.placeOf(event)) return;
    this.pointers.set(event.pointerId, event);
    if (event.pointerType === "mouse") event.target.setPointerCapture(event.pointerId);
  },

  move(event) {
    const last = this.pointers.get(event.pointerId);
    const place = this.placeOf(event);
    if (!last || !place) return;
    const box = place[2];
    const others = [...this.pointers.values()].filter((other) => other.pointerId !== event.pointerId);
    if (others.length === 1) {
      const gap = (one) => Math.hypot(one.clientX - others[0].clientX, one.clientY - others[0].clientY);
      this.zoom(gap(event) / Math.max(gap(last), 1), place);
    } else if (this.zoomed) {
      this.pan((event.clientX - last.clientX) / box.width, (event.clientY - last.clientY) / box.height);
    }
    this.pointers.set(event.pointerId, event);
  },

  // Whether the key was one of theirs.
  key(key) {
    const steps = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };
    if (key === "+" || key === "=") this.zoom(1.5);
    else if (key === "-") this.zoom(1 / 1.5);
    else if (key === "0") this.reset();
    else if (this.zoomed && key in steps) this.pan(...steps[key]);
    else return false;
    return true;
  },
};
