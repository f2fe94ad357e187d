#!/usr/bin/env python3
"""Counts what it takes to add something, by the commits that did.
usage: count_additions.py [--check PAGE]

A commit whose message has a line "Adds: operator" (or instruction-set, rewrite, npu-constraint) is an example of
such an addition. For each kind the last example is counted: files and lines of the product, of tests, and of docs.
Exit status 1 when an example touches more files of the product than its kind may, or, with --check, when PAGE's table
does not have the figures. Without the history (a source package, a shallow clone) only the table's figures are
compared with the limits.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files of the product that an addition may touch.
LIMITS = {"operator": 14, "instruction-set": 8, "rewrite": 3, "npu-constraint": 1}
TESTS = ("tests/", "benchmarks/", ".ci/")
DOCS = ("docs/", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout


def part_of(path):
    if path.startswith(TESTS):
        return "tests"
    return "docs" if path.startswith(DOCS) or path.endswith(".md") else "product"


def examples():
    """The last commit of each kind."""
    found = {}
    for line in git("log", "--format=%h%x09%(trailers:key=Adds,valueonly,separator=%x2C)").splitlines():
        commit, _, kind = line.partition("\t")
        if kind and kind not in found:
            found[kind] = commit
    return found


def count(commit):
    """[files, added lines] of each part of the tree."""
    counts = {"product": [0, 0], "tests": [0, 0], "docs": [0, 0]}
    for line in git("show", "--numstat", "--format=", commit).splitlines():
        added, _, path = line.split("\t", 2)
        part = counts[part_of(path)]
        part[0] += 1
        part[1] += int(added) if added != "-" else 0
    return counts


def row_of(kind, counts):
    cells = [f"{files} ({lines})" for files, lines in (counts[part] for part in ("product", "tests", "docs"))]
    return f"| {kind} | {LIMITS[kind]} | " + " | ".join(cells) + " |"


def rows_of(page):
    """Kind -> the row that the page has for it."""
    rows = {}
    with open(page, encoding="utf-8") as file:
        for line in file:
            match = re.match(r"\| ([a-z-]+) \| \d", line)
            if match and match.group(1) in LIMITS:
                rows[match.group(1)] = line.strip()
    return rows


def main():
    page = sys.argv[2] if len(sys.argv) == 3 and sys.argv[1] == "--check" else None
    stated = rows_of(page) if page else {}
    offences = []
    for kind, row in stated.items():
        files = int(row.split("|")[3].split()[0])
        if files > LIMITS[kind]:
            offences.append(f"{page}: {kind} touches {files} files of the product, at most {LIMITS[kind]} are allowed")
    try:
        commits = examples()
    except (OSError, subprocess.CalledProcessError):
        commits = {}
    for kind in sorted(set(commits) - set(LIMITS)):
        offences.append(f"commit {commits[kind]}: 'Adds: {kind}' is no kind, expected one of {', '.join(LIMITS)}")
    for kind in LIMITS:
        if kind not in commits:
            print(f"{kind}: no example in this history, not counted")
            continue
        counts = count(commits[kind])
        row = row_of(kind, counts)
        print(f"{row}  commit {commits[kind]}")
        if counts["product"][0] > LIMITS[kind]:
            offences.append(f"{kind}: commit {commits[kind]} touches {counts['product'][0]} files of the product, "
                            f"at most {LIMITS[kind]} are allowed")
        if page and stated.get(kind) != row:
            offences.append(f"{page} has '{stated.get(kind, 'no row')}' for {kind}, expected '{row}'")
    for offence in offences:
        print(offence)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
