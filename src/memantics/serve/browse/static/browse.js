/* Browsing: pictures shown on request, drawings that light up, runs that tell how far they are. */
"use strict";
(() => {
  for (const button of document.querySelectorAll(".reveal")) {
    button.addEventListener("click", () => button.parentElement.classList.remove("blurred"));
  }
  const words = JSON.parse(document.getElementById("graph-words")?.textContent ?? "{}");
  for (const drawing of document.querySelectorAll(".drawing")) {
    Graph.translate(drawing, words);
    Graph.bring(drawing, ([number]) => { if (number !== undefined) location.hash = `i-${number}`; });
  }

  /* Runs that go on are asked after every two seconds while somebody looks. */
  const live = document.querySelector("[data-live]");
  if (!live) return;
  const places = new Map([...document.querySelectorAll("[data-run]")].map((place) => [place.dataset.run, place]));
  const states = new Map([...document.querySelectorAll("template[data-state]")].map((one) => [one.dataset.state, one.content.textContent]));
  const set = (place, part, text) => {
    const shown = place.querySelector(`[data-part="${part}"]`);
    if (shown && shown.textContent !== text) shown.textContent = text;
  };
  const update = (place, row) => {
    set(place, "state", states.get(row.state) ?? row.state);
    set(place, "count", row.total ? `${row.done} / ${row.total}` : String(row.done));
    set(place, "left", row.left);
    for (const [status, count] of Object.entries(row.counts)) set(place, status, String(count));
    const bar = place.querySelector("progress");
    if (bar) { bar.max = row.total || row.done || 1; bar.value = row.done; }
  };
  const look = async () => {
    if (document.hidden) return;
    const response = await fetch("/browse/runs/progress").catch(() => null);
    if (!response?.ok) return;
    const rows = await response.json();
    for (const row of rows) if (places.has(row.name)) update(places.get(row.name), row);
    const ended = rows.filter((row) => places.has(row.name)).every((row) => row.state !== "running");
    const others = live.id === "runs" && rows.some((row) => !places.has(row.name));
    if (ended || others) location.reload(); // figures and links of what has ended come with the page
  };
  setInterval(look, 2000);
})();
