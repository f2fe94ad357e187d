"""Models packed for the sample's device from outside the tree give the CPU's bytes on its driver.

usage: skeleton_model_test.py COMMAND LIBRARY [unittest's arguments]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("QPLAN_SHARED", REPOSITORY.parent / "shared"))
DIGITS = REPOSITORY / "samples" / "models" / "digits.tflite"
DIGITS_INPUT = REPOSITORY / "tests" / "data" / "digits" / "digit7_input.bin"


class SkeletonModel(unittest.TestCase):
    command = ""
    device = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def succeed(self, *arguments):
        result = subprocess.run([self.command, *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def pack(self, model):
        plan = self.folder / "model.qplan"
        self.succeed("pack", model, "-o", plan, "--target-lib", self.device, "--target", "skeleton, cpu",
                     "--no-cost-gate")
        self.assertTrue(json.loads(self.succeed("inspect", plan, "--json"))["regions"])
        return plan

    def output(self, plan, data, *arguments):
        folder = self.folder / "out"
        self.succeed("run", plan, "--input", data, "--output-dir", folder, *arguments)
        return (folder / "output0.bin").read_bytes()

    def on_device(self, plan, data):
        return self.output(plan, data, "--driver", self.device, "--on-npu-failure", "fail", "--npu-verify")

    def test_digits_on_the_driver_are_those_of_a_plan_for_the_cpu(self):
        plain = self.folder / "plain.qplan"
        self.succeed("pack", DIGITS, "-o", plain)
        self.assertEqual(self.on_device(self.pack(DIGITS), DIGITS_INPUT), self.output(plain, DIGITS_INPUT))

    @unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")
    def test_models_give_their_golden_bytes(self):
        for model in ("kws_ref_model", "pretrainedResnet_quant"):
            plan = self.pack(SHARED / "models" / f"{model}.tflite")
            cases = sorted(path for path in (SHARED / "golden" / model).iterdir() if path.is_dir())
            self.assertTrue(cases, f"no golden case of '{model}'")
            for case in cases:
                with self.subTest(model=model, case=case.name):
                    self.assertEqual(self.on_device(plan, case / "input0.bin"), (case / "output0.bin").read_bytes())


if __name__ == "__main__":
    SkeletonModel.command, SkeletonModel.device = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
