#include "src/packer/partition/explain_page.h"

namespace qplan::partition {

const char kPageStyle[] = R"css(
:root {
  color-scheme: light; --on: #fff;
  --page: #f6f7f9; --panel: #ffffff; --line: #d8dde4; --text: #1b2430; --quiet: #5c6878; --edge: #9aa5b3;
  --cross: #d9480f; --select: #1c6fe0; --shade: #eef1f5;
  --d0: #0b8f7a; --d1: #7c4dd6; --d2: #b0851a; --d3: #c2387a; --cpu: #66758a;
  --s0: #c9ece5; --s1: #e2d7f8; --s2: #f2e6c4; --s3: #f7d5e5; --scpu: #e3e7ed;
}
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {
  color-scheme: dark; --on: #0d1216;
  --page: #12161c; --panel: #1a2028; --line: #323b47; --text: #e4e9f0; --quiet: #97a3b4; --edge: #5d6a7a;
  --cross: #ff8a4c; --select: #6aa8ff; --shade: #222a34;
  --d0: #2fc7ab; --d1: #a98bf5; --d2: #dcb24a; --d3: #f077ae; --cpu: #8b99ad;
  --s0: #133f38; --s1: #33285a; --s2: #453817; --s3: #4c2138; --scpu: #2b333f;
} }
:root[data-theme=dark] {
  color-scheme: dark; --on: #0d1216;
  --page: #12161c; --panel: #1a2028; --line: #323b47; --text: #e4e9f0; --quiet: #97a3b4; --edge: #5d6a7a;
  --cross: #ff8a4c; --select: #6aa8ff; --shade: #222a34;
  --d0: #2fc7ab; --d1: #a98bf5; --d2: #dcb24a; --d3: #f077ae; --cpu: #8b99ad;
  --s0: #133f38; --s1: #33285a; --s2: #453817; --s3: #4c2138; --scpu: #2b333f;
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
       font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header { padding: 14px 20px 0; }
h1 { font-size: 19px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0 0 8px; }
h3 { font-size: 13px; margin: 14px 0 4px; color: var(--quiet); font-weight: 600; }
.summary { color: var(--quiet); margin: 2px 0 12px; overflow-wrap: anywhere; }
.bar { display: flex; height: 22px; border-radius: 5px; overflow: hidden; background: var(--shade); margin: 3px 0; }
.bar > span { min-width: 0; color: var(--on); font-size: 12px; line-height: 22px; padding: 0; text-align: center;
              overflow: hidden; white-space: nowrap; }
.shares { display: grid; grid-template-columns: max-content 1fr; gap: 0 10px; align-items: center; }
.shares > span { color: var(--quiet); }
#strip { display: flex; height: 26px; margin: 8px 0 4px; gap: 1px; cursor: pointer; }
#strip > i { flex: 1 1 0; min-width: 0; border-radius: 2px; }
#strip > i:hover, #strip > i.on { outline: 2px solid var(--select); }
nav { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; margin: 6px 0 10px; }
button, input { font: inherit; color: var(--text); background: var(--panel); border: 1px solid var(--line);
                border-radius: 5px; padding: 3px 9px; }
button { cursor: pointer; }
button:focus-visible, input:focus-visible { outline: 2px solid var(--select); }
.key { display: inline-flex; align-items: center; gap: 5px; color: var(--quiet); margin-left: 8px; }
.key > i { width: 13px; height: 13px; border-radius: 3px; display: inline-block; }
.key > b { width: 20px; border-top: 2px dashed var(--cross); display: inline-block; }
main { display: grid; grid-template-columns: minmax(340px, 1fr) minmax(360px, 1fr); gap: 14px; padding: 0 20px 20px; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 14px; min-width: 0; }
#graph { height: calc(100vh - 24px); position: sticky; top: 12px; padding: 0; overflow: auto; }
#graph svg { display: block; margin: 0 auto; }
.side { display: flex; flex-direction: column; gap: 14px; min-width: 0; }
.scroll { overflow: auto; max-height: 60vh; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--quiet); font-weight: 600; font-size: 12px; position: sticky; top: 0;
     background: var(--panel); }
th, td { padding: 3px 8px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.w { overflow-wrap: anywhere; }
td.i { white-space: nowrap; }
tr.go { cursor: pointer; }
tr.go:hover { background: var(--shade); }
code { font: 12px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.tag { display: inline-block; white-space: nowrap; border-radius: 4px; padding: 0 7px; color: var(--on); font-size: 12px; line-height: 20px; }
.reason { margin: 5px 0; padding: 5px 9px; border-left: 3px solid var(--cross); background: var(--shade);
          border-radius: 0 5px 5px 0; overflow-wrap: anywhere; }
.reason small { display: block; color: var(--quiet); font-size: 12px; }
.reason.near { border-color: var(--select); }
details { border-bottom: 1px solid var(--line); padding: 4px 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
details ul { margin: 4px 0 4px 18px; padding: 0; }
details li { cursor: pointer; overflow-wrap: anywhere; }
details li:hover { color: var(--select); }
.quiet { color: var(--quiet); }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--text); }
svg .sub { font-size: 11px; fill: var(--quiet); }
svg .region { font-size: 11px; font-weight: 600; }
svg .bytes { font-size: 11px; fill: var(--cross); }
svg .edge { fill: none; stroke: var(--edge); stroke-width: 1.4; }
svg .cross { stroke: var(--cross); stroke-width: 2; stroke-dasharray: 5 3; }
svg .unit { cursor: pointer; }
svg .unit .box { fill: var(--panel); stroke-width: 1.6; }
svg .unit:hover .box { fill: var(--shade); }
svg .unit.on .box { stroke: var(--select); stroke-width: 3; }
svg .unit.dim { opacity: 0.25; }
svg .port { fill: var(--shade); stroke: var(--edge); }
@media (max-width: 860px) { main { grid-template-columns: 1fr; } #graph { position: static; height: 70vh; } }
@media print { #graph { position: static; height: auto; } .scroll { max-height: none; } main { display: block; } }
)css";

const char kPageBody[] = R"html(<body>
<header>
<h1 id="title"></h1>
<div class="summary" id="summary"></div>
<div class="shares" id="shares"></div>
<div id="strip" title="all units in the order in which they run; a click shows one"></div>
<nav>
<input id="find" type="search" placeholder="find operator, name or reason" size="30" aria-label="find">
<span id="found" class="quiet"></span>
<button id="smaller" title="smaller">&#8722;</button><button id="larger" title="larger">+</button>
<button id="fit" title="the whole graph">fit</button><button id="theme" title="light or dark">theme</button>
<span id="keys"></span>
</nav>
</header>
<main>
<section id="graph" tabindex="0" aria-label="the graph"></section>
<div class="side">
<section id="unit"></section>
<section><h2>Devices</h2><div class="scroll" id="devices"></div></section>
<section id="regions_section"><h2>Regions</h2><div class="scroll" id="regions"></div></section>
<section><h2 id="off_title"></h2><div class="scroll" id="off"></div></section>
</div>
</main>
<noscript>This page draws a graph from the data that it holds; it needs JavaScript, and no network.</noscript>
)html";

}  // namespace qplan::partition
