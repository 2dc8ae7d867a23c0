/* The studio: a meme goes in, each part is asked for on its own and shown when it is there.
   Text from memes, files and models is only ever set as text, never as markup. */
"use strict";
(() => {
  const MOST_BYTES = 20 * 1024 * 1024;
  const KINDS = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];
  const byId = (id) => document.getElementById(id);
  const words = JSON.parse(byId("words").textContent);
  const CHINESE = document.documentElement.lang.startsWith("zh");
  const nameModel = (model) => [...(byId("model")?.options ?? [])].find((option) => option.value === model)?.text ?? model;
  const COMMA = CHINESE ? "，" : ", ";
  const SPACE = CHINESE ? "" : " "; // after a colon
  const t = (key, values = {}) => (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
  const tell = (key, fallback) => words[key] ?? fallback;
  const percent = (share) => Math.round(share * 100);
  const keeps = byId("result").dataset.keeps === "yes"; // whether choices go to a file of the service

  const el = (tag, properties = {}, ...children) => {
    const { dataset, ...plain } = properties;
    const made = Object.assign(document.createElement(tag), plain);
    Object.assign(made.dataset, dataset);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const own = (text, tag = "bdi") => el(tag, { textContent: text });

  let meme = null; // { file, name, sample, url, parts }, of which nothing outlives the page
  let stop = new AbortController();
  const announce = (text) => { byId("status").textContent = text; };
  const notice = (text) => { byId("notice").textContent = text; byId("notice").hidden = !text; };

  /* ---- asking the service ---- */
  const send = async (path, body, signal) => {
    const picture = body instanceof Blob;
    let response;
    try {
      response = await fetch(path, {
        method: "POST",
        body: picture ? body : JSON.stringify(body),
        headers: { "content-type": picture ? "application/octet-stream" : "application/json", "x-memantics": "studio" },
        signal,
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error(t("result.lost"));
    }
    if (response.ok) return response;
    const said = await response.json().catch(() => null);
    throw refusal(said?.error ?? { message: `${response.status} ${response.statusText}` });
  };
  const refusal = ({ message, hint, code }) => new Error(tell(`refused.${code}`, [message, hint].filter(Boolean).join("; ")));
  const ask = async (path, body, signal) => (await send(path, body, signal)).json();

  /* Lines of JSON, each handed on as it comes. */
  const follow = async (path, body, signal, take) => {
    const reader = (await send(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) take(JSON.parse(line));
    }
  };

  /* ---- parts ---- */
  const section = (name) => {
    const part = byId(`part-${name}`);
    return { part, body: part.querySelector(".body"), by: part.querySelector(":scope > .by") };
  };
  const wait = (name) => {
    const { part, body, by } = section(name);
    part.setAttribute("aria-busy", "true");
    body.replaceChildren(el("p", { className: "waiting", textContent: t("result.working") }));
    if (by) by.hidden = true;
  };
  const settle = (name, children, who) => {
    const { part, body, by } = section(name);
    part.removeAttribute("aria-busy");
    body.replaceChildren(...children.filter(Boolean));
    if (by && who) by.replaceChildren(el("span", { textContent: t(name === "kinder" ? "kinder.who" : "result.who") + SPACE }), ...who);
    if (by) by.hidden = !who;
  };
  const complain = (error, again) => el("div", { className: "note bad" },
    el("p", {}, el("b", { textContent: t("result.failed") }), ": ", own(error.message)),
    el("button", { type: "button", className: "small", textContent: t("result.again"), onclick: again }));

  /* Run one part; what goes wrong in it stays in it. */
  const make = async (name, work) => {
    const signal = stop.signal;
    wait(name);
    try {
      await work(signal);
    } catch (error) {
      if (signal.aborted) return false;
      settle(name, [complain(error, () => make(name, work))]);
      announce(`${t("result.failed")}: ${error.message}`);
    }
    return !signal.aborted;
  };

  const meter = (share, mark) => {
    const made = el("div", { className: "meter" });
    made.setAttribute("aria-hidden", "true");
    made.style.setProperty("--share", `${percent(share)}%`);
    if (mark !== undefined) made.style.setProperty("--mark", `${percent(mark)}%`);
    made.classList.toggle("marked", mark !== undefined);
    return made;
  };
  /* A detector's verdict has an outcome at its operating point; a model's answer is yes or no. */
  const WORDS = { harmful: "harm.harmful", review: "harm.review", harmless: "harm.clear" };
  const verdict = ({ outcome, harmful }) => t(outcome ? WORDS[outcome] : harmful ? "harm.harmful" : "harm.harmless");
  const pill = (found) => {
    if (found.sample) return el("span", { className: "verdict sample", textContent: t("harm.demo") });
    const tone = found.outcome === "review" ? " doubt" : found.harmful ? " bad" : " good";
    return el("span", { className: `verdict${tone}`, textContent: verdict(found) });
  };
  const explainReview = (found) => found.outcome !== "review" ? [] : [
    found.status === "scored" ? "" : found.foreign ? t("harm.foreign") : found.other_reason ? "" : t("harm.none"),
    found.review_band ? t("harm.band", { low: percent(found.review_band[0]), high: percent(found.review_band[1]) }) : "",
    found.outside ? t("harm.outside") : "",
    found.other_reason ? t("harm.reason", { reason: found.other_reason }) : "",
  ].filter(Boolean);

  /* ---- marks in the file ---- */
  const tellMarks = (marks) => !marks ? [] : [
    marks.source ? t("marks.source", { source: tell(`marks.type_${marks.source}`, marks.source) }) : "",
    marks.tool ? t("marks.tool", { tool: marks.tool }) : "",
    marks.system ? t("marks.system", { system: marks.system }) : "",
    marks.state ? t(`marks.${marks.state}`, { signer: marks.signer || "–", reason: marks.reason }) : t("marks.unsigned"),
  ].filter(Boolean);

  /* ---- what it says ---- */
  const showText = (found) => {
    meme.parts.text = found;
    drawBoxes(found);
    const captions = found.lines.filter(({ role }) => role === "caption");
    const others = found.lines.filter(({ role }) => role !== "caption");
    const marks = tellMarks(found.marks).map((note) => el("p", { className: "quiet" }, own(note)));
    if (!captions.length) {
      settle("text", [el("p", { textContent: t("text.none") }), ...marks], [t("text.by", { by: found.by })]);
      announce(t("text.none"));
      return;
    }
    const show = (line) => {
      const piece = el("span", { className: "line", tabIndex: 0, title: t(`role.${line.role}`) }, own(line.text));
      for (const [kind, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) {
        piece.addEventListener(kind, () => byId("boxes").children[found.lines.indexOf(line)]?.classList.toggle("lit", on));
      }
      return piece;
    };
    const said = el("p", { className: "said", lang: found.language }, ...captions.flatMap((line) => [show(line), " "]));
    const roles = [...new Set(others.map(({ role }) => role))];
    const beside = roles.map((role) => el("p", { className: "beside quiet" }, `${t(`role.${role}`)}: `,
      ...others.filter((line) => line.role === role).flatMap((line, place) => [place ? " · " : "", show(line)])));
    const language = tell(`language.${found.language}`, t("language.other"));
    const form = t(found.panels === 1 ? "text.form_one" : "text.form", { language, panels: found.panels });
    const mean = captions.reduce((sum, line) => sum + line.score, 0) / captions.length;
    const kind = found.kind ? [tell(`kind.${found.kind}`, found.kind)] : [];
    const notes = [[form, ...kind].join(COMMA), ...(found.unread ? [t("text.unread", { count: found.unread })] : [])];
    settle("text", [said, ...beside, ...notes.map((note) => el("p", { className: "quiet", textContent: note })), ...marks],
      [`${t("text.by", { by: found.by })}${COMMA}${t("result.sure", { percent: percent(mean) })}`]);
    announce(t("text.done", { text: found.text }));
  };
  const drawBoxes = (found) => {
    const boxes = byId("boxes");
    boxes.setAttribute("viewBox", `0 0 ${found.width} ${found.height}`);
    boxes.replaceChildren(...found.lines.map(({ box: [left, top, right, bottom], role }) => {
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const around = { x: left - 3, y: top - 3, width: right - left + 6, height: bottom - top + 6, rx: 4 };
      for (const [name, value] of Object.entries(around)) rect.setAttribute(name, value);
      rect.classList.toggle("other", role !== "caption");
      return rect;
    }));
  };

  /* ---- what it sounds like ---- */
  const showSound = (found) => {
    meme.parts.sound = found;
    const children = [];
    if (found.status !== "found") children.push(el("p", { textContent: t(`sound.${found.status}`) }));
    else if (found.intended) {
      children.push(
        el("div", { className: "heard" },
          el("p", { className: "said", lang: found.language }, ...marked(found.caption, found.changes)),
          el("p", { className: "quiet small", textContent: t("sound.intended") }),
          el("p", { className: "said answer" }, own(found.reading))),
        el("p", { className: "changes" }, ...found.changes.map((change) => el("span", { className: "tag" },
          own(`${change.written} ${change.written_pronunciation} → ${change.homophone} ${change.homophone_pronunciation}`)))),
        found.others.length ? el("p", { className: "quiet small" }, own(t("sound.others", { readings: found.others.join(" · ") }))) : null,
        meter(found.confidence));
    } else {
      children.push(el("p", { textContent: t("sound.plain") }));
      if (found.reading) children.push(el("p", { className: "quiet small" }, own(t("sound.near", { reading: found.reading })), ` · ${t("result.sure", { percent: percent(found.confidence) })}`));
    }
    const sure = found.intended ? `${COMMA}${t("result.sure", { percent: percent(found.confidence) })}` : "";
    settle("sound", children, found.status === "found" ? [t("sound.by") + sure] : null);
    announce(found.intended ? t("sound.done", { reading: found.reading }) : t("sound.done_plain"));
  };
  /* Offsets of changes count code points, as Python does. */
  const marked = (caption, changes) => {
    const chars = [...caption];
    const pieces = [];
    let at = 0;
    for (const { start, end } of [...changes].sort((a, b) => a.start - b.start)) {
      if (start < at) continue;
      pieces.push(own(chars.slice(at, start).join("")), own(chars.slice(start, end).join(""), "mark"));
      at = end;
    }
    return [...pieces, own(chars.slice(at).join(""))];
  };

  /* ---- whom it may hurt ---- */
  const showHarm = (found) => {
    meme.parts.harm = found;
    const who = [found.sample ? t("harm.by_sample") : t("harm.by", { by: found.by })];
    const why = explainReview(found).map((line) => el("p", { textContent: line }));
    const demo = found.sample ? el("p", { textContent: t("harm.demo_result", { verdict: verdict(found) }) }) : null;
    if (found.status !== "scored") {
      settle("harm", [el("p", {}, pill(found)), demo, ...why], who);
      announce([verdict(found), ...explainReview(found)].join(". "));
      cover();
      return;
    }
    const chance = percent(found.probability);
    const kind = found.type ? ` · ${t("harm.type", { type: tell(`type.${found.type}`, found.type) })}` : "";
    const letters = el("p", { className: "letters" });
    for (const { char, share } of found.characters) {
      const level = Math.min(4, Math.floor(Math.abs(share) * 5));
      const letter = own(char, "i");
      if (level) letter.className = `${share > 0 ? "h" : "g"}${level}`;
      letter.title = `${share > 0 ? "+" : ""}${share.toFixed(2)}`;
      letters.append(letter);
    }
    settle("harm", [
      el("p", {}, pill(found), found.sample || found.outside ? "" : kind),
      demo,
      meter(found.probability, found.threshold),
      el("p", { className: "quiet small", textContent: t("harm.probability", { percent: chance, threshold: percent(found.threshold) }) }),
      ...why,
      found.characters.length ? el("p", { className: "quiet small key" }, t("harm.letters"), " ", el("i", { className: "h3", textContent: t("harm.towards") }), " ", el("i", { className: "g3", textContent: t("harm.against") })) : null,
      found.characters.length ? letters : null,
      found.sample ? el("p", { className: "quiet small", textContent: t("harm.sample") }) : null,
    ], who);
    announce(t("harm.done", { verdict: verdict(found), percent: chance }));
    cover();
  };

  /* ---- the veil ---- */
  const veil = (why) => {
    if (meme.shown) return;
    document.body.classList.add("veil");
    byId("why").textContent = t(why);
    byId("blur").hidden = true;
  };
  const unveil = () => document.body.classList.remove("veil");
  /* A sample's verdict blurs nothing; a detector's, a model's and the pack's own word do. */
  const isHarmful = () => Boolean(meme.sample?.harmful || (meme.parts.harm?.harmful && !meme.parts.harm.sample)
    || (meme.parts.meanings ?? []).some(({ found }) => found && (found.harm?.harmful || found.knowledge.individuals.some((one) => one.dimension === "Toxicity"))));
  const cover = () => { if (isHarmful()) veil("result.may_harm"); else unveil(); };
  byId("show").addEventListener("click", () => {
    meme.shown = true;
    unveil();
    byId("blur").hidden = false;
    byId("blur").focus();
  });
  byId("blur").addEventListener("click", () => {
    meme.shown = false;
    veil(isHarmful() ? "result.may_harm" : "result.not_scored");
    byId("show").focus();
  });

  /* ---- a kinder version ---- */
  const emotion = (name) => tell(`emotion.${name}`, name);
  const showKinder = (found, at = 0) => {
    meme.parts.kinder = found;
    const choice = meme.choice ??= { id: [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join(""), chosen: null, undone: [], words: "" };
    const models = [...(byId("model")?.options ?? [])].map((option) => option.value).filter((name) => name !== found.by);
    const more = models.map((name) => el("button", { type: "button", className: "small", textContent: t("kinder.ask", { model: nameModel(name) }), onclick: () => soften(name) }));
    if (!found.picture) {
      settle("kinder", [el("p", {}, own(t("kinder.failed", { reason: found.reason }))), el("div", { className: "row" }, ...more), ownWords(found)]);
      announce(t("kinder.failed", { reason: found.reason }));
      return;
    }
    const shown = found.versions[at];
    const text = shown.captions.join(" ");
    const range = el("input", { type: "range", min: 0, max: 100, value: 50 });
    range.setAttribute("aria-label", t("kinder.slide"));
    const slide = el("div", { className: "slide" },
      el("img", { src: shown.picture, alt: t("kinder.alt", { text }) }),
      el("img", { src: meme.url, alt: "", className: "before" }),
      el("span", { className: "corner left", textContent: t("kinder.before") }),
      el("span", { className: "corner right", textContent: t("kinder.after") }), range);
    const move = () => slide.style.setProperty("--at", `${range.value}%`);
    range.addEventListener("input", move);
    move();
    const flawed = shown.flaws.length ? [el("p", { textContent: t("kinder.flawed") }), el("ul", {}, ...shown.flaws.map((flaw) => el("li", {}, own(flaw))))] : [];
    const button = (key, onclick, className = "small") => el("button", { type: "button", className, textContent: t(key), onclick });
    const take = choice.chosen === at + 1 ? [el("b", { className: "taken", textContent: t("kinder.taken", { number: at + 1 }) }), button("kinder.undo", () => choose(found, at, null))]
      : [button("kinder.take", () => choose(found, at, at + 1), "small main")];
    const others = found.versions.length < 2 && !found.asked && found.by !== "a person" ? [button("kinder.more", () => soften(found.by, 4))] : [];
    settle("kinder", [
      slide,
      ...(found.versions.length > 1 ? [pickVersion(found, at)] : []),
      found.asked && found.versions.filter((one) => one.status === "done").length < found.asked ? el("p", { className: "quiet small", textContent: t("kinder.fewer", { count: found.versions.filter((one) => one.status === "done").length, wanted: found.asked }) }) : null,
      ...flawed,
      text === found.before ? el("p", { className: "quiet", textContent: t("kinder.same") })
        : el("p", { className: "said" }, own(text)),
      found.emotion ? el("p", { className: "quiet", textContent: t("kinder.turn", { emotion: emotion(found.emotion), target: emotion(found.target) }) }) : null,
      ...(found.notes ?? []).map((note) => el("p", { className: "quiet", textContent: note })),
      el("div", { className: "row" }, ...take, ...others, el("a", { className: "button small", href: shown.picture, download: `${stem()}-kinder.png`, textContent: t("kinder.download") }), ...more),
      labelBox(found, shown),
      keeps ? el("p", { className: "quiet small", textContent: t("kinder.kept") }) : null,
      ownWords(found),
    ], [shown.by === "a person" ? t("kinder.by_person") : t("kinder.by", { by: nameModel(shown.by) })]);
    announce(shown.flaws.length ? t("kinder.flawed") : t("kinder.done", { text }));
  };
  /* Without the label, the image is drawn again: a copy made by the page would lose its marks. */
  let labelled = true;
  const labelBox = (found, shown) => {
    const box = el("input", { type: "checkbox", checked: labelled });
    box.addEventListener("change", () => {
      labelled = box.checked;
      if (shown.by === "a person") drawWords(found, meme.choice.words);
      else soften(found.by, found.asked ?? 1);
    });
    return el("label", { className: "tick small" }, box, ` ${t("kinder.label")}`);
  };
  const pickVersion = (found, at) => {
    const group = el("div", { className: "versions" }, ...found.versions.map((one, place) => {
      const label = `${place + 1}${one.by === "a person" ? ` ${t("kinder.yours")}` : ""}${one.flaws.length ? ` ${t("kinder.has_flaws")}` : ""}`;
      const made = el("button", { type: "button", className: "version", onclick: () => { showKinder(found, place); byId("part-kinder").querySelectorAll(".version")[place].focus(); } },
        el("img", { src: one.picture, alt: one.captions.join(" ") }), el("span", { textContent: label }));
      made.setAttribute("aria-pressed", String(place === at));
      return made;
    }));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", t("kinder.versions"));
    return group;
  };
  const choose = (found, at, number) => {
    const { choice } = meme;
    if (choice.chosen !== null) choice.undone.push(choice.chosen);
    choice.chosen = number;
    const candidates = found.versions.map(({ captions, by, status, kindness }) => ({ captions, by, status, kindness }));
    if (keeps) send("/studio/choice", { ...choice, meme: meme.sample?.id ?? found.meme, candidates }, stop.signal).catch((error) => { if (error.name !== "AbortError") notice(error.message); });
    showKinder(found, at);
    announce(t(number ? "kinder.taken" : "kinder.undone", { number }));
  };
  const ownWords = (found) => {
    const first = found.versions?.[0]?.captions ?? [found.before];
    const field = el("textarea", { rows: Math.max(2, first.length), value: meme.choice.words || first.join("\n"), maxLength: 2000 });
    const form = el("form", {}, el("label", {}, el("span", { className: "plain", textContent: t("kinder.own_hint") }), field), el("button", { className: "small", textContent: t("kinder.own_draw") }));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const words = field.value.trim();
      if (!words) return;
      await drawWords(found, words);
    });
    return el("details", { className: "own-words", open: Boolean(meme.choice.words) }, el("summary", { textContent: t("kinder.own") }), form);
  };
  const drawWords = (found, words) => make("kinder", async (signal) => {
    const made = await ask("/studio/words", { picture: await asUrl(meme.file), words, label: labelled }, signal);
    if (signal.aborted) return;
    meme.choice.words = words;
    if (!made.picture) {
      notice(t("kinder.own_failed", { reason: made.reason }));
      showKinder(found);
      return;
    }
    const kept = (found.versions ?? []).filter((one) => one.by !== "a person");
    showKinder(found.picture ? { ...found, versions: [...kept, ...made.versions] } : made, found.picture ? kept.length : 0);
  });
  const soften = (model, versions = 1) => make("kinder", async (signal) => {
    const found = await ask(`/studio/kinder?model=${encodeURIComponent(model)}&versions=${versions}&label=${labelled}`, meme.file, signal);
    if (signal.aborted) return;
    meme.choice = null;
    if (versions > 1) found.asked = versions;
    showKinder(found);
  });

  /* ---- what it may mean ---- */
  const list = (items) => el("ul", {}, ...items.map((item) => el("li", {}, own(item))));
  const row = (name, ...children) => el("div", {}, el("span", { className: "name", textContent: name }), el("div", {}, ...children));
  const showMeaning = ({ found, wide, narrow }, alone) => {
    const authors = found.by === "sample data";
    const { harm, feeling } = found;
    const who = authors ? t("meaning.by_authors") : t("meaning.by", { by: nameModel(found.by) });
    const spent = found.tokens ? ` · ${t("meaning.tokens", { count: found.tokens.toLocaleString() })}` : "";
    const findings = el("div", { className: "findings" },
      found.intents.length ? row(t("meaning.intents"), list(found.intents)) : null,
      found.background.length ? row(t("meaning.background"), list(found.background)) : null,
      harm ? row(t("meaning.harm"), el("p", {}, pill({ harmful: harm.harmful }), harm.type && harm.type !== "none" ? ` ${tell(`type.${harm.type}`, harm.type)}` : "", harm.target ? own(` ${t("meaning.against", { target: harm.target })}`) : ""), harm.reason ? el("p", { className: "quiet small" }, own(harm.reason)) : null) : null,
      feeling ? row(t("meaning.feeling"), el("p", {}, own(emotion(feeling.emotion))), feeling.reason ? el("p", { className: "quiet small" }, own(feeling.reason)) : null) : null,
      found.intents.length || found.background.length || harm ? null : el("p", { textContent: t("meaning.nothing") }));
    const missing = found.missing.length ? el("details", { className: "small" }, el("summary", { textContent: t("meaning.missing", { count: found.missing.length }) }),
      list(found.missing.map((gap) => `${gap.part}: ${gap.reason}`))) : null;
    return el("article", { className: "meaning", dataset: { by: found.by } },
      alone ? null : el("h3", {}, own(nameModel(found.by))), findings, missing,
      wide ? graph(found, wide, narrow, alone) : null,
      el("p", { className: "by", textContent: `${t("result.who")}${SPACE}${who}${spent}` }));
  };
  const graph = (found, wide, narrow, alone) => {
    const panel = el("div", { className: "panel", hidden: true });
    panel.setAttribute("aria-live", "polite");
    const open = (numbers) => {
      panel.replaceChildren(...numbers.map((number) => {
        const one = found.knowledge.individuals[number];
        return el("div", { className: `entry d-${one.dimension}` }, el("h4", {}, own(one.label || one.name)), el("p", {}, own(one.description)));
      }));
      panel.hidden = !numbers.length;
    };
    const drawings = [[narrow, "narrow"], ...(alone ? [[wide, "wide"]] : [])].map(([tree, name]) => {
      const drawing = Graph.grow(tree);
      Graph.translate(drawing, words);
      Graph.bring(drawing, open);
      return el("div", { className: name }, drawing);
    });
    return el("div", { className: `stage${alone ? "" : " pair-stage"}` },
      el("h3", { textContent: t("meaning.graph") }), el("p", { className: "quiet small", textContent: t("meaning.graph_hint") }), ...drawings, panel);
  };
  const showMeanings = () => {
    const made = meme.parts.meanings;
    const alone = made.length === 1;
    const children = [];
    if (made.length === 2 && made.every((one) => one.found)) {
      const [one, two] = made.map(({ found }) => found);
      const parts = [
        one.harm?.harmful === two.harm?.harmful ? null : t("meaning.harm"),
        one.feeling?.emotion === two.feeling?.emotion ? null : t("meaning.feeling"),
      ].filter(Boolean);
      children.push(el("p", { className: `note ${parts.length ? "mind" : "good"}`, textContent: parts.length ? t("meaning.differ", { parts: parts.join(" · ") }) : t("meaning.agree") }));
    }
    children.push(el("div", { className: alone ? "" : "columns" }, ...made.map((one) => {
      if (one.found) return showMeaning(one, alone);
      if (one.error) return el("article", { className: "meaning" }, el("h3", {}, own(nameModel(one.by))), complain(one.error, () => askModels(made.map(({ by }) => by))));
      const bar = el("progress", { max: one.total || 1, value: one.done || 0 });
      bar.setAttribute("aria-label", t("meaning.asking", { model: nameModel(one.by) }));
      return el("article", { className: "meaning" }, el("h3", {}, own(t("meaning.asking", { model: nameModel(one.by) }))), bar,
        el("p", { className: "quiet small", textContent: one.total ? t("meaning.progress", one) : t("result.working") }));
    })));
    settle("meaning", children);
    if (isHarmful()) cover();
  };
  const askModels = async (models) => {
    const signal = stop.signal;
    meme.parts.meanings = models.map((by) => ({ by }));
    showMeanings();
    await Promise.all(meme.parts.meanings.map(async (one) => {
      try {
        await follow(`/studio/meaning?model=${encodeURIComponent(one.by)}`, meme.file, signal, (line) => {
          if (line.error) throw refusal(line.error);
          Object.assign(one, line);
          if (!signal.aborted) showMeanings();
        });
        if (!signal.aborted) announce(t("meaning.done", { model: nameModel(one.by) }));
      } catch (error) {
        one.error = error;
        if (!signal.aborted) { showMeanings(); announce(`${nameModel(one.by)}${CHINESE ? "：" : ": "}${error.message}`); }
      }
    }));
  };
  byId("ask")?.addEventListener("submit", (event) => {
    event.preventDefault();
    askModels([...new Set([byId("model").value, byId("second")?.value].filter(Boolean))]);
  });

  /* ---- one meme from beginning to end ---- */
  const stem = () => meme.name.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 60) || "meme";
  const look = async (file, name, sample = null) => {
    notice("");
    if (file.size > MOST_BYTES) return notice(t("result.large"));
    if (!KINDS.includes(file.type)) return notice(t("result.not_image"));
    stop.abort();
    stop = new AbortController();
    const signal = stop.signal;
    if (meme) URL.revokeObjectURL(meme.url);
    meme = { file, name, sample, url: URL.createObjectURL(file), parts: {}, shown: false };
    byId("start").hidden = true;
    byId("result").hidden = false;
    byId("name").firstElementChild.textContent = name;
    byId("picture").src = meme.url;
    byId("picture").alt = t("result.picture", { name });
    byId("boxes").replaceChildren();
    section("meaning").body.replaceChildren();
    veil("result.checking");
    byId("name").focus({ preventScroll: true });
    scrollTo({ top: 0 });
    for (const part of ["sound", "harm", "kinder"]) wait(part);
    if (sample) make("meaning", async () => {
      const line = await ask(`/studio/sample/${encodeURIComponent(sample.id)}`, {}, signal).catch((error) => {
        if (!meme.parts.meanings) throw error;
      });
      /* Models that were asked meanwhile have the place. */
      if (signal.aborted || meme.parts.meanings) return;
      meme.parts.meanings = [{ by: line.found.by, ...line }];
      showMeanings();
    });
    await make("text", async () => {
      const found = await ask("/studio/text", file, signal);
      if (signal.aborted) return;
      showText(found);
      const said = { text: found.text, language: found.language, unread: found.unread, other_text: found.other_text };
      make("sound", async () => { const found = await ask("/studio/sound", said, signal); if (!signal.aborted) showSound(found); });
      make("harm", async () => { const judged = await ask("/studio/harm", said, signal); if (!signal.aborted) showHarm(judged); });
      make("kinder", async () => { const made = await ask("/studio/kinder", file, signal); if (!signal.aborted) showKinder(made); });
    });
    if (!signal.aborted && !meme.parts.text) {
      for (const part of ["sound", "harm", "kinder"]) settle(part, []);
      byId("why").textContent = t("result.not_scored");
    }
    return undefined;
  };
  const takeFiles = (files) => {
    if (!files.length) return;
    look(files[0], files[0].name || "meme.png");
    if (files.length > 1) notice(t("result.first_only", { count: files.length }));
    history.replaceState(null, "", location.pathname + location.search);
  };

  /* ---- ways in ---- */
  byId("file").addEventListener("change", () => { takeFiles(byId("file").files); byId("file").value = ""; });
  document.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length) { event.preventDefault(); takeFiles(files); }
  });
  let depth = 0;
  const hover = (on) => { byId("over").hidden = !on; };
  document.addEventListener("dragenter", (event) => { event.preventDefault(); depth += 1; hover(true); });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); hover(depth > 0); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    hover(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length) takeFiles(files);
    else notice(t("result.no_file"));
  });
  const pick = async (button) => {
    const { meme: id, file } = button.dataset;
    const body = await (await fetch(`/studio/sample/${encodeURIComponent(id)}.png`)).blob();
    history.replaceState(null, "", `#${id}`);
    look(new Blob([body], { type: "image/png" }), file, { id, harmful: button.classList.contains("veiled") });
  };
  for (const button of document.querySelectorAll(".pick")) button.addEventListener("click", () => pick(button));
  byId("all").addEventListener("click", () => {
    const hidden = [...byId("picks").querySelectorAll("li[hidden]")];
    for (const item of hidden) item.hidden = false;
    byId("all").parentElement.hidden = true;
    hidden[0]?.querySelector("button").focus();
  });
  byId("another").addEventListener("click", () => {
    stop.abort();
    if (meme) URL.revokeObjectURL(meme.url);
    meme = null;
    notice("");
    document.body.classList.remove("veil");
    byId("picture").removeAttribute("src");
    byId("result").hidden = true;
    byId("start").hidden = false;
    history.replaceState(null, "", location.pathname + location.search);
    byId("file").focus();
  });
  byId("mark").addEventListener("change", () => byId("frame").classList.toggle("unmarked", !byId("mark").checked));

  /* ---- saving, on request only ---- */
  const asUrl = (blob) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  const record = async () => ({
    name: meme.name,
    language: document.documentElement.lang.slice(0, 2),
    picture: await asUrl(meme.file),
    text: meme.parts.text ?? null,
    sound: meme.parts.sound ?? null,
    harm: meme.parts.harm ?? null,
    kinder: meme.parts.kinder ? (({ asked, ...kinder }) => kinder)(meme.parts.kinder) : null,
    meanings: (meme.parts.meanings ?? []).filter((one) => one.found).map((one) => one.found),
  });
  const save = (blob, name) => {
    const url = URL.createObjectURL(blob);
    const link = el("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    announce(t("result.saved", { name }));
  };
  byId("save-data").addEventListener("click", async () => {
    const text = JSON.stringify(await record(), null, 2);
    save(new Blob([text], { type: "application/json" }), `${stem()}.json`);
  });
  byId("save-page").addEventListener("click", async () => {
    notice("");
    try {
      const page = await (await send("/studio/page", await record(), stop.signal)).blob();
      save(page, `${stem()}.html`);
    } catch (error) {
      notice(`${t("result.failed")}: ${error.message}`);
    }
  });

  const named = decodeURIComponent(location.hash.slice(1));
  const linked = named && [...document.querySelectorAll(".pick")].find((button) => button.dataset.meme === named);
  if (linked) pick(linked);
})();
