#!/usr/bin/env python3
"""Checks that libqplan.so exports exactly the functions of the public headers, which exports.map lists.

usage: check_exports.py NM LIBRARY EXPORTS_MAP HEADER...
Exit status 1 and one line per difference.
"""
import re
import subprocess
import sys

DECLARATION = re.compile(r"QPLAN_API\s+[^;()]*?\b(qplan_\w+)\(")
LISTED = re.compile(r"^\s+(qplan_\w+);", re.M)


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    nm, library, exports_map = sys.argv[1:4]
    declared = {name for header in sys.argv[4:] for name in DECLARATION.findall(read(header))}
    listed = set(LISTED.findall(read(exports_map)))
    output = subprocess.run([nm, "-D", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    # The version itself, QPLAN_1, is an absolute symbol.
    exported = {line.split()[-1].split("@")[0] for line in output.splitlines() if line.split()[-2] != "A"}
    offences = [f"{exports_map}: lacks '{name}', which the headers declare" for name in sorted(declared - listed)]
    offences += [f"{exports_map}: lists '{name}', which no header declares" for name in sorted(listed - declared)]
    offences += [f"{library}: does not export '{name}'" for name in sorted(listed - exported)]
    offences += [f"{library}: exports '{name}', which is not listed" for name in sorted(exported - listed)]
    for offence in offences:
        print(offence)
    print(f"{len(exported)} exported symbols, {len(offences)} offences")
    sys.exit(1 if offences or not exported else 0)


if __name__ == "__main__":
    main()
