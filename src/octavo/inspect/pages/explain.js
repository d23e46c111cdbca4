"use strict";
(() => {
  const detail = document.getElementById("detail");
  const hint = detail.innerHTML;
  const items = [...document.querySelectorAll("[role=treeitem]")];
  const byNumber = new Map(items.map((item) => [Number(item.dataset.f), item]));
  const runs = new Map(); // number of a field -> its bytes in all rows
  for (const run of document.querySelectorAll("[data-c]")) {
    const number = Number(run.dataset.c);
    if (!runs.has(number)) runs.set(number, []);
    runs.get(number).push(run);
  }
  let lit = [];
  let held = null; // the item that a click or Enter holds on to

  const lastOf = (item) => Number(item.dataset.last ?? item.dataset.f);

  function light(item) {
    for (const each of lit) each.classList.remove("lit");
    lit = [];
    if (item === null) return;
    for (let number = Number(item.dataset.f); number <= lastOf(item); number++) {
      lit.push(...(runs.get(number) ?? []));
    }
    lit.push(item);
    for (const each of lit) each.classList.add("lit");
  }

  function parentOf(item) {
    const level = Number(item.getAttribute("aria-level"));
    let each = item.previousElementSibling;
    while (each && Number(each.getAttribute("aria-level")) >= level) each = each.previousElementSibling;
    return each;
  }

  function part(tag, name, text) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.textContent = text;
    return element;
  }

  function describe(item) {
    if (item === null) {
      detail.innerHTML = hint;
      return;
    }
    const of = (name) => item.querySelector(`:scope > .${name}`)?.textContent ?? "";
    const path = part("p", "path", "");
    for (const color of item.classList) if (color.startsWith("r-") || color === "wrong") path.classList.add(color);
    const above = [];
    for (let each = parentOf(item); each; each = parentOf(each)) above.unshift(each.querySelector(".name").textContent);
    path.append(above.map((name) => name + " › ").join(""), part("b", "", of("name")), "  " + of("place"));
    const lines = [path];
    if (of("value")) lines.push(part("p", "value", of("value")));
    if (of("problem")) lines.push(part("p", "problem", of("problem")));
    if (of("meaning")) lines.push(part("p", "", of("meaning")));
    if (of("raw")) lines.push(part("p", "raw", of("raw")));
    detail.replaceChildren(...lines);
  }

  function select(item) {
    for (const each of document.querySelectorAll("[role=treeitem][aria-selected=true]")) {
      each.setAttribute("aria-selected", "false");
    }
    if (item !== null) item.setAttribute("aria-selected", "true");
  }

  function show(item) {
    light(item);
    describe(item);
  }

  function hold(item) {
    held = item;
    select(item);
    show(item);
  }

  // Brings an element into view inside its own pane, so that the page itself does not jump.
  function reveal(element) {
    const pane = element?.closest(".pane");
    if (!pane || pane.scrollHeight <= pane.clientHeight + 1) return;
    const box = element.getBoundingClientRect();
    const frame = pane.getBoundingClientRect();
    if (box.top < frame.top) pane.scrollTop += box.top - frame.top - 40;
    else if (box.bottom > frame.bottom) pane.scrollTop += box.bottom - frame.bottom + 40;
  }

  function unfold(item) {
    for (let each = parentOf(item); each; each = parentOf(each)) {
      if (each.getAttribute("aria-expanded") === "false") fold(each, true);
    }
  }

  function fold(group, open) {
    group.setAttribute("aria-expanded", String(open));
    let closedUntil = -1;
    for (let number = Number(group.dataset.f) + 1; number <= lastOf(group); number++) {
      const item = byNumber.get(number);
      if (!item) continue;
      item.hidden = !open || number <= closedUntil;
      if (open && !item.hidden && item.getAttribute("aria-expanded") === "false") closedUntil = lastOf(item);
    }
  }

  const itemAt = (target) => {
    const cell = target.closest?.("[data-c]");
    return cell ? byNumber.get(Number(cell.dataset.c)) ?? null : target.closest?.("[role=treeitem]") ?? null;
  };

  document.addEventListener("pointerover", (event) => {
    const item = itemAt(event.target);
    if (item === null) {
      if (event.target.closest("#detail") === null) show(held);
      return;
    }
    show(item);
    if (event.target.closest("[data-c]")) reveal(item);
    else reveal(runs.get(Number(item.dataset.f))?.[0]);
  });
  document.documentElement.addEventListener("pointerleave", () => show(held));

  document.addEventListener("click", (event) => {
    const item = itemAt(event.target);
    if (item === null) return;
    const group = event.target.closest("[role=treeitem][aria-expanded]");
    if (group && held === group) fold(group, group.getAttribute("aria-expanded") === "false");
    hold(item);
    const cell = event.target.closest("[role=gridcell]");
    move(cell && cell.tabIndex >= -1 && cell.dataset.x !== undefined ? cell : item, false);
    if (cell) {
      unfold(item);
      reveal(item);
    }
  });

  // One stop for Tab in each grid and tree: the element that had the focus last.
  function move(element, focus = true) {
    const widget = element.closest("[role=grid], [role=tree]");
    widget.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    element.setAttribute("tabindex", "0");
    if (focus) element.focus();
  }
  for (const widget of document.querySelectorAll("[role=grid], [role=tree]")) {
    widget.querySelector("[data-x], [role=treeitem]")?.setAttribute("tabindex", "0");
  }

  document.addEventListener("focusin", (event) => {
    const item = itemAt(event.target);
    if (item === null || !event.target.matches(":focus-visible")) return;
    hold(item);
    if (event.target === item) reveal(runs.get(Number(item.dataset.f))?.[0]);
    else {
      unfold(item);
      reveal(item);
    }
  });

  function treeKey(item, key) {
    const all = [...item.parentElement.children].filter((each) => !each.hidden);
    const at = all.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    switch (key) {
      case "ArrowDown": return all[at + 1];
      case "ArrowUp": return all[at - 1];
      case "Home": return all[0];
      case "End": return all[all.length - 1];
      case "PageDown": return all[Math.min(at + 12, all.length - 1)];
      case "PageUp": return all[Math.max(at - 12, 0)];
      case "ArrowRight":
        if (open === "false") fold(item, true);
        else if (open === "true") return all[at + 1];
        return item;
      case "ArrowLeft":
        if (open === "true") fold(item, false);
        else return parentOf(item) ?? item;
        return item;
      default: return null;
    }
  }

  function gridKey(cell, key) {
    const cells = [...cell.closest("[role=grid]").querySelectorAll("[data-x]")];
    const at = cells.indexOf(cell);
    const next = (step) => {
      let each = at + step;
      while (cells[each] && cells[each].dataset.c === cell.dataset.c) each += step;
      return cells[each];
    };
    const inRow = (row) => {
      const column = Number(cell.dataset.x);
      const there = [...(row?.querySelectorAll("[data-x]") ?? [])];
      return there.filter((each) => Number(each.dataset.x) <= column).pop() ?? there[0];
    };
    const neighbour = (side) => {
      let row = cell.closest("[role=row]")[side];
      while (row && !row.querySelector("[data-x]")) row = row[side];
      return row;
    };
    switch (key) {
      case "ArrowRight": return next(1);
      case "ArrowLeft": return next(-1);
      case "ArrowDown": return inRow(neighbour("nextElementSibling"));
      case "ArrowUp": return inRow(neighbour("previousElementSibling"));
      case "Home": return cells[0];
      case "End": return cells[cells.length - 1];
      default: return null;
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") {
      hold(null);
      return;
    }
    const item = event.target.closest?.("[role=treeitem]");
    const cell = event.target.closest?.("[data-x]");
    if (!item && !cell) return;
    if (event.key === "Enter" || event.key === " ") {
      const target = itemAt(event.target);
      hold(target);
      // From bytes to their field, and back.
      move(cell ? target : runs.get(Number(target.dataset.f))?.find((run) => run.dataset.x !== undefined) ?? target);
      event.preventDefault();
      return;
    }
    const to = item ? treeKey(item, event.key) : gridKey(cell, event.key);
    if (to === null) return;
    event.preventDefault();
    if (to) {
      move(to);
      to.scrollIntoView({ block: "nearest" });
    }
  });
})();
