"""One network from several sources: one canonical body without options, one plan with one border; and what is
said where two networks differ."""

import hashlib
import subprocess
import unittest

from support import COMMAND, REPOSITORY, SHARED, CommandTest, needs_shared, run

SCRIPT = REPOSITORY / "samples" / "three_ways.sh"

# A convolution and an average of four values. Integers at rest, NHWC, int8, TFLite's arithmetic.
INTEGERS = """\
#[version = "0.0.5"]
def @main(%input: Tensor[(1, 4, 4, 2), int8]) {
  %0 = qnn.conv2d(%input, const(Tensor[(2, 1, 1, 2), int8], [1, -2, 3, 4]), -5, 0, 0.5f, 0.25f, data_layout="NHWC", kernel_layout="OHWI");
  %1 = nn.bias_add(%0, const(Tensor[(2), int32], [16, -8]), axis=3);
  %2 = qnn.requantize(%1, 0.125f, 0, 1f, 7, out_dtype="int8");
  qnn.avg_pool2d(%2, 1f, 7, 1f, 7, pool_size=[2, 2], layout="NHWC")
}
"""
# Fake quantised, NCHW, uint8, ONNX Runtime's arithmetic: zero points are 128 more.
FAKE_QUANTISED = """\
#[version = "0.0.5"]
def @main(%input: Tensor[(1, 2, 4, 4), uint8]) {
  %0 = qnn.dequantize(%input, 0.5f, 123, contract="f32e");
  %1 = qnn.dequantize(const(Tensor[(2, 2, 1, 1), int8], [1, -2, 3, 4]), 0.25f, 0, contract="f32e");
  %2 = nn.conv2d(%0, %1);
  %3 = nn.bias_add(%2, const(Tensor[(2), float32], [2, -1]));
  %4 = qnn.quantize(%3, {scale}, 135, out_dtype="uint8", contract="f32e");
  %5 = qnn.dequantize(%4, {scale}, 135, contract="f32e");
  %6 = nn.avg_pool2d(%5, pool_size=[2, 2]);
  qnn.quantize(%6, {scale}, 135, out_dtype="uint8", contract="f32e")
}
"""
# Floats at rest, float input and output.
FLOATS = """\
#[version = "0.0.5"]
def @main(%input: Tensor[(1, 2, 4, 4), float32]) {
  %0 = qnn.quantize(%input, 0.5f, 123, out_dtype="uint8", contract="f32e");
  %1 = qnn.quantize(const(Tensor[(2, 2, 1, 1), float32], [0.25, -0.5, 0.75, 1]), 0.25f, 0, out_dtype="int8", contract="f32e");
  %2 = qnn.conv2d(%0, %1, 123, 0, 0.5f, 0.25f, kernel_size=[1, 1], channels=2);
  %3 = nn.bias_add(%2, const(Tensor[(2), int32], [16, -8]));
  %4 = qnn.requantize(%3, 0.125f, 0, 1f, 135, out_dtype="int32", contract="f32e");
  %5 = clip(%4, a_min=0f, a_max=255f);
  %6 = cast(%5, dtype="uint8");
  %7 = qnn.avg_pool2d(%6, 1f, 135, 1f, 135, pool_size=[2, 2], contract="f32e");
  qnn.dequantize(%7, 1f, 135, contract="f32e")
}
"""


# Prints the scales and zero points of one layer for which the ONNX file has vectors of one element.
VECTORS = """
import sys
try:
    import onnx
except ImportError:
    sys.exit(77)
for tensor in onnx.load(sys.argv[1]).graph.initializer:
    if tensor.name.endswith(("/scale", "/zero_point")) and list(tensor.dims) == [1]:
        print(tensor.name)
"""


class ThreeWays(CommandTest):
    def test_the_samples_have_the_scalars_that_onnx_runtime_demands(self):
        for name in ("digits_qdq.onnx", "digits_float_weights.onnx"):
            model = REPOSITORY / "samples" / "models" / name
            done = subprocess.run(["/usr/bin/python3", "-c", VECTORS, model], capture_output=True, text=True, check=False)
            if done.returncode == 77:
                self.skipTest("the Python package onnx is not installed (Debian: python3-onnx)")
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def setUp(self):
        super().setUp()
        self.forms = [
            self.file("integers.relay", INTEGERS.encode()),
            self.file("fake.relay", FAKE_QUANTISED.replace("{scale}", "1f").encode()),
            self.file("floats.relay", FLOATS.encode()),
        ]
        self.other = self.file("other.relay", FAKE_QUANTISED.replace("{scale}", "1.5f").encode())

    def body(self, model, *options):
        return self.succeed("import", model, "--canonical", "--body", "--print", *options)

    def digest(self, model, *options):
        plan = self.folder / "plan.qplan"
        result = run("pack", model, "-o", plan, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.succeed_json("inspect", plan, "--json")["content_digest"]

    def test_the_body_is_one_text_without_options(self):
        bodies = [self.body(model) for model in self.forms]
        self.assertEqual(bodies[1], bodies[0])
        self.assertEqual(bodies[2], bodies[0])
        self.assertIn("%in0: Tensor[(1, 4, 4, 2), int8]", bodies[0])
        self.assertNotIn("transpose", bodies[0])
        self.assertNotIn("contract", bodies[0])

    def test_the_border_that_is_asked_for_does_not_change_the_body(self):
        for model in self.forms:
            for options in (("--io=uint8",), ("--io=float", "--io-layout=nchw"), ("--contract=tfl2",)):
                if model == self.forms[0] and "--io=float" in options:
                    continue  # nothing states the scale of its input
                self.assertEqual(self.body(model, *options), self.body(model), (model, options))

    def test_plans_differ_only_by_their_border(self):
        # Not tfl2 and uint8: TFLite averages uint8 and int8 differently, and here the average is the output.
        for contract, io in (("tfl2", "int8"), ("f32e", "int8"), ("f32e", "uint8")):
            options = (f"--contract={contract}", f"--io={io}", "--io-layout=nhwc")
            expected = self.digest(self.forms[0], *options)
            for model in self.forms[1:]:
                self.assertEqual(self.digest(model, *options), expected, (model, options))

    def test_the_comparison_says_that_bodies_are_one(self):
        text = self.succeed("import", self.forms[0], "--diff", self.forms[1])
        self.assertIn("one canonical body: ", text)
        self.assertIn("biases: 0 of 2 values are 1 apart\n", text)
        self.assertIn("contracts: tfl2 | f32e\n", text)

    def test_the_comparison_names_scales_that_differ(self):
        result = run("import", self.forms[1], "--diff", self.other)
        self.assertEqual(result.returncode, 1)
        self.assertIn("differences (first model | second model):\n", result.stdout)
        self.assertIn("output_scale 1 | 1.5\n", result.stdout)
        self.assertIn("have different canonical bodies", result.stderr)

    def test_the_comparison_names_zero_points_that_differ(self):
        moved = self.file("moved.relay", INTEGERS.replace("1f, 7", "1f, 8").encode())
        result = run("import", self.forms[0], "--diff", moved)
        self.assertEqual(result.returncode, 1)
        self.assertIn("output_zero_point 7 | 8\n", result.stdout)

    def test_a_bias_that_was_rounded_otherwise_is_counted(self):
        near = self.file("near.relay", INTEGERS.replace("[16, -8]", "[17, -8]").encode())
        far = self.file("far.relay", INTEGERS.replace("[16, -8]", "[18, -8]").encode())
        self.assertIn("biases: 1 of 2 values is 1 apart\n", self.succeed("import", self.forms[0], "--diff", near))
        result = run("import", self.forms[0], "--diff", far)
        self.assertEqual(result.returncode, 1)
        self.assertIn("biases more than 1 apart", result.stdout)

    def test_a_float_operator_that_stays_changes_nothing(self):
        text = INTEGERS[:INTEGERS.index("  qnn.avg_pool2d")].replace(
            'out_dtype="int8"', 'out_dtype="int8", contract="f32e"') + """\
  %3 = nn.max_pool2d(%2, pool_size=[2, 2], layout="NHWC");
  %4 = qnn.dequantize(%3, 1f, 7, contract="f32e");
  argmax(%4, axis=3)
}
"""
        signed = self.file("signed.relay", text.encode())
        unsigned = self.file("unsigned.relay", text.replace("1f, 7", "1f, 135").replace('out_dtype="int8"', 'out_dtype="uint8"')
                             .replace("2), int8]) {", "2), uint8]) {").replace("-5, 0", "123, 0").encode())
        self.assertEqual(self.body(unsigned), self.body(signed))
        self.assertEqual(self.digest(unsigned, "--io=int8"), self.digest(signed, "--io=int8"))

    def test_a_border_with_a_scale_per_axis_is_left_out_too(self):
        scales = "const(Tensor[(2), float32], [0.5, 0.25]), const(Tensor[(2), int32], [1, 2]), axis=3"
        model = self.file("axis.relay", f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2, 2, 2), float32]) {{
  %0 = qnn.quantize(%x, {scales}, out_dtype="uint8");
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], layout="NHWC");
  qnn.dequantize(%1, {scales})
}}
""".encode())
        self.assertIn("nn.max_pool2d(%in0, ", self.body(model))
        self.assertNotIn("quantize", self.body(model))

    def test_functions_that_are_called_are_compared(self):
        text = """#[version = "0.0.5"]
def @f(%a: Tensor[(1, 4), uint8]) -> Tensor[(1, 4), uint8] { clip(%a, a_min=1f, a_max=9f) }
def @main(%x: Tensor[(1, 4), uint8]) { %0 = clip(%x, a_min=0f, a_max=100f); @f(%0) }
"""
        one = self.file("one.relay", text.encode())
        two = self.file("two.relay", text.replace("9f", "8f").encode())
        self.assertIn("one canonical body", self.succeed("import", one, "--diff", one))
        result = run("import", one, "--diff", two)
        self.assertEqual(result.returncode, 1)
        self.assertIn("function 'f': node 0: clip: a_max 9 | 8\n", result.stdout)
        self.assertNotEqual(self.body(one), self.body(two))

    def test_shapes_are_for_the_model_that_has_the_input(self):
        digits = [REPOSITORY / "samples" / "models" / name for name in ("digits.tflite", "digits_qdq.onnx", "digits.pt")]
        shape = ("--input-shape", "image=1x1x16x16")
        for first, second in ((0, 2), (2, 0), (1, 2), (2, 1)):
            self.assertIn("one canonical body: ", self.succeed("import", digits[first], "--diff", digits[second], *shape))
        wrong = ("import", digits[0], "--diff", self.forms[0], "--input-shape", "none=1x2")
        self.refused(1, ["is given for 'none'", "neither", "digits.tflite", "integers.relay"], *wrong)

    def test_a_comparison_prints_no_body(self):
        self.refused(2, ["--diff"], "import", self.forms[0], "--diff", self.forms[1], "--print")

    def test_a_model_that_is_missing_is_an_error(self):
        self.refused(1, ["none.onnx"], "import", self.forms[0], "--diff", self.folder / "none.onnx")

    def script(self, *models):
        return subprocess.run(["bash", SCRIPT, *map(str, models)], env={"QPLAN": COMMAND, "QPLAN_SHARED": str(SHARED),
                              "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=600, check=False)

    def test_the_sample_compares_models(self):
        result = self.script(*self.forms)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        digest = hashlib.sha256(self.body(self.forms[0]).encode()).hexdigest()[:16]
        self.assertEqual(result.stdout.count(digest), 3, result.stdout)
        self.assertIn("  one canonical body\n", result.stdout)
        result = self.script(self.forms[0], self.other)
        self.assertEqual(result.returncode, 1)
        self.assertIn("output_scale", result.stdout)
        self.assertEqual(self.script(self.forms[0], self.folder / "none").returncode, 2)
        result = self.script(self.forms[0], self.file("no_model.relay", b"nothing"))
        self.assertEqual(result.returncode, 2, result.stdout)

    def test_folders_may_have_any_name(self):
        folder = self.folder / "a.ptd"
        folder.mkdir()
        models = [folder / name for name in ("one.relay", "two.relay")]
        models[0].write_text(INTEGERS)
        models[1].write_text(INTEGERS.replace("[16, -8]", "[17, -8]"))
        result = self.script("--input-shape", "image=1x1x16x16", *models)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def test_the_sample_says_in_what_a_pytorch_model_differs(self):
        digits = REPOSITORY / "samples" / "models" / "digits.pt"
        for models in ((digits, self.forms[0]), (self.forms[0], digits)):
            result = self.script("--input-shape", "image=1x1x16x16", *models)
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertIn("differences (first model | second model):\n", result.stdout)

    DIGITS = ("digits.tflite", "digits_qdq.onnx", "digits_float_weights.onnx", "digits.pt")

    def test_digits_from_four_files_is_one_network(self):
        result = subprocess.run(["bash", SCRIPT], capture_output=True, text=True, timeout=600, check=False,
                                env={"QPLAN": COMMAND, "QPLAN_SHARED": "/nonexistent", "PATH": "/usr/bin:/bin"})
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        lines = [line.split() for line in result.stdout.splitlines()[1:5]]
        self.assertEqual([name for _, name in lines], list(self.DIGITS))
        self.assertEqual(len({digest for digest, _ in lines}), 1, result.stdout)

    def test_digits_from_four_files_is_one_plan(self):
        digests, memory = set(), set()
        for name in self.DIGITS:
            options = ("--contract=f32e", "--io=int8", "--io-layout=nhwc")
            if name.endswith(".pt"):
                options += ("--input-shape", "image=1x1x16x16")
            digests.add(self.digest(REPOSITORY / "samples" / "models" / name, *options))
            plan = self.succeed_json("inspect", self.folder / "plan.qplan", "--json")
            memory.add(plan["memory"]["arena_bytes"])
        self.assertEqual((len(digests), len(memory)), (1, 1))

    @needs_shared
    def test_real_networks_from_tflite_and_onnx_are_one(self):
        result = self.script()
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertEqual(result.stdout.count("  one canonical body\n"), 4, result.stdout)
        for network in ("pretrainedResnet_quant", "kws_ref_model", "mobilenet_v1_0.25_128_quant"):
            digests = {line.split()[0] for line in result.stdout.splitlines() if f"  {network}" in line}
            self.assertEqual(len(digests), 1, result.stdout)
        self.assertEqual(result.stdout.count("_Au8a.onnx"), 2, result.stdout)


if __name__ == "__main__":
    unittest.main()
