#!/usr/bin/env python3
"""Checks that every fuzz target has seeds and a row in the README, and that the corpus stays small.

usage: check_corpus.py DIRECTORY OF tests/fuzz
Exit status 1 and one line per offence.
"""
import os
import re
import sys

MOST_BYTES = 1 << 20  # of all seeds together: they are cloned by everybody
MOST_FILE_BYTES = 96 << 10


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    names = sorted(name[:-len("_fuzz.cc")] for name in os.listdir(os.path.join(root, "targets"))
                   if name.endswith("_fuzz.cc"))
    with open(os.path.join(root, "README.md"), encoding="utf-8") as text:
        rows = set(re.findall(r"^\| `(\w+)` \|", text.read(), re.MULTILINE))
    offences, total, files = [], 0, 0
    for name in names:
        if name not in rows:
            offences.append(f"README.md: target '{name}' has no row")
        folder = os.path.join(root, "corpus", name)
        seeds = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        if not seeds:
            offences.append(f"corpus/{name}: target '{name}' has no seeds")
        for seed in seeds:
            size = os.path.getsize(os.path.join(folder, seed))
            files, total = files + 1, total + size
            if size > MOST_FILE_BYTES:
                offences.append(f"corpus/{name}/{seed}: {size} bytes, at most {MOST_FILE_BYTES}; minimise it")
    for name in sorted(set(os.listdir(os.path.join(root, "corpus"))) - set(names)):
        offences.append(f"corpus/{name}: there is no target '{name}'")
    if total > MOST_BYTES:
        offences.append(f"corpus: {total} bytes, at most {MOST_BYTES}; run run.sh --minimise, remove the largest seeds")
    for offence in offences:
        print(offence)
    print(f"{len(names)} targets, {files} seeds, {total} bytes, {len(offences)} offences")
    sys.exit(1 if offences or not names else 0)


if __name__ == "__main__":
    main()
