"""Models packed for the sample's device from outside the tree give the CPU's bytes on its driver.

usage: skeleton_model_test.py COMMAND LIBRARY [unittest's arguments]
"""

import hashlib
import json
import os
import pathlib
import re
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

    def run_command(self, *arguments):
        return subprocess.run([self.command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=300, check=False)

    def succeed(self, *arguments):
        result = self.run_command(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def pack(self, model, options=""):
        plan = self.folder / "model.qplan"
        self.succeed("pack", model, "-o", plan, "--target-lib", self.device, "--target", f"skeleton{options}, cpu",
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

    def test_options_make_another_device(self):
        arguments = ("explain", DIGITS, "--target-lib", self.device, "--no-cost-gate", "--json", "--target")
        reasons = [reason for unit in json.loads(self.succeed(*arguments, "skeleton,window=2, cpu"))["units"]
                   for verdict in unit["verdicts"] for reason in verdict["reasons"]]
        self.assertIn("the window is larger than the device's: 3, limit 2",
                      [reason["text"] for reason in reasons if reason["id"] == "skeleton.window"])
        # The runtime hands the plan's options to the driver, whose hash says that it is this device.
        plan, plain = self.pack(DIGITS, ",window=2"), self.folder / "plain.qplan"
        self.succeed("pack", DIGITS, "-o", plain)
        self.assertEqual(self.on_device(plan, DIGITS_INPUT), self.output(plain, DIGITS_INPUT))
        other = self.run_command("run", plan, "--input", DIGITS_INPUT, "--driver", f"{self.device},window=3",
                                 "--on-npu-failure", "fail")
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("made for another device, or for other options", other.stderr)
        wrong = self.run_command(*arguments, "skeleton,speed=2, cpu")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("skeleton: an option is not known; known: window", wrong.stderr)

    def test_a_plan_of_another_format_says_which_driver_it_needs(self):
        plan = self.pack(DIGITS)
        text = "--driver sim takes programs of format 'VTA1', those of the plan for 'skeleton' are 'QOP1'; --driver LIB"
        result = self.run_command("run", plan, "--input", DIGITS_INPUT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertIn("npu: 0 of 1 region on 'skeleton'", result.stdout)
        result = self.run_command("run", plan, "--input", DIGITS_INPUT, "--on-npu-failure", "fail")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(text, result.stderr)

    # sram and mul of the target vta, which this driver refuses: it is opened without them, which a line says.
    def test_a_driver_need_not_know_the_options_of_the_plans_target(self):
        plan = self.folder / "vta.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--target", "vta, cpu", "--no-cost-gate")
        result = self.run_command("run", plan, "--input", DIGITS_INPUT, "--driver", self.device)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("takes programs of format 'QOP1', those of the plan for 'vta' are 'VTA1'", result.stderr)
        self.assertIn(f"qplan: npu: --driver {self.device}: refused the options 'sram=default,mul=on' of the plan's "
                      "target 'vta' and was opened without them: ", result.stderr)
        self.assertIn("an option is not known; known: window", result.stderr)
        # The user's own option stays, and is not among those that were left out.
        result = self.run_command("run", plan, "--input", DIGITS_INPUT, "--driver", f"{self.device},window=8")
        self.assertIn("refused the options 'sram=default,mul=on' of", result.stderr)
        # It knows the plan's option: nothing is dropped, and nothing is said. The user's own mistake is an error.
        known = self.pack(DIGITS, ",window=8")
        result = self.run_command("run", known, "--input", DIGITS_INPUT, "--driver", self.device)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = self.run_command("run", plan, "--input", DIGITS_INPUT, "--driver", f"{self.device},speed=2")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("was opened without them", result.stderr)

    def record(self, *options):
        """The jobs of a run of the digits model on the driver."""
        jobs = self.folder / "jobs"
        self.output(self.pack(DIGITS), DIGITS_INPUT, "--driver", self.device, "--on-npu-failure", "fail",
                    "--npu-record", jobs, *options)
        regions = json.loads(self.succeed("inspect", self.folder / "model.qplan", "--json"))["regions"]
        names = sorted(path.name for path in jobs.iterdir())
        self.assertEqual(names, [f"job-{number:04}" for number in range(len(regions))])
        return [jobs / name for name in names]

    def replay(self, job, *options):
        return self.run_command("npu", "replay", job, "--driver", self.device, *options)

    def test_jobs_are_recorded_and_replay_from_their_files_alone(self):
        jobs = self.record()
        regions = json.loads(self.succeed("inspect", self.folder / "model.qplan", "--json"))["regions"]
        plan = (self.folder / "model.qplan").read_bytes()
        for job, region in zip(jobs, regions):
            lines = [line.split() for line in (job / "job.txt").read_text().splitlines()]
            self.assertEqual(lines[:3], [["target", "slots"], ["format", "0x31504f51"], ["device", "skeleton"]])
            begin, size = region["blob_offset"], region["blob_bytes"]
            self.assertEqual((job / "program.bin").read_bytes(), plan[begin : begin + size])
            # Slots and their sizes, and which of them are inputs and outputs, as the plan binds them.
            binds = region["binds"]
            self.assertEqual([line[1:] for line in lines if line[0] == "region"],
                             [[str(bind["slot"]), str(bind["bytes"])] for bind in sorted(binds, key=lambda b: b["slot"])])
            for directive, use in (("readonly", "input"), ("load", "input"), ("check", "output")):
                self.assertEqual([int(line[1]) for line in lines if line[0] == directive],
                                 [bind["slot"] for bind in binds if bind["use"] == use])
        self.assertEqual((jobs[0] / "load-0.bin").read_bytes(), DIGITS_INPUT.read_bytes())
        result = self.replay(jobs[0].parent, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([[check["result"] for check in job["checks"]] for job in json.loads(result.stdout)], [["OK"]] * len(regions))

    def test_a_replayed_job_that_differs_says_where(self):
        job = self.record()[0]
        check = bytearray((job / "check-0.bin").read_bytes())
        check[5] ^= 1
        (job / "check-0.bin").write_bytes(check)
        result = self.replay(job)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"FAILED: replay: byte 5 of 'check-0.bin' is \d+, expected \d+")
        self.assertRegex(result.stdout, r"\n  check-0.bin \(\d+ bytes at 0 of region \d\): differs")

    def test_what_a_job_leaves_in_its_scratch_is_checked_on_request(self):
        job = self.record("--npu-record-all")[0]
        checks = [line.split()[1] for line in (job / "job.txt").read_text().splitlines() if line.startswith("check ")]
        self.assertGreater(len(set(checks)), 1)
        result = self.replay(job)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(f"{len(checks)} checks OK", result.stdout)

    def test_records_may_come_from_anybody(self):
        job = self.record()[0]
        text = (job / "job.txt").read_text()
        lines = text.splitlines()

        def without(word):
            return "".join(line + "\n" for line in lines if not line.startswith(word))

        def changed(word, replacement):
            return re.sub(rf"(?m)^{word} .*$", replacement, text, count=1)

        for job_text, why in ((changed("target", "target vta"), "target 'vta', expected 'slots'"),
                              (without("format"), "job.txt has no format"),
                              (changed("format", "format QOP1"), "'QOP1' is not the number of a format"),
                              (changed("format", "format 7"), "skeleton: load: "),
                              (without("readonly") .replace("region 1 ", "region 9 ", 1), "region '1' is not known"),
                              (changed("region", "region 4096 1"), "region '4096', expected 0 to 4095"),
                              (changed("run", "run ../job.txt"), "outside the job's directory"),
                              (text + "colour red\n", "cannot understand 'colour'"),
                              (without("check"), "job.txt has no check")):
            with self.subTest(why=why):
                (job / "job.txt").write_text(job_text)
                result = self.replay(job)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn(why, result.stdout)
        (job / "job.txt").write_text(text)
        result = self.run_command("npu", "replay", job)
        self.assertEqual(result.returncode, 1)
        self.assertIn("target 'slots' is a program that its driver alone can run; --driver LIB names it", result.stdout)

    # Operator lists are the command's to read: no driver is needed.
    def test_operator_lists_are_listed(self):
        plan = self.pack(DIGITS)
        regions = json.loads(self.succeed("inspect", plan, "--json"))["regions"]
        listed = self.succeed("npu", "disasm", plan)
        lines = listed.splitlines()
        self.assertEqual(sum(line.startswith("program of region ") for line in lines), len(regions))
        operators = [line for line in lines if line[0].isdigit()]
        layers = re.findall(r'Layer\("([^"]+)"', (REPOSITORY / "samples/train_digits/network.py").read_text())
        self.assertEqual([line.split("'")[1] for line in operators], layers)
        # network.py: 24 filters of 3 x 3, stride 2, on pictures of 16 x 16.
        self.assertRegex(operators[0], r"^0 conv2d 'stem' \(tfl2\): slot 1\+0 int8\[1,16,16,1\] .* -> "
                                       r"slot \d+\+0 int8\[1,8,8,24\] .*strides 2,2, pads 0,0,1,1, clamp -128\.\.127$")
        self.assertRegex(operators[-1], r"^12 softmax 'probabilities' .* slot 2\+0 int8\[1,10\] zp -128, 1 scale")
        scratch = [bind["bytes"] for bind in regions[0]["binds"] if bind["use"] == "scratch"]
        self.assertIn(f"slot 3: scratch, {scratch[0]:,} bytes", lines)
        # The packer's --pin leaves two regions.
        two = self.folder / "two.qplan"
        self.succeed("pack", DIGITS, "-o", two, "--target-lib", self.device, "--target", "skeleton, cpu", "--no-cost-gate",
                     "--pin", "pool=cpu")
        both = self.succeed("npu", "disasm", two).splitlines()
        second = [index for index, line in enumerate(both) if line.startswith("program of region ")][1]
        self.assertEqual(self.succeed("npu", "disasm", two, "--region", "1").splitlines(), both[second:])
        damaged = bytearray(plan.read_bytes())
        damaged[regions[0]["blob_offset"] + 100] ^= 1
        content_bytes = int.from_bytes(damaged[24:32], "little")
        damaged[32:64] = hashlib.sha256(damaged[64:content_bytes]).digest()  # as if the plan had been made so
        (self.folder / "damaged.qplan").write_bytes(damaged)
        result = self.run_command("npu", "disasm", self.folder / "damaged.qplan")
        self.assertEqual(result.returncode, 1)
        self.assertIn("oplist: damaged: the checksum is another", result.stderr)

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
