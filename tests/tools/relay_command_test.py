"""qplan pack and import on Relay text, and the options of how a model is read and rewritten."""

import struct
import unittest

from support import DIGITS, SHARED, CommandTest, needs_numpy, needs_shared, numpy, run

LAYER = """\
%0 = qnn.quantize(%input, 0.5f, 3, out_dtype="uint8", axis=1);
%1 = qnn.quantize(%weight, 0.25f, 0, out_dtype="int8", axis=0);
%2 = qnn.conv2d(%0, %1, 3, 0, 0.5f, 0.25f, channels=2, kernel_size=[1, 1], out_dtype="int32");
%3 = qnn.quantize(%bias, 0.125f, 0, out_dtype="int32", axis=0);
%4 = nn.bias_add(%2, %3);
%5 = qnn.requantize(%4, 0.125f, 0, 1f, 0, axis=1, out_dtype="int32");
%6 = clip(%5, a_min=0f, a_max=255f);
%7 = cast(%6, dtype="uint8");
"""
SHAPE = ("--input-shape", "input=1x2x2x2:float32")


class Relay(CommandTest):
    def setUp(self):
        super().setUp()
        self.layer = self.file("layer.relay", LAYER.encode())

    def bindings(self):
        weight = self.file("weight.bin", struct.pack("<4f", 1, -2, 0.5, 4))
        bias = self.file("bias.bin", struct.pack("<2f", 3, -1))
        return ("--input-shape", "weight=2x2x1x1:float32", "--bind", f"weight={weight}",
                "--input-shape", "bias=2", "--bind", f"bias={bias}")

    def test_import_prints_a_function_with_typed_parameters(self):
        text = run("import", self.layer, *SHAPE, "--print").stdout
        self.assertIn(
            "def @main(%input: Tensor[(1, 2, 2, 2), float32], %weight: Tensor[(2, 2, 1, 1), float32], "
            "%bias: Tensor[(2), float32]) -> Tensor[(1, 2, 2, 2), uint8] {", text)

    def test_a_plan_of_bound_weights_computes(self):
        plan = self.folder / "layer.qplan"
        self.succeed("pack", self.layer, "-o", plan, *SHAPE, *self.bindings())
        self.file("x.bin", struct.pack("<8f", 1, 2, 3, 4, 5, 6, 7, 8))
        self.succeed("run", plan, "--input", self.folder / "x.bin", "--output-dir", self.folder / "out")
        # channel 0: x0 - 2 x1 + 3, channel 1: 0.5 x0 + 4 x1 - 1, rounded half away from zero, at least 0
        self.assertEqual(list((self.folder / "out" / "output0.bin").read_bytes()), [0, 0, 0, 0, 20, 24, 29, 33])

    @needs_numpy
    def test_bindings_may_be_npy_files(self):
        numpy.save(self.folder / "w.npy", numpy.array([1, -2, 0.5, 4], numpy.float32).reshape(2, 2, 1, 1))
        numpy.save(self.folder / "b.npy", numpy.array([3, -1], numpy.float32))
        self.succeed("pack", self.layer, "-o", self.folder / "a.qplan", *SHAPE, "--bind",
                     f"weight={self.folder / 'w.npy'}", "--bind", f"bias={self.folder / 'b.npy'}")
        self.succeed("pack", self.layer, "-o", self.folder / "b.qplan", *SHAPE, *self.bindings())
        self.assertEqual((self.folder / "a.qplan").read_bytes(), (self.folder / "b.qplan").read_bytes())

    def test_synthesised_weights_are_the_same_for_the_same_seed(self):
        plans = []
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            plan = self.folder / f"{name}.qplan"
            result = run("pack", self.layer, "-o", plan, *SHAPE, "--synthesize-constants", seed)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("2 constants, 24 bytes, synthesised, the first is 'weight'", result.stderr)
            plans.append(plan.read_bytes())
        self.assertEqual(plans[0], plans[1])
        self.assertNotEqual(plans[0], plans[2])

    def test_refusals_name_the_option(self):
        pack = ("pack", self.layer, "-o", self.folder / "x.qplan")
        self.refused(1, ["layer.relay:1:19: the type of '%input'", "--input-shape input="], *pack)
        self.refused(1, ["no input or free variable 'inptu'", "'input', 'weight', 'bias'"], *pack, *SHAPE,
                     "--input-shape", "inptu=1")
        self.refused(2, ["--input-shape: found 'input=1x', expected NAME=EXTENTS:DTYPE"], *pack, "--input-shape", "input=1x")
        self.refused(2, ["raw bytes", "--input-shape weight=..."], *pack, *SHAPE, "--bind", f"weight={self.layer}")
        self.refused(1, ["missing.bin"], *pack, *SHAPE, "--input-shape", "weight=1", "--bind", "weight=missing.bin")
        self.refused(1, ["bytes of data do not fit float32[1]"], *pack, *SHAPE, "--input-shape", "weight=1", "--bind",
                     f"weight={self.layer}")
        self.refused(2, ["--synthesize-constants: found '-1'"], *pack, *SHAPE, "--synthesize-constants=-1")
        self.assertEqual([name for name in self.left_behind() if name.endswith(".qplan")], [])

    def test_weights_without_data_are_named(self):
        result = run("pack", self.layer, "-o", self.folder / "x.qplan", *SHAPE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("weights by their use, without data: 'weight', 'bias'; --bind NAME=FILE", result.stderr)

    def test_parse_errors_have_line_column_and_the_line(self):
        model = self.file("bad.relay", b"%0 = nn.relu(%x);\n%1 = nn.pad(%0, 0f; pad_width=[[0, 0]]);\n")
        self.refused(1, ["bad.relay:2:19: expected ')', found ';': `%1 = nn.pad(%0, 0f; pad_width=[[0, 0]]);`"],
                     "import", model)


class Text(CommandTest):
    def digest(self, model):
        self.succeed("pack", model, "-o", self.folder / "x.qplan")
        return self.succeed_json("inspect", self.folder / "x.qplan", "--json")["content_digest"]

    def check_text_of(self, model):
        text = self.file("model.relay", self.succeed("import", model, "--print").encode())
        self.assertEqual(self.digest(text), self.digest(model))

    def test_the_text_of_a_model_gives_its_plan(self):
        self.check_text_of(DIGITS)

    @needs_shared
    def test_the_text_of_an_onnx_model_gives_its_plan(self):
        for form in ("A", "B", "qop"):
            with self.subTest(form):
                self.check_text_of(SHARED / "onnx" / f"kws_ref_model_{form}.onnx")


class Rewrites(CommandTest):
    def test_why_not_tells_what_a_rewrite_missed(self):
        layer = self.file("layer.relay", LAYER.encode())
        result = run("import", layer, *SHAPE, "--why-not", "quantize_constant")
        self.assertIn("rewrite 'quantize_constant' of pass 'quantize_constants' applied 0 times; after all passes it "
                      "does not apply at\n", result.stdout)
        self.assertIn("expected constant, found parameter '%weight'", result.stdout)

    def test_a_pass_that_is_left_out_and_would_have_applied_is_told(self):
        def constant(shape, dtype, values):
            return f"const(Tensor[({shape}), {dtype}], {values})"

        # Eight of sixteen channels are always -128, the zero point of what reads them.
        text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 1), int8]) {{
  %0 = qnn.dense(%x, {constant("16, 1", "int8", [1] * 16)}, -128, 0, 0.5f, 0.5f);
  %1 = nn.bias_add(%0, {constant("16", "int32", [-1000] * 8 + [0] * 8)});
  %2 = qnn.requantize(%1, 0.25f, 0, 1f, -128);
  qnn.dense(%2, {constant("1, 16", "int8", [1] * 16)}, -128, 0, 1f, 1f)
}}
"""
        model, plan = self.file("dead.relay", text.encode()), self.folder / "dead.qplan"
        self.assertNotIn("remove_dead_channels", run("pack", model, "-o", plan).stderr)
        self.assertIn("pass 'remove_dead_channels' is left out and would have applied: ",
                      run("pack", model, "-o", plan, "--skip", "remove_dead_channels").stderr)

    def test_unknown_names_are_listed(self):
        self.refused(1, ["why not: no rewrite 'nothing'; known: quantize_constant"], "import", DIGITS, "--why-not", "nothing")
        self.refused(1, ["skip: no pass or rewrite 'nothing'; known: fold_recurrence, fold_constants", "fold_zero_point"], "import", DIGITS,
                     "--canonical", "--skip", "dead_code,nothing")

    def test_options_that_a_model_has_no_use_for_are_refused(self):
        self.refused(1, ["nothing can be given for 'x'"], "import", DIGITS, "--input-shape", "x=1")
        self.refused(2, ["--body"], "import", DIGITS, "--body", "--print")
        self.refused(2, ["--log-level: found 'loud'"], "import", DIGITS, "--log-level", "loud")

    def test_body_has_no_names(self):
        text = self.succeed("import", DIGITS, "--canonical", "--body", "--print")
        self.assertIn("def @body(", text)
        self.assertNotIn("name=", text)

    def test_log_levels(self):
        info = run("import", DIGITS, "--canonical", "--log-level", "info").stderr
        self.assertRegex(info, r"pass 'fold_zero_point': \d+ rewrites?, \d+ us")
        debug = run("import", DIGITS, "--canonical", "--log-level", "debug").stderr
        self.assertRegex(debug, r"\[debug\] \w+: '[^']*': ")
        self.assertEqual(run("import", DIGITS, "--canonical").stderr, "")

    def test_dump_after_import(self):
        self.assertTrue(self.succeed("import", DIGITS, "--dump-after", "import").startswith("// after import\n"))


if __name__ == "__main__":
    unittest.main()
