#!/usr/bin/env python3
"""Packs every model of a folder and prints what keeps the others from packing.

    python3 tools/coverage.py DIR [--qplan build/release/bin/qplan] [--target cpu] [--json FILE]

The first table has one line for what each kind of operator, or of fault, costs: in how many models it occurs, how many
of them it blocks alone, and how often it occurs. The second has one line a model. Exit status 1: a model made the
packer crash or hang.
"""

import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SUFFIXES = {".tflite", ".onnx", ".pt", ".pth", ".pt2", ".txt"}
# The packer's own exit statuses; any other is a crash.
EXPECTED_STATUSES = range(0, 10)

LIST = re.compile(r"\d+ operators? that qplan does not import:(.*?)(?:\n *to do: |\Z)", re.S)
REFUSED = re.compile(r"target '[^']*' cannot run \d+ of \d+ operators?:(.*?)(?:\n *float operators are left|\Z)", re.S)
COUNTED = re.compile(r"^(\d+) x (.*)")
PLACE = re.compile(r" \((?:first )?'.*'\)$")
NODE = re.compile(r"^(\S+?)(?: '.*?')?: (.*?)(?: \[\S+\])?$")
QUOTED_PATH = re.compile(r"'[^']*/[^']*'")


def entries(text):
    """The lines of one of the packer's lists, "5 x CONV_2D with float32 input (first 'a')", as (count, text)."""
    lines = [line.strip() for line in text.strip().splitlines()]
    for line in lines:
        counted = COUNTED.match(line)
        yield (int(counted[1]), counted[2]) if counted else (1, line)


def blockers(error):
    """What an error of the packer names, as {text: count}; the text names no node and no file."""
    found = collections.Counter()
    if listed := LIST.search(error):
        total = int(re.search(r"(\d+) operators? that qplan", error)[1])
        lines = list(entries(listed[1]))
        for count, text in lines:
            if text.startswith("and ") and text.endswith(" other kinds"):
                continue
            found[PLACE.sub("", text)] += total if len(lines) == 1 else count
    elif refused := REFUSED.search(error):
        for count, text in entries(refused[1]):
            node = NODE.match(text)
            found[f"{node[1]}: {node[2]}" if node else text] += count
    if not found:
        found[QUOTED_PATH.sub("'...'", error.strip().splitlines()[-1] if error.strip() else "no message")] += 1
    return dict(found)


def pack(command, model, target, folder, timeout):
    """One model: {"model", "packed", "crashed", "blockers", "notes"}."""
    result = {"model": str(model), "packed": False, "crashed": False, "blockers": {}, "notes": []}
    try:
        run = subprocess.run([command, "pack", model, "-o", pathlib.Path(folder, "x.qplan"), "--target", target],
                             capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return result | {"crashed": True, "blockers": {f"no answer in {timeout} seconds": 1}}
    if run.returncode == 0:
        return result | {"packed": True}
    if run.returncode not in EXPECTED_STATUSES:
        return result | {"crashed": True, "blockers": {f"the packer ended with status {run.returncode}": 1}}
    lines = run.stderr.splitlines()
    result["notes"] = [line.split(": ")[-1] for line in lines if "; quantise it" in line or "; pack the" in line]
    return result | {"blockers": blockers(run.stderr)}


def table(rows, head):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [str(cell).rjust(width) if isinstance(cell, int) else str(cell).ljust(width)
                 for cell, width in zip(row, widths)]
        print("  ".join(cells).rstrip())


def report(results):
    packed = sum(result["packed"] for result in results)
    share = 100 * packed / len(results) if results else 0
    print(f"{packed} of {len(results)} models pack ({share:.0f} %)\n")
    models, alone, uses = collections.Counter(), collections.Counter(), collections.Counter()
    for result in results:
        for text, count in result["blockers"].items():
            models[text] += 1
            uses[text] += count
            alone[text] += len(result["blockers"]) == 1
    order = sorted(models, key=lambda text: (-models[text], -alone[text], text))
    if order:
        table([(models[t], alone[t], uses[t], t) for t in order], ("models", "alone", "uses", "blocked by"))
        print()
    rows = [("packs" if r["packed"] else "CRASH" if r["crashed"] else "blocked", len(r["blockers"]), r["model"])
            for r in results]
    table(rows, ("result", "kinds", "model"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="searched with all folders in it")
    parser.add_argument("--qplan", default=shutil.which("qplan") or "build/release/bin/qplan", help="the command")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a model (default 300)")
    parser.add_argument("--json", type=pathlib.Path, help="the results, for other programs")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        parser.error(f"'{arguments.folder}' is not a folder")
    models = sorted(path for path in arguments.folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    with tempfile.TemporaryDirectory() as folder:
        results = [pack(arguments.qplan, model, arguments.target, folder, arguments.timeout) for model in models]
    for result in results:
        result["model"] = str(pathlib.Path(result["model"]).relative_to(arguments.folder))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    report(results)
    return 1 if any(result["crashed"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
