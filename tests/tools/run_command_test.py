"""qplan run: inputs of every kind, outputs, labels, and every way to get it wrong."""

import json
import os
import unittest

from support import (
    DIGITS,
    DIGITS_BYTES,
    DIGITS_LABELS,
    PICTURES,
    SHARED,
    CommandTest,
    needs_numpy,
    needs_shared,
    numpy,
    run,
)


class Run(CommandTest):
    def test_numbers_are_decimal_digits(self):
        run = ("run", self.plan, "--input", self.digit_input(3))
        for option in ("--threads", "--max-work", "--top"):
            for text in ("", "-1", "+1", "0x10", "1.5", "18446744073709551616"):
                self.refused(2, [f"{option}: '{text}' is not a whole number from 0"], *run, option, text)
        self.assertIn("10 threads", self.succeed("bench", self.plan, "--runs", "1", "--threads", "010"))
        self.refused(2, ["--tolerance: '-1' is not"], "check", self.plan, "--expect", self.folder, "--tolerance", "-1")
        self.refused(2, ["--counter: '-1' is not"], "sign", self.plan, "--key", "k", "--counter", "-1")
        self.refused(2, ["--min-counter: '' is not"], "verify", self.plan, "--key", "k", "--min-counter", "")
        for text in ("", "K", "-1K", "0x10"):
            self.refused(2, [f"--max-ram: '{text}' is not a number of bytes"], "pack", DIGITS, "-o", self.folder / "p",
                         "--max-ram", text)
        for text in ("", "1.5", "9223372036854775807"):
            self.refused(2, [f"--label-offset: '{text}' is not a whole number from -1000000"], "eval", self.plan, "--images",
                         self.folder, "--labels", "l", "--label-offset", text)
        self.refused(2, ["--budget: 'nan' is not a number of seconds"], "tune", self.plan, "--log", self.folder / "l", "--budget",
                     "nan")

    def test_max_work_refuses_what_computes_more(self):
        inspected = self.succeed_json("inspect", self.plan, "--json")
        work = inspected["functions"][0]["work"]
        self.assertEqual(work, sum(step["work"] for step in inspected["steps"]))
        self.assertGreater(work, inspected["functions"][0]["macs"])
        self.assertIn(f"work:      {work:,} operations at most", self.succeed("inspect", self.plan))
        arguments = ("run", self.plan, "--input", self.digit_input(3))
        self.succeed(*arguments, "--max-work", work)
        self.refused(1, [f"beyond max_work {work - 1}", "(step "], *arguments, "--max-work", work - 1)
        self.refused(2, ["--max-work: '-1' is not a whole number from 0"], *arguments, "--max-work", "-1")
        self.succeed("check", self.plan, "--max-work", work)
        self.refused(1, [f"beyond max_work {work - 1}"], "check", self.plan, "--max-work", work - 1)

    def test_names_of_a_model_cannot_control_the_terminal(self):
        name = 'a\\x1b[31mb\\xc2\\x9b\\xe2\\x80\\xaec'
        model = self.file("escape.relay", f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), int8]) {{
qnn.add(%x, const(Tensor[(1), int8], [1]), 1f, 0, 1f, 0, 2f, 0, name="{name}")
}}
""".encode())
        plan = self.folder / "escape.qplan"
        result = run("pack", model, "-o", plan, "--log-level", "debug")
        self.assertEqual(result.returncode, 0, result.stderr)
        other = self.file("other.relay", model.read_bytes().replace(b"2f, 0", b"2f, 1"))
        shown = [result.stdout + result.stderr, self.succeed("disasm", plan), self.succeed("explain", model),
                 self.succeed("explain", model, "--target", "vta, cpu", "--no-cost-gate"),
                 run("import", model, "--diff", other).stdout, self.succeed("import", model, "--print"),
                 self.succeed("bench", plan, "--per-step", "--runs", "1")]
        for text in shown:
            self.assertIn("a", text)
            for character in "\x1b\x9b\u202e":
                self.assertNotIn(character, text)

    def test_several_runs_keep_the_states(self):
        model = self.file("sum.relay", b"""#[version = "0.0.5"]
def @main(%x: Tensor[(2), int8], %s: Tensor[(2), int8], states=[[1, 1]], state_bytes=[[100, 0]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  (%0, %0)
}
""")
        plan = self.folder / "sum.qplan"
        self.succeed("pack", model, "-o", plan)
        files = [self.file(f"x{i}.bin", bytes(x)) for i, x in enumerate(([1, 2], [3, 4], [5, 6]))]
        inputs = [argument for file in files for argument in ("--input", file)]
        report = self.succeed_json("run", plan, *inputs, "--json")
        values = [run["outputs"][0]["first_values"] for run in report["runs"]]
        self.assertEqual(values, [[101, 2], [104, 6], [109, 12]])
        self.assertIn("run 2\n", self.succeed("run", plan, *inputs))
        self.succeed("run", plan, *inputs, "--output-dir", self.folder / "out")
        self.assertEqual((self.folder / "out" / "run1_output0.bin").read_bytes(), bytes([104, 6]))
        states = self.succeed_json("inspect", plan, "--json")["states"]
        self.assertEqual([(state["bytes"], state["name"]) for state in states], [(2, "s")])

    def test_a_pool_that_would_take_hours_is_refused_in_time(self):
        model = self.file("pool.relay", b"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 1, 2000, 2000), int8]) {
nn.max_pool2d(%x, pool_size=[1999, 1999], padding=[999,999,999,999])
}
""")
        plan = self.folder / "pool.qplan"
        self.succeed("pack", model, "-o", plan)
        steps = self.succeed_json("inspect", plan, "--json")["steps"]
        work = 2000 * 2000 * 1999 * 1999
        self.assertEqual([step["work"] for step in steps if step["op"] == "max_pool2d"], [work])
        self.refused(1, ["max_pool2d", str(work), "max_work 1000000000"], "run", plan, "--input",
                             self.file("zeros.bin", bytes(4000000)), "--max-work", "1000000000")

    def test_a_plan_for_another_processor_is_told(self):
        plan = self.folder / "m.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--target", "cpu,arch=cortex-m")
        self.assertIn("packed for another processor (arch=cortex-m,isa=reference)", self.succeed("inspect", plan))
        self.assertNotIn("another processor", self.succeed("inspect", self.plan))
        result = run("run", plan, "--input", self.digit_input(3))
        self.assertEqual(result.returncode, 0)
        self.assertIn("the plan was packed for arch 'cortex-m'", result.stderr)

    def run_to_folder(self, *arguments):
        out = self.folder / "out"
        self.assertEqual(self.succeed("run", self.plan, *arguments, "--output-dir", out), "")
        return {path.name: path.read_bytes() for path in out.iterdir()}

    def test_raw_inputs_give_the_oracles_bytes(self):
        for digit in range(10):
            with self.subTest(digit=digit):
                outputs = self.run_to_folder("--input", self.digit_input(digit))
                self.assertEqual(outputs, {"output0.bin": self.digit_output(digit)})

    def test_every_isa_pool_and_thread_count_gives_the_same_bytes(self):
        for isa in [*self.isas(), "auto"]:
            for pool in ("threads", "openmp"):
                for threads in ("1", "2", "3"):
                    with self.subTest(isa=isa, pool=pool, threads=threads):
                        outputs = self.run_to_folder("--input", self.digit_input(4), "--isa", isa, f"--pool={pool}",
                                                     "--threads", threads)
                        self.assertEqual(outputs["output0.bin"], self.digit_output(4))

    def test_pictures_are_the_raw_inputs(self):
        for digit in range(10):
            with self.subTest(digit=digit):
                outputs = self.run_to_folder("--input", PICTURES / f"digit{digit}.png")
                self.assertEqual(outputs["output0.bin"], self.digit_output(digit))

    @needs_numpy
    def test_npy_inputs(self):
        array = numpy.fromfile(self.digit_input(7), numpy.int8).reshape(1, 16, 16, 1)
        for version in ((1, 0), (2, 0), (3, 0)):
            path = self.folder / "x.npy"
            with open(path, "wb") as file:
                numpy.lib.format.write_array(file, array, version=version)
            self.assertEqual(self.run_to_folder("--input", path)["output0.bin"], self.digit_output(7))

    def test_options_may_come_before_the_plan(self):
        text = self.succeed("run", "--input", self.digit_input(3), self.plan)
        self.assertIn("output 0", text)

    def test_prints_name_shape_dtype_and_values(self):
        text = self.succeed("run", self.plan, "--input", self.digit_input(3))
        self.assertRegex(text, r"^output 0 .*int8\[1,10\]: -?\d+( -?\d+){7} \.\.\.\n$")

    def test_labels_print_the_best_five(self):
        for digit in range(10):
            lines = self.succeed("run", self.plan, "--input", self.digit_input(digit), "--labels", DIGITS_LABELS)
            lines = lines.splitlines()
            self.assertEqual(len(lines), 5)
            scores = [float(line.split()[0]) for line in lines]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertEqual(lines[0].split(None, 1)[1], DIGITS_LABELS.read_text().splitlines()[digit])

    def test_one_label_more_means_background_first(self):
        labels = self.file("labels.txt", b"background\r\n" + b"".join(b"number %d\r\n" % i for i in range(10)) + b"\r\n")
        text = self.succeed("run", self.plan, "--input", self.digit_input(6), "--labels", labels, "--top", "1")
        self.assertRegex(text, r"^\d\.\d+  number 6\n$")

    def test_top_without_labels_prints_indices(self):
        text = self.succeed("run", self.plan, "--input", self.digit_input(6), "--top", "2")
        self.assertEqual(text.splitlines()[0].split()[1], "6")
        self.assertEqual(len(text.splitlines()), 2)

    def test_json(self):
        out = self.folder / "out"
        report = self.succeed_json("run", self.plan, "--input", self.digit_input(5), "--labels", DIGITS_LABELS, "--json",
                                   "--output-dir", out, "--threads", "2")
        self.assertEqual(report["threads"], 2)
        self.assertGreater(report["invoke_ns"], 0)
        output = report["outputs"][0]
        self.assertEqual((output["dtype"], output["shape"], output["bytes"]), ("int8", [1, 10], 10))
        self.assertEqual(output["first_values"], [b - 256 if b > 127 else b for b in self.digit_output(5)[:8]])
        self.assertEqual(output["top"][0]["index"], 5)
        self.assertEqual((out / output["file"]).read_bytes(), self.digit_output(5))

    def test_trace_has_an_event_per_step(self):
        trace = self.folder / "trace.json"
        self.succeed("run", self.plan, "--input", self.digit_input(5), "--trace", trace)
        steps = self.succeed_json("inspect", self.plan, "--json")["steps"]
        document = json.loads(trace.read_text())
        events = document["traceEvents"] if isinstance(document, dict) else document
        self.assertEqual(len([event for event in events if event.get("ph") == "X"]), len(steps))

    def test_existing_outputs_are_replaced(self):
        (self.folder / "out").mkdir()
        self.file("out/output0.bin", b"old")
        self.assertEqual(self.run_to_folder("--input", self.digit_input(1)), {"output0.bin": self.digit_output(1)})


class RunErrors(CommandTest):
    def refuse(self, texts, *arguments, exit_code=1, **options):
        """The command fails and writes no output."""
        before = self.left_behind()
        out = self.folder / "out"
        self.refused(exit_code, texts, "run", self.plan, *arguments, "--output-dir", out, **options)
        self.assertEqual(self.left_behind(), before)

    def test_number_of_inputs(self):
        one = self.digit_input(0)
        self.refuse(["has 1 input", "found 0"])
        self.refuse(["has 1 input", "found 2"], "--input", one, "--input", one)
        self.refuse(["has 1 input", "found 2"], "--input", one, one)

    def test_file_size(self):
        for size in (0, DIGITS_BYTES - 1, DIGITS_BYTES + 1):
            path = self.file("x.bin", b"x" * size)
            self.refuse(["x.bin", f"has {size} bytes", f"needs {DIGITS_BYTES}"], "--input", path)

    def test_missing_file_and_directory(self):
        for name in ("none.bin", "none.npy", "none.png"):
            self.refuse([name, "No such file"], "--input", self.folder / name)
        for name in ("dir.bin", "dir.npy", "dir.bmp"):
            (self.folder / name).mkdir()
            self.refuse([name, "directory"], "--input", self.folder / name)

    @needs_numpy
    def test_npy_dtype_shape_and_order(self):
        path = self.folder / "x.npy"
        numpy.save(path, numpy.zeros((1, 16, 16, 1), numpy.uint8))
        self.refuse(["x.npy", "uint8[1,16,16,1]", "int8[1,16,16,1]"], "--input", path)
        numpy.save(path, numpy.zeros((1, 16, 16, 1), numpy.float32))
        self.refuse(["x.npy", "float32"], "--input", path)
        numpy.save(path, numpy.zeros((16, 16), numpy.int8))
        self.refuse(["x.npy", "int8[16,16]"], "--input", path)
        numpy.save(path, numpy.asfortranarray(numpy.zeros((1, 16, 16, 1), numpy.int8).transpose(0, 2, 1, 3)[:, ::2]))
        self.refuse(["x.npy", "order"], "--input", path)
        numpy.save(path, numpy.zeros(3, ">i4"))
        self.refuse(["x.npy", "big-endian"], "--input", path)
        path.write_bytes(b"\x93NUMPY")
        self.refuse(["x.npy"], "--input", path)

    def test_unreadable_pictures(self):
        picture = (PICTURES / "digit0.png").read_bytes()
        for name, data in (("empty.png", b""), ("text.bmp", b"hello"), ("cut.png", picture[: len(picture) // 2])):
            self.refuse([name], "--input", self.file(name, data))

    def test_output_directory(self):
        path = self.file("out", b"a file")
        self.refused(1, ["out", "not a directory"], "run", self.plan, "--input", self.digit_input(0), "--output-dir", path)
        self.assertEqual(path.read_bytes(), b"a file")
        self.refused(1, ["out"], "run", self.plan, "--input", self.digit_input(0), "--output-dir", path / "below")
        (self.folder / "taken" / "output0.bin").mkdir(parents=True)
        self.refused(1, ["output0.bin"], "run", self.plan, "--input", self.digit_input(0), "--output-dir",
                  self.folder / "taken")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        self.refuse(["output0.bin"], "--input", self.digit_input(0), file_size_limit=4)
        self.refuse(["/dev/full"], "--input", self.digit_input(0), "--trace", "/dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.refused(1, ["standard output"], "run", self.plan, "--input", self.digit_input(0), stdout=full)

    def test_isa(self):
        self.refuse(["'sse9'", "reference"], "--input", self.digit_input(0), "--isa", "sse9", exit_code=2)

    @unittest.skipIf("avx512_vnni" in open("/proc/cpuinfo", encoding="utf-8").read(), "this machine has VNNI")
    def test_isa_that_the_machine_lacks(self):
        self.refuse(["lacks 'avx512vnni'", "reference"], "--input", self.digit_input(0), "--isa", "avx512vnni")

    def test_numbers(self):
        for threads in ("0", "-1", "two", "100000", ""):
            self.refuse(["--threads"], "--input", self.digit_input(0), f"--threads={threads}", exit_code=2)
        self.refuse(["--mean"], "--input", self.digit_input(0), "--mean", "1,2", exit_code=2)
        self.refuse(["--std"], "--input", self.digit_input(0), "--std", "0", exit_code=2)
        self.refuse(["--pool"], "--input", self.digit_input(0), "--pool=tide", exit_code=2)

    def test_affinity(self):
        here = sorted(os.sched_getaffinity(0))
        pairs = f"{here[0]},{here[-1]}"
        for arguments in (("--affinity", pairs), ("--affinity", pairs, "--threads", "2"), ("--affinity", here[-1])):
            self.succeed("run", self.plan, "--input", self.digit_input(3), "--output-dir", self.folder / "out", *arguments)
            self.assertEqual((self.folder / "out" / "output0.bin").read_bytes(), self.digit_output(3))
        report = self.succeed_json("bench", self.plan, "--runs", "1", "--json", "--affinity", pairs)
        self.assertEqual(report["threads"], 2)
        # The warning of a busy machine counts the processors of the process, not those of the pinned thread.
        for warning in report["warnings"]:
            if "busy" in warning:
                self.assertRegex(warning, rf"on {len(here)} CPUs?$")
        self.succeed("check", self.plan, "--against", "reference,threads", "--affinity", pairs)
        for text in ("", "x", "1-", "2-1", "0,,1", "-1", "0-100000", "999999", "0-1023,0"):
            self.refuse(["--affinity"], "--input", self.digit_input(3), f"--affinity={text}", exit_code=2)
        self.refuse(["2 processors and 3 threads"], "--input", self.digit_input(3), "--affinity", pairs, "--threads", "3",
                    exit_code=2)
        self.refuse(["2 processors and 1 thread,"], "--input", self.digit_input(3), "--affinity", pairs, "--threads", "1",
                    exit_code=2)
        self.refuse(["found processor 1024, expected one below 1024"], "--input", self.digit_input(3), "--affinity",
                    "1024", exit_code=2)
        self.refuse(["at most 1024 processors"], "--input", self.digit_input(3), "--affinity", "0-1023,0", exit_code=2)
        self.refuse(["OMP_PLACES"], "--input", self.digit_input(3), "--affinity", pairs, "--pool", "openmp", exit_code=2)
        for absent in ("1023", f"{here[0]},1023"):
            self.refuse(["no thread may run on processor"], "--input", self.digit_input(3), "--affinity", absent)

    def test_labels(self):
        few = self.file("few.txt", b"a\nb\n")
        self.refuse(["few.txt", "2 names", "int8[1,10]"], "--input", self.digit_input(0), "--labels", few)
        empty = self.file("empty.txt", b"\n\n")
        self.refuse(["empty.txt"], "--input", self.digit_input(0), "--labels", empty)
        self.refuse(["none.txt"], "--input", self.digit_input(0), "--labels", self.folder / "none.txt")


@needs_shared
class ReferenceModels(CommandTest):
    """Pictures in, the framework's bytes out."""

    def check(self, model, case, picture, *options):
        plan = self.folder / "x.qplan"
        out = self.folder / "out"
        self.succeed("pack", SHARED / "models" / f"{model}.tflite", "-o", plan)
        self.succeed("run", plan, "--input", picture, "--output-dir", out, *options)
        golden = SHARED / "golden" / model / case / "output0.bin"
        self.assertEqual((out / "output0.bin").read_bytes(), golden.read_bytes(), (model, case))

    def test_pictures(self):
        for model, case in (
            ("mobilenet_v1_0.25_128_quant", "cat"),
            ("mobilenet_v1_0.25_128_quant", "grace_hopper"),
            ("mobilenet_v2_1.0_224_quant", "cat"),
            ("tf2_mobilenet_v2_1.0_224_ptq", "sunflower"),
            ("pretrainedResnet_quant", "bird"),
        ):
            with self.subTest(model=model, case=case):
                self.check(model, case, SHARED / "images" / f"{case}.bmp")

    def test_channels_first_and_normalised(self):
        self.check("mobilenet_v2_quantized_1x3x224x224", "cat", SHARED / "images" / "cat.bmp",
                   "--mean", "123.675,116.28,103.53", "--std", "58.395,57.12,57.375")

    @needs_numpy
    def test_grey_picture_for_one_channel(self):
        golden = SHARED / "golden" / "person_detect" / "person"
        grey = (numpy.fromfile(golden / "input0.bin", numpy.int8).astype(int) + 128).astype(numpy.uint8).reshape(96, 96)
        self.check("person_detect", "person", self.file("person.bmp", colour_bmp(numpy.stack([grey] * 3, axis=2))))

    def test_thousand_and_one_labels(self):
        plan = self.folder / "x.qplan"
        self.succeed("pack", SHARED / "models" / "mobilenet_v2_1.0_224_quant.tflite", "-o", plan)
        text = self.succeed("run", plan, "--input", SHARED / "images" / "grace_hopper.bmp", "--labels",
                            SHARED / "images" / "imagenet_labels.txt")
        self.assertIn("military uniform", text.splitlines()[0])

    def test_thousand_values_skip_the_background_label(self):
        plan = self.folder / "x.qplan"
        self.succeed("pack", SHARED / "models" / "mobilenet_v2_quantized_1x3x224x224.tflite", "-o", plan)
        golden = SHARED / "golden" / "mobilenet_v2_quantized_1x3x224x224" / "cat"
        labels = SHARED / "images" / "imagenet_labels.txt"
        report = self.succeed_json("run", plan, "--input", golden / "input0.bin", "--labels", labels, "--json")
        output = [byte - 256 if byte > 127 else byte for byte in (golden / "output0.bin").read_bytes()]
        best = max(range(1000), key=lambda i: output[i])
        top = report["outputs"][0]["top"]
        self.assertEqual((len(output), top[0]["index"]), (1000, best))
        self.assertEqual(top[0]["label"], labels.read_text().splitlines()[best + 1])
        self.assertIn("cat", top[0]["label"])


def colour_bmp(pixels):
    """uint8 [h, w, 3], red first, as a BMP of 24 bits."""
    height, width, _ = pixels.shape
    rows = b"".join(row[:, ::-1].tobytes().ljust((width * 3 + 3) // 4 * 4, b"\0") for row in pixels[::-1])
    def number(value, size):
        return value.to_bytes(size, "little")
    header = b"BM" + number(54 + len(rows), 4) + number(0, 4) + number(54, 4)
    info = number(40, 4) + number(width, 4) + number(height, 4) + number(1, 2) + number(24, 2) + bytes(24)
    return header + info + rows


if __name__ == "__main__":
    unittest.main()
