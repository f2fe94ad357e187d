"""qplan diff: what is different about two plans."""

import json
import unittest

from support import DIGITS, CommandTest, run, with_digest

ADD = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, {n}), int8]) {{
  %0 = qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 1f, 0, name="first");
  qnn.add(%0, const(Tensor[(1), int8], [2]), 1f, 0, 1f, 0, 1f, 0, name="{last}")
}}
"""


class Diff(CommandTest):
    def plan_of(self, name, **values):
        plan = self.folder / f"{name}.qplan"
        model = self.file(f"{name}.relay", ADD.format(**{"n": 8, "last": "last", **values}).encode())
        self.succeed("pack", model, "-o", plan)
        return plan

    def differ(self, *arguments):
        result = run("diff", *arguments)
        self.assertEqual((result.returncode, result.stderr), (3, ""))
        return result.stdout

    def report(self, *arguments):
        return json.loads(self.differ(*arguments, "--json"))

    def test_the_same_content_is_equal_whatever_the_names(self):
        stripped = self.folder / "stripped.qplan"
        self.succeed("pack", DIGITS, "-o", stripped, "--strip-names")
        self.assertIn("the same content", self.succeed("diff", self.plan, stripped))
        self.assertTrue(self.succeed_json("diff", self.plan, self.plan, "--json")["same_content"])

    def test_steps_of_two_outputs_are_compared(self):
        plans = []
        for n in (4, 6):
            text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[(2, {n}), int8]) {{
  %0 = split(%x, indices_or_sections=2, axis=1, name="halves");
  (%0.0, %0.1)
}}
"""
            plans.append(self.folder / f"split{n}.qplan")
            self.succeed("pack", self.file(f"split{n}.relay", text.encode()), "-o", plans[-1])
        step, = self.report(*plans)["steps"]
        self.assertEqual(step["changes"]["output_shapes"], [["2x2", "2x2"], ["2x3", "2x3"]])
        self.assertIn("output_shapes", self.differ(*plans))

    def test_fused_layers_are_counted_and_named(self):
        observable = self.folder / "observable.qplan"
        self.succeed("pack", DIGITS, "-o", observable, "--observable")
        report = self.report(self.plan, observable)
        self.assertEqual(report["operators"]["steps"], [11, 13])
        self.assertEqual(report["operators"]["add"], [0, 2])
        self.assertEqual(report["operators"]["conv2d"], [4, 4])
        self.assertEqual({step["name"] for step in report["only_in_b"]}, {"block1/pointwise", "block2/pointwise"})
        changed = {step["name"]: step["changes"] for step in report["steps"]}
        self.assertEqual(changed["block1/add"]["op"], ["conv2d", "add"])
        text = self.differ(self.plan, observable)
        self.assertIn("steps only in b: 2", text)
        self.assertIn("block1/add: op conv2d -> add", text)

    def test_quantisation_and_memory(self):
        unsigned = self.folder / "unsigned.qplan"
        self.succeed("pack", DIGITS, "-o", unsigned, "--io", "uint8")
        changed = {tensor["name"]: tensor["changes"] for tensor in self.report(self.plan, unsigned)["quantisation"]}
        info = self.succeed_json("inspect", self.plan, "--json")["inputs"][0]
        self.assertEqual(changed[info["name"]]["dtype"], ["int8", "uint8"])
        zero_point = info["zero_point"]
        self.assertEqual(changed[info["name"]]["zero_point"], [zero_point, zero_point + 128])
        self.assertNotIn("scale", changed[info["name"]])
        larger = self.report(self.plan_of("a"), self.plan_of("c", n=8000))
        a, b = larger["memory"]["arena"]
        self.assertGreater(b, a + 7000)
        a, b = larger["estimated time"]["all steps"]
        self.assertGreater(b, 100 * a)

    def test_placement(self):
        npu = self.folder / "npu.qplan"
        self.succeed("pack", DIGITS, "-o", npu, "--target", "vta, cpu")
        report = self.report(self.plan, npu)
        self.assertEqual(report["placement"]["regions"][0], 0)
        self.assertGreater(report["placement"]["regions"][1], 0)
        self.assertEqual(report["placement"]["MACs on vta"][0], 0)
        self.assertGreater(report["placement"]["MACs on vta"][1], report["placement"]["MACs on cpu"][1])
        # Steps that the CPU now runs only in place of the device are the same tensors.
        changed = {step["name"]: step["changes"] for step in report["steps"]}
        self.assertEqual(changed["stem"]["placement"], ["cpu", "fallback"])
        self.assertIn("stem: placement cpu -> fallback", self.differ(self.plan, npu))
        self.assertFalse([tensor for tensor in report["quantisation"] if "scale" in tensor["changes"]], report["quantisation"])

    def test_constants_with_other_values_are_named(self):
        inspected = self.succeed_json("inspect", self.plan, "--json")
        bank = next(i for i, entry in enumerate(inspected["banks"]) if entry["kind"] == "constants")
        tensor = next(entry for entry in inspected["tensors"] if entry["bank"] == bank and entry["name"].endswith("bias"))
        data = bytearray(self.plan.read_bytes())
        data[inspected["banks"][bank]["file_offset"] + tensor["offset"]] ^= 1
        other = self.file("other.qplan", with_digest(bytes(data)))
        report = self.report(self.plan, other)
        self.assertEqual(report["constants"], [{"name": tensor["name"], "bytes": tensor["bytes"], "different_bytes": 1}])
        self.assertFalse(report["same_constants"])
        self.assertIn(f"constants with other values: 1\n  {tensor['name']}: 1 of {tensor['bytes']} bytes\n",
                      self.differ(self.plan, other))
        self.assertTrue(self.succeed_json("diff", self.plan, self.plan, "--json")["same_constants"])
        # Without names there is no telling which.
        stripped = self.folder / "stripped.qplan"
        self.succeed("pack", DIGITS, "-o", stripped, "--strip-names")
        data = bytearray(stripped.read_bytes())
        at = self.succeed_json("inspect", stripped, "--json")["banks"][bank]["file_offset"]
        data[at + tensor["offset"]] ^= 1
        self.assertIn("\nconstants: their bytes are other ones",
                      self.differ(stripped, self.file("other.qplan", with_digest(bytes(data)))))

    def test_parameters_that_only_one_plan_has(self):
        plans = [self.folder / f"{contract}.qplan" for contract in ("tfl2", "f32e")]
        for plan in plans:
            self.succeed("pack", DIGITS, "-o", plan, "--contract", plan.stem, "--fuse", "off")
        params = [{step["name"]: step["params"] for step in self.succeed_json("inspect", plan, "--json")["steps"]}
                  for plan in plans]
        found = set()
        for a, b in ((0, 1), (1, 0)):
            changes = {step["name"]: step["changes"] for step in self.report(plans[a], plans[b])["steps"]}
            for name in params[a].keys() & params[b].keys():
                if "op" in changes.get(name, {}):
                    continue
                for key in params[b][name].keys() - params[a][name].keys():
                    self.assertEqual(changes[name][key], [None, params[b][name][key]])
                    found.add((a, key))
        self.assertEqual({a for a, _ in found}, {0, 1}, found)
        self.assertRegex(self.differ("--all", *plans), r" none -> \S")
        self.assertRegex(self.differ("--all", *plans), r" -> none")

    def test_errors(self):
        self.refused(1, ["make a plan of it first"], "diff", self.plan, DIGITS)
        self.refused(2, ["b is required"], "diff", self.plan)


if __name__ == "__main__":
    unittest.main()
