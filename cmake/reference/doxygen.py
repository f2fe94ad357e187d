#!/usr/bin/env python3
"""The reference of the public headers, by Doxygen: HTML pages, all warnings errors, no function without a comment.

usage: doxygen.py INCLUDE OUTPUT      INCLUDE: the directory of the headers; the pages go to OUTPUT/html
Exit status 1 and the warnings on standard output where there are any; 77 where Doxygen is not installed.
"""

import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# What is said of functions of C; members of the C++ wrappers are short functions that their names explain.
UNDOCUMENTED = re.compile(r"\.h:\d+: \w+: Member (\w+)\(.*\(function\) .* is not documented")


def run(include, output, **changes):
    """The warnings of Doxygen. changes: settings in place of those of Doxyfile.in."""
    settings = (HERE / "Doxyfile.in").read_text(encoding="utf-8")
    filtered = f'"{sys.executable} -B {HERE / "doxygen_filter.py"}"'
    values = {"OUTPUT": output, "INCLUDE": include, "FILTER": filtered}
    for name, value in values.items():
        settings = settings.replace(f"@{name}@", str(value))
    settings += "".join(f"\n{name} = {value}" for name, value in changes.items()) + "\n"
    configuration = output / "Doxyfile"
    configuration.write_text(settings, encoding="utf-8")
    result = subprocess.run(["doxygen", str(configuration)], capture_output=True, text=True, check=False)
    warnings = (output / "warnings.txt").read_text(encoding="utf-8").splitlines()
    if result.returncode != 0 and not warnings:
        warnings = [f"doxygen: exit status {result.returncode}: {result.stderr.strip()}"]
    return warnings


def main(include, output):
    if shutil.which("doxygen") is None:
        print("skipped: doxygen is not installed (apt-get install doxygen)")
        return 77
    include, output = pathlib.Path(include).resolve(), pathlib.Path(output).resolve()
    output.mkdir(parents=True, exist_ok=True)
    warnings = [line for line in run(include, output, EXTRACT_ALL="NO", GENERATE_HTML="NO") if UNDOCUMENTED.search(line)]
    warnings += run(include, output)
    print("\n".join(warnings) if warnings else f"{output / 'html' / 'index.html'}")
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
