"""tools/coverage.py: which models of a folder pack, and what blocks the others."""

import json
import os
import shutil
import subprocess
import sys
import unittest

from support import DIGITS, REPOSITORY, CommandTest

sys.path.insert(0, str(REPOSITORY / "tools"))
from coverage import blockers  # noqa: E402

COMMAND = os.environ.get("QPLAN_COMMAND", REPOSITORY / "build/release/bin/qplan")


def coverage(*arguments):
    return subprocess.run([sys.executable, "-B", REPOSITORY / "tools/coverage.py", *arguments], capture_output=True,
                          text=True, check=False)


class Coverage(CommandTest):
    def test_counts_what_packs_and_what_blocks(self):
        models = self.folder / "models"
        (models / "sub").mkdir(parents=True)
        shutil.copy(DIGITS, models / "digits.tflite")
        negative = "def @main(%x: Tensor[(2, 2), int64]) {\n  negative(%x)\n}\n"
        (models / "sub/a.txt").write_text(negative)
        (models / "b.txt").write_text(negative)
        (models / "notes.md").write_text("no model")
        result = coverage(models, "--qplan", COMMAND, "--json", self.folder / "out.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("1 of 3 models pack (33 %)\n"), result.stdout)
        self.assertIn("     2      2     2  negative: no kernel computes it on int64\n", result.stdout)
        self.assertIn("packs        0  digits.tflite\n", result.stdout)
        self.assertIn("blocked      1  sub/a.txt\n", result.stdout)
        packed = {r["model"]: r["packed"] for r in json.loads((self.folder / "out.json").read_text())}
        self.assertEqual(packed, {"digits.tflite": True, "b.txt": False, "sub/a.txt": False})

    def test_a_command_that_crashes_is_told(self):
        models = self.folder / "models"
        models.mkdir()
        shutil.copy(DIGITS, models / "digits.tflite")
        crash = self.file("crash", b"#!/bin/sh\nkill -SEGV $$\n")
        crash.chmod(0o755)
        result = coverage(models, "--qplan", crash)
        self.assertEqual(result.returncode, 1)
        self.assertIn("the packer ended with status -11", result.stdout)

    def test_a_folder_that_does_not_exist_is_an_error(self):
        self.assertEqual(coverage(self.folder / "none").returncode, 2)


class Blockers(unittest.TestCase):
    def test_lists_are_read_without_the_names_of_nodes(self):
        self.assertEqual(
            blockers("qplan: tflite: '/m/a.tflite': 3 operators that qplan does not import:\n"
                     "  2 x SVDF (first 'it's; a')\n  1 x CAST with bool input ('x (first)')\n"),
            {"SVDF": 2, "CAST with bool input": 1})
        self.assertEqual(blockers("qplan: onnx: 'a': 2 operators that qplan does not import: Erf (first 'c')"),
                         {"Erf": 2})
        self.assertEqual(blockers("qplan: target 'cpu' cannot run 1 of 1 operator: clip 'y': no kernel [cpu.op.clip]\n"
                                  "  float operators are left: clip 'y': no qnn.quantize stands behind it"),
                         {"clip: no kernel": 1})

    def test_another_error_is_one_blocker_without_its_path(self):
        self.assertEqual(blockers("qplan: '/tmp/x.tflite': is not a model"), {"qplan: '...': is not a model": 1})


if __name__ == "__main__":
    unittest.main()
