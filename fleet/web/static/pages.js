"use strict";
// Keys, and the page kept up to date; without this script everything can be read and done too.
{
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const step = (by) => {
    const all = rows(), at = all.indexOf(document.activeElement);
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  };
  const unfold = (key) => {
    const one = document.querySelector(`details[data-key="${key}"]`);
    if (!one) return false;
    one.open = true;
    one.querySelector('[name="reason"]').focus();
    return true;
  };
  const decide = (key) => {
    const one = document.activeElement;
    if (!unfold(key) && one.matches("[data-item]")) location.href = `${one.href}#${key}`;
  };
  if (/^#[dms]$/.test(location.hash)) unfold(location.hash[1]);
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    o: () => document.activeElement.matches("[data-row]") && document.activeElement.click(),
    "/": () => document.getElementById("search")?.focus(),
    d: () => decide("d"),
    m: () => decide("m"),
    s: () => decide("s"),
  };
  const typing = (one) => one.matches("input, select, textarea, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    if (event.target instanceof Element && typing(event.target)) return;
    event.preventDefault();
    keys[event.key]();
  });

  const status = document.getElementById("live");
  const parts = () => [...document.querySelectorAll("[data-live]")];
  const renew = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = [...made.querySelectorAll("[data-live]")];
    for (const [at, part] of parts().entries()) {
      const busy = part.contains(document.activeElement) && typing(document.activeElement);
      if (!fresh[at] || busy) continue;
      const open = [...part.querySelectorAll("details")].map((one) => one.open);
      const row = rows().indexOf(document.activeElement);
      part.replaceWith(fresh[at]);
      fresh[at].querySelectorAll("details").forEach((one, n) => { one.open = open[n] ?? false; });
      if (row >= 0) rows()[row]?.focus();
    }
  };
  if (parts().length) {
    const pause = 1_000 * Math.min(...parts().map((one) => Number(one.dataset.live)));  // at least, between two renewals
    let busy = false, again = false;
    const soon = async () => {
      if (busy) { again = true; return; }
      busy = true;
      do {
        again = false;
        await renew().catch(() => {});
        await new Promise((done) => setTimeout(done, pause));
      } while (again);
      busy = false;
    };
    const source = new EventSource("/changes");
    source.addEventListener("change", (event) => {
      const { lines, dropped } = JSON.parse(event.data);
      const left = dropped ? `, ${dropped} more not shown` : "";
      if (lines.length || dropped) status.textContent = `${lines.at(-1)?.words ?? ""}${left}`;
      soon();
    });
    setInterval(soon, 30_000);
  }
}
