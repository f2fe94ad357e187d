"""qplan.check, qplan.explain, qplan.tune, qplan.plot, and the types of the package."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

from support import DIGITS, REPOSITORY, digit_input, digit_output, numpy, qplan

# The scale of log_softmax's input is too small for its fixed point.
REFUSED = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 16), int8]) {
  %0 = qnn.divide(%x, %x, 1f, 0, 1f, 0, 1f, 0);
  %1 = qnn.log_softmax(%0, 1e-9f, 0, 0.0625f, 127);
  %1
}
"""


class Check(unittest.TestCase):
    def test_every_instruction_set_gives_the_expected_bytes(self):
        report = qplan.check(DIGITS, [digit_input(4)], [digit_output(4)])
        self.assertTrue(report)
        self.assertEqual({c.isa for c in report.comparisons}, set(qplan.available_isas()))
        self.assertEqual({c.threads for c in report.comparisons}, {1, 2})
        self.assertIn("OK", str(report))
        self.assertTrue(qplan.check(qplan.pack(DIGITS), seed=3))

    def test_a_wrong_byte_is_found(self):
        wrong = digit_output(4).copy()
        wrong[0, 2] += 3
        report = qplan.check(DIGITS, [digit_input(4)], [wrong], isas=["reference"], threads=[1])
        self.assertFalse(report)
        self.assertEqual([(c.different, c.elements, c.largest) for c in report.comparisons], [(1, 10, 3.0)])
        self.assertIn("reference, threads 1, output 0: 1 of 10 elements differ, by at most 3", str(report))

    def test_plans_are_checked_with_their_digest(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.qplan"
            data = bytearray(bytes(qplan.pack(DIGITS)))
            data[-1] ^= 1  # of a constant: the structure stays
            path.write_bytes(data)
            qplan.Plan(path)
            with self.assertRaisesRegex(qplan.Error, "SHA-256"):
                qplan.check(path)

    def test_expectations_of_another_shape(self):
        with self.assertRaisesRegex(qplan.Error, "expected output 0 is int8") as raised:
            qplan.check(DIGITS, [digit_input(4)], [digit_output(4)[0]])
        self.assertEqual(raised.exception.status_name, "QPLAN_SHAPE_MISMATCH")

    def test_expectations_of_another_dtype(self):
        with self.assertRaisesRegex(qplan.Error, "expected output 0 is uint8.*the plan's is .*int8") as raised:
            qplan.check(DIGITS, [digit_input(4)], [digit_output(4).view(numpy.uint8)])
        self.assertEqual(raised.exception.status_name, "QPLAN_DTYPE_MISMATCH")
        masked = numpy.ma.masked_array(digit_output(4), digit_output(4) == digit_output(4).max())
        with self.assertRaisesRegex(ValueError, "expected output 0 has masked elements"):
            qplan.check(DIGITS, [digit_input(4)], [masked])

    def test_outputs_may_be_scalars(self):
        plan = qplan.pack(b"def @main(%x: Tensor[(4), float32]) { sum(%x, axis=[0]) }")
        self.assertEqual(plan.outputs[0].shape, ())
        self.assertTrue(qplan.check(plan))
        values = [numpy.array([1, 2, 3, 4], numpy.float32)]
        self.assertTrue(qplan.check(plan, values, [numpy.array(10, numpy.float32)]))
        report = qplan.check(plan, values, [numpy.array(12, numpy.float32)], isas=["reference"], threads=[1])
        self.assertEqual([(c.different, c.elements, c.largest) for c in report.comparisons], [(1, 1, 2.0)])

    def test_lists_without_anything_to_compare_are_refused(self):
        for options in ({"isas": []}, {"threads": ()}, {"isas": iter(())}):
            with self.assertRaisesRegex(qplan.Error, "is empty, expected at least one"):
                qplan.check(DIGITS, **options)
        for options, text in (({"isas": "avx2"}, "isas is 'avx2', expected a list"), ({"threads": 2}, "threads is 2, expected a list")):
            with self.assertRaisesRegex(qplan.Error, text):
                qplan.check(DIGITS, **options)
        with self.assertRaisesRegex(qplan.Error, "threads: a number is 0, expected a number from 1 to 1024"):
            qplan.check(DIGITS, threads=[0])

    def test_generators_are_compared_with_every_instruction_set(self):
        report = qplan.check(DIGITS, isas=iter(["reference", "auto"]), threads=iter([numpy.int64(1), 2]))
        found = [(c.isa, c.threads) for c in report.comparisons]
        self.assertEqual(found, [("reference", 1), ("reference", 2), ("auto", 1), ("auto", 2)])

    def test_options_that_would_do_nothing_are_refused(self):
        for model in (DIGITS, qplan.pack(DIGITS)):
            with self.assertRaisesRegex(TypeError, r"^qplan.check\(\) has no option 'isa'; did you mean 'isas'\?"):
                qplan.check(model, isa="reference")
        with self.assertRaisesRegex(qplan.Error, "^check: found 'fuse' with a plan, which is packed already"):
            qplan.check(qplan.pack(DIGITS), fuse="off")
        self.assertTrue(qplan.check(DIGITS, [digit_input(4)], [digit_output(4)], fuse="off"))

    def test_a_missing_file_is_an_error_of_files(self):
        with self.assertRaisesRegex(qplan.Error, "'none.tflite': No such file") as raised:
            qplan.check("none.tflite")
        self.assertEqual(raised.exception.status_name, "QPLAN_FILE_ERROR")
        with self.assertRaises(TypeError):
            qplan.check(7)


class Explain(unittest.TestCase):
    def test_formats(self):
        content = qplan.explain(DIGITS)
        self.assertIsInstance(content, dict)
        self.assertIn("conv2d", qplan.explain(DIGITS, format="text"))
        self.assertIn("<html", qplan.explain(DIGITS, "vta, cpu", format="html"))
        self.assertIsInstance(qplan.explain(DIGITS, format="coverage"), dict)
        self.assertIsInstance(qplan.explain(qplan.pack(DIGITS, target="vta, cpu")), dict)
        with self.assertRaisesRegex(TypeError, "qplan.explain.. has no option 'fused'"):
            qplan.explain(DIGITS, fused="off")

    def test_a_refused_operator_is_reported_and_not_raised(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "refused.relay"
            path.write_text(REFUSED)
            with self.assertRaisesRegex(qplan.Error, "qnn.log_softmax"):
                qplan.pack(path)
            report = qplan.explain(path)
        self.assertNotIn("steps", report)
        verdicts = {report["nodes"][unit["nodes"][0]]["op"]: unit["verdicts"] for unit in report["units"]}
        self.assertEqual(verdicts["qnn.divide"], [])
        self.assertEqual([reason["id"] for reason in verdicts["qnn.log_softmax"][0]["reasons"]], ["cpu.log_softmax.scales"])

    @unittest.skipUnless(os.environ.get("QPLAN_COMMAND"), "QPLAN_COMMAND does not name the command")
    def test_a_model_is_not_packed_for_a_command_that_is_not_there(self):
        with unittest.mock.patch("qplan._explain.command_path", side_effect=FileNotFoundError("none")), \
                unittest.mock.patch("qplan._explain.pack") as packed:
            self.assertIn("nodes", qplan.explain(DIGITS))
        packed.assert_not_called()

    @unittest.skipUnless(os.environ.get("QPLAN_COMMAND"), "QPLAN_COMMAND does not name the command")
    def test_steps_on_the_cpu(self):
        plan = qplan.pack(DIGITS, fuse="off")
        for report in (qplan.explain(DIGITS, fuse="off"), qplan.explain(plan)):
            self.assertIn(report["isa"], qplan.available_isas())
            self.assertEqual([step["op"] for step in report["steps"]], [step["op"] for step in plan.inspect()["steps"]])
            self.assertTrue(report["steps"][0]["kernel"].startswith("conv2d_"), report["steps"][0])
            self.assertIn("copies", " ".join(note for step in report["steps"] for note in step["notes"]))
        self.assertIn(f"cpu: {len(plan.inspect()['steps'])} steps", qplan.explain(plan, format="text"))
        self.assertNotIn("steps", qplan.explain(DIGITS, "vta, cpu"))
        command = os.environ.pop("QPLAN_COMMAND")
        try:
            os.environ["QPLAN_COMMAND"] = "/none"
            with self.assertRaises(FileNotFoundError):
                qplan.explain(plan)
            self.assertIn("nodes", qplan.explain(DIGITS))  # the placement alone
        finally:
            os.environ["QPLAN_COMMAND"] = command


@unittest.skipUnless(os.environ.get("QPLAN_COMMAND"), "QPLAN_COMMAND does not name the command")
class Tune(unittest.TestCase):
    def test_its_log_gives_a_plan_with_the_same_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "tuning.jsonl"
            self.assertIn("schedules to measure", qplan.tune(DIGITS, log, budget_s=0.2))
            self.assertGreater(log.stat().st_size, 100)
            plan = qplan.pack(DIGITS, tuning=log)
            with qplan.Session(plan) as session:
                numpy.testing.assert_array_equal(session.run(digit_input(9))[0], digit_output(9))

    def test_errors_are_those_of_the_command(self):
        with self.assertRaisesRegex(qplan.Error, "nothing.tflite"):
            qplan.tune("nothing.tflite", "x.jsonl")


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed (Debian: python3-matplotlib)")
class Plot(unittest.TestCase):
    def setUp(self):
        import matplotlib

        matplotlib.use("Agg")

    def test_memory_shows_every_activation(self):
        import qplan.plot

        plan = qplan.pack(DIGITS)
        axes = qplan.plot.memory(plan)
        arena = plan.inspect()["memory"]["arena_bytes"]
        tensors = qplan.plot.lifetimes(plan)
        self.assertEqual(len(axes.patches), len(tensors))
        self.assertEqual(max(offset + size for _, _, _, offset, size in tensors), arena)
        self.assertIn("4,864 bytes; the most is alive", axes.get_title())
        self.assertIn("alive at step", axes.get_title())

    def test_names_are_not_read_as_tensors(self):
        import qplan.plot

        # In the listing the name would close its quotes, and have tensors of its own.
        name = "it's -> %7 arena+99999 int8 1000"
        model = f"""#[version = "0.0.5"]
def @main(%x: Tensor[(2), int8]) {{
  %0 = qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="{name}");
  qnn.add(%0, const(Tensor[(1), int8], [3]), 1f, 0, 1f, 0, 1f, 0, name="four")
}}
"""
        tensors = qplan.plot.lifetimes(qplan.pack(model.encode(), fuse="off"))
        self.assertEqual([row[:3] for row in tensors], [("input", 0, 1), (name, 0, 1), ("four", 1, 1)])
        self.assertEqual([row[4] for row in tensors], [2, 2, 2])

    def test_bools_and_scalars_are_activations_too(self):
        import qplan.plot

        types = "%x: Tensor[(4), float32], %y: Tensor[(4), float32]"
        where = qplan.pack(f"def @main({types}) {{ where(less(%x, %y), %x, %y) }}".encode(), fuse="off")
        rows = [(name, first, last, size) for name, first, last, _, size in qplan.plot.lifetimes(where)]
        self.assertEqual(rows, [("input", 0, 1, 16), ("input", 0, 1, 16), ("compare", 0, 1, 4), ("select", 1, 1, 16)])
        total = qplan.pack(b"def @main(%x: Tensor[(4), float32]) { sum(%x, axis=[0]) }")
        self.assertEqual([row[4] for row in qplan.plot.lifetimes(total)], [16, 4])

    def test_the_notebook_runs(self):
        path = REPOSITORY / "samples" / "python" / "digits.ipynb"
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        names, before = {}, os.getcwd()
        os.chdir(REPOSITORY)
        try:
            for cell in cells:
                exec("".join(cell["source"]), names)
        finally:
            os.chdir(before)
        self.assertEqual(names["scores"].argmax(), 7)

    def test_times_are_bars(self):
        import qplan.plot

        with qplan.Session(qplan.pack(DIGITS), step_times=True) as session:
            session.run(digit_input(1))
            axes = qplan.plot.times(session.step_times(), most=5)
        self.assertEqual(len(axes.patches), 5)


@unittest.skipUnless(shutil.which("mypy"), "mypy is not installed (Debian: mypy)")
class Types(unittest.TestCase):
    PROGRAM = """\
import numpy
import qplan

options: qplan.PackOptions = {"contract": "tfl2", "fuse": "off"}
plan: qplan.Plan = qplan.pack("model.tflite", **options)
with qplan.Session(plan, threads=2) as session:
    scores: numpy.ndarray = session.run(numpy.zeros((1, 2), numpy.int8))[0]
    real: numpy.ndarray = session.outputs[0].dequantize()
"""

    def mypy(self, program):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.py"
            path.write_text(program)
            return subprocess.run(
                ["mypy", "--enable-incomplete-feature=Unpack", "--cache-dir", folder, str(path)],
                env=dict(os.environ, MYPYPATH=str(REPOSITORY / "python")),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )

    def test_options_are_typed(self):
        done = self.mypy(self.PROGRAM + 'qplan.pack("m", contract="nonsense")\nqplan.pack("m", fused=1)\n')
        self.assertIn('Argument "contract" to "pack" has incompatible type', done.stdout)
        self.assertIn('Unexpected keyword argument "fused"', done.stdout)
        self.assertIn("Found 2 errors", done.stdout)


if __name__ == "__main__":
    unittest.main()
