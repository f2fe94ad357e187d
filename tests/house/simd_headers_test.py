"""Every header of kernels/ compiles when it is opened alone, for each instruction set that may include it, and what an
instruction set's header defines is read.

usage: simd_headers_test.py REPOSITORY GENERATED COMPILER
"""
import os
import re
import shlex
import subprocess
import sys
import unittest

ROOT, GENERATED, COMPILER = sys.argv[1:4]
del sys.argv[1:4]
with open(os.path.join(ROOT, "kernels", "isa.def"), encoding="utf-8") as text:
    ROWS = re.findall(r'^QPLAN_ISA\(([\w-]+), +(\w+), .*, "([^"]*)"\)$', text.read(), re.MULTILINE)


def headers():
    for folder, _, names in os.walk(os.path.join(ROOT, "kernels")):
        for name in sorted(names):
            if name.endswith(".h") or name.endswith("_simd.cc"):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def compile_alone(path, options):
    source = f'#include "{path}"\n'
    return subprocess.run([COMPILER, "-x", "c++", "-std=c++17", "-fsyntax-only", "-w", "-I", ROOT, "-I", os.path.join(ROOT, "include"),
                           "-I", GENERATED, *options, "-"], input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)


def targets_of_compiler():
    done = subprocess.run([COMPILER, "-dumpmachine"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split("-")[0]


class SimdHeaders(unittest.TestCase):
    def check(self, path, options):
        done = compile_alone(path, options)
        self.assertEqual(done.returncode, 0, f"{path} {options}\n{done.stdout}")

    def test_each_compiles_alone(self):
        names = [name for _, name, _ in ROWS]
        for path in headers():
            own = re.search(rf"[_/]({'|'.join(names)})\.h$", path)
            with self.subTest(path=path):
                if own is None:
                    self.check(path, [])
                for arch, name, flags in ROWS:
                    if arch not in (targets_of_compiler(), "any"):
                        continue
                    if own is not None and own.group(1) == name:
                        self.check(path, shlex.split(flags))

    # A macro that nothing reads selects nothing: the kernels would silently compute without the header that it names.
    def test_each_macro_is_read(self):
        defined, words = set(), set()
        for folder, _, names in os.walk(os.path.join(ROOT, "kernels")):
            for name in names:
                if not name.endswith((".h", ".cc", ".def")):
                    continue
                with open(os.path.join(folder, name), encoding="utf-8") as text:
                    for line in text:
                        macro = re.match(r"\s*#\s*(define|undef)\s+(\w+)(.*)", line)
                        if macro is not None:
                            if macro.group(1) == "define" and folder.endswith("simd") and not macro.group(2).endswith("_H_"):
                                defined.add(macro.group(2))
                            line = macro.group(3)
                        words.update(re.findall(r"\w+", line))
        self.assertTrue(defined)
        self.assertEqual(sorted(defined - words), [])


if __name__ == "__main__":
    unittest.main()
