// Which data: a built-in set, points of one's own, a table.

import { field, h } from "./dom.js";

const TEXT = /\.(csv|tsv|txt)$/i;

/** A row of points to begin with, by kind. */
const BLANK = {
  "points on a line": { rows: [[-1, -0.5], [0.2, 1], [1, 0.3]], bias: 1, loss: "half_square" },
  "two classes in the plane": {
    rows: [[1, 0.2, 1], [0.3, 1, 1], [-1, 0.4, -1], [-0.3, -1, -1]], bias: 0, loss: "logistic",
  },
  "numbers in the plane": {
    rows: [[1, 0.2, 1], [0.3, 1, 0.5], [-1, 0.4, -1]], bias: 0, loss: "half_square",
  },
};

/**
 * @param {{change: (patch: any) => void, state: () => any, welcome: any, refuse: Function,
 *   blob: (bytes: Uint8Array|null) => void}} app
 */
export function dataPanel(app) {
  const sets = h("select", { on: { change: () => app.change(choose(sets.value)) } });
  const group = (label, options) => {
    const made = h("optgroup", { label });
    for (const [value, text] of options) made.append(h("option", { value }, text));
    sets.append(made);
  };
  group("Built-in", app.welcome.datasets.map((d) => [`set:${d.name}`, d.name]));
  group("Draw your own", Object.keys(BLANK).map((name) => [`blank:${name}`, name]));
  const own = h("option", { value: "own", hidden: true }, "your points");
  const table = h("option", { value: "table", hidden: true }, "your table");
  sets.append(own, table);
  const about = h("p", { class: "rf-soft" });
  const notes = h("ul", { class: "rf-notes" });
  const { box, text, label, standardize, drop } = tableFields(app);
  const el = h("section", { class: "rf-panel", "aria-label": "Data" }, h("h2", {}, "Data"),
    field("Set", sets, "data.name"), about, notes, box);

  const show = (problem) => {
    const data = app.state().a.data;
    const source = data.source;
    sets.value = source === "built-in" ? `set:${data.name}` : source === "points" ? "own" : "table";
    own.hidden = source !== "points";
    table.hidden = source !== "table";
    const known = app.welcome.datasets.find((d) => source === "built-in" && d.name === data.name);
    about.textContent = known ? known.about : "";
    if (source === "table") {
      if (document.activeElement !== text) text.value = data.text ?? "";
      label.value = data.label ?? "";
      standardize.checked = Boolean(data.standardize);
      drop.checked = Boolean(data.drop_missing);
    }
    notes.replaceChildren(...(problem?.notes ?? []).map((said) => h("li", {}, said)));
  };
  return { el, show };
}

function choose(value) {
  const [kind, name] = [value.slice(0, value.indexOf(":")), value.slice(value.indexOf(":") + 1)];
  if (kind === "set") return { data: { source: "built-in", name }, loss: null, leak: null, bias: null };
  const blank = BLANK[name];
  if (!blank) return {};
  return { data: { source: "points", rows: blank.rows }, bias: blank.bias, loss: blank.loss };
}

/** Paste or upload of a table, with the choices that a reader of tables has. */
function tableFields(app) {
  const text = h("textarea", { rows: "4", spellcheck: "false",
    placeholder: "size,weight,kind\n1.2,3.4,pear\n…", "aria-label": "Table as text" });
  const file = h("input", { type: "file", accept: ".csv,.tsv,.txt,.xlsx,.parquet,.npz" });
  const label = h("input", { type: "text", placeholder: "last column" });
  const standardize = h("input", { type: "checkbox" });
  const drop = h("input", { type: "checkbox" });
  const read = (name, content) => app.change({
    data: { source: "table", name, text: content, label: label.value.trim() || null,
      standardize: standardize.checked, drop_missing: drop.checked },
    loss: null,
  });
  const again = () => {
    const data = app.state().a.data;
    if (data.source === "table") read(data.name, data.text);
  };
  for (const input of [label, standardize, drop]) input.addEventListener("change", again);
  const use = h("button", { type: "button", on: { click: () => {
    app.blob(null);
    read("table.csv", text.value);
  } } }, "Use this table");
  file.addEventListener("change", async () => {
    const chosen = file.files[0];
    if (!chosen) return;
    if (chosen.size > app.welcome.limits.bytes) {
      app.refuse({ field: "data.text", sentence: `${chosen.name} has ${chosen.size.toLocaleString("en-US")} bytes: the page takes up to ${app.welcome.limits.bytes.toLocaleString("en-US")}` });
      return;
    }
    if (TEXT.test(chosen.name)) {
      app.blob(null);
      const content = await chosen.text();
      text.value = content.length < 20_000 ? content : "";
      read(chosen.name.replace(/\.txt$/i, ".csv"), content);
    } else {
      app.blob(new Uint8Array(await chosen.arrayBuffer()));
      read(chosen.name, "");
    }
    file.value = "";
  });
  const check = (input, said) => h("label", { class: "rf-check" }, input, said);
  const box = h("details", {}, h("summary", {}, "Paste or upload a table"),
    field("Table", text, "data.text"), use, field("File", file), field("Label column", label, "data.label"),
    check(standardize, "centre and scale columns"), check(drop, "leave out rows with blank cells"));
  return { box, text, label, standardize, drop };
}
