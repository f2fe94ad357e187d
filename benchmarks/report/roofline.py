#!/usr/bin/env python3
"""Draws rooflines: an SVG for each model of results.json, and layers.md with their figures.

usage: roofline.py RESULTS.json FOLDER

A step is a circle at (MACs per byte, GMAC/s) whose area is its share of the time. The flat line is what the machine can
multiply, the sloped ones what it can read from a cache or from memory. The further a large circle is below the lines,
the more there is to gain; the steps that lose most have numbers. Hovering over a circle shows the rest.
"""

import html
import json
import math
import pathlib
import sys

from layers import furthest, layers_of, markdown

WIDTH, HEIGHT = 1160, 700
LEFT, RIGHT, TOP, BOTTOM = 80, 280, 60, 60
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22")
OPS = ("conv2d", "depthwise_conv2d", "fully_connected")
NUM_LABELS = 8
# The roof of a step, in the table and the tooltips: most layers' data fits the second cache.
ROOF_BANDWIDTH = "L2"
MAX_RADIUS = 26


class Axes:
    """Logarithmic in both directions."""

    def __init__(self, layers, peak):
        xs = [layer.intensity for layer in layers] or [1]
        ys = [layer.rate for layer in layers] or [1]
        self.x0, self.x1 = 10 ** math.floor(math.log10(min(xs))), 10 ** math.ceil(math.log10(max(xs) * 1.2))
        self.y0, self.y1 = 10 ** math.floor(math.log10(min(ys))), 2 * max(peak, max(ys))

    def x(self, value):
        part = math.log(value / self.x0) / math.log(self.x1 / self.x0)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        part = math.log(value / self.y0) / math.log(self.y1 / self.y0)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def ticks(low, high):
    """1, 2, 5, 10, ... and whether it is a power of ten."""
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for factor in (1, 2, 5):
            value = factor * 10.0**exponent
            if low * 0.999 <= value <= high * 1.001:
                yield value, factor == 1


def text(x, y, words, anchor="start", size=12, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {extra}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def grid(axes):
    parts = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value, major in ticks(axes.x0, axes.x1):
        x = axes.x(value)
        parts.append(line(x, TOP, x, bottom, f'stroke="{"#ccc" if major else "#eee"}"'))
        parts.append(text(x, bottom + 18, f"{value:g}", "middle", 11))
    for value, major in ticks(axes.y0, axes.y1):
        y = axes.y(value)
        parts.append(line(LEFT, y, right, y, f'stroke="{"#ccc" if major else "#eee"}"'))
        parts.append(text(LEFT - 8, y + 4, f"{value:g}", "end", 11))
    parts.append(text((LEFT + right) / 2, HEIGHT - 18, "MACs per byte of inputs, constants and outputs", "middle"))
    middle = (TOP + bottom) / 2
    parts.append(text(24, middle, "GMAC/s", "middle", 12, f'transform="rotate(-90 24 {middle:.0f})"'))
    return parts


def roofs(axes, peak, bandwidths):
    parts = []
    for index, (name, rate) in enumerate(bandwidths.items()):
        begin = max(axes.x0, axes.y0 / rate)
        end = min(axes.x1, (peak or axes.y1) / rate)
        if begin >= end:
            continue
        parts.append(
            line(axes.x(begin), axes.y(begin * rate), axes.x(end), axes.y(end * rate), 'stroke="#555" stroke-width="1.5"')
        )
        angle = -math.degrees(math.atan2(axes.y(begin * rate) - axes.y(end * rate), axes.x(end) - axes.x(begin)))
        at = begin * (end / begin) ** (0.25 + 0.3 * (index % 2))  # caches of one speed have labels in two places
        x, y = axes.x(at), axes.y(at * rate) - 6
        label = f"{name} {rate:.0f} GB/s"
        parts.append(text(x, y, label, "middle", 11, f'fill="#555" transform="rotate({angle:.1f} {x:.1f} {y:.1f})"'))
    if peak:
        knee = max(axes.x0, peak / max(bandwidths.values()))
        parts.append(line(axes.x(knee), axes.y(peak), axes.x(axes.x1), axes.y(peak), 'stroke="#b00" stroke-width="2"'))
        parts.append(text(axes.x(axes.x1) - 4, axes.y(peak) - 7, f"peak {peak:.0f} GMAC/s", "end", 12, 'fill="#b00"'))
    return parts


def tooltip(layer):
    return (
        f"step {layer.step}: {layer.name.split(';')[0] or layer.op}\n{layer.kernel}\n"
        f"{layer.macs / 1e6:.3f} MMAC, {layer.num_bytes / 1e3:.1f} kB, {layer.intensity:.1f} MACs/byte\n"
        f"{layer.ns / 1e3:.2f} µs, {100 * layer.share:.1f} % of the time\n"
        f"{layer.rate:.1f} GMAC/s: {100 * layer.of_peak:.1f} % of peak, {100 * layer.of_roof:.0f} % of roof\n"
        f"{layer.lost_ns / 1e3:.2f} µs above the roof"
    )


def points(axes, layers, colour_of):
    circles, numbers, taken = [], [], []
    marked = {layer.step for layer in furthest(layers, NUM_LABELS)}
    largest = max((layer.share for layer in layers), default=1)
    for layer in sorted(layers, key=lambda layer: -layer.share):  # small ones on top
        x, y = axes.x(layer.intensity), axes.y(layer.rate)
        radius = max(3.0, MAX_RADIUS * math.sqrt(layer.share / largest))
        circles.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour_of[layer.op]}" fill-opacity="0.55" '
            f'stroke="{"#000" if layer.step in marked else colour_of[layer.op]}">'
            f"<title>{html.escape(tooltip(layer))}</title></circle>"
        )
        if layer.step in marked:
            y += 4
            while any(abs(x - other_x) < 18 and abs(y - other_y) < 11 for other_x, other_y in taken):
                y += 11
            taken.append((x, y))
            numbers.append(text(x, y, str(layer.step), "middle", 11, 'font-weight="bold" pointer-events="none"'))
    return circles + numbers


def legend(layers, colour_of, hidden):
    x, y, parts = WIDTH - RIGHT + 20, TOP + 10, []
    for op, colour in colour_of.items():
        share = sum(layer.share for layer in layers if layer.op == op)
        parts.append(f'<circle cx="{x}" cy="{y - 4}" r="6" fill="{colour}" fill-opacity="0.55" stroke="{colour}"/>')
        parts.append(text(x + 14, y, f"{op}, {100 * share:.0f} % of the time"))
        y += 20
    if hidden:
        parts.append(text(x - 6, y, f"{len(hidden)} steps without MACs, {100 * sum(l.share for l in hidden):.0f} %"))
    y += 34
    parts.append(text(x - 6, y, "Most time above the roof:", extra='font-weight="bold"'))
    for layer in furthest(layers, NUM_LABELS):
        y += 18
        label = layer.name.split(";")[0] or layer.op
        label = label if len(label) <= 24 else "…" + label[-23:]
        parts.append(text(x - 6, y, f"{layer.step}: {label}", size=11))
        y += 14
        parts.append(
            text(x + 8, y, f"{layer.lost_ns / 1e3:.3g} µs, {100 * layer.of_peak:.0f} % of peak", size=11, extra='fill="#555"')
        )
    return parts


def draw(model, layers, peak, bandwidths):
    shown = [layer for layer in layers if layer.macs > 0]
    hidden = [layer for layer in layers if layer.macs == 0]
    ops = [op for op in OPS if any(layer.op == op for layer in shown)]
    ops += sorted({layer.op for layer in shown} - set(ops))
    colour_of = {op: COLOURS[i % len(COLOURS)] for i, op in enumerate(ops)}
    axes = Axes(shown, peak or 0)
    total = sum(layer.ns for layer in layers)
    title = f"{model['name']}: {total / 1e6:.3f} ms, {model['macs'] / total:.0f} GMAC/s, {model['isa']}, one thread"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 26, title, size=16, extra='font-weight="bold"'),
        text(LEFT, 45, "fastest run of each step; a circle's area is its share of the time", size=11, extra='fill="#555"'),
    ]
    parts += grid(axes) + roofs(axes, peak, bandwidths)
    parts += points(axes, shown, colour_of) + legend(shown, colour_of, hidden)
    return "\n".join(parts) + "\n</svg>\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = pathlib.Path(sys.argv[2])
    bandwidths = results["machine"]["read_gb_per_s"]
    tables = [
        "# Layers\n\nThe fastest run of each step. Its roof: the machine's peak, or the bandwidth of the "
        f"{ROOF_BANDWIDTH} cache where that is less.\n"
    ]
    for model in results["models"]:
        peak = model["peak_gmac_per_s"]
        layers = layers_of(model, peak, bandwidths[ROOF_BANDWIDTH])
        tables.append(markdown(model["name"], layers))
        svg = draw(model, layers, peak, bandwidths)
        (folder / f"roofline-{model['name']}.svg").write_text(svg, encoding="utf-8")
    (folder / "layers.md").write_text("\n".join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
