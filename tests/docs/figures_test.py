#!/usr/bin/env python3
"""Figures that pages print are those that the command prints.

usage: figures_test.py REPOSITORY BUILD      QPLAN_SHARED: directory of reference models; default ../shared
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = (os.path.abspath(path) for path in sys.argv[1:3])
QPLAN = os.path.join(BUILD, "bin", "qplan")
SHARED = os.environ.get("QPLAN_SHARED", os.path.join(ROOT, "..", "shared"))
DIGITS = os.path.join(ROOT, "samples", "models", "digits.tflite")


def page(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def cells(text, *first):
    """The cells of the row that begins with these."""
    (row,) = re.findall("^" + re.escape("| " + " | ".join(first) + " |") + "(.*) \\|$", text, re.MULTILINE)
    return [cell.strip() for cell in row.split(" | ")]


class Figures(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def qplan(self, *words):
        done = subprocess.run([QPLAN, *words], cwd=self.folder, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def shared(self, *path):
        found = os.path.join(SHARED, *path)
        if not os.path.exists(found):
            self.skipTest(f"no file '{found}' (QPLAN_SHARED)")
        return found

    def test_a_plan_checks_itself(self):
        (shown,) = (block for block in blocks(page("cli.md")) if "--self-check 2" in block)
        self.qplan("pack", DIGITS, "-o", "model.qplan", "--self-check", "2")
        printed = self.qplan("check", "model.qplan", "--self", "--threads", "4")
        if "(avx512vnni, reference)" not in printed:
            self.skipTest("the page shows the memory on a processor with AVX-512 VNNI")
        self.assertEqual("".join(shown.splitlines(keepends=True)[2:]), printed)

    def test_one_canonical_body(self):
        (shown,) = (block for block in blocks(page("canonical-form.md")) if "resnet8.onnx" in block)
        printed = self.qplan("import", self.shared("models", "pretrainedResnet_quant.tflite"), "--diff",
                             self.shared("onnx", "pretrainedResnet_quant_A.onnx"))
        self.assertEqual(shown.splitlines()[1:4], printed.splitlines())

    def test_memory_areas(self):
        text = page("firmware.md")
        text = text[text.index("## Several memory areas"):text.index("### Copies of constants")]
        with open(os.path.join(self.folder, "board.json"), "w", encoding="utf-8") as file:
            file.write(blocks(text)[0])
        for name, model in (("person_detect", "person_detect"), ("ResNet-8", "pretrainedResnet_quant")):
            source, memory = self.shared("models", model + ".tflite"), []
            for target in (("--target", "cpu,arch=cortex-m4"), ("--target-file", "board.json")):
                self.qplan("pack", source, "-o", "a.qplan", *target)
                plan = json.loads(self.qplan("inspect", "a.qplan", "--json"))
                memory.append(plan["memory"]["session_bytes"]["32_bit"]["1"])
            (area,) = plan["memory"]["areas"]
            used = [plan["tensors"][i] for step in plan["steps"] for i in step["inputs"] + step["outputs"]]
            there = sum(tensor["bytes"] for tensor in used if tensor["bank"] == area["bank"])
            everywhere = sum(tensor["bytes"] for tensor in used if tensor["bank"] in (0, area["bank"]))  # 1: constants
            counts = [f"{count:,}" for count in (*memory, area["bytes"], there, everywhere)]
            self.assertEqual(cells(text, name), [*counts[:3], " of ".join(counts[3:])])

    def test_preferences(self):
        text = page("placement.md")
        text = text[text.index("### Example: MobileNet V2"):text.index("## Policies")]
        model = self.shared("models", "mobilenet_v2_1.0_224_quant.tflite")
        for name, prefer, target in (("`npu` (default: `vta` comes first)", "npu", "vta, cpu"), ("`latency`", "latency", "vta, cpu"),
                                     ("`energy`", "energy", "vta, cpu"),
                                     ('`latency`, with `"vta, cpu,arch=cortex-m"`', "latency", "vta, cpu,arch=cortex-m")):
            with self.subTest(name):
                summary, *printed = self.qplan("explain", model, "--target", target, "--prefer", prefer).splitlines()
                (decision,) = (line for line in printed if line.startswith("  171 operators from"))
                vta, cpu, _ = cells(text, name)
                device, copies = vta.split(", ")
                said = f"vta {device} and {copies}, cpu {cpu}" if prefer == "energy" else f"vta {device} and 2 copies {copies}, cpu {cpu}"
                self.assertIn(said, decision)
                for cycles in re.findall(r"^  @qplan_vta_main_0 on vta: .* (\d+) cycles", "\n".join(printed), re.MULTILINE):
                    self.assertIn(f" {int(cycles) / 1e6:.2f} M cycles", text)
                if target == "vta, cpu" and prefer != "energy":  # after operators on VTA, on the CPU, and regions
                    self.assertIn(summary.split("; ", 3)[3] + "\n", blocks(text))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
