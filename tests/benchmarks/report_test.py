"""What benchmarks/report makes of measurements: ratios, tables, drawings."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS / "report"))

import compare  # noqa: E402
import firmware_cycles  # noqa: E402
import kernels  # noqa: E402
import layers  # noqa: E402
import load  # noqa: E402
import roofline  # noqa: E402
import server  # noqa: E402
import table  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
ECHO = "import sys, json\nfor line in sys.stdin: print(json.dumps({'words': line.split()}), flush=True)"


def step(index, macs, num_bytes, ns, op="conv2d"):
    return {"step": index, "op": op, "kernel": f"{op}_avx2", "name": f"block{index}<a&b>", "macs": macs,
            "bytes": num_bytes, "min_ns": ns}


def model(**changes):
    result = {
        "name": "net", "goal_ms": 2.0, "macs": 300_000_000, "arena_bytes": 1 << 20, "unfused_arena_bytes": 3 << 20,
        "other_load": 0.02, "init_ms": 0.1, "isa": "avx2",
        "times": {"qplan": {"median_ms": 1.5, "min_ms": 1.25}, "onednn": {"median_ms": 2.0, "min_ms": 2.0},
                  "onnxruntime A": {"median_ms": 3.0, "min_ms": 2.5}},
        "ratios": {"onednn": {"median": 0.75, "min": 0.625}, "onnxruntime A": {"median": 0.5, "min": 0.5}},
        "fastest_form": "onnxruntime A", "pack": {"seconds": 0.25}, "peak_gmac_per_s": 100.0,
        "threads": {"other_load": 0.02, "speedup": {"2": 1.9, "2 openmp": 1.875}},
        "steps": [step(0, 1_000_000, 100_000, 20_000), step(1, 0, 100_000, 2_000, "add")],
    }
    return result | changes


def results(*models):
    return {"quick": False, "rounds": 7, "machine": {"isa": "avx2", "peak_gmac_per_s": 100.0,
            "read_gb_per_s": {"L2": 100.0, "L3": 50.0, "memory": 10.0}}, "models": list(models),
            "goals_of": {"vnni_ports": 2, "peak_gmac_per_s": 373, "of_onednn": 0.75},
            "peers": {"onednn": "2.6.3"}, "geometric_means": {"onednn": 0.75, "onnxruntime": None}}


class FirmwareCycles(unittest.TestCase):
    LOOP = ("ldm.w r1!, {r11, r12}", "ldr r0, [r2], #4", "ldr r3, [r4], #4", "smlad r5, r0, r11, r5", "sxtb16 r11, r11",
            "smlad r4, r3, r12, r4", "cmp r0, lr", "bne.w 0x2805a <loop>")

    def test_products_that_a_block_adds_up(self):
        self.assertEqual(firmware_cycles.macs_of(self.LOOP), 4)
        self.assertEqual(firmware_cycles.macs_of(("vmladava.s8 r0, q0, q1", "vmlava.s8 r0, q0, q5", "vmul.i16 q0, q1, q2",
                                                  "mul r0, r1, r2", "mla r0, r1, r2, r3", "smlabb r0, r1, r2, r3",
                                                  "vqrdmulh.s32 q0, q0, q2", "smmulr r0, r1, r2")), 43)

    def test_cycles_by_the_manual_of_a_cortex_m4(self):
        # 1 + 2 registers; 2 for the first load, 1 for the next; 4 instructions of one; a taken branch of 1 + 2.
        self.assertEqual(firmware_cycles.manual_cycles_of(self.LOOP), 3 + 2 + 1 + 4 + 3)
        self.assertEqual(firmware_cycles.manual_cycles_of(("push {r4-r7, lr}", "udiv r0, r0, r1", "ldrd r0, r1, [r2]")),
                         6 + 7 + 3)

    @unittest.skipUnless(shutil.which("llvm-mca-16"), "llvm-mca-16 is not installed (Debian: llvm-16)")
    def test_llvm_mca_reads_blocks_and_counts_what_it_does_not_know(self):
        # One instruction in a cycle; the branch's address means nothing.
        self.assertAlmostEqual(firmware_cycles.cycles_of(self.LOOP, "cortex-m4"), 8, delta=0.1)
        vectors = ("vldrb.u8 q0, [r0], #16", "vmladava.s8 r2, q0, q1")
        alone = firmware_cycles.cycles_of(vectors, "cortex-m55")
        self.assertGreaterEqual(alone, 2)
        # The end of a low-overhead loop takes none, its beginning is unknown to llvm-mca and takes one.
        self.assertEqual(firmware_cycles.cycles_of((*vectors, "le lr, 0x100 <x>"), "cortex-m55"), alone)
        self.assertEqual(firmware_cycles.cycles_of(("dls lr, r0", *vectors), "cortex-m55"), alone + 1)


class Compare(unittest.TestCase):
    def test_a_ratio_is_taken_within_rounds(self):
        # The machine was ten times slower in the last round; of the sums the ratio would be another.
        ratio = compare.ratio([[10, 12, 11], [10], [100]], [[22], [20], [200]])
        self.assertEqual(ratio, {"median": 0.5, "min": 0.5})

    def test_geometric_mean(self):
        self.assertAlmostEqual(compare.geometric_mean([0.25, 1.0]), 0.5)
        self.assertIsNone(compare.geometric_mean([]))

    def test_means_are_over_models_that_have_the_peer(self):
        alone = model(ratios={}, fastest_form=None)
        self.assertEqual(compare.geometric_means([model(), alone]), {"onednn": 0.75, "onnxruntime": 0.5})

    def test_goals_are_those_of_the_last_machine_whose_peak_is_reached(self):
        machines = json.loads((compare.BENCHMARKS / "models.json").read_text(encoding="utf-8"))["machines"]
        for peak, of_onednn in ((None, 0.95), (100, 0.95), (236.4, 0.95), (373, 0.75), (525.8, 0.75)):
            self.assertEqual(machines[compare.machine_of(machines, peak)]["of_onednn"], of_onednn)

    def test_load_of_others_is_not_negative(self):
        cores = load.OtherLoad().cores()
        self.assertTrue(cores is None or cores >= 0)


class Servers(unittest.TestCase):
    def test_each_command_has_an_answer(self):
        echo = server.Server(sys.executable, "-c", ECHO)
        self.addCleanup(echo.close)
        self.assertEqual(echo.ask("run", "net", 5), {"words": ["run", "net", "5"]})
        self.assertEqual(echo.ask("a b"), {"words": ["a", "b"]})

    def test_an_error_is_told(self):
        with self.assertRaisesRegex(server.ServerError, "no such model"):
            broken = server.Server(sys.executable, "-c", "input(); print('{\"error\": \"no such model\"}')")
            self.addCleanup(broken.close)
            broken.ask("load")

    def test_an_end_is_told(self):
        with self.assertRaisesRegex(server.ServerError, "status 3"):
            ended = server.Server(sys.executable, "-c", "input(); raise SystemExit(3)")
            self.addCleanup(ended.close)
            ended.ask("load")


class Table(unittest.TestCase):
    def test_a_row_has_times_and_ratios(self):
        text = table.table(results(model()))
        for cell in ("1.5 (1.25)", "≤ 2.0", "yes", "3 (A)", "0.500 (0.500)", "0.750 (0.625)", "1.90×, 1.88×",
                     "1024 (3072)"):
            self.assertIn(cell, text)
        self.assertIn("oneDNN 2.6.3: geometric mean of the ratios **0.750**", text)
        self.assertIn("ONNX Runtime: not installed", text)
        self.assertIn("Goals met: 1 of 1", text)

    def test_the_legend_says_whose_goals_they_are(self):
        text = table.legend(results(model()))
        self.assertIn("2 512-bit ports and a VNNI peak of 373 GMAC/s", text)
        self.assertIn("0.75", text)

    def test_threads_are_not_measured_under_load(self):
        self.assertIn("not measured (other load 1.4)", table.table(results(model(threads={"other_load": 1.42}))))

    def test_every_line_has_every_column(self):
        lines = [line for line in table.table(results(model(), model(fastest_form=None))).splitlines() if "|" in line]
        self.assertEqual({line.count("|") for line in lines}, {len(table.COLUMNS) + 1})


class Roofline(unittest.TestCase):
    def test_a_roof_is_peak_or_bandwidth(self):
        # Step 2 did not run.
        steps = [step(0, 1_000_000, 1_000, 20_000), step(1, 0, 100_000, 2_000), step(2, 0, 1, 0)]
        of_peak, of_bandwidth = layers.layers_of({"steps": steps}, 100, 100)
        self.assertEqual((of_peak.rate, of_peak.of_peak, of_peak.of_roof, of_peak.lost_ns), (50, 0.5, 0.5, 10_000))
        self.assertEqual((of_bandwidth.of_roof, of_bandwidth.lost_ns), (0.5, 1_000))
        self.assertAlmostEqual(of_peak.share + of_bandwidth.share, 1)

    def test_a_drawing_is_well_formed(self):
        found = layers.layers_of(model(), 100, 100)
        svg = xml.etree.ElementTree.fromstring(roofline.draw(model(), found, 100, {"L2": 100, "L3": 50, "memory": 10}))
        titles = [title.text for title in svg.iter(SVG + "title")]
        self.assertEqual(len(titles), 1)  # the addition has no place in it
        self.assertIn("block0<a&b>", titles[0])
        self.assertIn("50.0 % of peak", titles[0])

    def test_a_model_without_peak_is_drawn(self):
        found = layers.layers_of(model(), None, 100)
        xml.etree.ElementTree.fromstring(roofline.draw(model(), found, None, {"L2": 100}))

    def test_layers_have_a_line_each(self):
        text = layers.markdown("net", layers.layers_of(model(), 100, 100))
        self.assertIn("| 0 | **block0<a&b>** | conv2d_avx2 | 1.000 | 100.0 | 10.0 | 20.00 | 90.9 | 50.0 | 50.0 | 50 |", text)


class Kernels(unittest.TestCase):
    @staticmethod
    def run_of(variant, step_number, cpu_time, **more):
        return {"run_name": f"conv2d/{variant}/net/{step_number}/shape", "aggregate_name": "median",
                "cpu_time": cpu_time, "time_unit": "ns"} | more

    def test_variants_of_a_step_stand_in_one_line(self):
        report = {"benchmarks": [self.run_of("conv2d_avx2", 10, 2000, **{"GMAC/s": 30}),
                                 self.run_of("conv2d_ref", 10, 9000, **{"GMAC/s": 1}),
                                 self.run_of("conv2d_avx2", 9, 1000), self.run_of("direct_avx2", 9, 500)]}
        lines = kernels.table(kernels.rows(report)).splitlines()
        self.assertEqual(lines[0].split(), ["avx2", "ref", "step"])
        self.assertEqual(lines[2].split()[:5], ["0.50", "(", "0.0)", "-", "conv2d/net/9/shape"])
        self.assertTrue(lines[2].endswith("[direct_avx2 0.50, conv2d_avx2 1.00]"), lines[2])
        self.assertEqual(lines[3].split(), ["2.00", "(", "30.0)", "9.00", "(", "1.0)", "conv2d/net/10/shape"])


class Files(unittest.TestCase):
    def test_figures_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            results_file = pathlib.Path(folder) / "results.json"
            results_file.write_text(json.dumps(results(model())), encoding="utf-8")
            arguments, sys.argv = sys.argv, ["roofline.py", str(results_file), folder]
            try:
                roofline.main()
            finally:
                sys.argv = arguments
            self.assertEqual({path.name for path in pathlib.Path(folder).iterdir()},
                             {"results.json", "layers.md", "roofline-net.svg"})


if __name__ == "__main__":
    unittest.main()
