// Decodes pictures to class indices and paints them.

// The same colours in both themes, because they are drawn on images.
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

// The kinds of pixel for one model and for two, in the order of the key.
function kindsOf(models, question) {
  const { t, p, c } = question;
  const pair = t !== null || p !== null;
  if (models.length === 1) {
    if (c !== null) return [["tp", "found (TP)"], ["fn", "missed (FN)"], ["fp", "false positive (FP)"]];
    return [[kindOfError(question), pair ? question.text : "wrong"]];
  }
  const [a, b] = models;
  if (pair && t !== p) return [["second", `only ${a}`], ["first", `only ${b}`], ["neither", "both"]];
  if (pair) return [["tp", "both correct"], ["first", `only ${a} correct`], ["second", `only ${b} correct`]];
  return [
    ...(c === null ? [] : [["tp", "both correct"]]),
    ["first", `only ${a} correct`],
    ["second", `only ${b} correct`],
    ["neither", "both wrong"],
  ];
}

function kindOfError({ t, p }) {
  if (t !== null && t === p) return "tp";
  if (t !== null && p === null) return "fn";
  return p !== null && t === null ? "fp" : "wrong";
}

// Returns the kind of a pixel, or "" if the question is not about it.
function kindOfOne(truth, pred, question) {
  const { c } = question;
  if (c === null) return question.holds(truth, pred) ? kindOfError(question) : "";
  if (truth === c) return pred === c ? "tp" : "fn";
  return pred === c ? "fp" : "";
}

function kindOfTwo(truth, a, b, question) {
  const { t, p, c } = question;
  const [first, second] = [question.holds(truth, a), question.holds(truth, b)];
  if (t !== null && t === p) return first ? (second ? "tp" : "first") : second ? "second" : "";
  if (first) return second ? "neither" : "second";
  if (second) return "first";
  return c !== null && truth === c ? "tp" : "";
}

const loaded = (source) => {
  const image = new Image();
  image.src = source;
  return image.decode().then(() => image);
};

// The pixels of an image; at another size, some of them.
async function pixelsOf(source, size) {
  const image = await loaded(source);
  const { width, height } = size ?? { width: image.naturalWidth, height: image.naturalHeight };
  const canvas = setAll(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

// Decodes colours to class indices; without a table, to numbers.
async function indicesOf(source, size, table = null) {
  const pixels = new Uint32Array((await pixelsOf(source, size)).buffer);
  const indices = new Uint16Array(pixels.length);
  let [last, index] = [null, 0];
  for (let i = 0; i < indices.length; i += 1) {
    // Neighbours are mostly equal, and the table is slow.
    if (pixels[i] !== last) {
      last = pixels[i];
      const color = ((last & 255) << 16) | (last & 0xff00) | ((last >> 16) & 255);
      index = table ? table.get(color) : color;
    }
    indices[i] = index;
  }
  return indices;
}

const channelsOf = (color) => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));

// Pictures are in the page, or in scripts next to it: a page opened from disk may read no other file.
const pictures = {
  most: 60,

  build({ colors, pictures: within, folder, ids }) {
    this.colors = colors.map(channelsOf);
    this.table = new Map(colors.map((color, index) => [Number.parseInt(color.slice(1), 16), index]));
    this.ignored = colors.length - 2;
    [this.within, this.folder, this.ids] = [within, folder, ids];
    this.read = new Map();
    this.waiting = new Map();
    globalThis.segiouPicture = (number, id, picture) => this.waiting.get(number)?.(id, picture);
  },

  // Whether an image has pictures, without reading any.
  has(number) {
    return this.folder !== "" || number in this.within;
  },

  // A thumbnail needs few pixels of an image.
  of(number, small = false) {
    const key = `${number} ${small}`;
    let found = this.read.get(key);
    this.read.delete(key);
    found ??= this.source(number).then((source) => decoded(source, small));
    this.read.set(key, found);
    if (this.read.size > this.most) this.read.delete(this.read.keys().next().value);
    return found;
  },

  source(number) {
    if (this.folder === "") {
      const none = { problem: `No pictures of this ${imageNoun} in this file.` };
      return Promise.resolve(this.within[number] ?? none);
    }
    return new Promise((resolve) => {
      const script = document.createElement("script");
      const done = (picture) => {
        this.waiting.delete(number);
        script.remove();
        resolve(picture);
      };
      this.waiting.set(number, (id, picture) =>
        done(id === this.ids[number] ? picture : { problem: "This picture belongs to a different report." }),
      );
      script.addEventListener("error", () => done({ problem: `${script.src} not found.` }));
      script.src = `${this.folder}/${number}.js`;
      document.head.append(script);
    });
  },
};

// The longer side of a thumbnail, in pixels.
const THUMBNAIL = 144;

// Whether a picture is of a volume, which may have a single plane.
const isVolume = ({ full }) => full?.length === 3;

// Decodes a picture: class indices, and the photo in colour and in grey.
async function decoded(found, small) {
  if (!found.masks) return { problem: found.problem };
  const aspect = found.width / found.height;
  const scale = Math.min(1, THUMBNAIL / found.width, THUMBNAIL / found.height);
  const [width, height] = [found.width, found.height].map((n) => Math.max(1, Math.round(n * scale)));
  // The planes of a volume are side by side in its picture, and are cut at its own size.
  const size = small && !isVolume(found) ? { width, height } : null;
  const [truth, ...preds] = await Promise.all(found.masks.map((mask) => indicesOf(mask, size, pictures.table)));
  const objects = await Promise.all(found.objects.map((numbers) => indicesOf(numbers, size)));
  const picture = { ...found, ...size, truth, preds, objects, photo: null, grey: null, name: "", aspect };
  if (isVolume(found)) {
    const whole = (sheet) => unstacked(sheet, found);
    return { ...picture, truth: whole(truth), preds: preds.map(whole), objects: objects.map(whole) };
  }
  if (found.image) {
    picture.photo = await pixelsOf(found.image, size);
    picture.grey = new Uint8ClampedArray(truth.length);
    for (let i = 0; i < truth.length; i += 1) {
      const [r, g, b] = [picture.photo[4 * i], picture.photo[4 * i + 1], picture.photo[4 * i + 2]];
      picture.grey[i] = 40 + 0.8 * (0.299 * r + 0.587 * g + 0.114 * b);
    }
  }
  return picture;
}

// Unpacks a volume, whose planes are side by side in its picture, into planes, rows and columns.
function unstacked(sheet, { width, height, depth, columns }) {
  const voxels = new Uint16Array(depth * height * width);
  for (let z = 0; z < depth; z += 1) {
    const corner = Math.floor(z / columns) * height * columns * width + (z % columns) * width;
    for (let y = 0; y < height; y += 1) {
      const start = corner + y * columns * width;
      voxels.set(sheet.subarray(start, start + width), (z * height + y) * width);
    }
  }
  return voxels;
}

// The plane with most voxels that the question is about, and the row and column with most of those.
function largestError({ truth, preds, width, height, depth }, question) {
  const holds = (i) => truth[i] !== pictures.ignored && preds.some((pred) => question.holds(truth[i], named(pred[i])));
  const fullest = (length, sum) => {
    let [best, most] = [Math.floor(length / 2), 0];
    for (let place = 0; place < length; place += 1) {
      const found = sum(place);
      if (found > most) [best, most] = [place, found];
    }
    return best;
  };
  const count = (number, at) => {
    let found = 0;
    for (let k = 0; k < number; k += 1) found += holds(at(k));
    return found;
  };
  const z = fullest(depth, (place) => count(height * width, (k) => place * height * width + k));
  const y = fullest(height, (place) => count(width, (k) => (z * height + place) * width + k));
  const x = fullest(width, (place) => count(height, (k) => (z * height + k) * width + place));
  return [z, y, x];
}

// The place in an image, as parts of it, with most pixels that the question is about.
function fullestPlace({ truth, preds, width, height }, question) {
  const side = Math.max(Math.ceil(Math.max(width, height) / 24), 1);
  const columns = Math.ceil(width / side);
  const cells = new Map();
  let best = { number: 0, x: width / 2, y: height / 2 };
  for (let i = 0; i < truth.length; i += 1) {
    if (truth[i] === pictures.ignored) continue;
    if (!preds.some((pred) => kindOfOne(truth[i], named(pred[i]), question))) continue;
    const [x, y] = [i % width, Math.floor(i / width)];
    const key = Math.floor(y / side) * columns + Math.floor(x / side);
    const cell = cells.get(key) ?? { number: 0, x: 0, y: 0 };
    cells.set(key, cell);
    const { number } = cell;
    Object.assign(cell, { number: number + 1, x: cell.x + (x - cell.x) / (number + 1), y: cell.y + (y - cell.y) / (number + 1) });
    if (cell.number > best.number) best = cell;
  }
  return [(best.x + 0.5) / width, (best.y + 0.5) / height];
}

const PLANES = ["axial", "coronal", "sagittal"];

// The planes to draw: an image is one, a volume has three through a place, but none of a single row.
function planesOf(picture, place) {
  if (!picture.truth) return [];
  if (!isVolume(picture)) return [picture];
  const { width, height, depth, spacing } = picture;
  const [z, y, x] = place;
  const [dx, dy, dz] = spacing;
  const across = [width * dx, width * dx, height * dy];
  const at = [
    [width, height, dx / dy, (r, c) => (z * height + r) * width + c],
    [width, depth, dx / dz, (r, c) => (r * height + y) * width + c],
    [height, depth, dy / dz, (r, c) => (r * height + c) * width + x],
  ];
  const planes = at.map(([columns, rows, pixel, index], plane) => {
    const cut = (voxels) => {
      const values = new Uint16Array(rows * columns);
      for (let r = 0; r < rows; r += 1) {
        for (let c = 0; c < columns; c += 1) values[r * columns + c] = voxels[index(r, c)];
      }
      return values;
    };
    const [truth, ...preds] = [picture.truth, ...picture.preds].map(cut);
    const [aspect, objects] = [(columns * pixel) / rows, picture.objects.map(cut)];
    const levels = picture.levels?.map((voxels) => voxels && cut(voxels));
    const { outcomes } = picture;
    const size = { name: PLANES[plane], width: columns, height: rows, aspect, across: across[plane] };
    return { ...size, truth, preds, objects, levels, outcomes, photo: null, grey: null };
  });
  const seen = planes.filter((plane) => Math.min(plane.width, plane.height) > 1);
  return seen.length ? seen : planes;
}

// Paints one layer of a plane: "image", "truth", the number of a model, "difference", or the objects
// or scores of a model.
function paint(canvas, plane, content, question, opacity) {
  [canvas.width, canvas.height] = [plane.width, plane.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(plane.width, plane.height);
  const out = new Uint32Array(image.data.buffer);
  const colorAt = colorsOf(plane, content, question);
  // Scores cover the photo: their colours are a scale.
  const { grey, photo } = content.score === undefined ? plane : {};
  const pack = (r, g, b) => 0xff000000 | (b << 16) | (g << 8) | r;
  let [last, opaque] = [null, 0];
  for (let i = 0; i < out.length; i += 1) {
    const color = colorAt(i);
    if (!grey) {
      if (color !== last) [last, opaque] = [color, pack(...(color ?? OVERLAY.paper))];
      out[i] = opaque;
    } else if (color) {
      const under = (1 - opacity) * grey[i];
      out[i] = pack(opacity * color[0] + under, opacity * color[1] + under, opacity * color[2] + under);
    } else if (content === "image") out[i] = pack(photo[4 * i], photo[4 * i + 1], photo[4 * i + 2]);
    else out[i] = pack(grey[i], grey[i], grey[i]);
  }
  context.putImageData(image, 0, 0);
}

// Predictions outside all classes have the index of unassigned pixels in pictures, and C in questions.
const named = (index) => Math.min(index, pictures.ignored);

// The colour of a pixel, if any.
function colorsOf(plane, content, question) {
  const { truth, preds } = plane;
  const { colors, ignored } = pictures;
  if (content.model !== undefined) return objects.colorsOf(plane, content.model, question);
  if (content.score !== undefined) return scores.colorsOf(plane, content.score);
  if (content === "image") return () => undefined;
  if (content === "truth") return (i) => colors[truth[i]];
  if (content !== "difference") return (i) => colors[preds[content][i]];
  const [first, second] = preds;
  const kindOf = (t, a, b) => (second ? kindOfTwo(t, a, named(b), question) : kindOfOne(t, a, question));
  let [t, a, b, color] = [];
  return (i) => {
    if (truth[i] !== t || first[i] !== a || second?.[i] !== b) {
      [t, a, b] = [truth[i], first[i], second?.[i]];
      color = OVERLAY[t === ignored ? "ignored" : kindOf(t, named(a), b)];
    }
    return color;
  };
}
