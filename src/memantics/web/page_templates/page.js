"use strict";
(() => {
  const PER_PAGE = 10;
  const byId = (id) => document.getElementById(id);
  const parse = (id) => JSON.parse(byId(id).textContent);
  const phrases = parse("phrases");
  // A text of this page in its language; phrases of the English page are empty.
  const T = (text, values = {}) => (Object.hasOwn(phrases, text) ? phrases[text] : text)
    .replace(/\{(\w+)\}/g, (all, name) => (Object.hasOwn(values, name) ? String(values[name]) : all));
  const VERDICTS = [T("correct"), T("wrong"), T("invalid"), T("no verdict")];
  const SIGNS = ["✓", "✗", "!", "·"];
  const RESULTS = [
    ["", T("any result")], ...VERDICTS.map((name, place) => [String(place), name]),
    ["differ", T("models differ")], ["none", T("correct for no model")],
  ];
  const loaded = new Map();
  const toggled = new Set();
  const state = { board: "", run: "", result: "", status: "", tags: {}, text: "", page: 0 };
  let data = null;
  let matches = [];
  let revealAll = false;
  let linked = "";

  // Text from data only ever becomes a text node; nothing is parsed as HTML.
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  };
  // A paragraph separator ends the isolation of a direction override: inside a line it is a space.
  const isolate = (text, name) => make("bdi", { class: name }, text.replace(/[\u2028\u2029\u0085\u001c-\u001e]/g, " "));

  const load = (slug) => {
    if (!loaded.has(slug)) loaded.set(slug, parse("data-" + slug));
    return loaded.get(slug);
  };

  const haystack = (item) => {
    if (item.hay === undefined) {
      const say = (number) => (number === undefined ? "" : data.texts[number]);
      const parts = [item.id, item.group, say(item.question), say(item.gold === null ? undefined : item.gold)];
      for (const [, number] of item.context) parts.push(say(number));
      for (const [, value] of item.tags) parts.push(value);
      for (const field of data.sheets[item.sheet]) for (const option of field.options) parts.push(say(option[1]));
      for (const answer of item.answers) if (answer) parts.push(say(answer.text), say(answer.value), say(answer.reason));
      item.hay = parts.join("\n").toLowerCase();
    }
    return item.hay;
  };

  const fits = (item, words) => {
    for (const [name, wanted] of Object.entries(state.tags)) {
      if (wanted && !item.tags.some(([key, value]) => key === name && value === wanted)) return false;
    }
    const asked = item.answers.filter((answer) => answer && answer.verdict !== undefined);
    if (state.result === "differ" && new Set(asked.map((answer) => answer.value + ":" + answer.verdict)).size < 2) return false;
    if (state.result === "none" && (!asked.length || asked.some((answer) => answer.verdict === 0 || answer.verdict === 3))) return false;
    const verdict = /^\d$/.test(state.result) ? Number(state.result) : -1;
    const status = state.status ? data.statuses.indexOf(state.status) : -1;
    if (state.run !== "" || verdict >= 0 || status >= 0) {
      const looked = state.run === "" ? item.answers : [item.answers[Number(state.run)]];
      const found = looked.some((answer) => answer && answer.verdict !== undefined
        && (verdict < 0 || answer.verdict === verdict) && (status < 0 || answer.status === status));
      if (!found) return false;
    }
    return words.every((word) => haystack(item).includes(word));
  };

  const fill = (select, choices, value) => {
    select.replaceChildren(...choices.map(([key, name]) => {
      const option = make("option", { value: key }, name);
      option.selected = key === value;
      return option;
    }));
    if (select.selectedIndex < 0 || select.value !== value) select.value = "";
  };

  const drawFilters = () => {
    byId("f-board").value = state.board;
    fill(byId("f-run"), [["", T("any model")], ...data.runs.map((run, place) => [String(place), run.name])], state.run);
    fill(byId("f-result"), data.runs.length > 1 ? RESULTS : RESULTS.slice(0, 5), state.result);
    fill(byId("f-status"), [["", T("any status")], ...data.statuses.map((name) => [name, T(name)])], state.status);
    byId("f-facets").replaceChildren(...data.facets.map(([name, values]) => {
      const select = make("select", { "data-tag": name });
      fill(select, [["", T("any")], ...values.map(([value, count]) => [value, value + " (" + count + ")"])], state.tags[name] || "");
      return make("label", {}, isolate(name.replaceAll("_", " ")), " ", select);
    }));
    byId("f-text").value = state.text;
    byId("filters").hidden = false;
  };

  const readFilters = () => {
    state.run = byId("f-run").value;
    state.result = byId("f-result").value;
    state.status = byId("f-status").value;
    state.text = byId("f-text").value;
    state.tags = {};
    for (const select of byId("f-facets").querySelectorAll("select")) {
      if (select.value) state.tags[select.dataset.tag] = select.value;
    }
    state.page = 0;
  };

  const clearFilters = () => Object.assign(state, { run: "", result: "", status: "", tags: {}, text: "", page: 0 });

  const remember = () => {
    const query = new URLSearchParams();
    for (const name of ["run", "result", "status", "text"]) if (state[name]) query.set(name, state[name]);
    for (const [name, value] of Object.entries(state.tags)) query.set("tag." + name, value);
    if (state.page) query.set("page", String(state.page + 1));
    const tail = query.toString();
    history.replaceState(null, "", "#browse/" + encodeURIComponent(state.board) + (tail ? "?" + tail : ""));
  };

  const search = () => {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    matches = data.items.filter((item) => fits(item, words));
    const pages = Math.max(1, Math.ceil(matches.length / PER_PAGE));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    draw(pages);
  };

  const drawPicture = (number, item, small) => {
    const facts = typeof number === "number" ? parse("image-" + number) : { name: number, reason: T("not included in this page") };
    if (!facts.uri) return make("div", { class: "lost" }, make("span", {}, isolate(facts.name), make("br"), T(facts.reason)));
    const image = make("img", { src: facts.uri, width: facts.width, height: facts.height, decoding: "async" });
    if (!data.warning) {
      image.alt = T("Image {name}", facts);
      return make("div", { class: "picture" }, image);
    }
    const key = state.board + "/" + number;
    const button = make("button", { type: "button", class: "picture" }, image,
      make("span", { class: "cover", "aria-hidden": "true" }, make("span", {}, small ? T("Show") : T("Show image"))));
    const update = () => {
      const open = revealAll !== toggled.has(key);
      button.classList.toggle("blurred", !open);
      button.setAttribute("aria-pressed", String(open));
      button.setAttribute("aria-label", open ? T("Blur image {name} of item {item}", { name: facts.name, item: item.id })
        : T("Show image {name} of item {item}", { name: facts.name, item: item.id }));
      image.alt = open ? T("Image {name}", facts) : "";
    };
    button.addEventListener("click", () => {
      if (!toggled.delete(key)) toggled.add(key);
      update();
    });
    update();
    return button;
  };

  const fact = (name, text) => make("p", { class: "fact" }, make("span", { class: "quiet" }, isolate(name)), isolate(text));

  // Lines that each begin with who speaks are a chat, and are drawn as one.
  const drawContext = (name, text) => {
    const lines = text.split("\n").filter((line) => line.trim());
    const turns = lines.map((line) => /^([^:：]{1,16})[:：]\s*(.*)$/u.exec(line));
    if (turns.length < 2 || turns.some((turn) => turn === null)) return fact(name, text);
    const speakers = [...new Set(turns.map((turn) => turn[1]))];
    if (speakers.length < 2 || speakers.length > 6) return fact(name, text);
    return make("ol", { class: "chat", "aria-label": name }, ...turns.map(([, who, said]) =>
      make("li", { class: speakers.indexOf(who) % 2 ? "other" : "" }, isolate(who, "who"), isolate(said, "said"))));
  };

  const fold = (name, ...children) => make("details", {}, make("summary", {}, name), ...children);

  const drawSheet = (sheet, gold, keys, item) => {
    const fields = data.sheets[sheet];
    const parts = [];
    for (const [place, field] of fields.entries()) {
      if (fields.length > 1) parts.push(fact(T("Field"), field.name));
      if (!field.options.length) continue;
      // Bare words stand side by side: nine labels are one line, not nine.
      const bare = field.options.every(([key, text, image]) => data.texts[text] === key && image === null);
      parts.push(make("ul", { class: bare ? "options bare" : "options" }, ...field.options.map(([key, text, image]) => {
        const isGold = key === keys[place];
        return make("li", { class: isGold ? "gold" : "" }, isolate(key, "key"),
          data.texts[text] === key ? make("span", { class: "text" }) : isolate(data.texts[text], "text"),
          image === null ? null : drawPicture(image, item, true),
          isGold ? make("span", { class: "badge v0" }, T("gold")) : null);
      })));
    }
    const shown = fields.length > 3 ? [fold(T("Fields of an answer ({count})", { count: fields.length }), ...parts)] : parts;
    const onSheet = keys.length > 0 && keys.every((key) => key !== null);
    if (gold !== null && !onSheet) shown.push(fact(T("Gold"), data.texts[gold] || T("none")));
    return shown;
  };

  const drawAnswer = (answer, run, item) => {
    const head = make("h4", {}, isolate(run.name));
    const card = make("article", { class: run.trivial ? "answer trivial" : "answer" }, head);
    if (!answer || answer.verdict === undefined) {
      head.append(make("span", { class: "badge" }, answer ? T("no answer yet") : T("not asked")));
      return card;
    }
    const status = data.statuses[answer.status];
    const word = answer.mark || (answer.verdict === 2 ? T(status) : VERDICTS[answer.verdict]);
    head.append(make("span", { class: "badge v" + answer.verdict }, SIGNS[answer.verdict] + " " + word));
    if (run.note) card.append(make("p", { class: "fact quiet small" }, isolate(run.note)));
    if (data.texts[answer.value]) card.append(fact(T("Parsed"), data.texts[answer.value]));
    if (answer.sheet !== undefined) card.append(fold(T("Options of this run"), ...drawSheet(answer.sheet, answer.gold, answer.keys, item)));
    if (answer.reason !== undefined) card.append(fact(T("Reason"), data.texts[answer.reason]));
    const text = data.texts[answer.text];
    if (text) {
      const raw = make("pre", { dir: "auto", tabindex: text.length > 900 ? "0" : null, "aria-label": text.length > 900 ? T("Raw answer") : null }, text);
      card.append(text.length > 900 ? fold(T("Raw answer"), raw) : raw);
    } else card.append(make("p", { class: "fact quiet" }, T("The reply was empty.")));
    if (answer.reasoning !== undefined) card.append(fold(T("Reasoning"), make("pre", { dir: "auto", tabindex: "0", "aria-label": T("Reasoning") }, data.texts[answer.reasoning])));
    if (answer.earlier) {
      card.append(fold(T("Earlier attempts ({count})", { count: answer.earlier.length }), ...answer.earlier.map(([number, text]) =>
        make("div", {}, make("span", { class: "badge" }, T(data.statuses[number])), make("pre", { dir: "auto" }, data.texts[text])))));
    }
    const details = [];
    if (answer.tokens[0] + answer.tokens[1]) details.push(T("{input} input tokens, {output} output tokens", { input: answer.tokens[0], output: answer.tokens[1] }));
    if (answer.seconds) details.push(T("{seconds} s", answer));
    if (answer.finish && answer.finish !== "stop") details.push(T("finish reason: {finish}", answer));
    if (details.length) card.append(make("p", { class: "fact quiet small" }, isolate(details.join(" · "))));
    return card;
  };

  const drawPrompt = (number) => {
    const parts = [];
    for (const [role, pieces] of data.prompts[number]) {
      parts.push(make("p", { class: "role" }, role));
      for (const piece of pieces) {
        parts.push(Array.isArray(piece)
          ? make("p", { class: "fact quiet" }, "[" + T("image") + " ", isolate(piece[0]), "]")
          : make("pre", { dir: "auto" }, data.texts[piece]));
      }
    }
    return parts.length ? parts : [make("p", { class: "fact quiet" }, T("No prompt was recorded."))];
  };

  // A prompt is long and rarely read: it is drawn when it is opened.
  const drawPrompts = (item) => {
    const users = new Map();
    item.answers.forEach((answer, place) => {
      if (answer) users.set(answer.prompt, [...(users.get(answer.prompt) || []), data.runs[place].name]);
    });
    return [...users].map(([number, names]) => {
      const title = make("summary", {}, T("Prompt"));
      if (users.size > 1) title.append(" " + T("for") + " ", isolate(names.join(T(", "))));
      const folded = make("details", { class: "prompt" }, title);
      folded.addEventListener("toggle", () => {
        if (folded.open && folded.childElementCount === 1) folded.append(...drawPrompt(number));
      });
      return folded;
    });
  };

  const drawItem = (item) => {
    const link = "#item/" + encodeURIComponent(state.board) + "/" + encodeURIComponent(item.id);
    const head = make("h3", {}, make("a", { href: link, "aria-label": T("Link to item {id}", item) }, isolate(item.id)),
      ...item.tags.map(([name, value]) => make("span", { class: "note" }, isolate(name.replaceAll("_", " ")), T(": "), isolate(value))));
    const body = make("div", {}, head, make("p", { class: "question", dir: "auto" }, data.texts[item.question]),
      ...item.context.map(([name, number]) => drawContext(name, data.texts[number])),
      ...drawSheet(item.sheet, item.gold, item.keys, item));
    const pictures = item.images.map((number) => drawPicture(number, item, false));
    const entry = make("li", { class: "item" + (pictures.length ? "" : " bare") + (item.id === linked ? " linked" : ""), tabindex: "-1" },
      pictures.length ? make("div", { class: "pictures" }, ...pictures) : null, body,
      make("div", { class: "answers" }, ...item.answers.map((answer, place) => drawAnswer(answer, data.runs[place], item))),
      ...drawPrompts(item));
    entry.dataset.id = item.id;
    return entry;
  };

  const draw = (pages) => {
    const start = state.page * PER_PAGE;
    byId("list").replaceChildren(...matches.slice(start, start + PER_PAGE).map(drawItem));
    const count = { all: data.items.length.toLocaleString("en"), some: matches.length.toLocaleString("en") };
    byId("count").textContent = matches.length === data.items.length ? T("{all} items", count) : T("{some} of {all} items", count);
    byId("pager").hidden = pages < 2;
    byId("where").textContent = T("Page {page} of {pages}", { page: state.page + 1, pages });
    byId("prev").disabled = state.page === 0;
    byId("next").disabled = state.page >= pages - 1;
    byId("reveal").hidden = !data.warning || !data.items.some((item) => item.images.some((number) => typeof number === "number"));
    byId("reveal").textContent = revealAll ? T("Blur all images") : T("Show all images");
  };

  const open = (slug) => {
    state.board = byId("data-" + slug) ? slug : byId("f-board").options[0].value;
    data = load(state.board);
  };

  const follow = () => {
    let address = location.hash.slice(1);
    const ask = address.indexOf("?");
    const query = new URLSearchParams(ask < 0 ? "" : address.slice(ask + 1));
    if (ask >= 0) address = address.slice(0, ask);
    const [kind, slug, ...rest] = address.split("/").map((part) => {
      try { return decodeURIComponent(part); } catch { return part; }
    });
    if (kind !== "browse" && kind !== "item") return false;
    open(slug || "");
    clearFilters();
    linked = "";
    if (kind === "item") {
      linked = rest.join("/");
      const place = data.items.findIndex((item) => item.id === linked);
      state.page = Math.max(0, Math.floor(place / PER_PAGE));
    } else {
      for (const name of ["run", "result", "status", "text"]) state[name] = query.get(name) || "";
      for (const [name, value] of query) if (name.startsWith("tag.")) state.tags[name.slice(4)] = value;
      state.page = (parseInt(query.get("page"), 10) || 1) - 1;
    }
    drawFilters();
    // A filter that this page does not offer must not hide everything.
    const page = state.page;
    readFilters();
    state.page = page;
    search();
    const target = linked ? [...byId("list").children].find((entry) => entry.dataset.id === linked) : null;
    (target || byId("items")).scrollIntoView();
    if (target) target.focus({ preventScroll: true });
    return true;
  };

  const setReveal = (open) => {
    revealAll = open;
    toggled.clear();
    search();
  };
  const change = () => { linked = ""; readFilters(); search(); remember(); };
  const turn = (step) => {
    state.page += step;
    linked = "";
    search();
    remember();
    byId("items").scrollIntoView();
  };

  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", (event) => {
    event.preventDefault();
    clearFilters();
    drawFilters();
    change();
  });
  byId("filters").addEventListener("change", (event) => {
    if (event.target.id === "f-board") {
      open(event.target.value);
      clearFilters();
      drawFilters();
    }
    if (event.target.id !== "f-text") change();
  });
  let waiting = 0;
  byId("f-text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(change, 150);
  });
  byId("prev").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("reveal").addEventListener("click", () => {
    if (revealAll) {
      setReveal(false);
      return;
    }
    byId("confirm-text").textContent = data.warning;
    byId("confirm").showModal();
  });
  byId("confirm-no").addEventListener("click", () => byId("confirm").close());
  byId("confirm-yes").addEventListener("click", () => {
    byId("confirm").close();
    setReveal(true);
  });
  window.addEventListener("hashchange", follow);

  if (!follow()) {
    open("");
    drawFilters();
    search();
  }
})();
