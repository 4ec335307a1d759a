// Tables that can be sorted by column and filtered by text.

function compareCells(a, b, sign) {
  const [x, y] = [a, b].map((text) => Number(text.replace(/^(-?)inf$/, "$1Infinity")));
  const named = a !== "nan" && b !== "nan" && (Number.isNaN(x) || Number.isNaN(y));
  if (named) return sign * a.localeCompare(b, undefined, { numeric: true });
  // Undefined values come last in either direction.
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return sign * (x - y);
}

function buildTable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  const sortedFirst = headings.find((heading) => heading.hasAttribute("aria-sort"));

  function sort(heading, direction) {
    const column = headings.indexOf(heading);
    const value = (row) => row.cells[column].dataset.value ?? "nan";
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...original];
    if (direction) rows.sort((a, b) => compareCells(value(a), value(b), sign));
    body.append(...rows);
    for (const other of headings) other.removeAttribute("aria-sort");
    if (direction) heading.setAttribute("aria-sort", direction);
    else sortedFirst?.setAttribute("aria-sort", "descending");
    const name = heading.textContent.trim();
    say(direction ? `Sorted by ${name}, ${direction}.` : "Original order restored.");
  }

  for (const heading of headings) {
    const button = heading.querySelector(".sort");
    if (!button) continue;
    const first = button.dataset.first;
    const second = first === "ascending" ? "descending" : "ascending";
    button.addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      sort(heading, now === null ? first : now === first ? second : null);
    });
  }
}

function buildFilter(tools) {
  const table = byId(tools.dataset.table);
  const rows = [...table.tBodies[0].rows];
  const find = tools.querySelector(".find");
  const hide = tools.querySelector(".hide-absent");
  const found = tools.querySelector(".found");
  const names = new Map(rows.map((row) => [row, namesOf(row)]));

  function apply() {
    const text = find.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const absent = row.classList.contains("absent");
      // A search by name finds absent classes.
      const hidden = text ? !names.get(row).includes(text) : Boolean(hide?.checked && absent);
      row.hidden = hidden;
      shown += !hidden;
    }
    found.textContent = text ? `${shown} of ${rows.length}` : "";
  }

  find.addEventListener("input", apply);
  hide?.addEventListener("change", apply);
  apply();
}

function namesOf(row) {
  const cells = [...row.cells].filter((cell) => cell.matches("th, .text"));
  return cells.map((cell) => (cell.dataset.value ?? cell.textContent).toLowerCase()).join("\n");
}
