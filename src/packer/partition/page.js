// What the pages of explain and report share. Text from the model goes into text nodes only, never into markup.
const D = JSON.parse(document.getElementById('data').textContent);
const el = (id) => document.getElementById(id);
const make = (tag, cls, ...children) => {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children.filter((c) => c !== null && c !== undefined).map((c) => c instanceof Node ? c : String(c)));
  return e;
};
const svgMake = (tag, attributes, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};
const scaled = (v, units) => {
  let i = 0;
  while (v >= 1000 && i + 1 < units.length) { v /= 1000; i++; }
  return (i === 0 ? String(Math.round(v)) : v.toFixed(v < 10 ? 2 : v < 100 ? 1 : 0)) + units[i];
};
const bytesText = (v) => scaled(v, [' B', ' kB', ' MB', ' GB']);
const countText = (v) => scaled(v, ['', ' k', ' M', ' G']);
const cut = (text, length) => text.length <= length ? text : '\u2026' + text.slice(text.length - length + 1);
