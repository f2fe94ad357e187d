#!/usr/bin/env python3
"""Checks what libqplan.a asks of its environment and what it brings along.

usage: check_symbols.py NM LD READELF ARCHIVE [ALLOWED_REGEX]
 - linked into one object (ld -r), nothing is undefined but memcpy memmove memset memcmp (and ALLOWED_REGEX: the
   compiler's own helpers on cores that lack an instruction; and getauxval, if weak: programs link without it);
 - there are no static constructors or destructors;
 - objects of ISA files define no weak symbols: the linker could use them for code that runs on lesser machines;
 - they define nothing but `run` for other objects: queries (accepts, scratch_bytes, units) are called on every machine.
Exit status 1 and one line per offence.
"""
import re
import subprocess
import sys
import tempfile
import os

FREE = {"memcpy", "memmove", "memset", "memcmp"}
# The linker itself defines it, where the address of another object's function is taken.
FREE_OF_LINKER = {"_GLOBAL_OFFSET_TABLE_"}
FREE_IF_WEAK = {"getauxval"}
ISA_DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels", "isa.def")
with open(ISA_DEF, encoding="utf-8") as rows:
    ISA = re.compile(r"_(" + "|".join(re.findall(r"^QPLAN_ISA\([\w-]+, (\w+),", rows.read(), re.MULTILINE)) + r")\.cc\.o")
RUN = re.compile(r"_ZN5qplan\w+3runE")  # qplan::<variant>::run


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    nm, ld, readelf, archive = sys.argv[1:5]
    extra = re.compile(sys.argv[5]) if len(sys.argv) == 6 else None
    offences = []
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.o")
        run(ld, "-r", "--whole-archive", archive, "-o", whole)
        undefined = sorted({line.split()[-1] for line in run(nm, "--undefined-only", whole).splitlines()})
        weak = {line.split()[-1] for line in run(nm, "--undefined-only", whole).splitlines() if line.split()[-2] == "w"}
        for symbol in undefined:
            if symbol in FREE_OF_LINKER or (symbol in weak and symbol in FREE_IF_WEAK):
                continue
            if symbol not in FREE and not (extra and extra.fullmatch(symbol)):
                offences.append(f"{archive}: undefined symbol '{symbol}'; allowed: {' '.join(sorted(FREE))}")
        sections = run(readelf, "-SW", whole)
    for section in re.findall(r"\s(\.(?:init_array|fini_array|ctors|dtors)\S*)", sections):
        if not section.startswith(".rela") and not section.startswith(".rel."):
            offences.append(f"{archive}: section '{section}': a static constructor or destructor")
    isa_objects, member = 0, ""
    for line in run(nm, "--defined-only", archive).splitlines():
        if line.endswith(":"):
            member = line[:-1]
            isa_objects += bool(ISA.search(member))
        elif ISA.search(member) and len(line.split()) >= 3:
            kind, symbol = line.split()[-2:]
            if kind in "WwVvu":
                offences.append(f"{archive}({member}): weak symbol '{symbol}' in an ISA object")
            elif kind in "TDBR" and not RUN.match(symbol):
                offences.append(f"{archive}({member}): '{symbol}' in an ISA object, expected nothing but run()")
    for offence in offences:
        print(offence)
    print(f"undefined: {' '.join(undefined) or 'none'}; {isa_objects} ISA objects; {len(offences)} offences")
    sys.exit(1 if offences else 0)


if __name__ == "__main__":
    main()
