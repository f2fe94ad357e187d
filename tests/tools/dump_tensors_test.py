"""qplan run --dump-tensors and pack --observable: what every step writes, under the names of the source."""

import json
import unittest

from support import DIGITS, SHARED, CommandTest, needs_numpy, needs_shared, numpy, run

# y = relu((x + 1) - 3) + 1, in integers: each tensor can be computed by hand.
CHAIN = b"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2, 2, 1), int8]) {
  %0 = qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="block/plus_one");
  %1 = qnn.add(%0, const(Tensor[(1), int8], [-3]), 1f, 0, 1f, 0, 1f, 0, name="block/minus_three");
  qnn.add(%1, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="last")
}
"""


class DumpTensors(CommandTest):
    def dump(self, plan, *inputs, options=()):
        folder = self.folder / "tensors"
        arguments = [argument for file in inputs for argument in ("--input", file)]
        self.succeed("run", plan, *arguments, "--dump-tensors", folder, *options)
        return folder, json.loads((folder / "tensors.json").read_text())

    @needs_numpy
    def test_has_the_tensors_of_all_steps(self):
        model = self.file("chain.relay", CHAIN)
        plan = self.folder / "chain.qplan"
        self.succeed("pack", model, "-o", plan)
        folder, index = self.dump(plan, self.file("x.bin", bytes([0, 1, 2, 100])))
        tensors = [numpy.load(folder / tensor["file"]) for tensor in index["tensors"]]
        expected = [[1, 2, 3, 101], [-2, -1, 0, 98], [-1, 0, 1, 99]]
        self.assertEqual([tensor.dtype for tensor in tensors], [numpy.int8] * 3)
        self.assertEqual([tensor.shape for tensor in tensors], [(1, 2, 2, 1)] * 3)
        self.assertEqual([tensor.flatten().tolist() for tensor in tensors], expected)
        self.assertEqual([tensor["step"] for tensor in index["tensors"]], [0, 1, 2])
        self.assertEqual(index["tensors"][1]["step_name"], "block/minus_three")
        self.assertEqual(index["hidden"], [])

    @needs_numpy
    def test_booleans_are_numpys(self):
        model = self.file("bool.relay", b"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32]) {
  cast(%x, dtype="bool")
}
""")
        plan, x = self.folder / "bool.qplan", self.file("x.bin", numpy.array([0, 2, 0, 1], numpy.float32).tobytes())
        self.succeed("pack", model, "-o", plan)
        folder, index = self.dump(plan, x)
        numpy.testing.assert_array_equal(numpy.load(folder / index["tensors"][-1]["file"]), [[False, True, False, True]])
        self.assertEqual(index["tensors"][-1]["dtype"], "bool")
        self.assertIn("bool[1,4]: 0 1 0 1", self.succeed("run", plan, "--input", x))
        (output,) = self.succeed_json("run", plan, "--input", x, "--json")["outputs"]
        self.assertEqual((output["dtype"], output["first_values"]), ("bool", [0, 1, 0, 1]))
        golden = self.folder / "golden"
        golden.mkdir()
        (golden / "input0.bin").write_bytes(x.read_bytes())
        numpy.save(golden / "output0.npy", numpy.array([[False, False, True, True]]))
        result = run("check", plan, "--expect", golden, "--json")
        self.assertEqual(result.returncode, 3, result.stderr)
        (found,) = json.loads(result.stdout)["comparisons"][0]["outputs"]
        self.assertEqual((found["different"], found["rows"], found["same_top1"]), (2, 1, 0))
        numpy.save(golden / "output0.npy", numpy.zeros((1, 4), numpy.uint8))
        self.refused(1, ["output '", "is uint8[1,4], expected output 0"], "check", plan, "--expect", golden)

    @needs_numpy
    def test_the_last_tensor_is_the_output_whatever_runs_it(self):
        for options in ((), ("--isa", "reference"), ("--threads", "2")):
            folder, index = self.dump(self.plan, self.digit_input(4), options=options)
            last = numpy.load(folder / index["tensors"][-1]["file"])
            self.assertEqual(last.tobytes(), self.digit_output(4))

    def test_the_index_has_the_quantisation_that_the_plan_states(self):
        _, index = self.dump(self.plan, self.digit_input(4))
        inspected = {tensor["name"]: tensor for tensor in self.succeed_json("inspect", self.plan, "--json")["tensors"]}
        for tensor in index["tensors"]:
            known = inspected[tensor["name"]]
            self.assertIsNotNone(known["scale"], tensor["name"])
            self.assertEqual(tensor["scale"], [known["scale"]], tensor["name"])
            self.assertEqual(tensor["zero_point"], [known["zero_point"]], tensor["name"])
        stripped = self.folder / "stripped.qplan"
        self.succeed("pack", DIGITS, "-o", stripped, "--strip-names")
        _, index = self.dump(stripped, self.digit_input(4))
        self.assertEqual(index["tensors"][0]["scale"], [])

    def test_a_sum_of_a_convolution_hides_its_operand(self):
        _, index = self.dump(self.plan, self.digit_input(4))
        hidden = {step["name"]: step["reason"] for step in index["hidden"]}
        self.assertEqual(sorted(hidden), ["block1/add", "block2/add"])
        self.assertIn("residual", hidden["block1/add"])
        self.assertIn("pack --observable", hidden["block1/add"])

    @needs_numpy
    def test_a_plan_of_pack_observable_shows_what_a_cascade_hides(self):
        cascades, whole = self.folder / "all.qplan", self.folder / "observable.qplan"
        self.succeed("pack", DIGITS, "-o", cascades, "--fuse", "all")
        self.succeed("pack", DIGITS, "-o", whole, "--observable")
        folder, index = self.dump(cascades, self.digit_input(7))
        self.assertTrue(index["hidden"])
        self.assertIn("pack --observable", index["hidden"][0]["reason"])
        seen = {tensor["name"]: numpy.load(folder / tensor["file"]) for tensor in index["tensors"]}
        folder, index = self.dump(whole, self.digit_input(7))
        self.assertEqual(index["hidden"], [])
        every = {tensor["name"]: numpy.load(folder / tensor["file"]) for tensor in index["tensors"]}
        self.assertGreater(len(every), len(seen))
        for name, tensor in seen.items():
            numpy.testing.assert_array_equal(every[name], tensor)
        self.refused(2, ["--observable", "--fuse"], "pack", DIGITS, "-o", whole, "--observable", "--fuse", "all")

    def test_regions_say_that_their_tensors_are_on_the_device(self):
        plan = self.folder / "npu.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--target", "vta, cpu", "--observable")
        arguments = ("run", plan, "--input", self.digit_input(1), "--dump-tensors")
        run(*arguments, self.folder / "device")
        on_device = json.loads((self.folder / "device" / "tensors.json").read_text())
        self.assertIn("--driver none", on_device["hidden"][0]["reason"])
        run(*arguments, self.folder / "cpu", "--driver", "none")
        on_cpu = json.loads((self.folder / "cpu" / "tensors.json").read_text())
        self.assertGreater(len(on_cpu["tensors"]), len(on_device["tensors"]))
        self.assertIn("npu", [tensor["op"] for tensor in on_device["tensors"]])

    def test_names_cannot_leave_the_folder_and_are_unique(self):
        text = CHAIN.replace(b"block/plus_one", b"../../up").replace(b"block/minus_three", b"..")
        plan = self.folder / "names.qplan"
        self.succeed("pack", self.file("names.relay", text), "-o", plan)
        _, index = self.dump(plan, self.file("x.bin", bytes(4)))
        files = [tensor["file"] for tensor in index["tensors"]]
        self.assertEqual(len(set(files)), 3)
        self.assertEqual(self.left_behind(), sorted(
            ["names.qplan", "names.relay", "tensors", "tensors/tensors.json", "x.bin", *(f"tensors/{f}" for f in files)]))
        for file in files:
            self.assertNotIn("/", file)
            self.assertFalse(file.startswith("."), file)

    def test_an_input_is_not_replaced(self):
        plan = self.folder / "chain.qplan"
        self.succeed("pack", self.file("chain.relay", CHAIN), "-o", plan)
        folder, index = self.dump(plan, self.file("x.bin", bytes(4)))
        taken = folder / index["tensors"][0]["file"]
        before = taken.read_bytes()
        self.refused(1, ["is the same file as --input"], "run", plan, "--input", taken, "--dump-tensors", folder)
        self.assertEqual(taken.read_bytes(), before)

    @needs_numpy
    @needs_shared
    def test_a_network_of_the_reference_set_ends_in_the_golden_output(self):
        model = SHARED / "models" / "mobilenet_v1_0.25_128_quant.tflite"
        golden = SHARED / "golden" / "mobilenet_v1_0.25_128_quant" / "rand1"
        plan = self.folder / "model.qplan"
        self.succeed("pack", model, "-o", plan, "--observable")
        folder, index = self.dump(plan, golden / "input0.bin")
        self.assertEqual(numpy.load(folder / index["tensors"][-1]["file"]).tobytes(), (golden / "output0.bin").read_bytes())
        names = [tensor["name"] for tensor in index["tensors"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertIn("MobilenetV1/Predictions/Reshape_1", names)


if __name__ == "__main__":
    unittest.main()
