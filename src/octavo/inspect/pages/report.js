"use strict";
(() => {
  const tip = document.getElementById("tip");
  const marks = (chart) => [...chart.querySelectorAll("rect")];

  function tell(mark) {
    tip.hidden = mark === null;
    tip.textContent = mark === null ? "" : mark.getAttribute("aria-label");
  }

  for (const chart of document.querySelectorAll(".chart")) {
    marks(chart)[0]?.setAttribute("tabindex", "0");
  }

  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("rect") ?? null;
    const focused = document.activeElement?.closest?.("rect") ?? null;
    tell(mark ?? focused);
  });
  document.addEventListener("focusin", (event) => tell(event.target.closest?.("rect") ?? null));
  document.addEventListener("focusout", () => tell(null));
  document.addEventListener("click", (event) => {
    const mark = event.target.closest?.("rect");
    if (mark) go(mark);
  });

  // One stop for Tab in each chart: the mark that had the focus last.
  function go(mark) {
    const chart = mark.closest(".chart");
    chart.querySelector("rect[tabindex='0']")?.setAttribute("tabindex", "-1");
    mark.setAttribute("tabindex", "0");
    mark.focus();
  }

  function neighbour(mark, key) {
    const all = marks(mark.closest(".chart"));
    const at = all.indexOf(mark);
    switch (key) {
      case "ArrowRight": return all[at + 1];
      case "ArrowLeft": return all[at - 1];
      case "Home": return all[0];
      case "End": return all[all.length - 1];
      case "ArrowDown":
      case "ArrowUp": {
        const side = key === "ArrowDown" ? "nextElementSibling" : "previousElementSibling";
        let line = mark.closest(".line, .column")[side];
        while (line && !line.querySelector("rect")) line = line[side];
        return line?.querySelector("rect");
      }
      default: return null;
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") tell(null);
    const mark = event.target.closest?.("rect");
    if (!mark) return;
    const to = neighbour(mark, event.key);
    if (to === null) return;
    event.preventDefault();
    if (to) {
      go(to);
      to.scrollIntoView({ block: "nearest" });
    }
  });

  // Tables are sorted by the number behind a cell, and not by what is shown.
  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const table = button.closest("table");
      const column = [...head.parentElement.children].indexOf(head);
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const each of head.parentElement.children) each.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.children[column].dataset.v;
      const isText = !row0(table)?.children[column].classList.contains("n");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const order = isText ? value(a).localeCompare(value(b)) : Number(value(a)) - Number(value(b));
        return down === isText ? order : -order;
      });
      table.tBodies[0].append(...rows);
    });
  }
  function row0(table) {
    return table.tBodies[0].rows[0];
  }

  for (const box of document.querySelectorAll("[data-filters]")) {
    const table = document.getElementById(box.dataset.filters);
    const told = box.closest("section").querySelector(".matches");
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLowerCase();
      let count = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        if (!row.hidden) count++;
      }
      told.textContent = wanted ? `${count} match` : "";
    });
  }
})();
