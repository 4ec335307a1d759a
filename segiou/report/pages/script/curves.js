// Curves of a chosen row of a measure's table, with a slider along them.

const CHART = { width: 320, height: 280, left: 52, right: 12, top: 10, bottom: 44 };

class Curves {
  constructor(holder) {
    this.holder = holder;
    this.rows = data.curves[holder.dataset.curves];
    [this.select, this.slider, this.button] = ["select", "input", ".best"].map((one) => holder.querySelector(one));
    this.select.addEventListener("change", () => this.choose());
    this.slider.addEventListener("input", () => this.move());
    this.button.addEventListener("click", () => {
      this.slider.value = this.row.best;
      this.move();
    });
    this.choose();
  }

  choose() {
    this.row = this.rows[this.select.selectedIndex];
    const { series, best, charts } = this.row;
    [[this.name, this.steps], ...this.values] = Object.entries(series);
    const last = this.steps.length - 1;
    this.slider.max = last;
    this.slider.value = best;
    this.holder.querySelector(".steps-name").textContent = this.name.replace(/^./, (letter) => letter.toUpperCase());
    this.button.textContent = `Best ${this.name}: ${this.textOf(best)}`;
    // The middle of the thumb does not reach the ends.
    const part = best / Math.max(last, 1);
    setStyle(this.holder.querySelector(".tick"), { left: `calc(${100 * part}% + ${8 - 16 * part}px - 5px)` });
    this.drawn = charts.map((chart) => this.draw(chart));
    this.holder.querySelector(".charts").replaceChildren(...this.drawn.map(({ figure }) => figure));
    this.move();
  }

  // A step in the middle needs fewer digits than one near 0 or 1.
  textOf(place) {
    const step = this.steps[place];
    return String(step > 0.1 && step < 0.9 ? Number(fixed(step, 3)) : step);
  }

  pointsOf({ x, y, points }) {
    return points.length ? points : this.row.series[x].map((value, i) => [value, this.row.series[y][i]]);
  }

  draw(chart) {
    const { width, height, left, right, top, bottom } = CHART;
    const place = ([x, y]) => [left + x * (width - left - right), height - bottom - y * (height - top - bottom)];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    const line = (from, to, name) => {
      const [[x1, y1], [x2, y2]] = [place(from), place(to)];
      picture.append(svg("line", { x1, y1, x2, y2, class: name }));
    };
    const write = (text, x, y, more = {}) => {
      const node = svg("text", { x, y, ...more });
      node.textContent = text;
      picture.append(node);
    };
    for (const value of [0, 0.5, 1]) {
      line([0, value], [1, value], "grid");
      line([value, 0], [value, 1], "grid");
      write(value, left - 7, place([0, value])[1] + 4, { "text-anchor": "end" });
      write(value, place([value, 0])[0], height - bottom + 16, { "text-anchor": "middle" });
    }
    write(chart.x, (left + width - right) / 2, height - 8, { "text-anchor": "middle" });
    const middle = (height - bottom + top) / 2;
    write(chart.y, 14, middle, { "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` });
    if (chart.diagonal) line([0, 0], [1, 1], "diagonal");
    const points = this.pointsOf(chart);
    const known = points.filter(([x, y]) => x !== null && y !== null);
    picture.append(svg("polyline", { class: "curve", points: known.map((one) => place(one).join(",")).join(" ") }));
    let dot = null;
    if (chart.points.length) {
      for (const [cx, cy] of known.map(place)) picture.append(svg("circle", { class: "point", cx, cy, r: 3 }));
    } else {
      const [cx, cy] = place(points[this.row.best]);
      picture.append(svg("circle", { class: "best-point", cx, cy, r: 7 }));
      dot = svg("circle", { class: "point chosen", r: 4.5 });
      picture.append(dot);
    }
    const figure = html("figure");
    figure.append(html("figcaption", {}, chart.title), picture);
    return { chart, figure, picture, points, dot, place };
  }

  move() {
    const at = Number(this.slider.value);
    this.row.at = at;
    if (data.images) scores.follow(this.row);
    const shown = this.values.map(([name, values]) => [name, percent(values[at] ?? NaN)]);
    const step = this.textOf(at);
    const text = shown.map(([name, value]) => `${name} ${value}`).join(", ");
    this.slider.setAttribute("aria-valuetext", `${this.name} ${step}: ${text}`);
    const cells = [[this.name, step], ...shown].map(([name, value]) => {
      const cell = html("div");
      cell.append(html("dt", {}, name), html("dd", {}, value));
      return cell;
    });
    this.holder.querySelector(".values").replaceChildren(...cells);
    for (const { chart, picture, points, dot, place } of this.drawn) {
      const about = `${chart.title} of ${this.row.row}`;
      picture.setAttribute("aria-label", dot ? `${about}; at ${this.name} ${step}: ${text}` : about);
      if (!dot) continue;
      const known = points[at].every((value) => value !== null);
      dot.toggleAttribute("hidden", !known);
      if (known) {
        const [cx, cy] = place(points[at]);
        setAll(dot, { cx, cy });
      }
    }
  }
}
