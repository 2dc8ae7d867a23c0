// Progressive enhancement: without JavaScript, forms and saving still work.
"use strict";
document.documentElement.classList.add("script");

const isTyping = (node) =>
  node instanceof HTMLElement &&
  (node.isContentEditable ||
    node.matches("textarea, select, input:not([type=radio]):not([type=checkbox]):not([type=submit])"));

function showTimes() {
  for (const node of document.querySelectorAll("time[datetime]")) {
    const when = new Date(node.dateTime);
    if (Number.isNaN(when.getTime())) continue;
    node.title = node.dateTime;
    node.textContent = when.toLocaleString(document.documentElement.lang, {
      dateStyle: "medium", timeStyle: "short",
    });
  }
}

// Conditional fields: the server ignores the values of hidden fields.
function makeConditions(form) {
  const fields = [...form.querySelectorAll("[data-when]")].map((node) => ({
    node, when: JSON.parse(node.dataset.when),
  }));
  const valueOf = (name) => {
    const inputs = [...form.querySelectorAll(`[name="${CSS.escape(name)}"]`)];
    if (!inputs.length || inputs[0].closest("[data-field][hidden]")) return "";
    const found = inputs.find((input) => input.checked || !["radio", "checkbox"].includes(input.type));
    // An unticked box means "false"; an unanswered choice has no value.
    return found ? found.value : inputs[0].type === "checkbox" ? "false" : "";
  };
  return () => {
    for (const { node, when } of fields) {
      node.hidden = !Object.entries(when).every(([name, values]) => values.includes(valueOf(name)));
    }
  };
}

// Lists of texts: add, remove and move rows; the order is saved.
function makeRows(list, changed) {
  const template = list.parentElement.querySelector("template");
  const ranks = () => list.querySelectorAll(".rank").forEach((input, at) => { input.value = at + 1; });
  const add = (after) => {
    const row = template.content.firstElementChild.cloneNode(true);
    if (after) after.after(row); else list.append(row);
    ranks();
    row.querySelector("[data-text]").focus();
  };
  const move = (row, step) => {
    const other = step < 0 ? row.previousElementSibling : row.nextElementSibling;
    if (!other) return;
    if (step < 0) other.before(row); else other.after(row);
    ranks();
    changed();
  };
  for (const row of [...list.children].slice(1)) {
    if (!row.querySelector("[data-text]").value) row.remove();
  }
  ranks();
  list.parentElement.querySelector("[data-add]").addEventListener("click", () => add(null));
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const row = button.closest("li");
    if (button.dataset.move) {
      move(row, Number(button.dataset.move));
      button.focus();
    } else if (list.children.length > 1) {
      (row.nextElementSibling || row.previousElementSibling).querySelector("[data-text]").focus();
      row.remove();
      ranks();
      changed();
    } else {
      row.querySelector("[data-text]").value = "";
      changed();
    }
  });
  list.addEventListener("keydown", (event) => {
    if (event.isComposing || !event.target.matches("[data-text]")) return;
    const row = event.target.closest("li");
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      move(row, event.key === "ArrowUp" ? -1 : 1);
      event.target.focus();
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (event.target.value.trim()) add(row);
    }
  });
}

// Save drafts while typing; the status line next to the buttons shows the result.
function makeDrafts(form) {
  const state = document.querySelector("[data-state]");
  const words = state ? state.dataset : {};
  const calls = new AbortController();
  let timer = 0, dirty = false, running = false, stopped = false;
  const say = (text) => { if (state) state.textContent = text; };
  const body = () => new URLSearchParams(new FormData(form));
  async function save() {
    clearTimeout(timer);
    if (!dirty || running || stopped) return;
    running = true;
    dirty = false;
    let pause = 1000;
    try {
      const answer = await fetch(form.dataset.draft, {
        method: "POST", body: body(), headers: { accept: "application/json" }, credentials: "same-origin",
        signal: calls.signal,
      });
      if (answer.status === 409) {
        stopped = true;
        say(words.elsewhere);
      } else if (answer.status === 403) {
        // Another person has the item now; submitting shows the input again.
        stopped = true;
        say(words.lost);
      } else if (!answer.ok) {
        throw new Error(String(answer.status));
      } else {
        say(words.saved.replace("{time}", new Date().toLocaleTimeString([], { timeStyle: "short" })));
      }
    } catch {
      if (stopped) return;
      dirty = true;
      say(words.failed);
      pause = 5000;
    }
    running = false;
    if (!dirty || stopped) return;
    // Keep a single timer, otherwise failures would multiply the requests.
    clearTimeout(timer);
    timer = setTimeout(save, pause);
  }
  const changed = () => {
    if (!form.dataset.draft || stopped) return;
    dirty = true;
    clearTimeout(timer);
    timer = setTimeout(save, 900);
  };
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden" && dirty && !stopped && navigator.sendBeacon) {
      if (navigator.sendBeacon(form.dataset.draft, body())) dirty = false;
    }
  });
  form.addEventListener("submit", () => {
    stopped = true;
    clearTimeout(timer);
    calls.abort();
  });
  return changed;
}

// An image that was shown once counts as seen, even if it is blurred again.
function makeReveals(form) {
  const boxes = [...document.querySelectorAll(".reveal")];
  const unseen = () => boxes.filter((box) => !box.checked && !box.dataset.seen);
  for (const box of boxes) {
    box.addEventListener("change", () => {
      const kept = form.querySelector(`input[type=hidden][name=seen][value="${box.value}"]`);
      if (kept) kept.remove();
      if (!box.checked) {
        form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "seen", value: box.value }));
      }
      box.dataset.seen = "1";
    });
  }
  form.addEventListener("submit", (event) => {
    if (!form.querySelector("[name=veiled]") || !unseen().length) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const state = document.querySelector("[data-state]");
    state.textContent = state.dataset.look;
    unseen()[0].focus();
  });
  return () => {
    const shown = boxes.every((box) => box.checked);
    for (const box of boxes.filter((one) => one.checked === shown)) box.click();
    return boxes.length > 0;
  };
}

// Keyboard shortcuts answer the selected field and select the next; inactive while typing.
function makeKeys(form, reveal) {
  const fields = () => [...form.querySelectorAll("[data-field]")].filter((node) => !node.closest("[hidden]"));
  const isChoice = (field) => field.querySelector("input[type=radio], input[type=checkbox]") !== null;
  const isDone = (field) => field.querySelector("input:checked, input[type=checkbox]") !== null;
  let current = null;
  const hold = (field, scroll = true) => {
    if (current) current.classList.remove("current");
    current = field;
    if (!field) return;
    field.classList.add("current");
    if (scroll) field.scrollIntoView({ block: "nearest" });
  };
  const next = (from) => {
    const all = fields();
    const after = all.slice(all.indexOf(from) + 1);
    hold(after.find((field) => !isChoice(field) || !isDone(field)) || from);
  };
  const step = (by) => {
    const all = fields();
    const at = Math.min(all.length - 1, Math.max(0, all.indexOf(current) + by));
    hold(all[at]);
  };
  const choose = (key) => {
    if (!current || current.closest("[hidden]")) hold(fields()[0]);
    const pick = (field) => field && field.querySelector(`input[data-key="${CSS.escape(key)}"]`);
    let field = current, input = pick(current);
    if (!input) {
      const holders = fields().filter(pick);
      if (holders.length !== 1) return false;
      [field] = holders;
      input = pick(field);
    }
    input.checked = input.type === "checkbox" ? !input.checked : true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    if (input.type === "checkbox") hold(field); else next(field);
    return true;
  };
  const press = (selector) => {
    const node = document.querySelector(selector);
    if (node) node.click();
    return node !== null;
  };
  const act = (event) => {
    switch (event.key) {
      case "ArrowDown": step(1); return true;
      case "ArrowUp": step(-1); return true;
      case "Enter": return press("[data-do=save]");
      case "X": return press("[data-do=skip]");
      case "v": return reveal();
      case "z": return press("[data-do=undo]");
      case "b": return press("[data-do=back]");
      case "?": return press("[data-do=keys]");
      case "e": {
        const text = current && current.querySelector("textarea:not(.rank), input[type=text]");
        if (text) text.focus();
        return Boolean(text);
      }
      default: return false;
    }
  };
  const wrong = fields().find((field) => field.classList.contains("wrong"));
  hold(wrong || fields().find((field) => !isDone(field)) || fields()[0] || null, Boolean(wrong));
  form.addEventListener("focusin", (event) => {
    const field = event.target.closest("[data-field]");
    if (field) hold(field, false);
  });
  form.addEventListener("change", (event) => {
    if (event.target.matches("input[type=radio]")) hold(event.target.closest("[data-field]"), false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      press("[data-do=save]");
      return;
    }
    if (event.key === "Escape" && isTyping(event.target)) {
      event.target.blur();
      return;
    }
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const onButton = event.target.closest && event.target.closest("a, button, summary");
    if (onButton && (event.key === "Enter" || event.key === " ")) return;
    // Shift+X (skip) comes first, since a workflow may use the letter x.
    const skips = event.shiftKey && event.key === "X" && act(event);
    if (skips || choose(event.key) || choose(event.key.toLowerCase()) || act(event)) event.preventDefault();
  });
}

function guardSubmits() {
  for (const form of document.querySelectorAll("form[method=post]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) { event.preventDefault(); return; }
      form.dataset.sent = "1";
    });
  }
  // The browser's back button must not restore a disabled form.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
}

document.addEventListener("DOMContentLoaded", () => {
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - 40;
  showTimes();
  const form = document.querySelector("form[data-answers]");
  // Must be registered before guardSubmits, since it can cancel a submit.
  const reveal = form ? makeReveals(form) : null;
  guardSubmits();
  for (const node of document.querySelectorAll("[data-copy]")) {
    node.addEventListener("click", () => {
      const field = document.getElementById(node.dataset.copy);
      field.select();
      if (navigator.clipboard) navigator.clipboard.writeText(field.value).catch(() => {});
    });
  }
  for (const node of document.querySelectorAll("[data-dismiss]")) {
    node.addEventListener("click", () => node.closest(node.dataset.dismiss).remove());
  }
  if (!form) return;
  // On phones, collapse the history between image and form.
  if (innerWidth < 740) for (const node of document.querySelectorAll("details[data-long]")) node.open = false;
  const apply = makeConditions(form);
  apply();
  form.addEventListener("change", apply);
  const changed = makeDrafts(form);
  for (const list of form.querySelectorAll(".rows")) makeRows(list, changed);
  makeKeys(form, reveal);
});
