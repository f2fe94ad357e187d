"""qplan pack --begin-at and --end-at: a model cut in two computes what it computes whole."""

import random
import re
import unittest

from support import DIGITS, SHARED, CommandTest, needs_shared, run

# Where networks are cut: what the names of tensors between their operators have in them.
CUTS = {
    "models/person_detect.tflite": ("Conv2d_1_pointwise/", "Conv2d_9_depthwise/"),
    "onnx/mobilenet_v1_0.25_128_quant_qop.onnx": ("Conv2d_2_pointwise_Relu6_", "Conv2d_10_pointwise_Relu6_"),
}


class Parts(CommandTest):
    def outputs(self, plan, inputs):
        folder = self.folder / f"{plan.name}.outputs"
        self.succeed("run", plan, *(word for file in inputs for word in ("--input", file)), "--output-dir", folder)
        return sorted(folder.iterdir())

    def expect_whole(self, model, cuts):
        """Cut at these tensors, each part fed with what the one before it wrote, the model computes the same."""
        whole = self.folder / "whole.qplan"
        self.succeed("pack", model, "-o", whole)
        plan = self.succeed_json("inspect", whole, "--json")
        values = random.Random(7)
        inputs = [self.file(f"input{i}.bin", values.randbytes(tensor["bytes"])) for i, tensor in enumerate(plan["inputs"])]
        expected = [file.read_bytes() for file in self.outputs(whole, inputs)]
        types = []
        for i, (begin, end) in enumerate(zip(((), *cuts), (*cuts, ()))):
            part = self.folder / f"part{i}.qplan"
            options = [word for name in begin for word in ("--begin-at", name)]
            options += [word for name in end for word in ("--end-at", name)]
            self.succeed("pack", model, "-o", part, *options, *types)
            inputs = self.outputs(part, inputs)
            if model.suffix == ".onnx":  # the file does not say what its tensors are
                outputs = self.succeed_json("inspect", part, "--json")["outputs"]
                shapes = [f"{t['name']}={'x'.join(map(str, t['shape']))}:{t['dtype']}" for t in outputs]
                types = [word for shape in shapes for word in ("--input-shape", shape)]
        self.assertEqual([file.read_bytes() for file in inputs], expected)

    def whole_name(self, model, part):
        """The name that the error about a part of it proposes."""
        error = run("pack", model, "-o", self.folder / "none.qplan", "--end-at", part).stderr
        return re.search("did you mean '([^']*)'", error)[1]

    def test_digits_cut_after_each_block(self):
        self.expect_whole(DIGITS, [["stem"], ["block1/add"], ["down/pointwise"], ["block2/add"], ["classes"]])

    def test_a_cut_through_two_branches_has_two_tensors(self):
        self.expect_whole(DIGITS, [["block1/depthwise", "stem"]])
        self.expect_whole(DIGITS, [["stem", "block1/depthwise"]])

    def test_inputs_and_outputs_are_the_tensors_with_their_quantisation(self):
        observable, part = self.folder / "observable.qplan", self.folder / "part.qplan"
        self.succeed("pack", DIGITS, "-o", part, "--begin-at", "stem", "--end-at", "pool")
        plan = self.succeed_json("inspect", part, "--json")
        ends = plan["inputs"] + plan["outputs"]
        self.assertEqual([tensor["name"] for tensor in ends], ["stem", "pool"])
        self.succeed("pack", DIGITS, "-o", observable, "--observable")
        tensors = {t["name"]: t for t in self.succeed_json("inspect", observable, "--json")["tensors"]}
        for tensor in ends:
            self.assertEqual((tensor["dtype"], tensor["shape"]), (tensors[tensor["name"]]["dtype"], tensors[tensor["name"]]["shape"]))
            self.assertGreater(tensor["scale"], 0)

    @needs_shared
    def test_networks_cut_in_the_middle(self):
        for model, cuts in CUTS.items():
            with self.subTest(model=model):
                self.expect_whole(SHARED / model, [[self.whole_name(SHARED / model, cut)] for cut in cuts])

    def test_wrong_names_write_nothing(self):
        plan = self.folder / "part.qplan"
        result = run("pack", DIGITS, "-o", plan, "--end-at", "block1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--end-at 'block1': the model has no such tensor; did you mean 'block1/", result.stderr)
        self.assertFalse(plan.exists())
        result = run("pack", DIGITS, "-o", plan, "--begin-at", "block1/depthwise")
        self.assertIn("the part also reads the input 'image' of the model", result.stderr)

    def test_import_explain_and_coverage_take_parts(self):
        text = self.succeed("import", DIGITS, "--print", "--end-at", "stem")
        self.assertEqual(text.count("qnn.conv2d("), 1)
        self.assertIn("block1", self.succeed("explain", DIGITS))
        self.assertNotIn("block1", self.succeed("explain", DIGITS, "--end-at", "stem"))
        self.assertIn("1 of 1 operators", self.succeed("pack", DIGITS, "--coverage", "--end-at", "stem"))


if __name__ == "__main__":
    unittest.main()
