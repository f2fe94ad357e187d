#!/usr/bin/env python3
"""Draws the pictures of the documentation: architecture.svg, plan-layout.svg, memory.svg.

usage: draw.py COMMAND OUTPUT      COMMAND: the built qplan, which packs the digits model; OUTPUT: a directory

The last two show a real plan of the digits model. The same command gives the same bytes; the test docs/pictures
compares them with the files here, and QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R docs/pictures writes them anew.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MODEL = REPOSITORY / "samples" / "models" / "digits.tflite"
STYLE = """
    .ground { fill: #ffffff; }
    .side { fill: #f2f5f8; stroke: #c5ced6; }
    .box { fill: #ffffff; stroke: #4a5a6a; stroke-width: 1.5; }
    .plan { fill: #fff4d6; stroke: #b58900; stroke-width: 1.5; }
    .live { fill: #cfe3f5; stroke: #2c6ea3; }
    .peak { fill: #f7d0c4; stroke: #b3432b; }
    .scale { stroke: #c5ced6; stroke-width: 1; }
    .head { font-weight: bold; fill: #22303c; }
    .text { fill: #22303c; }
    .small { fill: #4a5a6a; font-size: 12px; }
    .arrow { stroke: #4a5a6a; stroke-width: 2; fill: none; marker-end: url(#tip); }
"""
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="14"'


class Picture:
    """An SVG of a width and height, drawn from the back to the front."""

    def __init__(self, width, height, label):
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT} role="img"',
            f'     aria-label="{escape(label)}">',
            f"  <style>{STYLE}  </style>",
            '  <defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
            ' orient="auto"><path d="M0 0L10 5L0 10z" fill="#4a5a6a"/></marker></defs>',
        ]
        self.box(0, 0, width, height, "ground", radius=0)

    def box(self, x, y, width, height, kind="box", radius=6):
        self.lines.append(f'  <rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>')

    def text(self, x, y, words, kind="text", anchor="start"):
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.lines.append(f'  <text class="{kind}" x="{x:g}" y="{y:g}"{place}>{escape(words)}</text>')

    def path(self, points, kind="arrow"):
        self.lines.append(f'  <path class="{kind}" d="{points}"/>')

    def svg(self):
        return "\n".join([*self.lines, "</svg>"]) + "\n"


def part(picture, x, y, width, title, folder, words=()):
    """A part of the product with the folder that has it."""
    height = 48 + 17 * len(words)
    picture.box(x, y, width, height)
    picture.text(x + width / 2, y + 20, title, "head", "middle")
    picture.text(x + width / 2, y + 37, folder, "small", "middle")
    for i, line in enumerate(words):
        picture.text(x + width / 2, y + 56 + 17 * i, line, "small", "middle")


def architecture():
    picture = Picture(900, 500, "The packer's stages from a model to a plan, and the runtime's from a plan to outputs.")
    picture.box(8, 8, 884, 228, "side", 8)
    picture.text(24, 32, "Packer: src/packer, on your machine (C++20)", "head")
    stages = [
        ("Import", "import/", ("TFLite, ONNX,", "PyTorch, Relay text", "to one IR")),
        ("Rewrite", "passes/", ("one canonical form", "for every source")),
        ("Place", "partition/", ("which operators", "an NPU takes,", "and why not")),
        ("Lower", "target/", ("operators to steps,", "weights repacked,", "float scales proved")),
        ("Schedule", "schedule/", ("cascades, knobs,", "scratch")),
        ("Memory", "memory/", ("an address for", "every tensor,", "proved by a checker")),
    ]
    x = 24
    for i, (title, folder, words) in enumerate(stages):
        part(picture, x, 48, 130, title, folder, words)
        if i + 1 < len(stages):
            picture.path(f"M{x + 130} 98H{x + 143}")
        x += 146
    part(picture, 170, 170, 276, "NPU compilers", "src/vta/, src/ethosu/, or yours")
    picture.path("M381 147V166")
    part(picture, 608, 170, 276, "Write, check as a device will", "write/, evaluate/")
    picture.path("M819 147V166")
    picture.path("M746 218V252")

    picture.box(608, 256, 276, 40, "plan")
    picture.text(746, 281, "plan file: format/plan.fbs", "head", "middle")

    picture.box(8, 310, 884, 182, "side", 8)
    picture.text(24, 334, "Runtime: on the device (C++17 without heap, exceptions, stdio, libm)", "head")
    part(picture, 608, 350, 276, "Open: verify everything once", "format/, capi/")
    picture.path("M746 296V346")
    part(picture, 308, 350, 276, "Session: a loop over steps", "src/runtime/", ("in memory that you give it",))
    picture.path("M608 374H588")
    part(picture, 24, 330 + 88, 130, "Threads, clock", "src/host/, yours")
    part(picture, 170, 330 + 88, 130, "Kernels", "kernels/", ("a folder per family",))
    part(picture, 308, 330 + 100, 276, "NPU client", "src/runtime/npu/")
    part(picture, 608, 330 + 100, 276, "Driver or simulator", "include/qplan/npu_driver.h")
    picture.path("M446 415V426")
    picture.path("M584 454H604")
    picture.path("M308 382H235V414")
    picture.path("M308 366H89V414")
    return picture.svg()


def plan_of(command, options):
    """(bytes, inspect's report) of a plan of the digits model."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "digits.qplan"
        subprocess.run([command, "pack", str(MODEL), "-o", str(path), *options], check=True, capture_output=True)
        report = subprocess.run([command, "inspect", str(path), "--json"], check=True, capture_output=True).stdout
        return path.read_bytes(), json.loads(report)


def grouped(number):
    return f"{number:,}"


def plan_layout(command):
    content, report = plan_of(command, ["--target", "cpu,arch=x86_64", "--self-check", "1"])
    root = int.from_bytes(content[12:16], "little")
    content_size, file_size = (int.from_bytes(content[at : at + 8], "little") for at in (16, 24))
    constants = (64 + root + 63) // 64 * 64
    names = (content_size + 63) // 64 * 64
    weights = report["memory"]["constants_bytes"]
    parts = [
        (0, "header", "64 bytes", ("magic, version, required features,", "sizes, SHA-256 of all that follows")),
        (64, "Plan, a flatbuffer", f"{grouped(root)} bytes", ("targets, banks, tensors with their addresses,",
                                                            "steps with parameters, functions, self-checks")),
        (constants, "constants", f"{grouped(weights)} bytes", ("weights, biases, multipliers, tables:", "read in place, each at a multiple of 64")),
        (names, "names, a flatbuffer", f"{grouped(file_size - names)} bytes", ("of tensors and steps, provenance, placement;", "absent with --strip-names")),
        (file_size, "signature", "trailer of qplan sign", ("Ed25519, a counter against older plans;", "only where the plan is signed")),
    ]
    picture = Picture(860, 70 + 78 * len(parts), "The parts of a plan file with their offsets and sizes.")
    picture.text(24, 30, f"A plan of the digits model: {grouped(file_size)} bytes, used where it is (flash, mmap, RAM)", "head")
    for i, (offset, title, size, words) in enumerate(parts):
        y = 50 + 78 * i
        picture.box(130, y, 290, 70, "plan" if i < 4 else "side", 4)
        picture.text(118, y + 20, grouped(offset), "small", "end")
        picture.text(146, y + 30, title, "head")
        picture.text(146, y + 52, size, "small")
        picture.text(444, y + 30, words[0])
        picture.text(444, y + 52, words[1])
    picture.text(118, 44, "offset", "small", "end")
    return picture.svg()


def overlap(a, b):
    """Whether two tensors share a byte at some step."""
    in_time = a["first_use"] <= b["last_use"] and b["first_use"] <= a["last_use"]
    return in_time and a["offset"] < b["offset"] + b["bytes"] and b["offset"] < a["offset"] + a["bytes"]


def memory(command):
    _, report = plan_of(command, ["--target", "cpu,arch=x86_64", "--fuse", "off"])
    arena = report["memory"]["arena_bytes"]
    steps = report["steps"]
    tensors = [t for t in report["tensors"] if report["banks"][t["bank"]]["kind"] == "arena"]
    left, top, width, height = 70, 56, 780, 300
    column = width / len(steps)
    sums = [sum(t["bytes"] for t in tensors if t["first_use"] <= i <= t["last_use"]) for i in range(len(steps))]
    peak = sums.index(max(sums))
    picture = Picture(880, 470, "Memory over time: a rectangle for each tensor, from the step that writes it to the last that reads it.")
    picture.text(24, 28, f"The arena of the digits model, {grouped(arena)} bytes, step by step", "head")
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + height * (1 - share)
        picture.path(f"M{left} {y:g}H{left + width}", "scale")
        picture.text(left - 8, y + 4, grouped(round(arena * share)), "small", "end")
    for tensor in tensors:
        x, count = left + column * tensor["first_use"], tensor["last_use"] - tensor["first_use"] + 1
        bottom = top + height * (1 - tensor["offset"] / arena)
        tall = height * tensor["bytes"] / arena
        alive = tensor["first_use"] <= peak <= tensor["last_use"]
        picture.box(x + 1, bottom - tall, column * count - 2, tall, "peak" if alive else "live", 2)
        covering = [t["first_use"] for t in tensors if t["first_use"] > tensor["first_use"] and overlap(t, tensor)]
        room = int((column * (min([*covering, tensor["last_use"] + 1]) - tensor["first_use"]) - 10) / 6.6)
        name = tensor["name"]
        if tall >= 14 and room >= 4:
            picture.text(x + 6, bottom - tall + 13, name if len(name) <= room else name[: room - 1] + "\u2026", "small")
    for i, step in enumerate(steps):
        x = left + column * (i + 0.5)
        picture.text(x, top + height + 18, str(i), "small", "middle")
        picture.lines.append(
            f'  <text class="small" transform="translate({x + 4:g} {top + height + 30}) rotate(35)">{escape(step["op"])}</text>'
        )
    x = left + column * (peak + 0.5)
    picture.text(x, top - 8, "peak", "small", "middle")
    return picture.svg()


def main(command, output):
    pictures = {"architecture": architecture(), "plan-layout": plan_layout(command), "memory": memory(command)}
    for name, svg in pictures.items():
        (pathlib.Path(output) / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
