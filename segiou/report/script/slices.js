// The section of slices: the score that is shown, and links to the images of one slice or of two.

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
  });
  for (const link of all(".sliced a")) {
    link.addEventListener("click", (event) => {
      const first = images.state.slice;
      if (!event.shiftKey || first === undefined || first === link.dataset.slice) return;
      event.preventDefault();
      location.hash = address.of({ slice: first, beside: link.dataset.slice });
    });
  }
}
