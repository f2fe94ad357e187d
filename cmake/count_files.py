#!/usr/bin/env python3
"""Counts the files of the product and their lines: whether the tree is made of files that are worth opening.
usage: count_files.py [--check PAGE]
  --check  exit with 1 when the sentence of PAGE with these figures is more than a tenth off
"""
import os
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["src", "kernels", "format", "capi", "include", "tools"]
SUFFIXES = (".cc", ".c", ".h", ".hpp", ".inl", ".def", ".fbs")
SENTENCE = re.compile(r"(\d[\d,]*)\s+production\s+files,\s+a\s+median\s+of\s+(\d+)\s+lines,\s+(\d+)\s+of\s+at\s+most\s+30")


def line_counts(folder):
    counts = []
    for path, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in names:
            if name.endswith(SUFFIXES):
                with open(os.path.join(path, name), "rb") as file:
                    counts.append(file.read().count(b"\n"))
    return counts


def row(name, counts):
    few = sum(count <= 30 for count in counts)
    return f"{name:<10}{len(counts):>7}{sum(counts):>9}{statistics.median(counts):>8.0f}{few:>7}{max(counts):>9}"


def main():
    counts = {folder: line_counts(folder) for folder in FOLDERS}
    every = sum(counts.values(), [])
    print(f"{'folder':<10}{'files':>7}{'lines':>9}{'median':>8}{'<= 30':>7}{'longest':>9}")
    for folder in FOLDERS:
        print(row(folder, counts[folder]))
    print(row("all", every))
    if len(sys.argv) != 3 or sys.argv[1] != "--check":
        return 0
    with open(sys.argv[2], encoding="utf-8") as page:
        match = SENTENCE.search(page.read())
    if match is None:
        print(f"{sys.argv[2]}: no sentence '... production files, a median of ... lines, ... of at most 30'")
        return 1
    stated = [int(group.replace(",", "")) for group in match.groups()]
    counted = [len(every), round(statistics.median(every)), sum(count <= 30 for count in every)]
    if any(abs(a - b) > b / 10 for a, b in zip(stated, counted)):
        print(f"{sys.argv[2]} says {stated}, counted are {counted}: state these")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
