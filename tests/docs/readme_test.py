#!/usr/bin/env python3
"""Runs what the README and docs/c.md show: the C program, the Python program and the commands, unchanged.

usage: readme_test.py REPOSITORY BUILD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
INPUT = os.path.join(ROOT, "tests", "data", "digits", "digit7_input.bin")
OUTPUT = os.path.join(ROOT, "tests", "data", "digits", "digit7_output.bin")


def blocks(language, page="README.md"):
    with open(os.path.join(ROOT, page), encoding="utf-8") as text:
        return re.findall(rf"^```{language}\n(.*?)^```$", text.read(), re.MULTILINE | re.DOTALL)


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


class Readme(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        # A place that looks like the repository to relative paths, and can be written to.
        for name in ("samples", "tests"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.folder.name, name))

    def tearDown(self):
        self.folder.cleanup()

    def test_commands(self):
        block = next(block for block in blocks("sh") if "qplan pack" in block)
        commands = [line for line in block.splitlines() if line.startswith("qplan ")]
        self.assertGreaterEqual(len(commands), 4)
        environment = dict(os.environ, PATH=os.path.join(BUILD, "bin") + os.pathsep + os.environ["PATH"])
        output = run("set -e\n" + "\n".join(commands), shell=True, cwd=self.folder.name, env=environment)
        self.assertRegex(output, r"(?m)^0\.9\d*  seven$")

    def test_python(self):
        (program,) = blocks("python")
        if subprocess.run([sys.executable, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("NumPy is not installed (Debian: python3-numpy)")
        environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"),
                           QPLAN_LIBRARY=os.path.join(BUILD, "lib", "libqplan.so"))
        self.assertEqual(run([sys.executable, "-c", program], cwd=self.folder.name, env=environment).strip(), "7")

    def test_the_chinese_page_states_the_same_facts(self):
        def rows(page):
            with open(os.path.join(ROOT, page), encoding="utf-8") as text:
                return [line for line in text if line.startswith("| ")]

        def facts(row):  # AVX-512, I8MM, RVV, DotProd, Cortex-M55, MB
            return set(re.findall(r"[A-Za-z]+-[A-Z]?\d+|[A-Z]\w*\d[\w.]*|[A-Z]{2,}\b|\b[A-Z][a-z]+[A-Z][a-z]+\b", row))

        chinese = rows("README.zh.md")
        for english, name in (("**Exact**", "**精确**"), ("**Fast**", "**快**"), ("**Small**", "**小**"), ("CPUs", "CPU"),
                              ("NPUs", "NPU"), ("models |", "模型 |")):
            (stated,) = [row for row in rows("README.md") if row.startswith(f"| {english}")]
            (translated,) = [row for row in chinese if row.startswith(f"| {name}")]
            self.assertEqual(sorted(facts(stated) - facts(translated)), [], f"{name}: README.md has more")

    def test_c(self):
        program = blocks("c", "docs/c.md")[0]
        with open(os.path.join(self.folder.name, "main.c"), "w", encoding="utf-8") as file:
            file.write(program)
        library = os.path.join(BUILD, "lib")
        run([shutil.which("cc") or "gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "main.c", "-o", "main",
             "-I" + os.path.join(ROOT, "include"), "-L" + library, "-lqplan", "-Wl,-rpath," + library],
            cwd=self.folder.name)
        run([os.path.join(BUILD, "bin", "qplan"), "pack", "samples/models/digits.tflite", "-o", "digits.qplan"],
            cwd=self.folder.name)
        printed = run(["./main", "digits.qplan", INPUT], cwd=self.folder.name)
        with open(OUTPUT, "rb") as file:
            expected = [byte - 256 if byte > 127 else byte for byte in file.read()]
        self.assertEqual([int(line) for line in printed.split()], expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
