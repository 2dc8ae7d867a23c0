(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const drawings = [...document.querySelectorAll(".drawing")];
  const panel = byId("panel");
  let kept = null;

  const light = (number) => {
    for (const drawing of drawings) {
      const near = new Set([number]);
      for (const line of drawing.querySelectorAll(".line")) {
        const touches = line.dataset.from === number || line.dataset.to === number;
        line.classList.toggle("lit", touches);
        if (touches) near.add(line.dataset.from).add(line.dataset.to);
      }
      for (const port of drawing.querySelectorAll(".port")) port.classList.toggle("lit", near.has(port.dataset.of));
      for (const card of drawing.querySelectorAll(".card")) {
        card.classList.toggle("lit", near.has(card.dataset.card));
        card.classList.toggle("here", card.dataset.card === number);
      }
      drawing.classList.toggle("busy", number !== null);
    }
    const card = number === null ? null : document.querySelector(`.card[data-card="${number}"]`);
    const entries = card ? card.dataset.shows.split(" ").map((own) => byId(`i-${own}`)).filter(Boolean) : [];
    byId("detail").replaceChildren(...entries.map((entry) => {
      const copy = entry.cloneNode(true);
      copy.removeAttribute("id");
      return copy;
    }));
    panel.hidden = entries.length === 0;
  };

  for (const drawing of drawings) {
    for (const card of drawing.querySelectorAll(".card")) {
      const number = card.dataset.card;
      card.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse" && kept === null) light(number);
      });
      card.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse" && kept === null) light(null);
      });
      card.addEventListener("focus", () => { if (kept === null && card.matches(":focus-visible")) light(number); });
      card.addEventListener("blur", () => { if (kept === null) light(null); });
      card.addEventListener("click", (event) => {
        event.preventDefault();
        event.stopPropagation();
        kept = kept === number ? null : number;
        light(kept);
      });
    }
    drawing.addEventListener("click", () => { kept = null; light(null); });
  }
  byId("close").addEventListener("click", () => { kept = null; light(null); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { kept = null; light(null); }
  });

  const picture = byId("picture");
  if (picture && picture.classList.contains("blurred")) {
    picture.addEventListener("click", () => {
      const hidden = picture.classList.toggle("blurred");
      picture.setAttribute("aria-pressed", String(!hidden));
    });
  }
})();
