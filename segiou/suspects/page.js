// The review: verdicts of the cards, kept in the browser and saved as CSV for --reviewed.

const review = {
  // Lists of other runs have other rows, and so another key, as has a page with other verdicts.
  key: `segiou-review-${JSON.stringify(data.review)}`,

  stored() {
    try {
      return JSON.parse(localStorage.getItem(this.key)) ?? [];
    } catch {
      return []; // storage may be blocked
    }
  },

  store() {
    try {
      localStorage.setItem(this.key, JSON.stringify(data.review.map((row) => row[4])));
    } catch {
      // The verdicts are still on the page.
    }
  },

  show() {
    const given = data.review.map((row) => row[4]).filter(Boolean);
    const wrong = given.filter((verdict) => verdict === "wrong").length;
    byId("review-state").textContent = given.length
      ? `${given.length} of ${data.review.length} reviewed, ${wrong} wrong.`
      : "Is the truth wrong? Choose a verdict for each region; verdicts stay in this browser.";
    for (const card of all(".suspect")) {
      const verdict = data.review[card.dataset.row][4];
      card.classList.toggle("reviewed", verdict !== "");
      for (const choice of all("input", card)) choice.checked = choice.value === verdict;
    }
  },

  csv() {
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    // Spreadsheets treat other texts as formulas; the apostrophe is removed again by segiou.
    const cell = (text) => quoted(text.replace(/^[=+\-@\t\r\n]/, "'$&"));
    const rows = data.review.filter((row) => row[4]);
    return [["image", "label", "suggestion", "box", "verdict"], ...rows]
      .map((row) => `${row.map(cell).join(",")}\n`)
      .join("");
  },

  build() {
    for (const [at, verdict] of this.stored().entries()) data.review[at][4] = verdict;
    for (const choice of all(".verdict-choice input")) {
      choice.addEventListener("change", () => {
        data.review[choice.closest(".suspect").dataset.row][4] = choice.value;
        this.store();
        this.show();
      });
    }
    byId("review-export").addEventListener("click", () => {
      const url = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
      html("a", { href: url, download: "reviewed.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    });
    byId("review-clear").addEventListener("click", () => {
      if (!confirm("Clear all verdicts?")) return;
      for (const row of data.review) row[4] = "";
      this.store();
      this.show();
    });
    this.show();
  },
};

if (data.review?.length) review.build();
