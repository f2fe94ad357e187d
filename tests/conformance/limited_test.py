"""Devices that take a few things only: the suite draws what they take, skips with a reason where there is
nothing, and models packed for them give the CPU's bytes.

usage: limited_test.py PROGRAM LIMITED_DEVICE COMMAND [unittest's arguments]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("QPLAN_SHARED", REPOSITORY.parent / "shared"))
DIGITS = REPOSITORY / "samples" / "models" / "digits.tflite"
DIGITS_INPUT = REPOSITORY / "tests" / "data" / "digits" / "digit7_input.bin"
# The checks that run no program.
WITHOUT_PROGRAMS = {"entry.version", "entry.functions", "struct.inputs", "device.open_close", "handle.device",
                    "handle.others", "capabilities.sane", "supported.reasons", "supported.capabilities",
                    "target.accepted"}
UNKNOWN_CHECKSUM = {"blob.resealed", "blob.version", "blob.hash"}


def run(kind, *command):
    return subprocess.run([str(word) for word in command], env=dict(os.environ, QPLAN_LIMITED=kind),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)


class Suite(unittest.TestCase):
    program = ""
    device = ""

    def checks(self, kind, *arguments):
        begin = time.monotonic()
        result = run(kind, self.program, self.device, "--json", *arguments)
        checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
        failed = {name: check["why"] for name, check in checks.items() if check["result"] == "fail"}
        self.assertEqual(result.returncode, 1 if failed else 0)
        return checks, failed, time.monotonic() - begin

    def test_devices_that_take_something_are_tried_with_it(self):
        for kind in ("dense", "c16", "acc32", "no_contracts", "signed"):
            with self.subTest(kind=kind):
                checks, failed, _ = self.checks(kind)
                self.assertEqual(failed, {})
                self.assertEqual({n: c["why"] for n, c in checks.items() if c["result"] == "skip"}, {})

    def test_a_format_of_the_devices_own_is_written_by_the_target(self):
        for kind in ("native", "scratch", "no_scratch", "padded", "blocked16", "blocked32"):
            with self.subTest(kind=kind):
                checks, failed, _ = self.checks(kind)
                self.assertEqual(failed, {})
                self.assertEqual({n for n, c in checks.items() if c["result"] == "skip"}, UNKNOWN_CHECKSUM)

    def test_a_target_that_compiles_nothing_need_not_be_configured(self):
        only = ("--only", "job.results", "--only", "supported", "--only", "target")
        checks, failed, _ = self.checks("needs_options", *only)
        self.assertEqual(failed, {})
        self.assertEqual(checks["job.results"]["result"], "pass")
        self.assertEqual(checks["target.accepted"]["result"], "skip")
        self.assertIn("limited: needs the option window", checks["target.accepted"]["why"])
        checks, failed, _ = self.checks("needs_options", *only, "--target-options", "window=8")
        self.assertEqual(failed, {})
        self.assertEqual(checks["target.accepted"]["result"], "pass")

    def test_a_target_that_the_packer_would_refuse_is_refused(self):
        for kind in ("old_target", "other_major"):
            with self.subTest(kind=kind):
                result = run(kind, self.program, self.device, "--only", "job.results")
                self.assertEqual(result.returncode, 2, result)
                self.assertIn("was made for another version of qplan/npu_target.h", result.stderr)
        result = run("named_vta", self.program, self.device, "--only", "job.results")
        self.assertEqual(result.returncode, 2, result)
        self.assertIn("its target is called 'vta', which is a target of the packer's own", result.stderr)
        _, failed, _ = self.checks("no_costs", "--only", "target")
        self.assertEqual(failed, {"target.accepted": "target library: target 'skeleton' states no costs"})

    def test_a_device_that_takes_nothing_is_done_at_once(self):
        checks, failed, seconds = self.checks("nothing")
        self.assertEqual(failed, {})
        for name in WITHOUT_PROGRAMS:
            self.assertEqual(checks[name]["result"], "pass", checks[name])
        for name in ("job.results", "queue.bounded", "blob.flipped", "threads.smoke"):
            self.assertEqual(checks[name]["result"], "skip", checks[name])
            self.assertIn("takes none of", checks[name]["why"])
            self.assertIn("the device has no such unit", checks[name]["why"])
        self.assertLess(seconds, 120)  # each of the checks has as much

    def test_a_library_that_contradicts_itself_fails(self):
        _, failed, _ = self.checks("contradicts", "--only", "supported")
        self.assertEqual(list(failed), ["supported.capabilities"])
        self.assertIn("the device's capabilities have", failed["supported.capabilities"])
        _, failed, _ = self.checks("refuses", "--only", "supported", "--only", "job.results")
        self.assertEqual(list(failed), ["supported.capabilities"])
        self.assertIn("the capabilities name contracts", failed["supported.capabilities"])
        self.assertIn("the device has no such unit", failed["supported.capabilities"])

    def test_a_target_that_answers_otherwise_than_the_driver_fails(self):
        expected = {"boasts": "supported of the target takes ",
                    "confuses": "supported of the target returned -1 (E_ARGUMENT) for "}
        for kind, text in expected.items():
            with self.subTest(kind=kind):
                _, failed, _ = self.checks(kind, "--only", "target", "--only", "supported")
                self.assertEqual(list(failed), ["target.accepted"])
                self.assertTrue(failed["target.accepted"].startswith(text), failed)

    def test_operators_that_supported_is_not_asked_about_are_no_contradiction(self):
        _, failed, _ = self.checks("tiny", "--only", "supported")
        self.assertEqual(failed, {})


class Packer(unittest.TestCase):
    device = ""
    command = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def succeed(self, kind, *arguments):
        result = run(kind, self.command, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def pack(self, kind, model):
        plan = self.folder / "model.qplan"
        self.succeed(kind, "pack", model, "-o", plan, "--target-lib", self.device, "--target", "skeleton, cpu",
                     "--no-cost-gate")
        return plan

    def explain(self, kind, model):
        return json.loads(self.succeed(kind, "explain", model, "--target-lib", self.device, "--target",
                                       "skeleton, cpu", "--no-cost-gate", "--json"))

    def output(self, kind, plan, data):
        folder = self.folder / "out"
        self.succeed(kind, "run", plan, "--input", data, "--output-dir", folder, "--driver", self.device,
                     "--on-npu-failure", "fail", "--npu-verify")
        return (folder / "output0.bin").read_bytes()

    def composites(self, kind, model):
        units = self.explain(kind, model)["units"]
        return {unit["composite"] for unit in units if unit["target"] == "skeleton"}

    @unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")
    def test_networks_on_limited_devices_give_their_golden_bytes(self):
        expected = {"acc32": {"qplan.qconv2d_acc32", "qplan.qdepthwise_acc32", "qplan.qdense_acc32"},
                    "dense": {"qplan.qdense"}}
        for kind, composites in expected.items():
            found = set()
            for model in ("kws_ref_model", "pretrainedResnet_quant"):
                path = SHARED / "models" / f"{model}.tflite"
                found |= self.composites(kind, path)
                plan = self.pack(kind, path)
                cases = sorted(case for case in (SHARED / "golden" / model).iterdir() if case.is_dir())
                self.assertTrue(cases, f"no golden case of '{model}'")
                for case in cases:
                    with self.subTest(kind=kind, model=model, case=case.name):
                        self.assertEqual(self.output(kind, plan, case / "input0.bin"),
                                         (case / "output0.bin").read_bytes())
            self.assertEqual(found, composites)

    # The target's `layout` flips uint8, and the device refuses whatever is not int8.
    @unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")
    def test_uint8_networks_on_a_device_of_int8_give_their_golden_bytes(self):
        model = "mobilenet_v1_0.25_128_quant"
        path = SHARED / "models" / f"{model}.tflite"
        explained = self.explain("signed", path)
        units = {unit["composite"]: unit for unit in explained["units"] if unit["target"] == "skeleton"}
        self.assertEqual(set(units), {"qplan.qconv2d", "qplan.qdepthwise", "qplan.qreshape", "qplan.qsoftmax"})
        # The average of 4 x 4 elements may round to either side in int8.
        others = [unit for unit in explained["units"] if unit["target"] == "cpu"]
        self.assertEqual(len(others), 1, others)
        self.assertIn("rounds otherwise than one of int8", json.dumps(others))
        plan = self.pack("signed", path)
        regions = json.loads(self.succeed("signed", "inspect", plan, "--json"))["regions"]
        binds = [bind for region in regions for bind in region["binds"] if bind["use"] != "scratch"]
        self.assertEqual([bind["flip"] for bind in binds], [128] * 4)
        for case in sorted(case for case in (SHARED / "golden" / model).iterdir() if case.is_dir()):
            with self.subTest(case=case.name):
                self.assertEqual(self.output("signed", plan, case / "input0.bin"),
                                 (case / "output0.bin").read_bytes())
        ran = self.succeed("signed", "run", plan, "--input", case / "input0.bin", "--driver", self.device)
        self.assertIn("4 copies", ran)

    def test_tensors_at_the_border_are_arranged_as_the_target_says(self):
        plan = self.pack("padded", DIGITS)
        region, = json.loads(self.succeed("padded", "inspect", plan, "--json"))["regions"]
        image, scores = (bind for bind in region["binds"] if bind["use"] != "scratch")
        # The picture has one channel, and there are ten classes.
        self.assertEqual((image["strides"], image["origin"], image["fill"]), ([4096, 256, 16, 1], 16, 0x5a))
        self.assertEqual((scores["strides"], scores["origin"], scores["bytes"]), ([16, 1], 16, 32))
        plain = self.folder / "plain.qplan"
        self.succeed("", "pack", DIGITS, "-o", plain)
        self.succeed("", "run", plain, "--input", DIGITS_INPUT, "--output-dir", self.folder / "plain")
        self.assertEqual(self.output("padded", plan, DIGITS_INPUT),
                         (self.folder / "plain" / "output0.bin").read_bytes())
        ran = self.succeed("padded", "run", plan, "--input", DIGITS_INPUT, "--driver", self.device)
        self.assertIn("2 copies (", ran)

    # Depthwise convolutions and sums of 16 channels are the CPU's, so that tensors of most widths cross a border:
    # those with 24 and 144 channels end in a part of a block. Tensors of one block are packed, and not copied.
    @unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")
    def test_networks_on_devices_with_blocks_of_channels_give_their_golden_bytes(self):
        models = {"pretrainedResnet_quant": (2, 5), "mobilenet_v1_0.25_128_quant": (26, 30),
                  "person_detect": (26, 24), "mobilenet_v2_1.0_224_quant": (36, 36)}
        for model, copies in models.items():
            cases = sorted(case for case in (SHARED / "golden" / model).iterdir() if case.is_dir())
            for block, number in zip((16, 32), copies):
                kind = f"blocked{block}"
                plan = self.pack(kind, SHARED / "models" / f"{model}.tflite")
                regions = json.loads(self.succeed(kind, "inspect", plan, "--json"))["regions"]
                binds = [bind for region in regions for bind in region["binds"] if bind["use"] != "scratch"]
                if number > 20:
                    self.assertIn(block, {bind["block"] for bind in binds if not bind["in_place"]})
                self.assertEqual(sum(region["copies"] for region in regions), number)
                for case in cases[:2]:
                    with self.subTest(kind=kind, model=model, case=case.name):
                        self.assertEqual(self.output(kind, plan, case / "input0.bin"),
                                         (case / "output0.bin").read_bytes())
                        ran = self.succeed(kind, "run", plan, "--input", case / "input0.bin", "--driver",
                                           self.device, "--output-dir", self.folder / "kept")
                        self.assertEqual((self.folder / "kept" / "output0.bin").read_bytes(),
                                         (case / "output0.bin").read_bytes())
                        self.assertIn(f" {number} copies (", ran)
        # The sums of MobileNet V2 read what the last region but one has left in the device's memory.
        kept = [bind["kept"] for bind in binds if not bind["in_place"] and bind["kept"] != 0]
        self.assertEqual(len(kept), 20)

    def test_accumulators_of_transposed_convolutions_are_requantised_by_the_cpu(self):
        values = [(i * 37 + 11) % 255 - 127 for i in range(3 * 3 * 2 * 4)]
        model = self.folder / "transposed.relay"
        model.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 3, 4, 4), int8]) {\n'
                         f"  %0 = qnn.conv2d_transpose(%x, const(Tensor[(3, 3, 2, 4), int8], {values}), -3, 0, 0.5f, 0.5f, "
                         "strides=[2, 1], crop=[1, 0], output_size=[5, 5]);\n"
                         "  %1 = nn.bias_add(%0, const(Tensor[(3), int32], [90, -70, 5]), axis=3);\n"
                         '  %2 = qnn.requantize(%1, 0.25f, 0, 9f, 5, axis=3, out_dtype="int8");\n  %2\n}\n')
        self.assertEqual(self.composites("acc32", model), {"qplan.qconv2d_transpose_acc32"})
        data = self.folder / "x.bin"
        data.write_bytes(bytes((i * 53 + 7) % 256 for i in range(48)))
        plain = self.folder / "plain.qplan"
        self.succeed("", "pack", model, "-o", plain)
        self.succeed("", "run", plain, "--input", data, "--output-dir", self.folder / "plain")
        self.assertEqual(self.output("acc32", self.pack("acc32", model), data),
                         (self.folder / "plain" / "output0.bin").read_bytes())

    # A device that computes on a processor takes seconds for this network: its estimate allows for them.
    @unittest.skipUnless((SHARED / "models").is_dir(), f"no reference data in '{SHARED}' (QPLAN_SHARED)")
    def test_a_network_that_takes_seconds_is_not_cancelled(self):
        model = "mobilenet_v1_0.75_192_quant"
        plan = self.pack("signed", SHARED / "models" / f"{model}.tflite")
        region = json.loads(self.succeed("signed", "inspect", plan, "--json"))["regions"][0]
        self.assertGreaterEqual(region["estimated_cycles"], region["macs"])
        case = sorted(case for case in (SHARED / "golden" / model).iterdir() if case.is_dir())[0]
        self.assertEqual(self.output("signed", plan, case / "input0.bin"), (case / "output0.bin").read_bytes())

    def test_scratch_that_is_asked_in_fast_memory_is_there(self):
        expected = self.output("", self.pack("", DIGITS), DIGITS_INPUT)
        plan = self.pack("fast", DIGITS)
        inspected = json.loads(self.succeed("fast", "inspect", plan, "--json"))
        banks = {bank["memory_class"]: bank for bank in inspected["banks"] if bank["kind"] == "device"}
        self.assertEqual(set(banks), {"sram", "dram"})
        region, = inspected["regions"]
        self.assertEqual(region["memory_class"], "flash")
        self.assertEqual({(bind["use"], bind["memory_class"]) for bind in region["binds"]},
                         {("input", "dram"), ("output", "dram"), ("scratch", "sram")})
        text = self.succeed("fast", "inspect", plan)
        self.assertIn(" of sram that 'skeleton' reaches", text)
        self.assertIn(" of dram that 'skeleton' reaches", text)
        # The device computes nothing where the scratch is elsewhere, and --npu-verify fails.
        self.assertEqual(self.output("fast", plan, DIGITS_INPUT), expected)

    def test_without_fast_memory_another_is_used_and_the_log_says_so(self):
        plan = self.pack("fast", DIGITS)
        run_plan = ("run", plan, "--input", DIGITS_INPUT, "--driver", self.device, "--on-npu-failure", "fail")
        fast = run("fast", self.command, *run_plan)
        self.assertEqual((fast.returncode, "'sram'" in fast.stderr), (0, False), fast.stderr)
        slow = run("slow", self.command, *run_plan)
        self.assertEqual(slow.returncode, 0, slow.stderr)
        self.assertIn(" bytes of 'sram' memory for 'skeleton', driver 'skeleton' gives none: ", slow.stderr)
        self.assertEqual(self.output("slow", plan, DIGITS_INPUT), self.output("fast", plan, DIGITS_INPUT))

    def test_scratch_in_flash_is_a_mistake_of_the_target(self):
        result = run("misasks", self.command, "pack", DIGITS, "-o", self.folder / "model.qplan", "--target-lib",
                     self.device, "--target", "skeleton, cpu", "--no-cost-gate")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("target 'skeleton': asks for memory of class 3 for the scratch of region", result.stderr)
        self.assertIn("expected at most 2", result.stderr)

    def test_a_format_of_the_devices_own_runs(self):
        plain = self.folder / "plain.qplan"
        self.succeed("", "pack", DIGITS, "-o", plain)
        self.succeed("", "run", plain, "--input", DIGITS_INPUT, "--output-dir", self.folder / "plain")
        # "LIM1", and a format whose last byte is not printable.
        for kind, name in (("native", "LIM1"), ("binary", "0x014d494c")):
            with self.subTest(kind=kind):
                plan = self.pack(kind, DIGITS)
                self.assertIn(f'"{name}"', self.succeed(kind, "inspect", plan, "--json"))
                self.assertEqual(self.output(kind, plan, DIGITS_INPUT),
                                 (self.folder / "plain" / "output0.bin").read_bytes())
                info = self.succeed(kind, "npu", "info", "--driver", self.device, "--json")
                self.assertIn(f'"{name}"', info)
                other = run(kind, self.command, "run", plan, "--input", DIGITS_INPUT)
                self.assertIn(f"those of the plan for 'skeleton' are '{name}'", other.stderr)

    def test_programs_of_its_format_are_listed_by_the_driver(self):
        plan = self.pack("native", DIGITS)
        listed = self.succeed("native", "npu", "disasm", plan, "--driver", f"{self.device},window=8")
        self.assertEqual(listed.splitlines()[1:3], ["a limited program", "window=8"])
        result = run("native", self.command, "npu", "disasm", plan)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is a program of format 'LIM1', which only its driver can read; --driver LIB", result.stderr)
        result = run("no_listing", self.command, "npu", "disasm", plan, "--driver", self.device)
        self.assertEqual(result.returncode, 1)
        self.assertIn("lists no programs: its table has no function 'disassemble'", result.stderr)
        result = run("binary", self.command, "npu", "disasm", plan, "--driver", self.device)
        self.assertEqual(result.returncode, 1)
        self.assertIn("limited: no program of this device", result.stderr)

    def test_jobs_of_its_format_replay_on_the_driver(self):
        plan, jobs = self.pack("scratch", DIGITS), self.folder / "jobs"
        for options, has_scratch in ((), False), (("--npu-record-all",), True):
            self.succeed("scratch", "run", plan, "--input", DIGITS_INPUT, "--driver", self.device,
                         "--on-npu-failure", "fail", "--npu-record", jobs, *options)
            self.assertEqual(len(list(jobs.iterdir())), len(self.scratch(plan)))
            job = (jobs / "job-0000" / "job.txt").read_text()
            self.assertIn("target slots\nformat 0x314d494c\ndevice skeleton\n", job)
            self.assertEqual(job.count("\ncheck ") > 1, has_scratch, job)
            self.assertNotIn("FAILED", self.succeed("scratch", "npu", "replay", jobs, "--driver", self.device))
        # The driver of other programs does not take these.
        result = run("", self.command, "npu", "replay", jobs, "--driver", self.device)
        self.assertEqual(result.returncode, 1)
        self.assertIn("skeleton: load: ", result.stdout)

    def scratch(self, plan):
        """Bytes of scratch that each region of the plan binds; 0: none."""
        regions = json.loads(self.succeed("", "inspect", plan, "--json"))["regions"]
        self.assertTrue(regions)
        return [sum(bind["bytes"] for bind in region["binds"] if bind["use"] == "scratch") for region in regions]

    def test_the_plan_has_the_scratch_that_the_compiler_asks_for(self):
        expected = self.output("native", self.pack("native", DIGITS), DIGITS_INPUT)
        inner = self.scratch(self.folder / "model.qplan")
        self.assertIn(True, [size > 0 for size in inner])
        for kind, sizes in (("scratch", [size + 4096 for size in inner]), ("no_scratch", [0 for _ in inner])):
            with self.subTest(kind=kind):
                plan = self.pack(kind, DIGITS)
                self.assertEqual(self.scratch(plan), sizes)
                self.assertEqual(self.output(kind, plan, DIGITS_INPUT), expected)

    def test_a_library_is_told_that_it_contradicts_itself(self):
        reasons = [reason for unit in self.explain("contradicts", DIGITS)["units"]
                   for verdict in unit["verdicts"] for reason in verdict["reasons"]]
        told = [reason for reason in reasons if "one of the two is wrong" in reason["text"]]
        self.assertTrue(told)
        self.assertTrue(all(reason["id"].startswith("skeleton.capabilities.") for reason in told), told)

    def reasons(self, kind, name):
        """Texts of the reasons with this id against operators."""
        return [reason["text"] for unit in self.explain(kind, DIGITS)["units"]
                for verdict in unit["verdicts"] for reason in verdict["reasons"] if reason["id"] == name]

    def test_regions_that_the_driver_cannot_load_become_smaller(self):
        whole = self.output("native", self.pack("native", DIGITS), DIGITS_INPUT)
        self.assertGreater(max(self.regions("native")), 1)
        self.assertEqual(set(self.regions("one_operator")), {1})
        texts = self.reasons("one_operator", "skeleton.load")
        self.assertTrue(texts)
        for text in texts:
            self.assertIn("limited: the sequencer has room for one operator", text)
        # Those that are left run on the device, or --on-npu-failure fail would be an error.
        self.assertEqual(self.output("one_operator", self.pack("one_operator", DIGITS), DIGITS_INPUT), whole)
        # The driver blames the first operator that it meets of a kind.
        texts = self.reasons("no_dense", "skeleton.load")
        self.assertTrue(texts)
        self.assertNotIn("qplan.qdense", self.composites("no_dense", DIGITS))
        self.assertIn("qplan.qconv2d", self.composites("no_dense", DIGITS))
        self.assertEqual(self.output("no_dense", self.pack("no_dense", DIGITS), DIGITS_INPUT), whole)
        # A job of the device binds two buffers.
        self.assertTrue(self.reasons("two_binds", "skeleton.boundary"))

    def regions(self, kind):
        """How many composites each region has."""
        return [region["units"] for region in self.explain(kind, DIGITS)["regions"]]

    def test_a_driver_that_does_not_understand_what_its_library_compiled_says_so_while_packing(self):
        plan = self.folder / "x.qplan"
        arguments = ("pack", DIGITS, "-o", plan, "--target-lib", self.device, "--target", "skeleton, cpu",
                     "--no-cost-gate")
        result = run("deaf", self.command, *arguments)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("target 'skeleton': its driver refuses the program that its compile made of region '", result.stderr)
        self.assertIn("limited: no such opcode, status -4 (E_BLOB)", result.stderr)
        self.assertFalse(plan.exists())
        # The device of this machine is not the one that the plan is for: its driver is not asked.
        self.succeed("other_board", *arguments)
        other = run("other_board", self.command, "run", plan, "--input", DIGITS_INPUT, "--driver", self.device)
        self.assertIn("the blob was made for another device", other.stdout)

    def test_a_driver_that_does_not_open_without_the_plans_options_either_says_both_reasons(self):
        plan = self.folder / "x.qplan"
        self.succeed("", "pack", DIGITS, "-o", plan, "--target-lib", self.device, "--target",
                     "skeleton,window=8, cpu", "--no-cost-gate")
        result = run("gone", self.command, "run", plan, "--input", DIGITS_INPUT, "--driver", self.device)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("was opened", result.stderr)
        self.assertIn("refused the options 'window=8' of the plan's target 'skeleton' and was not opened without them "
                      "either: ", result.stderr)
        self.assertIn("limited: there are no options; without them: ", result.stderr)
        self.assertIn("limited: nothing answers on the bus", result.stderr)

    def test_a_status_that_is_no_answer_is_named_once(self):
        result = run("no_answer", self.command, "pack", DIGITS, "-o", self.folder / "x.qplan", "--target-lib",
                     self.device, "--target", "skeleton, cpu")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("E_ARGUMENT"), 1, result.stderr)
        self.assertIn("supported returned -1 (E_ARGUMENT)", result.stderr)


if __name__ == "__main__":
    Suite.program, Suite.device, Packer.command = sys.argv[1:4]
    Packer.device = Suite.device
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
