// Where each unit of the graph goes. Layers by longest path; an edge over several layers gets a point in each, so that
// it runs around what stands there; order within a layer by the mean place of the neighbours. Time is linear in nodes
// and points.
const BOX = { width: 230, height: 44, gapX: 26, gapY: 40, point: 14 };

// nodes: [{reads: [index]}] in an order where each reads only earlier ones.
// Returns {width, height, x: [], y: [], routes: Map 'from,to' -> [[x, y]]}; x and y are centres.
function layOut(nodes) {
  const n = nodes.length;
  const layer = new Array(n).fill(0);
  for (let i = 0; i < n; i++) for (const r of nodes[i].reads) layer[i] = Math.max(layer[i], layer[r] + 1);
  // What nothing precedes stands right above its first reader.
  const first = new Array(n).fill(Infinity);
  for (let i = 0; i < n; i++) for (const r of nodes[i].reads) first[r] = Math.min(first[r], layer[i]);
  for (let i = 0; i < n; i++) if (nodes[i].reads.length === 0 && first[i] !== Infinity) layer[i] = first[i] - 1;

  const item = []; // {node or -1, layer, up: [], down: [], x}
  const rows = [];
  const put = (node, l) => {
    const entry = { node, layer: l, up: [], down: [], x: 0, width: node < 0 ? BOX.point : BOX.width };
    item.push(entry);
    (rows[l] = rows[l] || []).push(entry);
    return entry;
  };
  for (let i = 0; i < n; i++) put(i, layer[i]);
  const routes = new Map();
  const MAX_POINTS = 60000;
  let points = 0;
  for (let i = 0; i < n; i++) {
    for (const r of new Set(nodes[i].reads)) {
      const route = [];
      let above = item[r];
      if (points + layer[i] - layer[r] < MAX_POINTS) {
        for (let l = layer[r] + 1; l < layer[i]; l++) {
          const point = put(-1, l);
          points++;
          above.down.push(point);
          point.up.push(above);
          route.push(point);
          above = point;
        }
        above.down.push(item[i]);
        item[i].up.push(above);
      }
      routes.set(r + ',' + i, route);
    }
  }

  const mean = (list) => list.reduce((sum, e) => sum + e.x, 0) / list.length;
  const pack = (row) => { // side by side from 0, centred
    let total = -BOX.gapX;
    for (const e of row) total += e.width + BOX.gapX;
    let at = -total / 2;
    for (const e of row) { e.x = at + e.width / 2; at += e.width + BOX.gapX; }
  };
  for (const row of rows) pack(row);
  const sweeps = points + n > 20000 ? 2 : 8;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const down = sweep % 2 === 0;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      const want = new Map();
      row.forEach((e) => {
        const near = down ? e.up : e.down;
        want.set(e, near.length ? mean(near) : e.x);
      });
      row.sort((a, b) => want.get(a) - want.get(b) || a.node - b.node);
      pack(row);
    }
  }
  // Towards the neighbours as far as order and gaps allow.
  for (let sweep = 0; sweep < 6; sweep++) {
    const down = sweep % 2 === 0;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      const want = row.map((e) => {
        const near = down ? e.up : e.down;
        return near.length ? mean(near) : e.x;
      });
      let at = -Infinity;
      row.forEach((e, j) => {
        e.x = Math.max(want[j], at + e.width / 2);
        at = e.x + e.width / 2 + BOX.gapX;
      });
      const shift = row.reduce((sum, e, j) => sum + want[j] - e.x, 0) / row.length;
      row.forEach((e) => { e.x += shift; });
    }
  }
  let left = Infinity, right = -Infinity;
  for (const e of item) {
    left = Math.min(left, e.x - e.width / 2);
    right = Math.max(right, e.x + e.width / 2);
  }
  const margin = 44;
  const yOf = (l) => margin + l * (BOX.height + BOX.gapY) + BOX.height / 2;
  const x = [], y = [];
  for (let i = 0; i < n; i++) {
    x.push(item[i].x - left + margin);
    y.push(yOf(layer[i]));
  }
  for (const [key, route] of routes) routes.set(key, route.map((e) => [e.x - left + margin, yOf(e.layer)]));
  return { x, y, routes, width: right - left + 2 * margin, height: yOf(rows.length - 1) + BOX.height / 2 + margin };
}
