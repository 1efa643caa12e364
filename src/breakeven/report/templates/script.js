"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("breakeven-theme"); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem("breakeven-theme", theme); } catch { /* not allowed here */ } };
  const show = (theme) => {
    if (theme === "auto") root.removeAttribute("data-theme"); else root.setAttribute("data-theme", theme);
    button.textContent = `Theme: ${theme}`;
    button.dataset.now = theme;
  };
  show(themes.includes(stored()) ? stored() : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(button.dataset.now) + 1) % themes.length];
    show(next);
    store(next);
  });

  const timelines = [...document.querySelectorAll(".timeline")];
  const choice = document.getElementById("timeline-choice");
  if (choice && timelines.length > 1) {
    const select = choice.querySelector("select");
    for (const [index, timeline] of timelines.entries()) {
      select.add(new Option(timeline.querySelector("h3").textContent, String(index)));
    }
    const pick = () => timelines.forEach((timeline, index) => { timeline.hidden = index !== Number(select.value); });
    select.addEventListener("change", pick);
    pick();
    choice.hidden = false;
  }

  const cell = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = Number.parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return typeof a === typeof b ? a.localeCompare(b, undefined, { numeric: true }) : typeof a === "number" ? 1 : -1;
  };
  for (const table of document.querySelectorAll(".sortable")) {
    const headings = [...table.tHead.rows[0].cells];
    for (const [column, heading] of headings.entries()) {
      const order = document.createElement("button");
      order.type = "button";
      order.className = "order";
      order.textContent = "⇅";
      order.setAttribute("aria-label", `order by ${heading.textContent}`);
      heading.append(" ", order);
      order.addEventListener("click", () => {
        const first = heading.classList.contains("text") ? "ascending" : "descending";
        const other = first === "ascending" ? "descending" : "ascending";
        const now = heading.getAttribute("aria-sort") === first ? other : first;
        for (const each of headings) each.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", now);
        const sign = now === "ascending" ? 1 : -1;
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => sign * compare(cell(a, column), cell(b, column)));
        table.tBodies[0].append(...rows);
      });
    }
  }
})();
