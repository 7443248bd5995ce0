/**
 * The script of an exported page: find, fold, show housekeeping, change colours. It is inlined and allowed by its hash (`render-page.ts`).
 * Without it everything can still be read: parts fold by themselves. It only reads the page's text and sets classes, so stored text cannot
 * become markup.
 */
export const PAGE_SCRIPT = `
"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const [bar, input, count] = [one(".bar"), one("#find"), one("#count")];
  const messages = all("article").map((element) => ({ element, text: element.textContent.toLowerCase() }));
  const opened = new Set();
  let hits = [];
  let at = -1;
  bar.hidden = false;

  const isShown = ({ element }) =>
    !element.classList.contains("housekeeping") || document.body.classList.contains("show-housekeeping");

  function find() {
    const words = input.value.toLowerCase().split(/\\s+/).filter((word) => word !== "");
    for (const details of opened) details.open = false;
    opened.clear();
    hits = [];
    at = -1;
    for (const message of messages) {
      const isHit = words.every((word) => message.text.includes(word));
      message.element.classList.toggle("no-hit", !isHit);
      if (isHit && words.length > 0 && isShown(message)) hits.push(message.element);
    }
    for (const turn of all(".turn"))
      turn.classList.toggle("no-hit", words.length > 0 && !hits.some((hit) => turn.contains(hit)));
    for (const hit of hits)
      for (const details of all("details:not([open])", hit))
        if (words.some((word) => details.textContent.toLowerCase().includes(word))) {
          details.open = true;
          opened.add(details);
        }
    mark(words);
    const total = messages.filter(isShown).length;
    count.textContent = words.length === 0 ? "" : hits.length + " of " + total + " messages";
  }

  /** Highlights are ranges beside the text: nothing is put into it. */
  function mark(words) {
    if (!("highlights" in CSS)) return;
    CSS.highlights.delete("found");
    const ranges = [];
    for (const hit of words.length === 0 ? [] : hits) {
      const walker = document.createTreeWalker(hit, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node !== null && ranges.length < 5000; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        if (text.length !== node.data.length) continue;
        for (const word of words)
          for (let from = text.indexOf(word); from >= 0; from = text.indexOf(word, from + word.length)) {
            const range = new Range();
            range.setStart(node, from);
            range.setEnd(node, from + word.length);
            ranges.push(range);
          }
      }
    }
    if (ranges.length > 0) CSS.highlights.set("found", new Highlight(...ranges));
  }

  function step(by) {
    if (hits.length === 0) return;
    at = (at + by + hits.length) % hits.length;
    hits[at].scrollIntoView({ block: "start" });
    count.textContent = at + 1 + " of " + hits.length + " found";
  }

  function openTarget() {
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (target === null) return;
    for (const details of all("details", target)) details.open = true;
    target.scrollIntoView();
  }

  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 120);
  });
  one(".bar form").addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      input.value = "";
      find();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) return;
    event.preventDefault();
    input.focus();
  });
  one("#next").addEventListener("click", () => step(1));
  one("#previous").addEventListener("click", () => step(-1));
  one("#open").addEventListener("click", () => all("article details").forEach((details) => (details.open = true)));
  one("#close").addEventListener("click", () => all("article details").forEach((details) => (details.open = false)));
  one("#colours").addEventListener("change", (event) => {
    if (event.target.value === "") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = event.target.value;
  });
  one("#housekeeping")?.addEventListener("change", (event) => {
    document.body.classList.toggle("show-housekeeping", event.target.checked);
    find();
  });
  addEventListener("hashchange", openTarget);
  openTarget();
})();
`;
