"""qplan pack, inspect, disasm, import, check, bench, --help, --version."""

import json
import os
import re
import stat
import subprocess
import unittest

from support import DIGITS, REPOSITORY, CommandTest, run

SUBCOMMANDS = ("pack", "run", "inspect", "bench", "tune", "check", "diff", "eval", "report", "disasm", "import")


class Pack(CommandTest):
    def test_prints_a_short_summary(self):
        text = self.succeed("pack", DIGITS, "-o", self.folder / "x.qplan")
        plan = self.succeed_json("inspect", self.folder / "x.qplan", "--json")
        self.assertRegex(
            text,
            rf"^packed '{self.folder}/x.qplan' in \d+\.\d+ (us|ms|s)\n"
            rf"  {len(plan['steps'])} steps, [0-9.]+ [kMG]? ?MACs\n"
            rf"  file {plan['file_bytes']:,} bytes, constants {plan['memory']['constants_bytes']:,} bytes\n"
            rf"  arena peak {plan['memory']['arena_bytes']:,} bytes, [^\n]*lower bound[^\n]*\n$",
        )
        self.assertNotIn("placement", text, "there is but one device")
        for line in text.splitlines()[1:]:
            self.assertLess(len(line), 100)
        text = self.succeed("pack", DIGITS, "-o", self.folder / "x.qplan", "--target", "vta, cpu")
        self.assertIn("\n  placement: ", text)

    def test_same_model_gives_same_bytes(self):
        (self.folder / "sub").mkdir()
        copy = self.file("sub/digits.tflite", DIGITS.read_bytes())
        for name, locale in (("a.qplan", "C"), ("b.qplan", "tr_TR.UTF-8")):
            subprocess.run(
                [os.environ.get("QPLAN_COMMAND", REPOSITORY / "build/release/bin/qplan"), "pack", copy.name, "-o",
                 self.folder / name],
                cwd=copy.parent, env={**os.environ, "LC_ALL": locale}, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual((self.folder / "a.qplan").read_bytes(), (self.folder / "b.qplan").read_bytes())

    def test_strip_names_makes_a_smaller_plan_of_the_same_content(self):
        stripped = self.folder / "x.qplan"
        self.succeed("pack", DIGITS, "-o", stripped, "--strip-names")
        self.assertLess(stripped.stat().st_size, self.plan.stat().st_size)
        digest = [self.succeed_json("inspect", plan, "--json")["content_digest"] for plan in (stripped, self.plan)]
        self.assertEqual(digest[0], digest[1])

    def test_max_ram_takes_the_least_memory_where_the_usual_plan_takes_more(self):
        """On a small device; the bytes are those that `inspect` says of the plans without a limit."""
        plans, bytes_of = {}, {}
        target = ("--target", "cpu,arch=cortex-m4")
        for fuse in ("auto", "memory", "off"):
            plan = self.folder / f"{fuse}.qplan"
            self.succeed("pack", DIGITS, "-o", plan, *target, "--fuse", fuse)
            plans[fuse] = plan.read_bytes()
            memory = self.succeed_json("inspect", plan, "--json")["memory"]
            bytes_of[fuse] = memory["session_bytes"]["32_bit"]["1"]
        self.assertLess(bytes_of["memory"], bytes_of["off"], "the test needs a network whose layers can be fused")
        plan = self.folder / "limited.qplan"
        for limit, fuse, expected in ((bytes_of["off"], "off", "off"), (bytes_of["memory"], "off", "memory"),
                                      (bytes_of["auto"], "auto", "auto")):
            with self.subTest(limit=limit, fuse=fuse):
                self.succeed("pack", DIGITS, "-o", plan, *target, "--fuse", fuse, "--max-ram", str(limit))
                self.assertEqual(plan.read_bytes(), plans[expected])
        with self.subTest("what the limit leaves makes cascades faster"):
            limit = bytes_of["off"] - 1
            self.succeed("pack", DIGITS, "-o", plan, *target, "--fuse", "off", "--max-ram", str(limit))
            inspected = self.succeed_json("inspect", plan, "--json")
            self.assertLessEqual(inspected["memory"]["session_bytes"]["32_bit"]["1"], limit)
            least = self.succeed_json("inspect", self.folder / "memory.qplan", "--json")
            kept = [sum("keeps_arguments" in step["params"] for step in plan["steps"]) for plan in (inspected, least)]
            self.assertGreater(kept[0], kept[1])
        self.succeed("pack", DIGITS, "-o", plan, *target, "--max-ram", "1M")
        self.succeed("pack", DIGITS, "-o", plan, *target, "--max-ram", "01000K")  # 01000 is not 512
        self.assertEqual(plan.read_bytes(), plans["auto"])
        plan.unlink()
        least = bytes_of["memory"]
        self.refused(1, [f"takes {least} bytes, expected at most {least - 1}: step ", "in use"],
                     "pack", DIGITS, "-o", plan, *target, "--max-ram", str(least - 1))
        self.assertFalse(plan.exists(), "nothing is written")

    def test_max_ram_counts_what_a_session_has_beside_activations(self):
        """Six layers on a few pixels: as one cascade their tensors take no less, but the session has fewer steps."""
        weights = ", ".join(str(i % 19 - 9) for i in range(64))
        lines, data = [], "%x"
        for i in range(6):
            lines += [f"  %{2 * i} = qnn.conv2d({data}, const(Tensor[(8, 1, 1, 8), int8], [{weights}]), 0, 0, 1f, 1f, "
                      'channels=8, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="OHWI");',
                      f'  %{2 * i + 1} = qnn.requantize(%{2 * i}, 1f, 0, 9f, 0, out_dtype="int8");']
            data = f"%{2 * i + 1}"
        model = self.file("layers.relay", "\n".join(
            ['#[version = "0.0.5"]', "def @main(%x: Tensor[(1, 4, 4, 8), int8]) {", *lines, f"  {data}", "}", ""]).encode())
        plan, bytes_of = self.folder / "x.qplan", {}
        for fuse in ("memory", "all"):
            self.succeed("pack", model, "-o", plan, "--fuse", fuse)
            memory = self.succeed_json("inspect", plan, "--json")["memory"]
            bytes_of[fuse] = memory["session_bytes"]["64_bit"]["1"]
        self.assertLess(bytes_of["all"], bytes_of["memory"], "the test needs a network of which this is so")
        self.succeed("pack", model, "-o", plan, "--max-ram", str(bytes_of["all"]))
        text = self.succeed("explain", model, "--memory")
        self.assertRegex(text, f"from {bytes_of['all']:,} on that of --fuse all; no plan takes less than {bytes_of['all']:,}\n")
        memory = self.succeed_json("inspect", plan, "--json")["memory"]
        self.assertEqual(memory["session_bytes"]["64_bit"]["1"], bytes_of["all"])

    def test_dump_after_prints_the_ir_alone(self):
        result = run("pack", DIGITS, "-o", self.folder / "x.qplan", "--dump-after", "all")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("def @main", result.stdout)
        self.assertIn("arena peak", result.stderr)
        self.assertNotIn("arena peak", result.stdout)

    def test_unknown_pass_is_an_error(self):
        self.refused(1, ["no_such_pass"], "pack", DIGITS, "-o", self.folder / "x.qplan", "--dump-after", "no_such_pass")
        self.assertEqual(self.left_behind(), [])

    def test_a_memory_limit_that_a_device_cannot_keep_is_told(self):
        plan = self.folder / "npu.qplan"
        for limit, is_told in (("1K", True), ("1M", False)):
            result = run("pack", DIGITS, "-o", plan, "--target", f"ethos-u55-128,sram={limit}, cpu", "--no-cost-gate")
            self.assertEqual(result.returncode, 0, result.stderr)
            told = re.search(r"region '\S+': its buffers take \d+ bytes .* sram= allows 1024", result.stderr)
            self.assertEqual(told is not None, is_told, result.stderr)
        # The network's input waits while the second region runs.
        result = run("pack", DIGITS, "-o", plan, "--target", "ethos-u55-128,sram=1K, cpu", "--no-cost-gate",
                     "--pin", "down/depthwise=cpu")
        self.assertRegex(result.stderr, r"_main_1': its buffers take \d+ bytes with the cascades that need least beside \d+ bytes "
                                        r"of tensors that wait for other regions, sram= allows 1024")

    def test_unknown_target_is_an_error(self):
        self.refused(1, ["abacus"], "pack", DIGITS, "-o", self.folder / "x.qplan", "--target", "abacus")
        self.assertEqual(self.left_behind(), [])

    def test_wrong_models_leave_nothing_behind(self):
        output = self.folder / "out" / "x.qplan"
        output.parent.mkdir()
        cases = {
            "empty": (self.file("empty.tflite", b""), "empty.tflite"),
            "text": (self.file("text.tflite", b"no model at all, just text" * 9), "text.tflite"),
            "cut": (self.file("cut.tflite", DIGITS.read_bytes()[:5000]), "cut.tflite"),
            "missing": (self.folder / "missing.tflite", "missing.tflite"),
            "folder": (self.folder, str(self.folder)),
        }
        for name, (model, text) in cases.items():
            with self.subTest(name):
                self.refused(1, [text], "pack", model, "-o", output)
                self.assertEqual(list(output.parent.iterdir()), [])

    def test_output_that_cannot_be_written(self):
        self.refused(1, [str(self.folder)], "pack", DIGITS, "-o", self.folder)
        self.refused(1, ["none"], "pack", DIGITS, "-o", self.folder / "none" / "x.qplan")
        self.assertEqual(self.left_behind(), [])

    def test_full_disk_leaves_nothing_behind(self):
        self.refused(1, ["x.qplan"], "pack", DIGITS, "-o", self.folder / "x.qplan", file_size_limit=4096)
        self.assertEqual(self.left_behind(), [])

    def test_full_disk_keeps_the_plan_that_was_there(self):
        old = self.file("x.qplan", b"the old plan")
        self.refused(1, ["x.qplan"], "pack", DIGITS, "-o", old, file_size_limit=4096)
        self.assertEqual((old.read_bytes(), self.left_behind()), (b"the old plan", ["x.qplan"]))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_dev_full_is_an_error_and_stays_a_device(self):
        self.refused(1, ["/dev/full"], "pack", DIGITS, "-o", "/dev/full")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))


class Reports(CommandTest):
    def test_inspect_json_has_what_scripts_need(self):
        plan = self.succeed_json("inspect", self.plan, "--json")
        self.assertRegex(plan["content_digest"], r"[0-9a-f]{64}$")
        for tensor in plan["inputs"] + plan["outputs"]:
            self.assertLessEqual({"name", "dtype", "shape", "bytes", "scale", "zero_point"}, set(tensor))
        self.assertEqual((plan["inputs"][0]["dtype"], plan["inputs"][0]["shape"]), ("int8", [1, 16, 16, 1]))
        self.assertIn("memory", plan)
        self.assertGreater(len(plan["steps"]), 0)

    def test_inspect_tells_people(self):
        page = self.succeed("inspect", self.plan)
        for text in ("digest:", "input 0:", "int8[1,16,16,1]", "output 0:", "steps:", "arena:", "session:"):
            self.assertIn(text, page)

    def test_disasm_has_a_line_per_step(self):
        steps = self.succeed_json("inspect", self.plan, "--json")["steps"]
        lines = self.succeed("disasm", self.plan).splitlines()
        for step in steps:
            self.assertTrue(any(re.match(rf"\s*{step['index']}\s+{step['op']}\b", line) for line in lines), step)

    def test_import_prints_relay(self):
        imported = self.succeed("import", DIGITS, "--print")
        canonical = self.succeed("import", DIGITS, "--canonical", "--print")
        for text in (imported, canonical):
            self.assertIn("def @main", text)

    def test_import_says_what_is_in_a_model(self):
        text = self.succeed("import", DIGITS)
        self.assertRegex(text, rf"^imported '{DIGITS}'\n  input +[^\n]*Tensor\[\(1, 16, 16, 1\), int8\]\n")
        self.assertRegex(text, r"\n  output +Tensor\[\(1, 10\), int8\]\n  operators +\d+: .*qnn.conv2d \d+")
        self.assertRegex(self.succeed("import", DIGITS, "--canonical"), r"^canonical form of .*\n.*\n.*\n  operators")

    def test_text_that_is_no_relay_is_no_model(self):
        for name, text in (("readme.md", b"# Title\nThis is 100% text.\n"), ("page.tflite", b"<html>404</html>\n")):
            path = self.file(name, text)
            for command in (("pack", path, "-o", self.folder / "x.qplan"), ("import", path), ("explain", path)):
                self.refused(1, [name, "is not a model", "text that is no Relay"], *command)

    def test_many_faults_have_a_line_each_after_their_count(self):
        relay = self.file("m.relay", b"def @main(%x: Tensor[(1, 4), float32], %y: Tensor[(1, 4), int64]) {"
                          b" (abs(negative(abs(negative(%y)))), abs(%x)) }")
        result = run("pack", relay, "-o", self.folder / "x.qplan")
        self.assertEqual((result.returncode, self.left_behind()), (1, ["m.relay"]))
        lines = result.stderr.splitlines()
        self.assertRegex(lines[0], r"^qplan: the model is not quantised: ")
        self.assertEqual(lines[1], "  target 'cpu' cannot run 4 of 5 operators:")
        self.assertEqual(sorted(line.split()[2].rstrip(":") for line in lines[2:4]), ["abs", "negative"])
        for line in lines[2:4]:
            self.assertRegex(line, r"^  \S")

    def test_float_models_are_told_how_to_be_quantised(self):
        relay = self.file("m.relay", b"def @main(%x: Tensor[(1, 2), float32]) {"
                          b" nn.dense(%x, const(Tensor[(1, 2), float32], [0.5, 2])) }")
        told = run("pack", relay, "-o", self.folder / "float.qplan")
        self.assertEqual(told.returncode, 0, told.stderr)
        for words in ("the model is not quantised", "representative dataset", "quantize_static"):
            self.assertIn(words, told.stderr)
        self.assertNotIn("not quantised", run("pack", DIGITS, "-o", self.folder / "quantised.qplan").stderr)
        without_layers = self.file("relu.relay", b"def @main(%x: Tensor[(1, 4), float32]) { nn.relu(%x) }")
        self.succeed("pack", without_layers, "-o", self.folder / "relu.qplan")

    def test_long_paths_are_whole_in_errors_of_models(self):
        folder = self.folder / ("d" * 200) / ("e" * 100)
        folder.mkdir(parents=True)
        (folder / "cut.tflite").write_bytes(DIGITS.read_bytes()[:5000])
        self.refused(1, [str(folder / "cut.tflite")], "import", folder / "cut.tflite")

    def test_check_says_ok(self):
        self.assertRegex(self.succeed("check", self.plan), r"^OK: .*steps")

    def test_check_finds_one_flipped_bit(self):
        data = bytearray(self.plan.read_bytes())
        data[-1] ^= 1
        self.refused(1, ["bad.qplan", "SHA-256"], "check", self.file("bad.qplan", data))

    def test_truncated_plans_are_refused(self):
        data = self.plan.read_bytes()
        for size in (0, 1, 63, 64, 65, len(data) // 2, len(data) - 1):
            with self.subTest(size=size):
                cut = self.file("cut.qplan", data[:size])
                for command in ("check", "inspect", "disasm", "bench"):
                    self.refused(1, ["cut.qplan"], command, cut)

    def test_a_model_is_not_a_plan(self):
        for command in ("inspect", "disasm", "check", "bench", "run"):
            self.refused(1, ["qplan pack"], command, DIGITS)

    def test_missing_plan_and_directory(self):
        for command in ("inspect", "disasm", "check", "bench", "run"):
            self.refused(1, ["none.qplan"], command, self.folder / "none.qplan")
            self.refused(1, ["directory"], command, self.folder)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_standard_output_is_an_error(self):
        for arguments in (("inspect", self.plan, "--json"), ("disasm", self.plan), ("--help",), ("--version",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.refused(1, ["standard output"], *arguments, stdout=full)


class Bench(CommandTest):
    def test_json_has_the_figures(self):
        report = self.succeed_json("bench", self.plan, "--runs", "30", "--threads", "2", "--json")
        self.assertEqual((report["runs"], report["threads"]), (30, 2))
        self.assertLessEqual(report["min_ns"], report["median_ns"])
        self.assertLessEqual(report["median_ns"], report["p90_ns"])
        self.assertLessEqual(report["p90_ns"], report["p99_ns"])
        self.assertEqual((report["warmup"], report["inputs"]), (5, "random"))
        self.assertGreater(report["min_ns"], 0)
        self.assertGreater(report["macs"], 0)
        self.assertGreater(report["memory_bytes"], 0)
        self.assertEqual(report["memory_bytes"], report["arena_bytes"], "the older name of the same figure")
        self.assertGreater(report["open_ns"], 0)
        self.assertGreater(report["init_ns"], 0)
        self.assertIsInstance(report["isa"], str)

    def test_runs_thirty_times_at_least(self):
        self.assertGreaterEqual(self.succeed_json("bench", self.plan, "--json")["runs"], 30)

    def test_inputs_and_warm_up_are_the_callers(self):
        report = self.succeed_json("bench", self.plan, "--input", self.digit_input(3), "--warmup", "0", "--runs", "2", "--json")
        self.assertEqual((report["warmup"], report["inputs"]), (0, [str(self.digit_input(3))]))
        self.refused(1, ["has 1 input, found 2"], "bench", self.plan, "--input", DIGITS, "--input", DIGITS)
        self.refused(1, ["is the same file as plan"], "bench", self.plan, "--csv", self.plan)

    def test_csv_has_runs_or_steps(self):
        table = self.folder / "table.csv"
        self.succeed("bench", self.plan, "--runs", "7", "--csv", table)
        lines = table.read_text().splitlines()
        self.assertEqual((lines[0], len(lines)), ("run,ns", 8))
        self.succeed("bench", self.plan, "--runs", "7", "--per-step", "--csv", table)
        lines = table.read_text().splitlines()
        self.assertEqual(lines[0], "step,op,kernel,name,median_ns,p90_ns,p99_ns,min_ns,macs,bytes")
        self.assertEqual(len(lines), 12)
        self.assertIn(",block1/add,", lines[3])

    def test_trace_has_a_span_for_each_run_and_a_lane_for_each_worker(self):
        file = self.folder / "trace.json"
        self.succeed("bench", self.plan, "--runs", "3", "--threads", "2", "--trace", file)
        events = json.loads(file.read_text())["traceEvents"]
        lanes = {event["args"]["name"]: event["tid"] for event in events if event["ph"] == "M"}
        self.assertEqual(list(lanes), ["runs", "steps", "worker 0", "worker 1"])
        spans = {name: [event for event in events if event["ph"] == "X" and event["tid"] == lane] for name, lane in lanes.items()}
        self.assertEqual([span["name"] for span in spans["runs"]], ["run 0", "run 1", "run 2"])
        self.assertEqual(len(spans["steps"]), 3 * 11)
        # Steps are inside their runs, and what workers do is inside a step of the same name.
        for span in spans["steps"]:
            self.assertTrue(any(run["ts"] <= span["ts"] and span["ts"] + span["dur"] <= run["ts"] + run["dur"] for run in spans["runs"]))
        tasks = spans["worker 0"] + spans["worker 1"]
        self.assertGreater(len(tasks), 0)
        for task in tasks:
            self.assertTrue(any(step["name"] == task["name"] and step["ts"] <= task["ts"] for step in spans["steps"]))

    def test_isa_limit_is_kept(self):
        self.assertEqual(self.succeed_json("bench", self.plan, "--isa", "reference", "--json")["isa"], "reference")

    def test_per_step(self):
        steps = self.succeed_json("inspect", self.plan, "--json")["steps"]
        report = self.succeed_json("bench", self.plan, "--per-step", "--runs", "30", "--json")
        self.assertEqual([step["op"] for step in report["steps"]], [step["op"] for step in steps])
        self.assertEqual(sum(step["macs"] for step in report["steps"]), report["macs"])
        self.assertAlmostEqual(sum(step["share"] for step in report["steps"]), 1)
        for step in report["steps"]:
            self.assertGreater(step["bytes"], 0)
            self.assertAlmostEqual(step["gmac_per_s"], step["macs"] / step["median_ns"])
        self.assertIn("conv2d", self.succeed("bench", self.plan, "--per-step", "--runs", "30", "--pool=openmp"))

    def test_per_step_tells_shares_of_the_peak(self):
        report = self.succeed_json("bench", self.plan, "--per-step", "--runs", "30", "--json")
        if report["peak_gmac_per_s"] is None:
            self.skipTest(f"no peak is known for {report['isa']}")
        conv = next(step for step in report["steps"] if step["op"] == "conv2d")
        self.assertAlmostEqual(conv["share_of_peak"], conv["gmac_per_s"] / report["peak_gmac_per_s"])
        self.assertLess(conv["share_of_peak"], 1)

    def test_no_peak_of_the_reference(self):
        report = self.succeed_json("bench", self.plan, "--per-step", "--isa", "reference", "--runs", "30", "--json")
        self.assertIsNone(report["peak_gmac_per_s"])
        self.assertEqual({step["share_of_peak"] for step in report["steps"]}, {None})

    def test_words_agree_and_times_are_readable(self):
        text = self.succeed("bench", self.plan, "--runs", "1")
        self.assertRegex(text, r"^median \d+\.\d+ (us|ms|s), p90 .* over 1 run; .* 1 thread, ")
        self.assertIn("over 2 runs;", self.succeed("bench", self.plan, "--runs", "2"))

    def test_a_busy_machine_is_told(self):
        report = self.succeed_json("bench", self.plan, "--json")
        self.assertGreaterEqual(report["load_average"], 0)
        busy = report["load_average"] > 0.5 and report["load_average"] + 1 > len(os.sched_getaffinity(0)) + 0.5
        spread = report["p90_ns"] > 1.25 * report["median_ns"]
        self.assertEqual([busy, spread], ["busy" in str(report["warnings"]), "spread" in str(report["warnings"])])

    def test_wrong_options(self):
        self.refused(2, ["--runs"], "bench", self.plan, "--runs", "0")
        self.refused(2, ["--threads"], "bench", self.plan, "--threads", "0")
        self.refused(2, ["--pool"], "bench", self.plan, "--pool=swimming")


class Usage(CommandTest):
    def test_help_has_examples(self):
        self.assertIn("qplan pack", self.succeed("--help"))
        for command in SUBCOMMANDS:
            text = self.succeed(command, "--help")
            self.assertIn("Example", text)
            self.assertIn(f"qplan {command} ", text)

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^qplan \d+\.\d+\.\d+\ncommit .+\ncompiler .+\ninstruction sets .+\n$")

    def test_help_is_a_command_too(self):
        self.assertEqual(self.succeed("help"), self.succeed("--help"))
        for command in (("pack",), ("npu",), ("npu", "replay")):
            self.assertEqual(self.succeed("help", *command), self.succeed(*command, "--help"))
        self.assertEqual(self.succeed("npu", "help", "replay"), self.succeed("npu", "replay", "--help"))

    def test_misspelt_commands(self):
        self.refused(2, ["unknown command 'pakc'; did you mean 'pack'?"], "pakc", DIGITS)
        self.refused(2, ["unknown command 'inpsect'; did you mean 'inspect'?"], "help", "inpsect")
        self.refused(2, ["unknown command 'reply'; did you mean 'replay'?"], "npu", "reply")
        self.refused(2, ["unknown command 'frobnicate'; expected pack, run, ", "npu"], "frobnicate")

    def test_wrong_usage_exits_with_2(self):
        self.refused(2, ["--help"])
        self.refused(2, ["no-such-command"], "no-such-command")
        self.refused(2, ["qplan pack --help"], "pack")
        self.refused(2, ["--output"], "pack", DIGITS)
        self.refused(2, ["--no-such-option"], "inspect", self.plan, "--no-such-option")

    def test_a_line_break_in_a_name_stays_in_one_line(self):
        self.refused(1, ["a?b.qplan"], "check", self.folder / "a\nb.qplan")


if __name__ == "__main__":
    unittest.main()
