"""The references: docs/python-reference.md is that of the package, and what is wrong in a header's comments is found.

usage: reference_test.py REPOSITORY      QPLAN_UPDATE_DOCS=1: writes the page anew
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
if REPOSITORY.is_file():
    REPOSITORY = REPOSITORY.parents[2]
TOOLS = REPOSITORY / "cmake" / "reference"
PAGE = REPOSITORY / "docs" / "python-reference.md"


def missing(module):
    return importlib.util.find_spec(module) is None


class PythonReference(unittest.TestCase):
    @unittest.skipIf(missing("numpy") or missing("matplotlib"), "needs NumPy and matplotlib")
    def test_the_page_is_that_of_the_package(self):
        words = [sys.executable, "-B", str(TOOLS / "python_reference.py"), str(REPOSITORY / "python")]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        if os.environ.get("QPLAN_UPDATE_DOCS"):
            PAGE.write_text(result.stdout, encoding="utf-8")
        self.assertEqual(result.stdout, PAGE.read_text(encoding="utf-8"), "QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R docs/python_reference writes the page anew")

    def test_members_of_base_classes_are_on_the_page(self):
        page = PAGE.read_text(encoding="utf-8")
        for member in ("Session.run(", "Session.run_batch(", "Session.inputs`", "PreValue.shape`", "Error("):
            self.assertTrue(member in page, member)

    @unittest.skipIf(missing("numpy") or missing("matplotlib"), "needs NumPy and matplotlib")
    def test_a_name_without_a_docstring_is_an_error(self):
        cases = [("_session_run.py", "A SessionTensor for each output.", "Session.outputs"),
                 ("_step_times.py", "One step of the plan, and the runs since the session began or reset_step_times().",
                  "StepTime")]  # a dataclass, which writes its signature into an empty docstring
        for file, docstring, name in cases:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                package = pathlib.Path(folder) / "qplan"
                shutil.copytree(REPOSITORY / "python" / "qplan", package, ignore=shutil.ignore_patterns("__pycache__"))
                lines = (package / file).read_text(encoding="utf-8").split("\n")
                left = [line for line in lines if line.strip() != f'"""{docstring}"""']
                self.assertEqual(len(left), len(lines) - 1)
                (package / file).write_text("\n".join(left), encoding="utf-8")
                words = [sys.executable, "-B", str(TOOLS / "python_reference.py"), folder]
                result = subprocess.run(words, capture_output=True, text=True, check=False)
                error = f"python_reference.py: {name} has no docstring\n"
                self.assertEqual((result.returncode, result.stderr), (1, error))

    def test_every_heading_has_words_below_it(self):
        lines = [line for line in PAGE.read_text(encoding="utf-8").split("\n") if line]
        for line, below in zip(lines, lines[1:] + ["#"]):
            if line.startswith("### ") or line.startswith("#### "):
                self.assertFalse(below.startswith("#"), f"{line}: has no docstring")


@unittest.skipIf(shutil.which("doxygen") is None, "doxygen is not installed")
class HeaderReference(unittest.TestCase):
    def complaints(self, text):
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder) / "include" / "qplan" / "sample.h"
            header.parent.mkdir(parents=True)
            header.write_text(text, encoding="utf-8")
            words = [sys.executable, "-B", str(TOOLS / "doxygen.py"), str(header.parents[1]), folder + "/out"]
            result = subprocess.run(words, capture_output=True, text=True, check=False)
            html = pathlib.Path(folder) / "out" / "html" / "sample_8h.html"
            self.page = html.read_text(encoding="utf-8") if html.exists() else ""
            return result.returncode, result.stdout

    def test_a_function_needs_a_comment_or_stands_below_one_that_has_it(self):
        first = "/* sample.h: a header. */\n\n"
        pair = "/* Adds a@b <c> to #d: \\e. */\nQPLAN_API int add(int a);\nQPLAN_API int add_more(int a); /* and more */\n"
        code, text = self.complaints(first + pair)
        self.assertEqual(code, 0, text)
        self.assertIn("Adds a@b &lt;c&gt; to #d: \\e.", self.page)
        code, text = self.complaints(first + pair + "\nQPLAN_API int lost(int a);\n")
        self.assertEqual(code, 1)
        self.assertIn("Member lost(int a) (function) of file sample.h is not documented", text)
        self.assertNotIn("add", text)

    def test_what_doxygen_does_not_understand_is_an_error(self):
        broken = "/* sample.h: a header. */\n\n/** See nothing_of_the_kind() and \\ref nowhere. */\nQPLAN_API int f(int a);\n"
        code, text = self.complaints(broken.replace("/**", "/*"))
        self.assertEqual(code, 0, text)  # quoted: plain comments have no commands
        code, text = self.complaints("/* sample.h: a header. */\n\n/* Fine. */\nQPLAN_API int f(int a);\n/* no end\n")
        self.assertEqual(code, 1, text)
        self.assertIn("comment", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
