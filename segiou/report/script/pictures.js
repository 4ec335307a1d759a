// Masks from their pictures back to class indices, and what is drawn of them.

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

// What a pixel can be, for one model and for two; the order is that of the key.
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

// Gives the kind of a pixel, or "" for one that has nothing to do with the question.
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

async function pixelsOf(source) {
  const image = await loaded(source);
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}

// What a picture's colours stand for; without a table they are numbers.
async function indicesOf(source, table = null) {
  const pixels = await pixelsOf(source);
  const indices = new Uint16Array(pixels.length / 4);
  for (let i = 0; i < indices.length; i += 1) {
    const packed = (pixels[4 * i] << 16) | (pixels[4 * i + 1] << 8) | pixels[4 * i + 2];
    indices[i] = table ? table.get(packed) : packed;
  }
  return indices;
}

const channelsOf = (color) => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));

// Pictures are in the page, or in scripts beside it: a page from disk may read no other file.
const pictures = {
  most: 40,

  build({ colors, pictures: within, folder, ids }) {
    this.colors = colors.map(channelsOf);
    this.table = new Map(colors.map((color, index) => [Number.parseInt(color.slice(1), 16), index]));
    this.ignored = colors.length - 2;
    [this.within, this.folder, this.ids] = [within, folder, ids];
    this.read = new Map();
    this.waiting = new Map();
    globalThis.segiouPicture = (number, id, picture) => this.waiting.get(number)?.(id, picture);
  },

  // What is known of an image's pictures without reading any.
  has(number) {
    return this.folder !== "" || number in this.within;
  },

  of(number) {
    let found = this.read.get(number);
    this.read.delete(number);
    found ??= this.source(number).then(decoded);
    this.read.set(number, found);
    if (this.read.size > this.most) this.read.delete(this.read.keys().next().value);
    return found;
  },

  source(number) {
    if (this.folder === "") {
      const none = { problem: "This file does not hold the pictures of this image." };
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
        done(id === this.ids[number] ? picture : { problem: "The picture beside the page is of another report." }),
      );
      script.addEventListener("error", () => done({ problem: `${script.src} is not there.` }));
      script.src = `${this.folder}/${number}.js`;
      document.head.append(script);
    });
  },
};

// Reads a picture whole: class indices, and the image in colour and in grey.
async function decoded(found) {
  if (!found.masks) return { problem: found.problem };
  const [truth, ...preds] = await Promise.all(found.masks.map((mask) => indicesOf(mask, pictures.table)));
  const objects = await Promise.all(found.objects.map((numbers) => indicesOf(numbers)));
  const picture = { ...found, truth, preds, objects, photo: null, grey: null, name: "", aspect: found.width / found.height };
  if (found.depth > 1) return stacked(picture);
  if (found.image) {
    picture.photo = await pixelsOf(found.image);
    picture.grey = new Uint8ClampedArray(truth.length);
    for (let i = 0; i < truth.length; i += 1) {
      const [r, g, b] = [picture.photo[4 * i], picture.photo[4 * i + 1], picture.photo[4 * i + 2]];
      picture.grey[i] = 40 + 0.8 * (0.299 * r + 0.587 * g + 0.114 * b);
    }
  }
  return picture;
}

// A volume whose planes lie side by side in its picture: voxels in the order of planes, rows, columns.
function stacked(picture) {
  const { width, height, depth, columns } = picture;
  const unmounted = (sheet) => {
    const voxels = new Uint16Array(depth * height * width);
    for (let z = 0; z < depth; z += 1) {
      const corner = Math.floor(z / columns) * height * columns * width + (z % columns) * width;
      for (let y = 0; y < height; y += 1) {
        const start = corner + y * columns * width;
        voxels.set(sheet.subarray(start, start + width), (z * height + y) * width);
      }
    }
    return voxels;
  };
  const { truth, preds, objects } = picture;
  return { ...picture, truth: unmounted(truth), preds: preds.map(unmounted), objects: objects.map(unmounted) };
}

// Where most voxels are asked for: the plane that has most of them, and its row and its column.
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

const PLANES = ["axial", "coronal", "sagittal"];

// The planes to be drawn: an image is one, a volume has three through a place.
function planesOf(picture, place) {
  if (!picture.truth) return [];
  if (!(picture.depth > 1)) return [picture];
  const { width, height, depth, spacing } = picture;
  const [z, y, x] = place;
  const [dx, dy, dz] = spacing;
  const at = [
    [width, height, dx / dy, (r, c) => (z * height + r) * width + c],
    [width, depth, dx / dz, (r, c) => (r * height + y) * width + c],
    [height, depth, dy / dz, (r, c) => (r * height + c) * width + x],
  ];
  return at.map(([columns, rows, pixel, index], plane) => {
    const cut = (voxels) => {
      const values = new Uint16Array(rows * columns);
      for (let r = 0; r < rows; r += 1) {
        for (let c = 0; c < columns; c += 1) values[r * columns + c] = voxels[index(r, c)];
      }
      return values;
    };
    const [truth, ...preds] = [picture.truth, ...picture.preds].map(cut);
    const [aspect, objects] = [(columns * pixel) / rows, picture.objects.map(cut)];
    const { outcomes } = picture;
    const size = { name: PLANES[plane], width: columns, height: rows, aspect };
    return { ...size, truth, preds, objects, outcomes, photo: null, grey: null };
  });
}

// Draws one reading of a plane: "image", "truth", the number of a model, "difference", or the objects
// of a model.
function paint(canvas, plane, content, question, opacity) {
  [canvas.width, canvas.height] = [plane.width, plane.height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(plane.width, plane.height);
  const out = image.data;
  const colorAt = colorsOf(plane, content, question);
  const { grey, photo } = plane;
  const cover = grey ? opacity : 1;
  for (let i = 0; i < plane.truth.length; i += 1) {
    const color = colorAt(i);
    for (let channel = 0; channel < 3; channel += 1) {
      let under = OVERLAY.paper[channel];
      if (grey) under = content === "image" ? photo[4 * i + channel] : grey[i];
      out[4 * i + channel] = color ? cover * color[channel] + (1 - cover) * under : under;
    }
    out[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// A prediction of no class has the index of unassigned pixels in pictures, and C in questions.
const named = (index) => Math.min(index, pictures.ignored);

// Which colour lies on a pixel, if any.
function colorsOf(plane, content, question) {
  const { truth, preds } = plane;
  const { colors, ignored } = pictures;
  if (content.model !== undefined) return objects.colorsOf(plane, content.model, question);
  if (content === "image") return () => null;
  if (content === "truth") return (i) => colors[truth[i]];
  if (content !== "difference") return (i) => colors[preds[content][i]];
  return (i) => {
    if (truth[i] === ignored) return OVERLAY.ignored;
    const [a, b] = preds.map((pred) => named(pred[i]));
    const kind = b === undefined ? kindOfOne(truth[i], a, question) : kindOfTwo(truth[i], a, b, question);
    return OVERLAY[kind];
  };
}
