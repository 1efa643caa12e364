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
})();
