// Whole-pixel rectangles: moved, resized, scaled, and always inside the frame.

const LIMITS = { least: 2, w: 256, h: 144 };
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function fitSize(size) {
  return { w: clamp(size.w, LIMITS.least, LIMITS.w), h: clamp(size.h, LIMITS.least, LIMITS.h) };
}

function fitRect(rect, size) {
  const w = clamp(rect.w, 1, size.w);
  const h = clamp(rect.h, 1, size.h);
  return { x: clamp(rect.x, 0, size.w - w), y: clamp(rect.y, 0, size.h - h), w, h };
}

const moved = (rect, dx, dy, size) => fitRect({ ...rect, x: rect.x + dx, y: rect.y + dy }, size);

// The edges named in `edges` ("nw", "e" ...) follow the pointer; the others stay where they are.
function stretched(rect, edges, dx, dy, size) {
  let [left, top, right, bottom] = [rect.x, rect.y, rect.x + rect.w, rect.y + rect.h];
  if (edges.includes("w")) left = clamp(left + dx, 0, right - 1);
  if (edges.includes("e")) right = clamp(right + dx, left + 1, size.w);
  if (edges.includes("n")) top = clamp(top + dy, 0, bottom - 1);
  if (edges.includes("s")) bottom = clamp(bottom + dy, top + 1, size.h);
  return { x: left, y: top, w: right - left, h: bottom - top };
}

// The same picture on a finer or coarser grid.
function regridded(rect, from, to) {
  const [fx, fy] = [to.w / from.w, to.h / from.h];
  const [x, y] = [Math.round(rect.x * fx), Math.round(rect.y * fy)];
  const w = Math.round((rect.x + rect.w) * fx) - x;
  const h = Math.round((rect.y + rect.h) * fy) - y;
  return fitRect({ x, y, w: Math.max(1, w), h: Math.max(1, h) }, to);
}

const center = (rect) => ({ x: rect.x + rect.w / 2, y: rect.y + rect.h / 2 });

function shrunkAbout(rect, middle, factor, size) {
  const w = Math.max(1, Math.round(rect.w * factor));
  const h = Math.max(1, Math.round(rect.h * factor));
  return fitRect({ x: Math.round(middle.x - w / 2), y: Math.round(middle.y - h / 2), w, h }, size);
}

// Mistake "stays": each rectangle shrinks about its own centre, which keeps their distance.
// Mistake "shrinks": both shrink about the centre of the truth, distance and all.
function shrunkPair(pair, percent, mistake, size) {
  const factor = percent / 100;
  const [fixed, other] = [center(pair.truth), center(pair.pred)];
  const pull = mistake === "shrinks" ? factor : 1;
  const middle = { x: fixed.x + (other.x - fixed.x) * pull, y: fixed.y + (other.y - fixed.y) * pull };
  return {
    truth: shrunkAbout(pair.truth, fixed, factor, size),
    pred: shrunkAbout(pair.pred, middle, factor, size),
  };
}

const holds = (outer, inner) =>
  inner.x >= outer.x && inner.y >= outer.y &&
  inner.x + inner.w <= outer.x + outer.w && inner.y + inner.h <= outer.y + outer.h;
const same = (a, b) => a.x === b.x && a.y === b.y && a.w === b.w && a.h === b.h;
