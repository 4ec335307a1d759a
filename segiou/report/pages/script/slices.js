// The section of slices: the score that is shown, and the images of one slice or of two.

const MOST_SHOWN = 8;

// The numbers of the images in a slice of the address; null for all images.
function imagesIn({ slice, beside }) {
  if (slice === undefined) return null;
  return new Set([slice, beside].flatMap((name) => data.slices[name] ?? []));
}

function buildSlices() {
  const chooser = byId("slices-score");
  const parts = all(".sliced");
  chooser?.addEventListener("change", () => {
    for (const part of parts) part.hidden = part.id !== chooser.value;
    say(`Slices by ${chooser.selectedOptions[0].textContent}.`);
    if (data.images) showSlices(images);
  });
  for (const link of all(".sliced a")) {
    link.addEventListener("click", (event) => {
      const first = images.state.slice;
      if (!event.shiftKey || first === undefined || first === link.dataset.slice) return;
      event.preventDefault();
      goToSlices(first, link.dataset.slice);
    });
  }
}

function goToSlices(slice, beside) {
  const state = { ...images.state, image: undefined, slice: undefined, beside: undefined };
  if (slice) state.slice = slice;
  if (slice && beside && beside !== slice) state.beside = beside;
  location.hash = address.of(state);
}

// The choice of slices, whose names are too many for the page's text, and their galleries.
function showSlices({ state, question }) {
  const choices = [byId("image-slice"), byId("image-beside")];
  if (!choices[0]) return;
  const chosen = [state.slice ?? "", state.beside ?? ""];
  for (const [k, choice] of choices.entries()) {
    if (choice.length === 1) {
      choice.append(...Object.keys(data.slices).map((name) => html("option", {}, name)));
      choice.addEventListener("change", () => goToSlices(...choices.map(({ value }) => value)));
    }
    choice.value = chosen[k];
  }
  choices[1].disabled = state.slice === undefined;
  const holder = byId("galleries");
  holder.hidden = state.beside === undefined;
  holder.replaceChildren();
  if (holder.hidden) return;
  const canvases = chosen.flatMap((name) => addGallery(holder, name));
  paintGallery(canvases, question);
}

// The first images of a slice in the order of the table, if possible with pictures.
function addGallery(holder, name) {
  const own = new Set(data.slices[name]);
  const listed = images.order.filter((i) => own.has(i));
  const drawn = listed.filter((i) => pictures.has(i));
  const shown = (drawn.length ? drawn : listed).slice(0, MOST_SHOWN);
  const part = html("section", { "aria-label": name }, "", holder);
  const row = all(".sliced:not([hidden]) a").find((link) => link.dataset.slice === name)?.closest("tr");
  const score = row ? `${row.querySelector(".bars b").textContent}, ` : "";
  html("h3", {}, name, part);
  html("p", { class: "asked" }, `${score}${grouped(listed.length)} ${imageNoun}s; the first ${shown.length} in the order of the table`, part);
  const list = html("ul", {}, "", part);
  return shown.map((i) => {
    const link = html("a", { href: address.of({ ...images.state, image: images.ids[i] }) }, "", html("li", {}, "", list));
    const canvas = pictures.has(i) ? html("canvas", { class: "thumb", "aria-hidden": "true" }, "", link) : null;
    link.append(nameOf(images.shortened(images.ids[i])), html("br"));
    const known = images.scores.map((values) => values[i]);
    link.append(known.map((x) => (x === null ? "–" : scored(x, images.score.unit))).join(" / "));
    return [canvas, i];
  });
}

async function paintGallery(canvases, question) {
  await images.shown;
  for (const [canvas, i] of canvases) {
    if (!canvas) continue;
    const picture = await pictures.of(i, true);
    if (question !== images.question || !canvas.isConnected) return;
    if (picture.truth) images.thumbnail(canvas, picture, 288);
  }
}
