// Scores of two rectangles on a grid, from integer counts: the definitions of segiou.metrics.

// 0/0 is undefined, which JavaScript also spells NaN.
const ratio = (numerator, denominator) => numerator / denominator;
const area = (r) => r.w * r.h;
const overlapLength = (a, aLength, b, bLength) =>
  Math.max(0, Math.min(a + aLength, b + bLength) - Math.max(a, b));

function hullOf(a, b) {
  const x = Math.min(a.x, b.x);
  const y = Math.min(a.y, b.y);
  return { x, y, w: Math.max(a.x + a.w, b.x + b.w) - x, h: Math.max(a.y + a.h, b.y + b.h) - y };
}

function measure(truth, pred, size) {
  const tp = overlapLength(truth.x, truth.w, pred.x, pred.w) * overlapLength(truth.y, truth.h, pred.y, pred.h);
  const fn = area(truth) - tp;
  const fp = area(pred) - tp;
  const total = size.w * size.h;
  const tn = total - tp - fn - fp;
  const union = tp + fp + fn;
  const hull = area(hullOf(truth, pred));
  const iou = ratio(tp, union);
  return {
    tp, fp, fn, tn, total, union, hull, iou,
    dice: ratio(2 * tp, 2 * tp + fp + fn),
    pixel_accuracy: ratio(tp + tn, total),
    precision: ratio(tp, tp + fp),
    recall: ratio(tp, tp + fn),
    giou: iou - ratio(hull - union, hull),
    // Accuracy of the prediction "there is nothing here": every pixel outside the truth is right.
    nothing: ratio(total - area(truth), total),
  };
}

const THIN = "\u2009";
const MINUS = "\u2212";
const countText = (n) => (n < 10000 ? String(n) : grouped(n, THIN));
const fractionText = (numerator, denominator) => `${countText(numerator)}${THIN}/${THIN}${countText(denominator)}`;

const percentText = (value) => percent(value, "undefined");
const pointsText = (value) => fixed(100 * value);

// "=" only where the rounded text is the number itself.
function equalsText(value) {
  if (Number.isNaN(value)) return "is undefined";
  const exact = Number((100 * value).toFixed(2)) / 100 === value;
  const text = percentText(value);
  return /[<>]/.test(text) ? text : `${exact ? "=" : "≈"} ${text}`;
}

const SCORES = [
  { key: "iou", name: "IoU", formula: "TP / (TP + FP + FN)", fraction: (n) => fractionText(n.tp, n.union) },
  { key: "dice", name: "Dice", formula: "2 TP / (2 TP + FP + FN)", fraction: (n) => fractionText(2 * n.tp, 2 * n.tp + n.fp + n.fn) },
  { key: "pixel_accuracy", name: "Pixel accuracy", formula: "(TP + TN) / all", fraction: (n) => fractionText(n.tp + n.tn, n.total) },
  { key: "precision", name: "Precision", formula: "TP / (TP + FP)", fraction: (n) => fractionText(n.tp, n.tp + n.fp) },
  { key: "recall", name: "Recall", formula: "TP / (TP + FN)", fraction: (n) => fractionText(n.tp, n.tp + n.fn) },
  {
    key: "giou", name: "Generalised IoU", formula: "IoU − (H − union) / H",
    fraction: (n) => `${fractionText(n.tp, n.union)} ${MINUS} ${fractionText(n.hull - n.union, n.hull)}`,
  },
];
