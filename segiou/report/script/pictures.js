// Masks from their pictures back to class indices, and overlays of what is correct and wrong.

// Fixed colours, whatever the theme: they lie on images.
const OVERLAY = {
  tp: [22, 158, 132],
  fn: [31, 105, 214],
  fp: [243, 138, 34],
  wrong: [210, 54, 84],
  first: [243, 138, 34],
  second: [31, 105, 214],
  neither: [64, 58, 66],
  ignored: [176, 176, 176],
  paper: [238, 236, 230],
};
const COVER = 0.72;

// What a pixel can be, for one model and for two; the order is that of the key.
const KINDS_OF_ONE = [
  ["tp", "found (TP)"],
  ["fn", "missed (FN)"],
  ["fp", "false positive (FP)"],
];
const KINDS_OF_ALL = [["wrong", "wrong"]];

function kindsOf(models, one) {
  if (models.length === 1) return one ? KINDS_OF_ONE : KINDS_OF_ALL;
  return [
    ...(one ? [["tp", "both correct"]] : []),
    ["first", `only ${models[0]} correct`],
    ["second", `only ${models[1]} correct`],
    ["neither", "both wrong"],
  ];
}

// Gives the kind of a pixel, or "" for one that has nothing to do with the question.
function kindOfOne(t, p, chosen) {
  if (chosen === null) return t === p ? "" : "wrong";
  if (t === chosen) return p === chosen ? "tp" : "fn";
  return p === chosen ? "fp" : "";
}

function kindOfTwo(t, a, b, chosen) {
  if (chosen !== null && t !== chosen && a !== chosen && b !== chosen) return "";
  const right = (p) => (chosen === null ? p === t : (p === chosen) === (t === chosen));
  if (right(a)) return right(b) ? (chosen === null ? "" : "tp") : "first";
  return right(b) ? "second" : "neither";
}

async function pixelsOf(image) {
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}

async function indicesOf(image, table) {
  const pixels = await pixelsOf(image);
  const indices = new Uint16Array(pixels.length / 4);
  for (let i = 0; i < indices.length; i += 1) {
    const packed = (pixels[4 * i] << 16) | (pixels[4 * i + 1] << 8) | pixels[4 * i + 2];
    indices[i] = table.get(packed);
  }
  return indices;
}

function colorTable(colors) {
  return new Map(colors.map((color, index) => [Number.parseInt(color.slice(1), 16), index]));
}

// The image in grey, or plain paper where there is none.
async function groundOf(image, length) {
  const grey = new Uint8ClampedArray(length);
  if (!image) return null;
  const pixels = await pixelsOf(image);
  for (let i = 0; i < length; i += 1) {
    const [r, g, b] = [pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2]];
    grey[i] = 40 + 0.8 * (0.299 * r + 0.587 * g + 0.114 * b);
  }
  return grey;
}

function paint(canvas, picture, chosen) {
  const { truth, preds, ground, ignored } = picture;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(canvas.width, canvas.height);
  const out = image.data;
  for (let i = 0; i < truth.length; i += 1) {
    const t = truth[i];
    let kind = "ignored";
    if (t !== ignored) {
      kind =
        preds.length === 1
          ? kindOfOne(t, preds[0][i], chosen)
          : kindOfTwo(t, preds[0][i], preds[1][i], chosen);
    }
    const color = OVERLAY[kind];
    for (let channel = 0; channel < 3; channel += 1) {
      const under = ground ? ground[i] : OVERLAY.paper[channel];
      const cover = color ? (ground ? COVER : 1) : 0;
      out[4 * i + channel] = Math.round(cover * (color?.[channel] ?? 0) + (1 - cover) * under);
    }
    out[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}
