// Fills the page (report.html) from its data. Text from the model goes into text nodes only, never into markup.
const timeText = (ns) => ns === 0 ? '\u2013' : scaled(ns, [' ns', ' \u00b5s', ' ms', ' s']);
const percent = (part, whole) => whole === 0 ? '\u2013' : (100 * part / whole).toFixed(1) + ' %';
const short = (name) => { const parts = name.split(';'); return parts.length > 1 && parts[0] !== '' ? parts[0] + ';..+' + (parts.length - 1) : name; };
const sum = (list, of) => list.reduce((s, e) => s + of(e), 0);

const KINDS = ['convolution', 'depthwise', 'matrix product', 'pool and reduce', 'elementwise', 'region on a device', 'data movement', 'other'];
const KIND_OF = { conv2d: 0, float_conv2d: 0, conv2d_transpose: 0, chain: 0, depthwise_conv2d: 1, fully_connected: 2, weight_only_dense: 2, batch_matmul: 2, lstm: 2,
  float_lstm: 2, svdf: 2, avg_pool2d: 3, max_pool2d: 3, mean: 3, softmax: 3, arg_max: 3, float_pool2d: 3, float_mean: 3, int_reduce: 3, float_softmax: 3,
  softmax16: 3, l2_normalization: 3, log_softmax: 3, add: 4, sub: 4, mul: 4, div: 4, lut8: 4, lut16: 4, prelu: 4, float_binary: 4, float_unary: 4, int_binary: 4,
  requantize: 4, quantize: 4, dequantize: 4, dynamic_quantize: 4, dynamic_dequantize: 4, npu: 5, copy: 6, pad: 6, transpose: 6, concat: 6,
  split: 6, resize_bilinear: 6, resize_nearest: 6, gather: 6, gather_nd: 6, requantize_sign: 6 };
const kindOf = (s) => KIND_OF[s.op] ?? 7;
const colour = (s) => 'var(--k' + kindOf(s) + ')';
const S = D.steps, T = D.tensors;
const stepName = (s) => short(s.name) || s.op + ' ' + s.index;
const total = sum(S, (s) => s.ns);

function row(...values) {
  const tr = make('tr');
  for (const v of values) {
    if (v instanceof HTMLTableCellElement) { tr.append(v); continue; }
    const numeric = typeof v === 'object' && v !== null && v.numeric !== undefined;
    tr.append(make('td', numeric ? 'n' : 'w', numeric ? v.numeric : v));
  }
  return tr;
}
const num = (v) => ({ numeric: v });
function table(heads, rows) {
  const tr = make('tr');
  for (const h of heads) tr.append(make('th', h.startsWith('#') ? 'n' : h === '' ? 'meter' : '', h.replace(/^#/, '')));
  return make('table', '', make('thead', '', tr), make('tbody', '', ...rows));
}
function bar(part, background) {
  const fill = make('i');
  fill.style.width = 100 * part + '%';
  fill.style.background = background;
  return make('td', 'meter', fill);
}

// ---- header ----
el('title').textContent = D.title;
el('summary').textContent = D.summary;
for (const [value, label] of D.figures) el('figures').append(make('div', '', make('b', '', value), make('small', '', label)));
KINDS.forEach((kind, k) => {
  if (!S.some((s) => kindOf(s) === k)) return;
  const key = make('span', 'key', make('i'), kind);
  key.firstChild.style.background = 'var(--k' + k + ')';
  el('keys').append(key);
});

// ---- strip, table of steps ----
const cells = S.map((s) => {
  const cell = make('i');
  cell.style.flexGrow = total === 0 ? 1 : s.ns / total;
  cell.style.background = colour(s);
  cell.title = s.index + ' ' + s.op + ' ' + stepName(s) + ': ' + timeText(s.ns);
  if (s.ns === 0 && total > 0) cell.hidden = true;
  return cell;
});
if (S.length > 200) el('strip').style.gap = 0;
el('strip').append(...cells);
el('time_text').textContent = D.time_text + (total === 0 ? '' : '; the steps take ' + timeText(total) + ' together');
const slowest = Math.max(...S.map((s) => s.ns), 1);
const rows = S.map((s, i) => {
  const tr = row(num(s.index), make('span', '', s.op, s.estimated ? make('span', 'quiet', ' est.') : null), stepName(s), num(timeText(s.ns)),
                 num(percent(s.ns, total)), bar(s.ns / slowest, colour(s)), num(countText(s.macs)), num(bytesText(s.bytes)));
  tr.className = 'go';
  tr.onclick = () => select(i);
  return tr;
});
el('steps').append(table(['#step', 'operator', 'name', '#time', '#share', '', '#MACs', '#bytes'], rows));

// ---- memory over time ----
// Each tensor of the arena is a rectangle: its steps from left to right, its addresses from the top.
// Charts are as wide as their panel, so that their text keeps its size on narrow screens.
const widthOf = (id) => Math.min(900, Math.max(280, el(id).clientWidth || 900));
const M = D.memory, WIDTH = widthOf('memory'), LEFT = 64, TOP = 8, HEIGHT = 260, LIVE = 90, GAP = 26;
const n = Math.max(S.length, 1);
const atStep = (s) => LEFT + (WIDTH - LEFT - 8) * s / n;
const atByte = (b) => TOP + HEIGHT * b / Math.max(M.arena_bytes, 1);
const memory = svgMake('svg', { viewBox: '0 0 ' + WIDTH + ' ' + (TOP + HEIGHT + GAP + LIVE + 30), class: 'chart', role: 'img' });
const rectangles = new Map();
const writer = new Map();
S.forEach((s, i) => { for (const t of s.outputs) if (!writer.has(t)) writer.set(t, i); });
for (const [t, tensor] of T.entries()) {
  if (!tensor.arena) continue;
  const from = writer.get(t);
  const rect = svgMake('rect', { x: atStep(tensor.first), y: atByte(tensor.offset), class: 'tensor',
      width: Math.max(atStep(tensor.last + 1) - atStep(tensor.first), 1.5), height: Math.max(HEIGHT * tensor.bytes / Math.max(M.arena_bytes, 1), 1) });
  rect.style.fill = from === undefined ? 'var(--k6)' : colour(S[from]);
  rect.append(svgMake('title', {}, (tensor.name || '%' + t) + '\n' + tensor.type + ', ' + bytesText(tensor.bytes) + ' at ' + tensor.offset +
      ', steps ' + tensor.first + ' to ' + tensor.last));
  rect.addEventListener('click', () => from !== undefined && select(from));
  rectangles.set(t, rect);
  memory.append(rect);
}
const tick = (x, y, text, anchor) => memory.append(svgMake('text', { x, y, class: 'tick', 'text-anchor': anchor }, text));
memory.append(svgMake('rect', { x: LEFT, y: TOP, width: WIDTH - LEFT - 8, height: HEIGHT, class: 'axis' }));
tick(LEFT - 6, TOP + 10, '0', 'end');
tick(LEFT - 6, TOP + HEIGHT, bytesText(M.arena_bytes), 'end');
tick(LEFT - 6, TOP + HEIGHT / 2, 'address', 'end');
const liveTop = TOP + HEIGHT + GAP, most = Math.max(...M.live, 1);
const atLive = (b) => liveTop + LIVE - LIVE * b / most;
let line = '';
M.live.forEach((b, s) => { line += (s === 0 ? 'M' : 'L') + atStep(s) + ' ' + atLive(b) + 'H' + atStep(s + 1); });
if (line !== '') {
  memory.append(svgMake('path', { d: line + 'V' + (liveTop + LIVE) + 'H' + LEFT + 'Z', fill: 'var(--shade)' }), svgMake('path', { d: line, class: 'live' }));
}
memory.append(svgMake('path', { d: 'M' + LEFT + ' ' + liveTop + 'V' + (liveTop + LIVE) + 'H' + (WIDTH - 8), class: 'axis' }));
tick(LEFT - 6, liveTop + 10, bytesText(most), 'end');
tick(LEFT - 6, liveTop + LIVE, '0', 'end');
tick(LEFT - 6, liveTop + LIVE / 2 + 4, 'alive', 'end');
const every = Math.max(1, Math.ceil(n / (WIDTH / 45)));
for (let s = 0; s < n; s += every) tick(atStep(s + 0.5), liveTop + LIVE + 16, String(s), 'middle');
tick(WIDTH - 8, liveTop + LIVE + 28, 'step', 'end');
const peakX = atStep(M.peak_step + 0.5);
memory.append(svgMake('line', { x1: peakX, x2: peakX, y1: TOP, y2: liveTop + LIVE, class: 'peak' }));
tick(Math.min(peakX + 5, WIDTH - 60), TOP + HEIGHT + 16, 'peak', 'start');
const here = svgMake('line', { x1: 0, x2: 0, y1: TOP, y2: liveTop + LIVE, class: 'here' });
memory.append(here);
memory.addEventListener('click', (event) => {
  if (event.target.closest('.tensor')) return;
  const box = memory.getBoundingClientRect();
  const x = (event.clientX - box.left) * WIDTH / box.width;
  const s = Math.floor((x - LEFT) * n / (WIDTH - LEFT - 8));
  if (s >= 0 && s < S.length) select(s);
});
el('memory').append(memory);
el('memory_text').textContent = S.length === 0 ? '' : 'the arena has ' + bytesText(M.arena_bytes) + ' (no placement needs less than ' +
    bytesText(M.lower_bound) + '); step ' + M.peak_step + ' ' + S[M.peak_step].op + ' \u2018' + stepName(S[M.peak_step]) +
    '\u2019 sets the peak with ' + bytesText(M.live[M.peak_step]) + ' alive';
if (M.copies_text) el('memory_text').append(make('pre', '', M.copies_text));
function showAlive(s) {
  const alive = [...rectangles.keys()].filter((t) => T[t].first <= s && T[t].last >= s).sort((a, b) => T[b].bytes - T[a].bytes);
  const largest = Math.max(...alive.map((t) => T[t].bytes), 1);
  el('alive').replaceChildren(make('h3', '', 'Alive at step ' + s + (s === M.peak_step ? ', the peak' : '') + ': ' + bytesText(M.live[s] || 0)),
      table(['tensor', 'type', '#bytes', '', '#steps'], alive.map((t) => row(short(T[t].name) || '%' + t, T[t].type, num(bytesText(T[t].bytes)),
          bar(T[t].bytes / largest, writer.has(t) ? colour(S[writer.get(t)]) : 'var(--k6)'), num(T[t].first + ' to ' + T[t].last)))));
  here.setAttribute('x1', atStep(s + 0.5));
  here.setAttribute('x2', atStep(s + 0.5));
  for (const [t, rect] of rectangles) rect.classList.toggle('on', T[t].first <= s && T[t].last >= s);
}

// ---- roofline ----
const dots = new Map();
function drawRoof() {
  const points = S.map((s, i) => ({ i, x: s.macs / Math.max(s.bytes, 1), y: s.macs / Math.max(s.ns, 1), s })).filter((p) => p.s.macs > 0 && p.s.ns > 0);
  if (points.length === 0) { el('roof').textContent = 'no step multiplies'; return; }
  const W = widthOf('roof'), H = 330, L = 56, B = 36, R = 20, U = 10;
  const ridge = D.roof.gmacs / D.roof.gbytes;
  const x0 = Math.floor(Math.log10(Math.min(...points.map((p) => p.x), ridge / 2))), x1 = Math.ceil(Math.log10(Math.max(...points.map((p) => p.x), ridge * 2)));
  const y0 = Math.floor(Math.log10(Math.min(...points.map((p) => p.y), D.roof.gmacs / 10))), y1 = Math.ceil(Math.log10(Math.max(...points.map((p) => p.y), D.roof.gmacs)) + 0.05);
  const px = (v) => L + (W - L - R) * (Math.log10(v) - x0) / (x1 - x0), py = (v) => U + (H - U - B) * (1 - (Math.log10(v) - y0) / (y1 - y0));
  const svg = svgMake('svg', { viewBox: '0 0 ' + W + ' ' + H, class: 'chart', role: 'img' });
  const put = (x, y, text, anchor) => svg.append(svgMake('text', { x, y, class: 'tick', 'text-anchor': anchor }, text));
  const plain = (v) => v >= 1 ? String(v) : v.toFixed(Math.round(-Math.log10(v)));
  for (let e = x0; e <= x1; e++) {
    svg.append(svgMake('line', { x1: px(10 ** e), x2: px(10 ** e), y1: U, y2: H - B, class: 'axis' }));
    put(px(10 ** e), H - B + 15, plain(10 ** e), 'middle');
  }
  for (let e = y0; e <= y1; e++) {
    svg.append(svgMake('line', { x1: L, x2: W - R, y1: py(10 ** e), y2: py(10 ** e), class: 'axis' }));
    put(L - 6, py(10 ** e) + 4, plain(10 ** e), 'end');
  }
  put(W - R, H - 4, 'MACs for each byte', 'end');
  put(L + 6, U + 12, 'GMAC/s', 'start');
  const low = 10 ** x0, start = Math.max(low * D.roof.gbytes, 10 ** y0);
  svg.append(svgMake('path', { d: 'M' + px(start / D.roof.gbytes) + ' ' + py(start) + 'L' + px(ridge) + ' ' + py(D.roof.gmacs) + 'H' + (W - R), class: 'roofline' }));
  const widest = Math.max(...points.map((p) => p.s.ns));
  for (const p of points) {
    const dot = svgMake('circle', { cx: px(p.x), cy: py(p.y), r: 3.5 + 9 * Math.sqrt(p.s.ns / widest), class: 'dot' });
    dot.style.fill = colour(p.s);
    dot.append(svgMake('title', {}, p.s.index + ' ' + p.s.op + ' ' + stepName(p.s) + '\n' + p.y.toFixed(2) + ' GMAC/s, ' + p.x.toFixed(2) + ' MACs for each byte, ' + timeText(p.s.ns)));
    dot.addEventListener('click', () => select(p.i));
    dots.set(p.i, dot);
    svg.append(dot);
  }
  el('roof').append(svg);
}
drawRoof();
el('roof_text').textContent = D.roof.text + '; the area of a circle is the step\u2019s time';

// ---- constants ----
const heavy = S.map((s, i) => ({ s, i })).filter((e) => e.s.constants > 0).sort((a, b) => b.s.constants - a.s.constants);
const allConstants = D.constants_bytes;
el('constants_text').textContent = bytesText(allConstants) + ' in the plan; tensors that several steps read count for each of them';
el('constants').append(table(['#step', 'operator', 'name', '#bytes', '#share', ''], heavy.map((e) => {
  const tr = row(num(e.s.index), e.s.op, stepName(e.s), num(bytesText(e.s.constants)), num(percent(e.s.constants, allConstants)),
                 bar(e.s.constants / heavy[0].s.constants, colour(e.s)));
  tr.className = 'go';
  tr.onclick = () => select(e.i);
  return tr;
})));

// ---- ranges ----
// The bar is the range of the stored type, its filled part what the tensor held in a run.
const ranged = T.map((tensor, t) => ({ tensor, t })).filter((e) => e.tensor.range !== null || e.tensor.used !== null);
const shown = (v) => v === null || v === undefined ? '\u2013' : Number(v.toPrecision(4)).toString();
el('ranges_text').textContent = D.ranges_text;
el('ranges').append(ranged.length === 0 ? make('div', 'quiet', 'no tensor between steps is quantised') :
    table(['tensor', 'type', '#scale', '#zero', '#from', '#to', '#used', '#at the ends', ''], ranged.map(({ tensor, t }) => {
      const fill = make('i', 'range'), used = tensor.used, [low, high] = tensor.stored || [0, 1];
      const [a, b] = used === null ? [0, 1] : [(used[0] - low) / (high - low), (used[1] - low) / (high - low)];
      fill.style.left = 100 * a + '%';
      fill.style.width = Math.max(100 * (b - a), 0.8) + '%';
      fill.style.background = used === null ? 'transparent' : writer.has(t) ? colour(S[writer.get(t)]) : 'var(--k6)';
      const tr = row(short(tensor.name) || '%' + t, tensor.type, num(tensor.scales > 1 ? tensor.scales + ' scales' : shown(tensor.scale)),
                     num(tensor.scales > 1 ? '\u2013' : tensor.zero_point ?? '\u2013'), num(shown(tensor.range && tensor.range[0])),
                     num(shown(tensor.range && tensor.range[1])), num(used === null ? '\u2013' : used[0] + ' to ' + used[1]),
                     num(used === null ? '\u2013' : (100 * used[2]).toFixed(1) + ' %'), make('td', 'meter track', fill));
      if (writer.has(t)) { tr.className = 'go'; tr.onclick = () => select(writer.get(t)); }
      return tr;
    })));

// ---- placement ----
if (D.placement.length === 0) el('placement_section').hidden = true;
el('placement').append(table(['runs on', 'operator', 'name', '#MACs', 'why'], D.placement.map((p) => {
  const why = make('td', 'w', ...(p.reasons.length === 0 ? ['\u2013'] : p.reasons.map((r) => make('div', '', r.text, r.id ? make('code', 'quiet', ' [' + r.id + ']') : null))));
  return row(p.target, p.op, short(p.name), num(countText(p.macs)), why);
})));

// ---- graph ----
const nodes = [], place_of = new Map();
D.inputs.forEach((t) => { place_of.set(t, nodes.length); nodes.push({ reads: [], text: T[t].name || 'input', sub: T[t].type }); });
S.forEach((s, i) => {
  const reads = [...new Set(s.inputs.filter((t) => place_of.has(t)).map((t) => place_of.get(t)))];
  const node = { reads, step: i };
  if (s.alternative) { node.reads = []; return; }
  for (const t of s.outputs) place_of.set(t, nodes.length);
  nodes.push(node);
});
D.outputs.forEach((t) => { if (place_of.has(t)) nodes.push({ reads: [place_of.get(t)], text: T[t].name || 'output', sub: T[t].type }); });
const at = layOut(nodes);
const W = BOX.width, H = BOX.height;
const graph = svgMake('svg', { viewBox: '0 0 ' + at.width + ' ' + at.height, role: 'img' });
const lines = svgMake('g', {}), boxes = svgMake('g', {}), drawn = new Map();
graph.append(lines, boxes);
nodes.forEach((node, i) => {
  for (const r of node.reads) {
    let x = at.x[r], y = at.y[r] + H / 2, path = 'M' + x + ' ' + y;
    const curve = (x1, y1) => { const m = (y + y1) / 2; path += 'C' + x + ' ' + m + ' ' + x1 + ' ' + m + ' ' + x1 + ' ' + y1; x = x1; y = y1; };
    for (const [rx, ry] of at.routes.get(r + ',' + i) || []) { curve(rx, ry - H / 2); y = ry + H / 2; path += 'V' + y; }
    curve(at.x[i], at.y[i] - H / 2);
    lines.append(svgMake('path', { d: path, class: 'edge' }));
  }
  const x = at.x[i] - W / 2, y = at.y[i] - H / 2;
  const g = svgMake('g', { class: node.step === undefined ? '' : 'unit' });
  if (node.step === undefined) {
    g.append(svgMake('rect', { x, y, width: W, height: H, rx: H / 2, class: 'port' }),
             svgMake('text', { x: at.x[i], y: y + 18, 'text-anchor': 'middle' }, cut(node.text, 30)),
             svgMake('text', { x: at.x[i], y: y + 34, 'text-anchor': 'middle', class: 'sub' }, cut(node.sub, 38)));
  } else {
    const s = S[node.step];
    const box = svgMake('rect', { x, y, width: W, height: H, rx: 6, class: 'box' }), band = svgMake('rect', { x, y, width: 8, height: H, rx: 3 });
    box.style.stroke = colour(s);
    band.style.fill = colour(s);
    g.append(box, band, svgMake('text', { x: x + 16, y: y + 18 }, cut(s.index + ' ' + s.op, 22)),
             svgMake('text', { x: x + W - 8, y: y + 18, 'text-anchor': 'end', class: 'sub' }, timeText(s.ns)),
             svgMake('text', { x: x + 16, y: y + 35, class: 'sub' }, cut(stepName(s), 32)));
    g.addEventListener('click', () => select(node.step));
    drawn.set(node.step, { g, i });
  }
  boxes.append(g);
});
el('graph').append(graph);
const zoom = Math.min(1, Math.max(0.45, (el('graph').clientWidth - 4) / at.width));
graph.setAttribute('width', at.width * zoom);
graph.setAttribute('height', at.height * zoom);
el('theme').onclick = () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue('--page').trim() === '#12161c';
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
};

// ---- one step ----
let selected = -1;
function select(i) {
  if (i < 0 || i >= S.length) return;
  const mark = (k, on) => {
    rows[k].classList.toggle('on', on);
    cells[k].classList.toggle('on', on);
    if (drawn.has(k)) drawn.get(k).g.classList.toggle('on', on);
    if (dots.has(k)) dots.get(k).classList.toggle('on', on);
  };
  if (selected >= 0) mark(selected, false);
  selected = i;
  mark(i, true);
  showAlive(i);
  const s = S[i];
  const out = [make('h2', '', s.index + ' ' + s.op + ' ', make('code', '', s.name)),
               make('div', 'quiet', [s.kernel, s.target === 'cpu' ? '' : 'on ' + s.target, timeText(s.ns) + (s.estimated ? ' estimated' : ''),
                                     countText(s.macs) + ' MACs', bytesText(s.bytes) + ' read and written', bytesText(s.constants) + ' of constants']
                                    .filter((t) => t !== '').join(', '))];
  for (const note of s.notes) out.push(make('div', 'reason', note));
  const tensors = (list) => table(['tensor', 'type', '#bytes'], list.filter((t) => T[t].arena || T[t].range !== null || !T[t].constant)
      .map((t) => row(short(T[t].name) || '%' + t, T[t].type, num(bytesText(T[t].bytes)))));
  out.push(make('h3', '', 'Reads'), tensors(s.inputs), make('h3', '', 'Writes'), tensors(s.outputs));
  const params = Object.entries(s.params).map(([k, v]) => k + '=' + v).join(', ');
  if (params !== '') out.push(make('h3', '', 'Parameters'), make('code', '', params));
  el('step').replaceChildren(...out);
  if (drawn.has(i)) {
    const g = el('graph'), k = drawn.get(i).i;
    g.scrollTo({ left: at.x[k] * zoom - g.clientWidth / 2, top: at.y[k] * zoom - g.clientHeight / 2 });
  }
}
el('strip').addEventListener('click', (event) => select(cells.indexOf(event.target)));
document.addEventListener('keydown', (event) => {
  if (event.target.tagName === 'INPUT' || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return;
  if (event.target !== el('graph') && event.target !== document.body) return;
  event.preventDefault();
  select(selected + (event.key === 'ArrowDown' ? 1 : -1));
});

// ---- find ----
const searchText = S.map((s) => [s.index, s.op, s.name, s.kernel, s.target, ...s.outputs.map((t) => T[t].name)].join('\n').toLowerCase());
let hits = [];
el('find').addEventListener('input', () => {
  const wanted = el('find').value.toLowerCase().trim();
  hits = [];
  searchText.forEach((text, i) => {
    const hit = wanted === '' || text.includes(wanted);
    if (hit && wanted !== '') hits.push(i);
    rows[i].classList.toggle('dim', !hit);
    cells[i].classList.toggle('dim', !hit);
    if (drawn.has(i)) drawn.get(i).g.classList.toggle('dim', !hit);
  });
  el('found').textContent = wanted === '' ? '' : hits.length + ' of ' + S.length + '; Enter goes to the next';
});
el('find').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || hits.length === 0) return;
  const next = hits.find((i) => i > selected);
  select(next === undefined ? hits[0] : next);
});
select(M.peak_step);
