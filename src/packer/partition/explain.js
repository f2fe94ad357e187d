// Fills the page (explain.html) from its data. Text from the model goes into text nodes only, never into markup.
const timeText = (ns) => scaled(ns, [' ns', ' \u00b5s', ' ms', ' s']);
const percent = (part, whole) => whole === 0 ? '0 %' : (Math.floor(1000 * part / whole) / 10) + ' %';
const orDash = (v, text) => v === null || v === undefined ? '\u2013' : text(v);

const accelerators = D.devices.map((d) => d.target).filter((t) => t !== 'cpu');
const hue = (target) => target === 'cpu' ? 'cpu' : String(Math.max(0, accelerators.indexOf(target)) % 4);
const colour = (target) => target === 'cpu' ? 'var(--cpu)' : 'var(--d' + hue(target) + ')';
const tint = (target) => 'var(--s' + hue(target) + ')';
const tag = (target) => {
  const e = make('span', 'tag', target);
  e.style.background = colour(target);
  return e;
};
const opName = (u) => (u.composite || D.nodes[u.nodes[0]].op).replace(/^(qplan|qnn|nn)\./, '');
const unitName = (u) => {
  for (const n of u.nodes) if (D.nodes[n].name) return D.nodes[n].name.split(';')[0];  // TFLite joins names with ';'
  return '%' + u.nodes[0];
};
const reasonsOf = (u) => u.verdicts.flatMap((v) => v.reasons.map((r) => ({ target: v.target, ...r })));
const ownTime = (u) => u.target === 'cpu' ? u.cpu_ns : u.estimated_ns;

// ---- header ----
el('title').textContent = D.title;
el('summary').textContent = D.summary;
for (const [label, value] of [['MACs', (d) => d.macs], ['operators', (d) => d.ops],
                              ['bytes', (d) => d.bytes + d.weight_bytes], ['time', (d) => d.estimated_ns]]) {
  const total = D.devices.reduce((sum, d) => sum + value(d), 0);
  const bar = make('div', 'bar');
  for (const d of D.devices) {
    if (value(d) === 0) continue;
    const text = d.target + ' ' + percent(value(d), total);
    const part = make('span', '', text);
    part.style.flexGrow = value(d) / total;
    part.style.flexBasis = 0;
    part.style.background = colour(d.target);
    part.title = text + ' of ' + label;
    bar.append(part);
  }
  el('shares').append(make('span', '', label + (label === 'time' ? ' (estimated)' : '')), bar);
}
for (const d of D.devices) {
  const key = make('span', 'key', make('i'), d.target);
  key.firstChild.style.background = colour(d.target);
  el('keys').append(key);
}
if (D.regions.length > 0) el('keys').append(make('span', 'key', make('b'), 'into or out of a region'));

// ---- graph ----
// Inputs of the model, units, outputs: all are nodes of the drawing.
const nodes = [], edges = [];
const inputs = new Map();
for (const u of D.units) {
  for (const r of u.reads || []) {
    if (r.unit !== null || inputs.has(r.input)) continue;
    inputs.set(r.input, nodes.length);
    nodes.push({ reads: [], text: r.input || 'input', sub: r.type, region: '' });
  }
}
const firstUnit = nodes.length;
D.units.forEach((u, i) => {
  const node = { reads: [], unit: i, region: u.region, target: u.target };
  for (const r of u.reads || []) {
    const from = r.unit === null ? inputs.get(r.input) : firstUnit + r.unit;
    node.reads.push(from);
    edges.push({ from, to: nodes.length, bytes: r.bytes, type: r.type });
  }
  nodes.push(node);
});
D.units.forEach((u, i) => {
  if (!u.makes_output) return;
  const last = D.nodes[u.nodes[u.nodes.length - 1]];
  edges.push({ from: firstUnit + i, to: nodes.length, bytes: null, type: last.type });
  nodes.push({ reads: [firstUnit + i], text: 'output', sub: last.type, region: '' });
});
const at = layOut(nodes);
const svg = svgMake('svg', { viewBox: '0 0 ' + at.width + ' ' + at.height, role: 'img' });
const halos = svgMake('g', {}), lines = svgMake('g', {}), boxes = svgMake('g', {}), labels = svgMake('g', {});
svg.append(halos, lines, boxes, labels);
const W = BOX.width, H = BOX.height;
const drawn = []; // by unit

function pathOf(from, to, route) {
  let x = at.x[from], y = at.y[from] + H / 2, path = 'M' + x + ' ' + y;
  const curve = (x1, y1) => {
    const middle = (y + y1) / 2;
    path += 'C' + x + ' ' + middle + ' ' + x1 + ' ' + middle + ' ' + x1 + ' ' + y1;
    x = x1;
    y = y1;
  };
  for (const [px, py] of route) {
    curve(px, py - H / 2);
    y = py + H / 2;
    path += 'V' + y;
  }
  curve(at.x[to], at.y[to] - H / 2);
  return path;
}

for (const e of edges) {
  const a = nodes[e.from], b = nodes[e.to];
  const route = at.routes.get(e.from + ',' + e.to) || [];
  const path = pathOf(e.from, e.to, route);
  if (a.region !== '' && a.region === b.region) {
    const straight = route.length === 0 && Math.abs(at.x[e.from] - at.x[e.to]) < 8;
    halos.append(svgMake('path', { d: path, fill: 'none', stroke: tint(a.target), 'stroke-width': straight ? W + 20 : 20 }));
  }
  const crosses = a.region !== b.region;  // copied, unless it lies in the device's memory
  const line = svgMake('path', { d: path, class: crosses ? 'edge cross' : 'edge' });
  line.append(svgMake('title', {}, e.type + (e.bytes === null ? '' : ', ' + bytesText(e.bytes)) +
                      (crosses ? ': into or out of a region' : '')));
  lines.append(line);
  if (crosses && e.bytes !== null) {
    // Beside the name of the region that the edge enters.
    const along = b.region !== '' && b.reads.length === 1 ? at.x[e.to] : (at.x[e.from] + at.x[e.to]) / 2;
    const [x, y] = route.length > 0 ? route[route.length >> 1] : [along, (at.y[e.from] + at.y[e.to]) / 2];
    labels.append(svgMake('text', { x: x + 6, y: y + 4, class: 'bytes' }, bytesText(e.bytes)));
  }
}
const labelled = new Set();
nodes.forEach((node, i) => {
  const x = at.x[i] - W / 2, y = at.y[i] - H / 2;
  if (node.unit === undefined) {
    const g = svgMake('g', {});
    g.append(svgMake('rect', { x, y, width: W, height: H, rx: H / 2, class: 'port' }),
             svgMake('text', { x: at.x[i], y: y + 18, 'text-anchor': 'middle' }, cut(node.text, 30)),
             svgMake('text', { x: at.x[i], y: y + 34, 'text-anchor': 'middle', class: 'sub' }, cut(node.sub, 38)));
    boxes.append(g);
    return;
  }
  const u = D.units[node.unit];
  if (u.region !== '') {
    halos.append(svgMake('rect', { x: x - 10, y: y - 10, width: W + 20, height: H + 20, rx: 10, fill: tint(u.target) }));
    if (!labelled.has(u.region)) {
      labelled.add(u.region);
      const text = svgMake('text', { x: x - 6, y: y - 14, class: 'region' }, '@' + cut(u.region, 38));
      text.style.fill = colour(u.target);
      labels.append(text);
    }
  }
  const g = svgMake('g', { class: 'unit', 'data-unit': node.unit });
  const reasons = reasonsOf(u);
  const box = svgMake('rect', { x, y, width: W, height: H, rx: 6, class: 'box' });
  box.style.stroke = colour(u.target);
  const band = svgMake('rect', { x, y, width: 8, height: H, rx: 3 });
  band.style.fill = colour(u.target);
  const time = ownTime(u);
  g.append(box, band,
           svgMake('text', { x: x + 16, y: y + 18 }, cut(opName(u), 20) + (u.pinned ? ' (pinned)' : '')),
           svgMake('text', { x: x + W - 8, y: y + 18, 'text-anchor': 'end', class: 'sub' }, orDash(time, timeText)),
           svgMake('text', { x: x + 16, y: y + 35, class: 'sub' }, cut(unitName(u), 30)),
           svgMake('title', {}, [u.target + ': ' + unitName(u),
                                 ...reasons.map((r) => 'not on ' + r.target + ': ' + r.text + ' [' + r.id + ']')].join('\n')));
  boxes.append(g);
  drawn[node.unit] = g;
});
el('graph').append(svg);

let zoom = 1;
function setZoom(z) {
  const graph = el('graph');
  const middle = (graph.scrollTop + graph.clientHeight / 2) / (at.height * zoom);
  zoom = Math.min(3, Math.max(0.02, z));
  svg.setAttribute('width', at.width * zoom);
  svg.setAttribute('height', at.height * zoom);
  graph.scrollTop = middle * at.height * zoom - graph.clientHeight / 2;
}
const wide = () => el('graph').clientWidth / at.width;
setZoom(Math.min(1, Math.max(0.45, wide())));
el('graph').scrollTop = 0;
el('smaller').onclick = () => setZoom(zoom / 1.25);
el('larger').onclick = () => setZoom(zoom * 1.25);
el('fit').onclick = () => setZoom(Math.min(1, wide(), el('graph').clientHeight / at.height));
el('theme').onclick = () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue('--page').trim() === '#12161c';
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
};

// ---- one unit ----
let selected = -1;
const cells = D.units.map((u) => {
  const cell = make('i');
  cell.style.background = colour(u.target);
  cell.title = u.target + ': ' + opName(u) + ' ' + unitName(u);
  return cell;
});
if (cells.length > 250) el('strip').style.gap = 0;
el('strip').append(...cells);

function row(...values) {
  const tr = make('tr');
  for (const v of values) {
    const numeric = typeof v === 'object' && v !== null && v.numeric !== undefined;
    const index = typeof v === 'string' && /^%\d+$/.test(v);
    tr.append(make('td', numeric ? 'n' : index ? 'i' : 'w', numeric ? v.numeric : v));
  }
  return tr;
}
const num = (v) => ({ numeric: v });
function table(heads, rows) {
  const tr = make('tr');
  for (const h of heads) tr.append(make('th', h.startsWith('#') ? 'n' : '', h.replace(/^#/, '')));
  return make('table', '', make('thead', '', tr), make('tbody', '', ...rows));
}

function select(i, scroll) {
  if (i < 0 || i >= D.units.length) return;
  if (selected >= 0) {
    drawn[selected].classList.remove('on');
    cells[selected].classList.remove('on');
  }
  selected = i;
  drawn[i].classList.add('on');
  cells[i].classList.add('on');
  if (scroll) {
    const graph = el('graph');
    graph.scrollTo({ left: at.x[firstUnit + i] * zoom - graph.clientWidth / 2,
                     top: at.y[firstUnit + i] * zoom - graph.clientHeight / 2 });
  }
  const u = D.units[i];
  const out = [make('h2', '', tag(u.target), ' ', opName(u), ' ', make('code', '', unitName(u)))];
  out.push(make('div', 'quiet', [u.composite || 'no composite', u.region ? 'in @' + u.region : '',
                                 u.pinned ? 'pinned by the user' : '',
                                 u.is_program ? 'compiled before, for this device alone' : '', countText(u.macs) + ' MACs',
                                 bytesText(u.bytes) + ' read and written', bytesText(u.weight_bytes) + ' of constants']
                                .filter((t) => t !== '').join(', ')));
  const estimates = u.is_program ? [] : [row('cpu', num('\u2013'), num(timeText(u.cpu_ns)))];
  if (u.target !== 'cpu') {
    estimates.push(row(u.target, num(orDash(u.estimated_cycles, (v) => v.toLocaleString('en'))), num(orDash(u.estimated_ns, timeText))));
  }
  for (const v of u.verdicts) {
    if (v.estimated_cycles === null) continue;
    estimates.push(row(v.target, num(v.estimated_cycles.toLocaleString('en')), num(orDash(v.estimated_ns, timeText))));
  }
  out.push(make('h3', '', 'Estimated on'), table(['device', '#cycles', '#time'], estimates));
  for (const v of u.verdicts) {
    if (v.reasons.length === 0 && v.near_miss === null) continue;
    out.push(make('h3', '', 'Why not on ', tag(v.target)));
    for (const r of v.reasons) {
      out.push(make('div', 'reason', r.text, ' ', make('code', 'quiet', '[' + r.id + ']'),
                    r.hint ? make('small', '', 'what helps: ' + r.hint) : null));
    }
    if (v.near_miss !== null) {
      const m = v.near_miss;
      out.push(make('div', 'reason near', 'came near ', make('code', '', m.composite), ': at ' + m.place + ' expected ' +
                    m.expected, make('small', '', 'found ' + m.found)));
    }
  }
  out.push(make('h3', '', 'Operators'),
           table(['', 'operator', 'name', 'result', '#MACs'],
                 u.nodes.map((n) => row('%' + n, D.nodes[n].op, D.nodes[n].name, D.nodes[n].type, num(countText(D.nodes[n].macs))))));
  const reads = (u.reads || []).map((r) => row(r.unit === null ? 'input ' + (r.input || '') : unitName(D.units[r.unit]),
      r.unit === null ? '' : tag(D.units[r.unit].target), r.type, num(bytesText(r.bytes))));
  if (reads.length > 0) out.push(make('h3', '', 'Reads'), table(['from', 'on', 'type', '#bytes'], reads));
  el('unit').replaceChildren(...out);
}
boxes.addEventListener('click', (event) => {
  const g = event.target.closest('.unit');
  if (g) select(Number(g.dataset.unit), false);
});
el('strip').addEventListener('click', (event) => {
  const i = cells.indexOf(event.target);
  if (i >= 0) select(i, true);
});
document.addEventListener('keydown', (event) => {
  if (event.target.tagName === 'INPUT' || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return;
  if (event.target !== el('graph') && event.target !== document.body) return;
  event.preventDefault();
  select(selected + (event.key === 'ArrowDown' ? 1 : -1), true);
});

// ---- tables ----
el('devices').append(table(['device', 'options', '#operators', '#regions', '#MACs', '#activations', '#constants', '#time'],
    D.devices.map((d) => row(tag(d.target), d.options, num(d.ops), num(d.regions), num(countText(d.macs)),
                             num(bytesText(d.bytes)), num(bytesText(d.weight_bytes)), num(timeText(d.estimated_ns))))));
if (D.regions.length === 0) el('regions_section').hidden = true;
el('regions').append(table(['region', 'on', '#operators', '#MACs', '#cycles', '#time', '#on the cpu', '#copies'],
    D.regions.map((r) => {
      const tr = row('@' + r.function, tag(r.target), num(r.ops), num(countText(r.macs)), num(countText(r.estimated_cycles)),
                     num(timeText(r.estimated_ns)), num(r.is_program ? '\u2013' : timeText(r.cpu_ns)), num(r.copies + ' (' + bytesText(r.copy_bytes) + ')'));
      tr.className = 'go';
      tr.title = 'in: ' + r.inputs.join(', ') + '\nout: ' + r.outputs.join(', ');
      tr.onclick = () => select(D.units.findIndex((u) => u.region === r.function), true);
      return tr;
    })));

// What stays on the CPU, by reason.
const groups = new Map();
let left = 0;
D.units.forEach((u, i) => {
  if (u.target !== 'cpu') return;
  left += u.nodes.length;
  const reasons = reasonsOf(u);
  if (reasons.length === 0) reasons.push({ id: '', text: u.pinned ? 'pinned to the CPU' : 'no other device was asked for', hint: '' });
  for (const r of reasons) {
    if (!groups.has(r.id)) groups.set(r.id, []);
    groups.get(r.id).push({ i, r });
  }
});
el('off_title').textContent = left === 0 ? 'Nothing stays on the CPU' :
    left + (left === 1 ? ' operator stays' : ' operators stay') + ' on the CPU, and why';
for (const [id, list] of [...groups].sort((a, b) => b[1].length - a[1].length)) {
  const same = list.every((e) => e.r.text === list[0].r.text);
  const macs = list.reduce((sum, e) => sum + D.units[e.i].macs, 0);
  const ul = make('ul');
  for (const { i, r } of list) {
    const li = make('li', '', opName(D.units[i]) + ' ', make('code', '', unitName(D.units[i])), same ? null : ': ' + r.text);
    li.onclick = () => select(i, true);
    ul.append(li);
  }
  const details = make('details', '', make('summary', '', make('b', '', list.length + ' \u00d7 '), same ? list[0].r.text : list[0].r.text + ', and alike',
      ' ', make('code', 'quiet', id === '' ? '' : '[' + id + ']'), make('span', 'quiet', macs > 0 ? ' ' + countText(macs) + ' MACs' : '')),
      list[0].r.hint ? make('div', 'quiet', 'what helps: ' + list[0].r.hint) : null, ul);
  details.open = groups.size <= 4 && list.length <= 12;
  el('off').append(details);
}

// Which kernel runs each step on the CPU, by instruction set, and why a better one does not.
const isas = D.cpu_steps.length === 0 ? [] : D.cpu_steps[0].variants.map((v) => v.isa);
function showKernels(isa) {
  let slow = 0;
  const rows = D.cpu_steps.map((s) => {
    const variant = s.variants.find((v) => v.isa === isa);
    const refused = variant && variant.refused || [];
    if (refused.length > 0) slow++;
    const kernel = make('td', 'w', variant ? make('code', '', variant.kernel) : '\u2013',
        ...refused.map((r) => make('div', 'quiet', 'not ' + r.kernel + ': ' + r.reason)));
    const tr = row(num(s.step), s.op, s.name.split(';')[0], num(countText(s.macs)));
    tr.append(kernel);
    return tr;
  });
  el('kernels').replaceChildren(table(['#step', 'operator', 'name', '#MACs', 'kernel'], rows));
  el('kernels_text').textContent = slow === 0 ? 'every step runs the best kernel of this instruction set'
      : slow + (slow === 1 ? ' step does' : ' steps do') + ' not run the best kernel';
}
if (isas.length === 0) el('kernels_section').hidden = true;
else {
  for (const isa of isas) el('isa').append(make('option', '', isa));
  el('isa').onchange = () => showKernels(el('isa').value);
  showKernels(isas[0]);
}

// ---- find ----
const searchText = D.units.map((u) => [u.target, u.composite, u.region, ...u.nodes.flatMap((n) => [D.nodes[n].op, D.nodes[n].name]),
    ...reasonsOf(u).flatMap((r) => [r.id, r.text])].join('\n').toLowerCase());
let hits = [];
el('find').addEventListener('input', () => {
  const wanted = el('find').value.toLowerCase().trim();
  hits = [];
  searchText.forEach((text, i) => {
    const hit = wanted === '' || text.includes(wanted);
    if (hit && wanted !== '') hits.push(i);
    drawn[i].classList.toggle('dim', !hit);
    cells[i].style.opacity = hit ? '' : 0.2;
  });
  el('found').textContent = wanted === '' ? '' : hits.length + ' of ' + D.units.length + '; Enter goes to the next';
});
el('find').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || hits.length === 0) return;
  const next = hits.find((i) => i > selected);
  select(next === undefined ? hits[0] : next, true);
});

// At first the unit whose place costs most: the largest that a device did not take, else the largest.
const weight = (u) => u.macs + u.bytes / 1e6;
let start = -1;
for (const kept of [true, false]) {
  if (start >= 0) break;
  D.units.forEach((u, i) => {
    if (kept && (u.target !== 'cpu' || reasonsOf(u).length === 0)) return;
    if (start < 0 || weight(u) > weight(D.units[start])) start = i;
  });
}
select(start, false);
