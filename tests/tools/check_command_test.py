"""qplan check: comparisons with expected outputs, other plans and other kernels, and the search for the step at fault."""

import json
import os
import re
import shutil
import subprocess
import unittest

from support import COMMAND, DIGITS, SHARED, CommandTest, needs_shared, run

FAULTY = os.environ.get("QPLAN_FAULTY_COMMAND", "")  # its conv2d for SSE4.1 is wrong: faulty_kernel.cc
needs_faulty = unittest.skipUnless(os.path.exists(FAULTY), "no command with a planted fault (QPLAN_FAULTY_COMMAND)")


class Check(CommandTest):
    def case(self, *digits):
        """A directory with a case for each digit."""
        for digit in digits:
            folder = self.folder / "golden" / f"digit{digit}"
            folder.mkdir(parents=True)
            shutil.copy(self.digit_input(digit), folder / "input0.bin")
            (folder / "output0.bin").write_bytes(self.digit_output(digit))
        return self.folder / "golden"

    def different(self, *arguments, command=None):
        """The command must end with 3 and print nothing on stderr; returns its JSON report."""
        if command is None:
            result = run("check", *arguments, "--json")
        else:
            words = [command, "check", *map(str, arguments), "--json"]
            result = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((result.returncode, result.stderr), (3, ""), arguments)
        return json.loads(result.stdout)

    def test_without_options_it_verifies_as_before(self):
        text = self.succeed("check", self.plan)
        self.assertTrue(text.startswith("OK: "), text)
        self.assertIn("digest and structure verified, 11 steps bound (", text)
        self.assertEqual(len(text.splitlines()), 1)
        self.refused(1, ["make a plan of it first"], "check", DIGITS)
        self.refused(2, ["--input: has no effect without --expect or --against"], "check", self.plan, "--input", self.digit_input(1))
        damaged = bytearray(self.plan.read_bytes())
        damaged[-1] ^= 1
        self.refused(1, ["SHA-256"], "check", self.file("damaged.qplan", bytes(damaged)), "--against", "isas")

    def test_the_memory_is_that_of_a_session_with_these_threads(self):
        plan, needs = self.folder / "checked.qplan", []
        self.succeed("pack", DIGITS, "-o", plan, "--self-check", "1")
        for threads in "14":
            measured = self.succeed("bench", plan, "--runs", "1", "--threads", threads)
            needs.append(re.search(r", [\d,]+ bytes of memory", measured)[0])
            self.assertIn(needs[-1], self.succeed("check", plan, "--self", "--threads", threads))
        self.assertNotEqual(*needs)

    def test_a_path_that_is_not_utf8_is_in_the_json(self):
        path = self.folder / os.fsdecode(b"\xff.qplan")
        shutil.copy(self.plan, path)
        expected = str(self.folder / "\ufffd.qplan")
        self.assertEqual(self.succeed_json("check", path, "--json"), {"plan": expected, "verified": True})

    def test_expected_outputs_of_several_cases(self):
        golden = self.case(*range(10))
        text = self.succeed("check", self.plan, "--expect", golden)
        self.assertIn("10 comparisons, all equal", text)
        self.assertIn("digit7", text)
        one = self.succeed("check", DIGITS, "--expect", golden / "digit3", "--threads", "2")
        self.assertIn("1 comparison, all equal", one)

    def test_other_outputs_than_expected_say_how_far_they_are(self):
        golden = self.case(3)
        wrong = bytearray(self.digit_output(3))
        wrong[0] = (wrong[0] + 2) % 256
        wrong[9] = (wrong[9] + 5) % 256
        (golden / "digit3" / "output0.bin").write_bytes(wrong)
        report = self.different(self.plan, "--expect", golden)
        (comparison,) = report["comparisons"]
        self.assertEqual((report["equal"], comparison["case"]), (False, "digit3"))
        output = comparison["outputs"][0]
        self.assertEqual((output["elements"], output["different"], output["max_steps"]), (10, 2, 5))
        self.assertEqual(output["histogram"], {"2": 1, "5..8": 1})
        self.assertEqual(output["first_different"], 0)
        self.assertEqual((output["rows"], output["same_top1"]), (1, 1))
        self.assertGreater(output["snr_db"], 20)
        # No kernel is to blame, and it says so.
        self.assertIn("the reference kernels do not give the expected outputs either", comparison["note"])
        self.assertNotIn("first_difference", comparison)
        within = self.succeed_json("check", self.plan, "--expect", golden, "--tolerance", "5", "--json")
        self.assertEqual((within["equal"], within["within_tolerance"]), (False, True))
        self.assertEqual(self.different(self.plan, "--expect", golden, "--tolerance", "4")["within_tolerance"], False)

    def test_inputs_of_the_command_line(self):
        golden = self.case(5)
        os.remove(golden / "digit5" / "input0.bin")
        self.refused(1, ["has no input0.bin", "--input"], "check", self.plan, "--expect", golden)
        self.succeed("check", self.plan, "--expect", golden, "--input", self.digit_input(5))
        self.different(self.plan, "--expect", golden, "--input", self.digit_input(4))

    def test_runs_of_a_network_that_keeps_states_follow_each_other(self):
        model = self.file("sum.relay", b"""#[version = "0.0.5"]
def @main(%x: Tensor[(2), int8], %s: Tensor[(2), int8], states=[[1, 1]], state_bytes=[[100, 0]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  (%0, %0)
}
""")
        golden = self.folder / "golden"
        runs = (([1, 2], [101, 2]), ([3, 4], [104, 6]), ([5, 6], [109, 12]))  # sums, by hand
        for i, (x, y) in enumerate(runs):
            (golden / f"run{i}").mkdir(parents=True)
            (golden / f"run{i}" / "input0.bin").write_bytes(bytes(x))
            (golden / f"run{i}" / "output0.bin").write_bytes(bytes(y))
        text = self.succeed("check", model, "--expect", golden, "--against", "reference")
        self.assertIn("6 comparisons, all equal", text)
        # A single directory is a first run.
        self.succeed("check", model, "--expect", golden / "run0")
        self.different(model, "--expect", golden / "run1")
        (golden / "run1" / "output0.bin").write_bytes(bytes([104, 7]))
        report = self.different(model, "--expect", golden)
        wrong = [comparison["case"] for comparison in report["comparisons"] if not comparison["within_tolerance"]]
        self.assertEqual(wrong, ["run1"])
        # Where a run differs, its states do, too: the runs after it are not explained again.
        other = self.file("other.relay", model.read_bytes().replace(b"[[100, 0]]", b"[[101, 0]]"))
        comparisons = self.different(other, "--expect", golden, "--against", model)["comparisons"][3:]
        self.assertEqual([comparison["case"] for comparison in comparisons], ["run0", "run1", "run2"])
        self.assertIn("first_difference", comparisons[0])
        for comparison in comparisons[1:]:
            self.assertNotIn("first_difference", comparison)
            self.assertIn("run 'run0' of this session differs already", comparison["note"])

    def test_kernels_threads_and_cascades_give_the_same(self):
        text = self.succeed("check", DIGITS, "--against", "reference,isas,threads,cascades", "--random", "3")
        for isa in self.isas():
            if isa != "reference":
                self.assertIn(f"isa {isa} against the reference kernels, random 3", text)
        for what in ("2 threads", "4 threads", "cascades memory", "cascades all"):
            self.assertIn(f"{what} against the reference kernels", text)
        self.assertIn("all equal", text)
        self.refused(1, ["--against cascades: needs a model"], "check", self.plan, "--against", "cascades")
        self.refused(1, ["no regions", "--target"], "check", self.plan, "--against", "sim")
        self.refused(1, ["did you mean 'isas'?"], "check", self.plan, "--against", "isa")

    def test_all_leaves_out_what_does_not_apply_and_says_so(self):
        report = self.succeed_json("check", self.plan, "--against", "all", "--json")
        self.assertEqual([skipped["what"] for skipped in report["skipped"]], ["sim", "cascades", "onnxruntime", "tflite"])
        report = self.succeed_json("check", DIGITS, "--against", "all", "--json")
        self.assertIn("onnxruntime", [skipped["what"] for skipped in report["skipped"]], "it does not run TFLite's models")

    def test_onnx_runtime_takes_the_samples_and_computes_the_same(self):
        for name in ("digits_qdq.onnx", "digits_float_weights.onnx"):
            result = run("check", DIGITS.parent / name, "--against", "onnxruntime", "--random", "3")
            if "ONNX Runtime is not installed" in result.stderr:
                self.skipTest("ONNX Runtime is not installed (npm install onnxruntime-node; NODE_PATH)")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("3 comparisons, all equal", result.stdout)

    def test_tflite_runs_the_model_on_its_reference_kernels(self):
        golden = DIGITS.parents[2] / "tests" / "data" / "digits"
        numpy = "/usr/bin/python3"
        if subprocess.run([numpy, "-c", "import numpy"], capture_output=True, check=False).returncode != 0:
            self.skipTest("python3 has no numpy")
        package = self.folder / "packages" / "tflite_runtime"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        # A package as TensorFlow Lite's is, which knows one answer.
        (package / "interpreter.py").write_text(f"""
import numpy
class OpResolverType:
    BUILTIN_REF = "reference"
class Interpreter:
    def __init__(self, path, experimental_op_resolver_type):
        assert path == {str(DIGITS.absolute())!r} and experimental_op_resolver_type == "reference"
    def allocate_tensors(self): pass
    def invoke(self): pass
    def get_input_details(self): return [{{"index": 5}}]
    def get_output_details(self): return [{{"index": 7}}]
    def set_tensor(self, index, array):
        assert index == 5 and (array == numpy.fromfile({str(golden / "digit0_input.bin")!r}, "int8").reshape(array.shape)).all()
    def get_tensor(self, index):
        answer = numpy.fromfile({str(golden / "digit0_output.bin")!r}, "int8").reshape(1, 10)
        answer[0, 3] += OFF
        return answer
""")
        # Where python3 is another one than Debian's.
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python3").symlink_to(numpy)
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(package.parent)}
        command = [COMMAND, "check", DIGITS, "--against", "tflite", "--input", golden / "digit0_input.bin"]
        source = (package / "interpreter.py").read_text()
        for off, code, text in ((0, 0, "all equal"), (1, 3, "1 of 10 elements differs, by 1 (1) steps")):
            (package / "interpreter.py").write_text(source.replace("OFF", str(off)))
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
            self.assertIn("TensorFlow Lite", result.stdout)
            self.assertIn(text, result.stdout)
        # Without a package and without the library.
        for name in ("ai_edge_litert", "tflite_runtime", "tensorflow"):
            absent = self.folder / "absent" / name
            absent.mkdir(parents=True)
            (absent / "__init__.py").write_text("raise ImportError")
        environment.update(PYTHONPATH=str(self.folder / "absent"), QPLAN_TFLITE=str(self.folder / "absent.so"))
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertIn("TensorFlow Lite is not installed; python3 needs numpy", result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_the_simulator(self):
        text = self.succeed("check", DIGITS, "--target", "vta, cpu", "--against", "sim")
        self.assertIn("the device (sim) against the reference kernels", text)

    def test_another_plan(self):
        other = self.folder / "other.qplan"
        self.succeed("pack", DIGITS, "-o", other, "--fuse", "all")
        self.succeed("check", self.plan, "--against", other)
        self.succeed("check", self.plan, "--against", DIGITS)
        self.succeed("pack", DIGITS, "-o", other, "--io", "float")
        self.refused(1, ["its inputs are float32", "--io"], "check", self.plan, "--against", other)

    def models_with_another_scale(self):
        text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8), int8]) {{
  %0 = qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="same");
  %1 = qnn.add(%0, const(Tensor[(1), int8], [{addend}]), 1f, 0, 1f, 0, 1f, 0, name="other");
  qnn.add(%1, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="last")
}}
"""
        plans = []
        for addend in (3, 4):
            model = self.file(f"add{addend}.relay", text.format(addend=addend).encode())
            plans.append(self.folder / f"add{addend}.qplan")
            self.succeed("pack", model, "-o", plans[-1])
        return plans

    def test_the_first_step_of_another_plan_that_differs(self):
        expected, found = self.models_with_another_scale()
        x = self.file("x.bin", bytes(range(8)))
        report = self.different(found, "--against", expected, "--input", x, "--reproduce", self.folder / "shown")
        first = report["comparisons"][0]["first_difference"]
        self.assertEqual((first["step"], first["name"], first["equal_before"]), (1, "other", 1))
        self.assertEqual(first["comparison"]["histogram"], {"1": 8})
        self.assertTrue(first["reproduced"]["step_alone"])
        # The written plan has that step alone: x + 1 goes in, x + 5 comes out, x + 4 was expected.
        shown = self.folder / "shown"
        self.assertEqual((shown / "input0.bin").read_bytes(), bytes(range(1, 9)))
        self.assertEqual((shown / "output0.bin").read_bytes(), bytes(range(4, 12)))
        self.assertEqual(len(self.succeed_json("inspect", shown / "step1.qplan", "--json")["steps"]), 1)
        self.different(shown / "step1.qplan", "--expect", shown)
        text = run("check", found, "--against", expected, "--input", x)
        self.assertIn("first different step: 1 add 'other'", text.stdout)
        self.assertIn("--reproduce DIR", text.stdout)

    def test_a_difference_that_needs_the_runs_before_it_is_shown_with_them(self):
        text = """#[version = "0.0.5"]
def @main(%x: Tensor[(2), int8], %s: Tensor[(2), int8], states=[[1, 1]], state_bytes=[[0, 0]]) {{
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  %1 = clip(%0, a_min=-128f, a_max={largest}f, name="sum");
  (%1, %1)
}}
"""
        plans = []
        for largest in (120, 110):
            model = self.file(f"sum{largest}.relay", text.format(largest=largest).encode())
            plans.append(self.folder / f"sum{largest}.qplan")
            self.succeed("pack", model, "-o", plans[-1])
        expected, found = plans
        golden, shown = self.folder / "golden", self.folder / "shown"
        for i in range(14):  # the first to differ has a number of two digits
            (golden / f"run{i:02}").mkdir(parents=True)
            (golden / f"run{i:02}" / "input0.bin").write_bytes(bytes([10, 1]))
            (golden / f"run{i:02}" / "output0.bin").write_bytes(bytes([min(10 * (i + 1), 120), i + 1]))
        self.succeed("check", expected, "--expect", golden)
        report = self.different(found, "--expect", golden, "--against", expected, "--reproduce", shown)
        wrong = [c for c in report["comparisons"] if c["against"] == f"'{expected}'" and not c["within_tolerance"]]
        self.assertEqual([c["case"] for c in wrong], [f"run{i:02}" for i in range(11, 14)])
        self.assertEqual(["first_difference" in c for c in wrong], [True, False, False])
        self.assertIn("reproduced", wrong[0]["first_difference"])
        first = wrong[0]["first_difference"]
        self.assertEqual((first["step"], first["comparison"]["different"]), (0, 1))
        self.assertFalse(first["reproduced"]["step_alone"])  # which has the state for an input
        self.assertEqual(first["reproduced"]["plan"], "plan.qplan")
        self.assertEqual((shown / "plan.qplan").read_bytes(), found.read_bytes())
        # The runs up to the first difference, in their order: all are needed to see it.
        runs = sorted(path for path in shown.iterdir() if path.is_dir())
        self.assertEqual(len(runs), 12)
        for i, path in enumerate(runs):
            self.assertEqual((path / "output0.bin").read_bytes(), bytes([10 * (i + 1), i + 1]))
        self.succeed("check", expected, "--expect", shown)
        words = first["reproduced"]["command"].split()
        again = self.different(*words[2:])
        self.assertEqual([c["case"] for c in again["comparisons"] if not c["within_tolerance"]], ["run000011"])

    def test_of_several_differences_the_first_is_written(self):
        expected, found = self.models_with_another_scale()
        shown, one = self.folder / "shown", self.folder / "one"
        self.different(found, "--against", expected, "--random", "1", "--reproduce", one)
        report = self.different(found, "--against", f"{expected},{expected}", "--random", "3", "--reproduce", shown)
        firsts = [comparison["first_difference"] for comparison in report["comparisons"]]
        self.assertEqual(["reproduced" in first for first in firsts], [True] + 5 * [False])
        for name in ("input0.bin", "output0.bin", "step1.qplan"):
            self.assertEqual((shown / name).read_bytes(), (one / name).read_bytes())

    @needs_faulty
    def test_a_planted_kernel_fault_is_found_and_shown(self):
        golden, shown = self.case(2), self.folder / "shown"
        self.succeed("check", self.plan, "--expect", golden, "--isa", "sse41")
        for arguments in (("--against", "isas"), ("--expect", golden, "--isa", "sse41"),
                          ("--against", "reference", "--isa", "sse41", "--threads", "2")):
            with self.subTest(arguments):
                report = self.different(self.plan, *arguments, "--reproduce", shown, command=FAULTY)
                wrong = [c for c in report["comparisons"] if not c["within_tolerance"]]
                first = wrong[0]["first_difference"]
                self.assertEqual((first["name"], first["kernel"]), ("block2/add", "conv2d_sse41"))
                self.assertEqual(first["comparison"]["different"], 64)
                self.assertEqual(first["comparison"]["histogram"], {"33..64": 64})
                self.assertEqual(first["equal_before"], first["step"])
                self.assertTrue(first["reproduced"]["step_alone"])
                # The small plan shows the fault with the faulty command, and is right with the other one.
                plan = shown / first["reproduced"]["plan"]
                self.assertEqual(len(self.succeed_json("inspect", plan, "--json")["steps"]), 1)
                command = first["reproduced"]["command"].split()
                self.assertEqual(subprocess.run([FAULTY, *command[1:]], capture_output=True, check=False).returncode, 3)
                self.assertIn("all equal", self.succeed(*command[1:]))

    @needs_faulty
    def test_other_instruction_sets_of_the_faulty_command_are_equal(self):
        report = self.different(DIGITS, "--against", "isas", command=FAULTY)
        wrong = {c["what"] for c in report["comparisons"] if not c["within_tolerance"]}
        self.assertEqual(wrong, {"isa sse41"})

    @needs_shared
    def test_goldens_of_the_reference_set(self):
        name = "mobilenet_v1_0.25_128_quant"
        model, golden = SHARED / "models" / f"{name}.tflite", SHARED / "golden" / name
        text = self.succeed("check", model, "--expect", golden, "--against", "isas")
        self.assertIn("all equal", text)


if __name__ == "__main__":
    unittest.main()
