// The choice of colours, kept for all pages.

function buildTheme() {
  const select = byId("theme");
  // Storage may be forbidden to a page opened from disk; then the choice lasts as long as the page.
  const memory = (use) => {
    try {
      return use(localStorage);
    } catch {
      return null;
    }
  };
  const apply = () => {
    if (select.value) document.documentElement.dataset.theme = select.value;
    else delete document.documentElement.dataset.theme;
  };
  select.value = memory((storage) => storage.getItem("segiou-theme")) ?? "";
  if (select.selectedIndex < 0) select.value = "";
  apply();
  select.addEventListener("change", () => {
    apply();
    memory((storage) => storage.setItem("segiou-theme", select.value));
  });
}
