function buildCopying() {
  for (const button of all(".copy")) {
    const text = button.closest(".recipe").querySelector("code").textContent;
    if (!navigator.clipboard) {
      button.hidden = true;
      continue;
    }
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("Copied.");
      setTimeout(() => (button.textContent = "Copy"), 1600);
    });
  }
}

// On paper nothing can be unfolded.
function buildPrinting() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const details of opened) details.open = true;
    if (data.images) images.print(true);
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
    if (data.images) images.print(false);
  });
}

buildTheme();
all("table.sortable").forEach(buildTable);
all(".table-tools[data-table]").forEach(buildFilter);
if (data.confusion) matrix.build();
if (data.images) images.build();
buildCopying();
buildPrinting();
