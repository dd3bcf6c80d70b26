"use strict";
// Filter and sort of the lists; without this script the page shows all items by rank.
{
  const tables = [...document.querySelectorAll("table.items")];
  const rows = tables.flatMap((one) => [...one.tBodies[0].rows]);
  const words = (one) => rows.map((row) => row.dataset[one]);
  const field = (name, made) => {
    const label = document.createElement("label");
    label.append(`${name} `, made);
    return label;
  };
  const choice = (values) => {
    const made = document.createElement("select");
    for (const value of values) made.append(new Option(value, value));
    return made;
  };
  const text = document.createElement("input");
  text.type = "search";
  const severity = choice(["all", ...new Set(words("severity"))]);
  const surface = choice(["all", ...new Set(words("surface"))]);
  const order = choice(["rank", "severity", "surface", "count", "age", "state"]);
  const shown = document.createElement("output");
  const before = (a, b, key) => a.dataset[key].localeCompare(b.dataset[key], "en", { numeric: true });
  const apply = () => {
    const wanted = text.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const has = row.textContent.toLowerCase();
      row.hidden = !wanted.every((one) => has.includes(one))
        || (severity.value !== "all" && row.dataset.severity !== severity.value)
        || (surface.value !== "all" && row.dataset.surface !== surface.value);
    }
    for (const table of tables) {
      const all = [...table.tBodies[0].rows];
      const key = { severity: "grave", count: "many" }[order.value] ?? order.value;
      table.tBodies[0].append(...all.sort((a, b) => before(a, b, key) || before(a, b, "rank")));
    }
    shown.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown`;
  };
  if (rows.length > 1) {
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.setAttribute("role", "search");
    tools.append(
      field("Filter", text), field("Severity", severity), field("Surface", surface), field("Order", order), shown,
    );
    tools.addEventListener("input", apply);
    tables[0].parentElement.insertBefore(tools, document.querySelector("h2.list"));
    apply();
  }
}
