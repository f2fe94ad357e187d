#!/usr/bin/env python3
"""Draws rooflines: an SVG for each model of results.json, and layers.md with their figures.

usage: roofline.py RESULTS.json FOLDER

A step is a circle at (MACs per byte, GMAC/s) whose area is its share of the time. The flat line is what the machine can
multiply, the sloped ones what it can read from a cache or from memory. The further a large circle is below the lines,
the more there is to gain; the steps that lose most have numbers. Hovering over a circle shows the rest. Needs matplotlib.
"""

import io
import json
import math
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

from layers import furthest, layers_of, markdown  # noqa: E402

OPS = ("conv2d", "depthwise_conv2d", "fully_connected")
NUM_LABELS = 8
# The roof of a step, in the table and the tooltips: most layers' data fits the second cache.
ROOF_BANDWIDTH = "L2"
LARGEST_AREA, LEAST_AREA = 1500, 25  # of circles, in points
SVG = "{http://www.w3.org/2000/svg}"
# The same figures give the same file; texts stay texts.
STYLE = {"svg.hashsalt": "qplan", "svg.fonttype": "none", "font.size": 10}


def tooltip(layer):
    return (
        f"step {layer.step}: {layer.name.split(';')[0] or layer.op}\n{layer.kernel}\n"
        f"{layer.macs / 1e6:.3f} MMAC, {layer.num_bytes / 1e3:.1f} kB, {layer.intensity:.1f} MACs/byte\n"
        f"{layer.ns / 1e3:.2f} µs, {100 * layer.share:.1f} % of the time\n"
        f"{layer.rate:.1f} GMAC/s: {100 * layer.of_peak:.1f} % of peak, {100 * layer.of_roof:.0f} % of roof\n"
        f"{layer.lost_ns / 1e3:.2f} µs above the roof"
    )


def add_roofs(axes, peak, bandwidths):
    low, high = axes.get_xlim()
    bottom = axes.get_ylim()[0]
    for index, (name, rate) in enumerate(bandwidths.items()):
        begin, end = max(low, bottom / rate), min(high, peak / rate if peak else high)
        if begin >= end:
            continue
        axes.plot([begin, end], [begin * rate, end * rate], color="#555", linewidth=1.2, zorder=1)
        at = begin * (end / begin) ** (0.25 + 0.3 * (index % 2))  # caches of one speed have labels in two places
        axes.annotate(f"{name} {rate:.0f} GB/s", (at, at * rate), xytext=(0, 4), textcoords="offset points", color="#555",
                      ha="center", va="bottom", rotation=45, rotation_mode="anchor", transform_rotates_text=True, fontsize=9)
    if peak:
        knee = max(low, peak / max(bandwidths.values()))
        axes.plot([knee, high], [peak, peak], color="#b00", linewidth=2, zorder=1)
        axes.annotate(f"peak {peak:.0f} GMAC/s", (high, peak), xytext=(-4, 4), textcoords="offset points", color="#b00",
                      ha="right", va="bottom")


def add_circles(axes, layers, colour_of):
    marked = {layer.step for layer in furthest(layers, NUM_LABELS)}
    largest = max((layer.share for layer in layers), default=1)
    for layer in sorted(layers, key=lambda layer: -layer.share):  # small ones on top
        area = max(LEAST_AREA, LARGEST_AREA * layer.share / largest)
        circle = axes.scatter(layer.intensity, layer.rate, s=area, color=colour_of[layer.op], alpha=0.55, zorder=2,
                              edgecolors="#000" if layer.step in marked else colour_of[layer.op])
        circle.set_gid(f"step{layer.step}")
        if layer.step in marked:
            axes.annotate(str(layer.step), (layer.intensity, layer.rate), ha="center", va="center", weight="bold", zorder=3)


def add_legend(axes, layers, colour_of, hidden):
    for op, colour in colour_of.items():
        share = sum(layer.share for layer in layers if layer.op == op)
        axes.scatter([], [], color=colour, alpha=0.55, label=f"{op}, {100 * share:.0f} % of the time")
    if hidden:
        share = sum(layer.share for layer in hidden)
        axes.scatter([], [], color="none", label=f"{len(hidden)} steps without MACs, {100 * share:.0f} %")
    axes.scatter([], [], color="none", label="Most time above the roof:")
    for layer in furthest(layers, NUM_LABELS):
        name = (layer.name.split(";")[0] or layer.op)[-24:]
        axes.scatter([], [], color="none", label=f"{layer.step}: {name}\n{layer.lost_ns / 1e3:.3g} µs, {100 * layer.of_peak:.0f} % of peak")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=9)


def with_tooltips(svg, layers):
    """Browsers show the title of an element when the mouse rests on it."""
    ElementTree.register_namespace("", SVG[1:-1])
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(svg)
    by_id = {f"step{layer.step}": layer for layer in layers}
    for group in root.iter(SVG + "g"):
        if group.get("id") in by_id:
            title = ElementTree.Element(SVG + "title")
            title.text = tooltip(by_id[group.get("id")])
            group.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def draw(model, layers, peak, bandwidths):
    shown = [layer for layer in layers if layer.macs > 0]
    hidden = [layer for layer in layers if layer.macs == 0]
    ops = [op for op in OPS if any(layer.op == op for layer in shown)]
    ops += sorted({layer.op for layer in shown} - set(ops))
    colour_of = {op: f"C{i}" for i, op in enumerate(ops)}
    total = sum(layer.ns for layer in layers)
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(13, 7.5))
        xs = [layer.intensity for layer in shown] or [1]
        ys = [layer.rate for layer in shown] or [1]
        axes.set(xscale="log", yscale="log", xlabel="MACs per byte of inputs, constants and outputs", ylabel="GMAC/s",
                 xlim=(10 ** math.floor(math.log10(min(xs))), 10 ** math.ceil(math.log10(max(xs) * 1.2))),
                 ylim=(10 ** math.floor(math.log10(min(ys))), 2 * max(peak or 0, max(ys))))
        axes.grid(True, which="major", color="#ccc")
        axes.grid(True, which="minor", color="#eee")
        axes.set_axisbelow(True)
        figure.suptitle(f"{model['name']}: {total / 1e6:.3f} ms, {model['macs'] / total:.0f} GMAC/s, {model['isa']}, one thread",
                        x=0.01, ha="left", weight="bold")
        axes.set_title("fastest run of each step; a circle's area is its share of the time", loc="left", fontsize=9, color="#555")
        add_roofs(axes, peak, bandwidths)
        add_circles(axes, shown, colour_of)
        add_legend(axes, shown, colour_of, hidden)
        file = io.StringIO()
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
    return with_tooltips(file.getvalue(), shown)


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
