#!/usr/bin/env python3
"""Checks the journeys of docs/architecture.md: tables of the files that one thing passes through.
usage: journeys.py REPOSITORY

A journey is a heading "### Journey: <what>, at most <N> files" and a table whose rows are
"| <number> | `<file>` | `<name>` | <what happens> |". Exit status 1 where a file does not exist or does not contain the
name, where rows are not numbered from 1, where a file is listed twice, or where there are more rows than N.
"""
import os
import re
import sys

HEADING = re.compile(r"^### Journey: (.+), at most (\d+) files$")
ROW = re.compile(r"^\| (\d+) \| `([^`]+)` \| `([^`]+)` \| (.+) \|$")


def journeys_of(page):
    """[(title, limit, [(line, number, path, name)])]"""
    journeys = []
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            heading, row = HEADING.match(line.rstrip()), ROW.match(line.rstrip())
            if heading:
                journeys.append((heading.group(1), int(heading.group(2)), []))
            elif line.startswith("#") and journeys:
                journeys.append(("", 0, []))
            elif row and journeys:
                journeys[-1][2].append((number, int(row.group(1)), row.group(2), row.group(3)))
    return [journey for journey in journeys if journey[0]]


def offences_of(root, page):
    offences = []
    journeys = journeys_of(page)
    if not journeys:
        offences.append("no heading '### Journey: <what>, at most <N> files'")
    for title, limit, rows in journeys:
        seen = set()
        if not rows or len(rows) > limit:
            offences.append(f"journey '{title}' has {len(rows)} files, expected 1 to {limit}")
        for expected, (line, number, path, name) in enumerate(rows, 1):
            if number != expected:
                offences.append(f"line {line}: row {number}, expected {expected}")
            if path in seen:
                offences.append(f"line {line}: {path} is listed twice")
            seen.add(path)
            try:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    text = file.read()
            except OSError as error:
                offences.append(f"line {line}: {path}: {error.strerror}")
                continue
            if re.search(r"(?<!\w)" + re.escape(name) + r"(?!\w)", text) is None:
                offences.append(f"line {line}: {path} does not contain '{name}'")
    return offences


def main():
    root = sys.argv[1]
    page = os.path.join(root, "docs", "architecture.md")
    offences = offences_of(root, page)
    for offence in offences:
        print(f"{page}: {offence}")
    for title, limit, rows in journeys_of(page):
        print(f"{title}: {len(rows)} files, at most {limit}")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
