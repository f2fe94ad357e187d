"""qplan report: the page, the graph and the table of a plan. With Chromium the page is rendered and clicked."""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from support import DIGITS, REPOSITORY, CommandTest, run

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
import browser  # noqa: E402

needs_chromium = unittest.skipUnless(browser.PROGRAM, "Chromium is not installed (Debian: chromium)")


class Report(CommandTest):
    def page(self, plan=None, *options):
        path = self.folder / "report.html"
        self.succeed("report", plan or self.plan, "-o", path, *options)
        return path

    def data(self, plan=None, *options):
        return self.succeed_json("report", plan or self.plan, "--json", *options)

    def test_the_page_loads_nothing_and_holds_the_data(self):
        text = self.page(None, "--runs", "3").read_text()
        self.assertNotRegex(text, r"(?i)(src|href)=|url\(|import ")
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))
        self.assertEqual([step["op"] for step in data["steps"]][:2], ["conv2d", "depthwise_conv2d"])
        self.assertNotIn("{{", re.sub(r'id="data">.*?</script>', "", text, flags=re.DOTALL).split("<script>")[0])

    def test_times_are_measured_or_estimated_and_say_so(self):
        measured = self.data(None, "--runs", "3")
        self.assertTrue(all(step["ns"] > 0 and not step["estimated"] for step in measured["steps"]))
        self.assertIn("medians of 3 runs", measured["time_text"])
        estimated = self.data(None, "--runs", "0")
        self.assertTrue(all(step["estimated"] for step in estimated["steps"]))
        self.assertIn("nothing was run", estimated["time_text"])
        # 66 MACs or 24.5 bytes in a nanosecond, whichever takes longer.
        for step in estimated["steps"]:
            self.assertEqual(step["ns"], int(max(step["macs"] / 66, step["bytes"] / 24.5)))

    def test_memory_over_time_has_its_peak_at_the_step_that_sets_it(self):
        data = self.data(None, "--runs", "0")
        live = data["memory"]["live"]
        for index, bytes_alive in enumerate(live):  # counted byte by byte
            held = set()
            for tensor in data["tensors"]:
                if tensor["arena"] and tensor["first"] <= index <= tensor["last"]:
                    held.update(range(tensor["offset"], tensor["offset"] + tensor["bytes"]))
            self.assertEqual(len(held), bytes_alive, index)
        self.assertEqual(live.index(max(live)), data["memory"]["peak_step"])
        self.assertLessEqual(max(live), data["memory"]["arena_bytes"])

    def test_ranges_follow_from_scale_and_zero_point(self):
        data = self.data(None, "--runs", "0")
        output = data["tensors"][data["outputs"][0]]
        self.assertEqual(output["type"], "int8[1,10]")
        self.assertAlmostEqual(output["range"][0], output["scale"] * (-128 - output["zero_point"]))
        self.assertAlmostEqual(output["range"][1], output["scale"] * (127 - output["zero_point"]))

    def test_what_tensors_held_in_a_run(self):
        data = self.data(None, "--runs", "1", "--input", self.digit_input(6))
        output = data["tensors"][data["outputs"][0]]
        values = [byte - 256 if byte > 127 else byte for byte in self.digit_output(6)]
        ends = sum(value in (-128, 127) for value in values) / 10
        self.assertEqual(output["used"], [min(values), max(values), ends])
        self.assertEqual(data["tensors"][data["inputs"][0]]["used"][:2],
                         [min(s := [b - 256 if b > 127 else b for b in self.digit_input(6).read_bytes()]), max(s)])
        self.assertIn("the given inputs", data["ranges_text"])

    def test_csv_has_a_line_for_each_step(self):
        path = self.folder / "steps.csv"
        self.succeed("report", self.plan, "--csv", path, "--runs", "0")
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        data = self.data(None, "--runs", "0")
        self.assertEqual([row["name"] for row in rows], [step["name"] for step in data["steps"]])
        self.assertEqual([int(row["ns"]) for row in rows], [step["ns"] for step in data["steps"]])
        self.assertEqual([int(row["alive_bytes"]) for row in rows], data["memory"]["live"])

    def test_dot_is_a_graph(self):
        path = self.folder / "graph.dot"
        self.succeed("report", self.plan, "--dot", path, "--runs", "0")
        text = path.read_text()
        self.assertEqual(len(re.findall(r"^  s\d+ \[label=", text, re.MULTILINE)), 11)
        # The residual of block1/add reads what the stem wrote.
        self.assertIn("s0 -> s2 ", text)
        if shutil.which("dot"):
            drawn = subprocess.run(["dot", "-Tsvg", path], capture_output=True, check=False)
            self.assertEqual(drawn.returncode, 0, drawn.stderr)

    def test_dot_shortens_joined_names_and_keeps_them_as_tooltips(self):
        model = self.file("joined.relay", b"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), int8]) {
qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 2f, 0, name="Relu;Add;bias")
}
""")
        plan, path = self.folder / "joined.qplan", self.folder / "joined.dot"
        self.succeed("pack", model, "-o", plan)
        self.succeed("report", plan, "--dot", path, "--runs", "0")
        self.assertIn('s0 [label="0 add: Relu;..+2", tooltip="Relu;Add;bias"]', path.read_text())

    def test_placement_of_a_plan_for_a_device(self):
        plan = self.folder / "npu.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--target", "vta, cpu")
        data = json.loads(run("report", plan, "--json", "--runs", "1").stdout)
        self.assertEqual({row["target"] for row in data["placement"]}, {"vta", "cpu"})
        reasons = [reason["text"] for row in data["placement"] for reason in row["reasons"]]
        self.assertTrue(any(reason.startswith("not on vta: ") for reason in reasons), reasons)
        region = next(step for step in data["steps"] if step["op"] == "npu")
        self.assertTrue(region["estimated"])
        self.assertEqual(region["target"], "vta")

    def test_errors(self):
        self.refused(2, ["nothing to write"], "report", self.plan)
        self.refused(1, ["is the same file as plan"], "report", self.plan, "-o", self.plan)
        self.refused(1, ["make a plan of it first"], "report", DIGITS, "-o", self.folder / "x.html")

    def hostile(self):
        name = "</script><img src=x onerror='document.title=1'>&"
        model = self.file("hostile.relay", f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), int8]) {{
qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 2f, 0, name="{name}")
}}
""".encode())
        plan = self.folder / "hostile.qplan"
        self.succeed("pack", model, "-o", plan)
        return plan

    def test_names_cannot_end_the_data(self):
        text = self.page(self.hostile(), "--runs", "0").read_text()
        self.assertNotIn("<img", text)

    @needs_chromium
    def test_the_page_in_a_browser(self):
        plan = self.folder / "npu.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--target", "vta, cpu")
        pages = {"cpu": self.page()}
        pages["cpu"] = pages["cpu"].rename(self.folder / "cpu.html")
        run("report", plan, "-o", self.folder / "npu.html", "--runs", "1")
        pages["npu"] = self.folder / "npu.html"
        pages["hostile"] = self.page(self.hostile(), "--runs", "0")
        shots = pathlib.Path(os.environ.get("QPLAN_SCREENSHOTS", self.folder))
        with browser.Browser() as page:
            for name, path in pages.items():
                for width, dark in ((1400, False), (1400, True), (480, False)):
                    with self.subTest(page=name, width=width, dark=dark):
                        self.assertEqual(page.open(path, width, 900, dark), [])
                        shot = shots / f"report_{name}_{width}_{'dark' if dark else 'light'}.png"
                        page.screenshot(shot)
                        self.assertGreater(shot.stat().st_size, 10000)
                        wide = page.evaluate("document.documentElement.scrollWidth")
                        self.assertLessEqual(wide, width, "the page is wider than the window")
                        heights = "[...document.querySelectorAll('svg.chart .tick')].map(t => t.getBoundingClientRect().height)"
                        self.assertGreaterEqual(page.evaluate(f"Math.min(...{heights})"), 10, "text of charts cannot be read")
                        names = "[...document.querySelectorAll('#steps tbody td:nth-child(3)')].map(t => t.clientWidth)"
                        self.assertGreaterEqual(page.evaluate(f"Math.min(...{names})"), 100, "names break at each letter")
                        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
                        self.assertEqual(background, "rgb(18, 22, 28)" if dark else "rgb(246, 247, 249)")
            self.assertEqual(page.evaluate("document.title"), "hostile.qplan: report")
            self.click_through(page, pages["cpu"])

    def click_through(self, page, path):
        self.assertEqual(page.open(path, 1400, 900), [])
        selected = lambda: page.evaluate("document.querySelector('#step h2').textContent")  # noqa: E731
        data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL).group(1))
        peak = data["memory"]["peak_step"]
        self.assertTrue(selected().startswith(f"{peak} "), selected())
        self.assertIn("the peak", page.evaluate("document.querySelector('#alive h3').textContent"))
        page.click("#steps tbody tr", 4)
        self.assertTrue(selected().startswith("4 conv2d"), selected())
        self.assertIn("Alive at step 4", page.evaluate("document.querySelector('#alive h3').textContent"))
        page.click("#graph g.unit", 6)
        self.assertTrue(selected().startswith("6 conv2d block2/add"), selected())
        page.click("#roof circle.dot", 0)
        self.assertTrue(selected().startswith("0 conv2d stem"), selected())
        page.click("#constants tbody tr", 0)
        self.assertTrue(selected().startswith("6 conv2d"), selected())  # 64 x 64 weights, the most
        page.click("#theme")
        self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(18, 22, 28)")
        page.evaluate("el('find').value = 'depthwise'; el('find').dispatchEvent(new Event('input'))")
        self.assertIn("3 of 11", page.evaluate("el('found').textContent"))
        self.assertEqual(page.complaints(), [])


if __name__ == "__main__":
    unittest.main()
