/* Drawings of what is known about a meme: grown from data, lines that light up, cards that open. */
"use strict";
const Graph = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const TAGS = new Set(["svg", "g", "a", "rect", "text", "tspan", "path", "polygon", "title", "line", "circle"]);
  const NAMES = /^(class|id|x|y|x1|x2|y1|y2|cx|cy|r|rx|d|points|width|height|viewBox|role|aria-label|text-anchor|transform|data-[a-z]+)$/;

  /* A drawing comes as [tag, attributes, ...children]: no text of it is ever read as markup. */
  const grow = ([tag, attributes, ...children]) => {
    if (!TAGS.has(tag)) throw new Error(`a drawing holds no ${tag}`);
    const made = document.createElementNS(SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (NAMES.test(name)) made.setAttribute(name, value);
    }
    if (tag === "a") {
      made.setAttribute("tabindex", "0");
      made.setAttribute("role", "button");
    }
    made.append(...children.map((child) => (typeof child === "string" ? child : grow(child))));
    return made;
  };

  const light = (drawing, number, kept) => {
    const near = new Set([number]);
    for (const line of drawing.querySelectorAll(".line")) {
      const touches = line.dataset.from === number || line.dataset.to === number;
      line.classList.toggle("lit", touches);
      if (touches) near.add(line.dataset.from).add(line.dataset.to);
    }
    for (const port of drawing.querySelectorAll(".port")) port.classList.toggle("lit", near.has(port.dataset.of));
    for (const card of drawing.querySelectorAll(".card")) {
      card.classList.toggle("lit", near.has(card.dataset.card));
      card.classList.toggle("here", kept && card.dataset.card === number);
    }
    drawing.classList.toggle("busy", number !== null);
  };

  /* Lines follow the pointer and the keyboard; open(numbers) is told which card was pressed. */
  const bring = (drawing, open) => {
    let kept = null;
    const choose = (number, shows) => {
      kept = kept === number ? null : number;
      light(drawing, kept, true);
      open(kept === null ? [] : shows);
    };
    for (const card of drawing.querySelectorAll(".card")) {
      const number = card.dataset.card;
      const shows = (card.dataset.shows || number).split(" ").map(Number);
      const pass = (event) => {
        if (kept === null && (event.pointerType ?? "mouse") === "mouse") light(drawing, event.type === "pointerenter" || event.type === "focus" ? number : null, false);
      };
      for (const kind of ["pointerenter", "pointerleave", "focus", "blur"]) card.addEventListener(kind, pass);
      card.addEventListener("click", (event) => { event.preventDefault(); choose(number, shows); });
      card.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(number, shows); }
        if (event.key === "Escape" && kept !== null) choose(kept, shows);
      });
    }
  };

  /* Names that the ontology gives (columns, dimensions, relations) in the reader's language. */
  const translate = (drawing, words) => {
    for (const shown of drawing.querySelectorAll("text.column, text.kicker, text.row")) {
      const told = shown.textContent.split(" · ").map((part) => words[`graph.${part}`] ?? part).join(" · ");
      if (told !== shown.textContent) shown.textContent = told;
    }
  };
  return { grow, bring, translate };
})();
