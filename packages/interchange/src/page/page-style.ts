/** The style of an exported page: light and dark by the reader's system or choice, on a screen and on paper. Inlined, see `render-page.ts`. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --text: light-dark(#1c2024, #e4e7eb);
  --faint: light-dark(#5a636d, #9aa5b1);
  --back: light-dark(#fbfbfa, #14171a);
  --sunk: light-dark(#f1f2f3, #1e2226);
  --line: light-dark(#dcdfe3, #33393f);
  --link: light-dark(#0b57a4, #7ab8ff);
  --user: light-dark(#eaf2fb, #182635);
  --good: light-dark(#dff3e3, #16351f);
  --bad: light-dark(#fbe4e2, #43201e);
  --bad-text: light-dark(#a3211a, #ff9b93);
  --mark: light-dark(#ffe58a, #6b5300);
}
:root[data-theme="light"] { color-scheme: light; }
:root[data-theme="dark"] { color-scheme: dark; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
.top, main, footer { max-width: 56rem; margin: 0 auto; padding: 0 1.2rem; }
.top { padding-top: 1.6rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2rem 0 .2rem; overflow-wrap: anywhere; }
.of, .turn-head, footer, .notice { color: var(--faint); font-size: .88rem; margin: .2rem 0; overflow-wrap: anywhere; }
a { color: var(--link); }
.bar { position: sticky; top: 0; z-index: 1; background: var(--back); border-bottom: 1px solid var(--line); }
.bar[hidden] { display: none; }
.bar form { max-width: 56rem; margin: 0 auto; padding: .55rem 1.2rem; display: flex; flex-wrap: wrap; gap: .4rem .6rem; align-items: center; }
.bar input[type="search"] { flex: 1 1 12rem; min-width: 8rem; }
button, select, input[type="search"] { font: inherit; font-size: .9rem; color: inherit; background: var(--sunk); border: 1px solid var(--line); border-radius: 6px; padding: .25rem .6rem; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
.bar label { font-size: .88rem; }
.bar output { font-size: .88rem; color: var(--faint); }
.turn { border-top: 2px solid var(--line); margin-top: 1.3rem; padding-top: .4rem; }
article { padding: .5rem 0; scroll-margin-top: 4rem; }
article:target { box-shadow: -4px 0 0 var(--link); }
article > header { display: flex; flex-wrap: wrap; gap: 0 .7rem; align-items: baseline; font-size: .84rem; color: var(--faint); }
article > header b { color: var(--text); font-size: .92rem; }
article > header a { color: inherit; text-decoration: none; }
article > header a:hover { text-decoration: underline; }
article.going-on { padding-top: 0; }
.going-on > header { justify-content: flex-end; font-size: .76rem; height: 1.1rem; }
.role-user > .parts { background: var(--user); border-radius: 8px; padding: .1rem .8rem; }
.parts { margin: .25rem 0; overflow-wrap: anywhere; }
.prose { white-space: pre-wrap; }
.markdown > :first-child { margin-top: .4rem; }
.markdown > :last-child { margin-bottom: .4rem; }
.md-heading { font-weight: 650; margin: .9rem 0 .3rem; }
.md-heading.large { font-size: 1.12rem; }
blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); color: var(--faint); }
.scroll-x { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
code, pre { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; font-size: .86rem; }
:not(pre) > code { background: var(--sunk); border-radius: 4px; padding: .05em .3em; }
pre { margin: .5rem 0; padding: .6rem .7rem; background: var(--sunk); border-radius: 7px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 40rem; }
.code-comment { color: var(--faint); font-style: italic; }
.code-keyword { color: light-dark(#7a2d91, #d6a4ea); }
.code-string { color: light-dark(#1b6a35, #8fd6a4); }
.code-number { color: light-dark(#8a4b00, #f0b36b); }
.diff-text > span { display: block; }
.diff-new { background: var(--good); }
.diff-gone { background: var(--bad); }
details { border: 1px solid var(--line); border-radius: 7px; padding: .2rem .6rem; margin: .35rem 0; }
details.long { border: 0; padding: 0; }
summary { cursor: pointer; font-size: .9rem; overflow-wrap: anywhere; }
.preview { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .84rem; color: var(--faint); }
.outcome { color: var(--faint); font-size: .84rem; margin-left: .7rem; }
.failed .outcome { color: var(--bad-text); }
.sneaky { border: 1px solid var(--bad-text); border-radius: 3px; font-size: .8em; padding: 0 .2em; }
figure { margin: .5rem 0; }
figcaption { color: var(--faint); font-size: .84rem; }
img { max-width: 100%; height: auto; border-radius: 6px; }
.housekeeping { display: none; }
article.housekeeping { border-left: 3px dashed var(--line); padding-left: .7rem; }
.show-housekeeping .housekeeping { display: block; }
.no-hit { display: none !important; }
::highlight(found) { background: var(--mark); color: var(--text); }
footer { margin: 0 auto; padding: 1.5rem 1.2rem 2.5rem; }
@media (max-width: 600px) { body { font-size: 15px; } .top, main, footer { padding-inline: .8rem; } .bar form { padding-inline: .8rem; } }
@media print {
  :root { color-scheme: light; }
  .bar { display: none; }
  body { font-size: 11pt; }
  .top, main, footer { max-width: none; padding-inline: 0; }
  pre { max-height: none; }
  .turn-head, article > header, summary { break-after: avoid; }
}
`;
