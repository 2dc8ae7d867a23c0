(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const exhibits = [...document.querySelectorAll(".exhibit")];
  const choose = () => {
    let shown = 0;
    for (const own of exhibits) {
      const fits = !byId("target").value || own.dataset.target === byId("target").value;
      const wanted = byId("state").value;
      const right = !wanted || own.dataset.states.split(" ").includes(wanted);
      own.hidden = !(fits && right);
      shown += own.hidden ? 0 : 1;
    }
    byId("shown").textContent = byId("shown").dataset.text.replace("{some}", shown).replace("{all}", exhibits.length);
  };
  for (const id of ["target", "state"]) byId(id).addEventListener("change", choose);
  const veil = byId("veil");
  if (veil) {
    veil.addEventListener("click", () => {
      const hidden = document.body.classList.toggle("veiled");
      veil.textContent = hidden ? veil.dataset.show : veil.dataset.blur;
      veil.setAttribute("aria-pressed", String(!hidden));
    });
  }
  choose();
})();
