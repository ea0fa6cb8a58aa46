// The answer: the verdict, each sentence with its picture and its terms; proofs and theorems.

import { fill, h } from "./dom.js";

/**
 * @param {{ask: () => void, glossary: Object<string, string>, point: (picture: string) => void}} app
 */
export function answerPanel(app) {
  const button = h("button", { type: "button", class: "rf-main", on: { click: app.ask } }, "Explain this");
  const list = h("div", { class: "rf-verdict", "aria-live": "polite" });
  const proofs = h("div", {});
  const refused = h("p", { class: "rf-refused", role: "alert", hidden: true });
  const row = h("div", { class: "rf-field" }, refused);
  row.dataset.field = "explain";
  const terms = h("dl", { class: "rf-glossary" });
  for (const [term, said] of Object.entries(app.glossary)) {
    terms.append(h("dt", { id: termId(term) }, term), h("dd", {}, said));
  }
  const glossary = h("details", {}, h("summary", {}, "Glossary"), terms);
  const el = h("section", { class: "rf-panel rf-answer", "aria-label": "Answer" },
    h("div", { class: "rf-row" }, h("h2", {}, "Answer"), button), row, list, proofs, glossary);

  const open = (term) => {
    glossary.open = true;
    const found = [...terms.children].find((dt) => dt.id === termId(term));
    found?.scrollIntoView({ block: "center", behavior: "smooth" });
    found?.classList.add("rf-lit");
    setTimeout(() => found?.classList.remove("rf-lit"), 1500);
  };
  const sentence = ({ topic, text, picture, terms: used = [] }) => h("article", {},
    h("h3", {}, topic), h("p", {}, text),
    h("p", { class: "rf-links" },
      picture ? h("button", { type: "button", class: "rf-quiet", on: { click: () => app.point(picture) } }, `see: ${picture}`) : null,
      ...used.map((term) => h("button", { type: "button", class: "rf-quiet", on: { click: () => open(term) } }, term))));

  const show = (side) => {
    const answer = side.answer;
    fill(list, ...(answer ? answer.verdict : side.sentences).map(sentence));
    fill(proofs);
    if (!answer) return;
    if (answer.certificates.length) {
      proofs.append(h("h3", {}, "Certificates"), rows(["certificate", "status", "claims"],
        answer.certificates.map((c) => [c.kind, c.grade, c.claims.join("; ")])));
    }
    if (answer.claims.length) {
      proofs.append(h("h3", {}, "Theorems that apply"), rows(["claim", "status", "statement"],
        answer.claims.map((c) => [c.label, c.status, c.statement])));
    }
    if (answer.missing.length) {
      proofs.append(h("p", { class: "rf-soft" }, `Not computed: ${answer.missing.join("; ")}.`));
    }
  };
  return { el, show, open, button };
}

function termId(term) {
  return `rf-term-${term.replace(/\W+/g, "-")}`;
}

function rows(head, body) {
  return h("table", {}, h("thead", {}, h("tr", {}, ...head.map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, ...body.map((cells) => h("tr", {}, ...cells.map((c, i) => h("td", i === 1 ? { class: `rf-status rf-${c}` } : {}, c))))));
}
