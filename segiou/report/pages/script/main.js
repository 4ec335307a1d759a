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

// Definitions open next to their term, and close when it moves; a mouse need not click.
function buildTerms() {
  let moved = () => false;
  for (const term of all(".term")) {
    const definition = byId(term.getAttribute("popovertarget"));
    const place = () => {
      const { left, top, bottom } = term.getBoundingClientRect();
      const [over, under] = [`${innerHeight - top + 6}px`, `${bottom + 6}px`];
      setStyle(definition, {
        left: `${Math.max(Math.min(left, innerWidth - 330), 8)}px`,
        ...(bottom < innerHeight / 2 ? { top: under, bottom: "auto" } : { top: "auto", bottom: over }),
      });
      moved = () => {
        const now = term.getBoundingClientRect();
        return now.left !== left || now.top !== top;
      };
    };
    term.addEventListener("click", place);
    term.addEventListener("pointerenter", ({ pointerType }) => {
      if (pointerType !== "mouse") return;
      place();
      definition.showPopover();
    });
    term.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && definition.hidePopover());
  }
  // A scroll that brought the term into view is reported after its definition opened.
  const hide = () => moved() && document.querySelector(".definition:popover-open")?.hidePopover();
  addEventListener("scroll", hide, true);
}

// Collapsed parts are printed.
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

// A focused name is seen whole, also in a table that was scrolled to its last columns.
addEventListener("focusin", ({ target }) => {
  const table = target.closest(".scroller");
  if (table && target.closest("tbody th:first-child")) table.scrollLeft = 0;
});

buildTheme();
all("table.sortable").forEach(buildTable);
all(".table-tools[data-table]").forEach(buildFilter);
for (const holder of all(".curves")) new Curves(holder);
if (data.confusion) matrix.build();
if (data.images) images.build();
buildSlices();
buildTerms();
buildCopying();
buildPrinting();
