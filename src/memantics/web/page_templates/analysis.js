(() => {
  "use strict";
  for (const picture of document.querySelectorAll(".picture.blurred")) {
    picture.addEventListener("click", () => {
      const hidden = picture.classList.toggle("blurred");
      picture.setAttribute("aria-pressed", String(!hidden));
    });
  }
  const sheets = [...document.querySelectorAll(".sheet")];
  for (const drawing of document.querySelectorAll(".drawing")) {
    const sheet = sheets.indexOf(drawing.closest(".sheet")) + 1;
    const light = (number) => {
      const near = new Set([number]);
      for (const line of drawing.querySelectorAll(".line")) {
        const touches = line.dataset.from === number || line.dataset.to === number;
        line.classList.toggle("lit", touches);
        if (touches) near.add(line.dataset.from).add(line.dataset.to);
      }
      for (const card of drawing.querySelectorAll(".card")) {
        card.classList.toggle("lit", near.has(card.dataset.card));
      }
      drawing.classList.toggle("busy", number !== null);
    };
    for (const card of drawing.querySelectorAll(".card")) {
      card.addEventListener("pointerenter", () => light(card.dataset.card));
      card.addEventListener("pointerleave", () => light(null));
      card.addEventListener("click", (event) => {
        event.preventDefault();
        location.hash = `m${sheet}-i-${card.dataset.card}`;
      });
    }
  }
})();
