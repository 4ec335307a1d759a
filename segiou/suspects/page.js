// The review: verdicts of the cards, kept in the browser and saved as CSV for --reviewed.

const review = {
  // Lists of other runs have other rows, and so another key.
  key: `segiou-review-${JSON.stringify(data.review?.map((row) => row.slice(0, 4)))}`,

  stored() {
    try {
      return JSON.parse(localStorage.getItem(this.key)) ?? {};
    } catch {
      return {}; // storage may be blocked
    }
  },

  store() {
    const given = Object.fromEntries(data.review.map((row, at) => [at, row[4]]).filter(([, verdict]) => verdict));
    try {
      localStorage.setItem(this.key, JSON.stringify(given));
    } catch {
      // The verdicts are still on the page.
    }
  },

  show() {
    const given = data.review.map((row) => row[4]).filter(Boolean);
    const wrong = given.filter((verdict) => verdict === "wrong").length;
    byId("review-state").textContent = given.length
      ? `${given.length} of ${data.review.length} reviewed, ${wrong} wrong.`
      : "Is the truth wrong here? Answer below; the verdicts stay in this browser.";
    for (const card of all(".suspect")) {
      const verdict = data.review[card.dataset.row][4];
      card.classList.toggle("reviewed", verdict !== "");
      for (const choice of all("input", card)) choice.checked = choice.value === verdict;
    }
  },

  csv() {
    const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const rows = data.review.filter((row) => row[4]);
    return [["image", "label", "suggestion", "box", "verdict"], ...rows]
      .map((row) => `${row.map(cell).join(",")}\n`)
      .join("");
  },

  build() {
    for (const [at, verdict] of Object.entries(this.stored())) if (data.review[at]) data.review[at][4] = verdict;
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
      for (const row of data.review) row[4] = "";
      this.store();
      this.show();
    });
    this.show();
  },
};

if (data.review?.length) review.build();
