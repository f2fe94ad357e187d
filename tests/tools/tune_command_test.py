"""qplan tune, qplan pack --tuning, and what the other commands show of schedules."""

import json
import shlex
import unittest

from support import DIGITS, SHARED, CommandTest, needs_shared, run


class Tune(CommandTest):
    def tune(self, source, *arguments):
        log = self.folder / "tuning.jsonl"
        text = self.succeed("tune", source, "--log", log, "--budget", "0", *arguments)
        return log, text

    def lines(self, log):
        """All but those of heats, unless there are no others."""
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return [line for line in lines if "stage" not in line] or lines

    def heats(self, log):
        return [line for line in map(json.loads, log.read_text().splitlines()) if line.get("stage") == "heat"]

    def test_measures_a_model_and_packs_it_with_the_log(self):
        log, text = self.tune(DIGITS)
        self.assertRegex(text, r"^\d+ kinds of steps, \d+ schedules to measure, \d+ pruned\n")
        self.assertRegex(text, r"\d+ of \d+ kinds of steps have a faster schedule; all steps \d+\.\d+ (us|ms|s), with them ")
        for line in self.lines(log):
            self.assertEqual(list(line), ["key", "schedule", "threads", "ns", "runs", "cpu", "version", "isa"])
            self.assertEqual(line["threads"], 1)
            self.assertGreater(line["ns"], 0)
            self.assertGreater(line["runs"], 0)
        defaults = [line for line in self.lines(log) if not line["schedule"]]
        self.assertEqual(len(defaults), len({line["key"] for line in self.lines(log)}))
        tuned, again = self.folder / "a.qplan", self.folder / "b.qplan"
        self.succeed("pack", DIGITS, "-o", tuned, "--tuning", log)
        self.succeed("pack", DIGITS, "-o", again, "--tuning", log)
        self.assertEqual(tuned.read_bytes(), again.read_bytes())
        for digit in range(10):
            self.succeed("run", tuned, "--input", self.digit_input(digit), "--output-dir", self.folder / "out")
            self.assertEqual((self.folder / "out" / "output0.bin").read_bytes(), self.digit_output(digit))

    def test_prints_the_command_that_uses_the_log(self):
        log, text = self.tune(DIGITS, "--fuse", "off", "--threads", "2")
        command = text.splitlines()[-1].removeprefix("next: qplan ").split()
        self.assertEqual(command[:2], ["pack", str(DIGITS)])
        plan = self.folder / "next.qplan"
        self.succeed(*(str(plan) if word == "PLAN" else word for word in command))
        steps = self.succeed_json("inspect", plan, "--json")["steps"]
        self.assertIn("add", {step["op"] for step in steps})  # --fuse off is in the command
        _, text = self.tune(self.plan)
        self.assertIn(f"next: qplan pack MODEL -o PLAN --tuning {log}", text)

    def test_the_command_makes_the_plan_that_was_measured(self):
        options = ("--target", "cpu,arch=x86_64", "--io", "float", "--io-layout", "nchw", "--skip", "dead_code", "--keep-float",
                   "--pin", "%1=cpu", "--fuse", "off")
        _, text = self.tune(DIGITS, *options, "--log-level", "error")
        words = shlex.split(text.splitlines()[-1])
        for option in ("--target", "--io", "--io-layout", "--skip", "--pin", "--fuse"):
            self.assertEqual(words[words.index(option) + 1], options[options.index(option) + 1])
        self.assertIn("--keep-float", words)
        self.assertNotIn("--log-level", words)

    def test_measures_a_plan_as_its_model(self):
        log, _ = self.tune(self.plan, "--threads", "2")
        model_log = self.folder / "model.jsonl"
        self.succeed("tune", DIGITS, "--log", model_log, "--budget", "0", "--threads", "2")
        keys = [{line["key"] for line in self.lines(path)} for path in (log, model_log)]
        self.assertEqual(keys[0], keys[1])
        self.assertEqual({line["threads"] for line in self.lines(log)}, {2})

    def test_measures_what_a_plan_of_a_small_target_has_room_for(self):
        for fuse in ("auto", "memory"):
            log = self.folder / f"{fuse}.jsonl"
            result = run("tune", DIGITS, "--log", log, "--budget", "0", "--target", "cpu,arch=cortex-m4", "--fuse", fuse)
            self.assertEqual(result.returncode, 0, result.stderr)  # with warnings, as this is no Cortex-M4
            schedules = [line["schedule"] for line in self.heats(log)]
            self.assertIn({"block_rows": 16}, schedules)  # the packer's choice for a cascade
            self.succeed("pack", DIGITS, "-o", self.folder / "m4.qplan", "--target", "cpu,arch=cortex-m4", "--fuse", fuse,
                         "--tuning", log)

    def test_heats_are_in_the_log_as_they_are_made(self):
        log, text = self.tune(DIGITS)
        measured = int(text.split(" schedules to measure")[0].split()[-1])
        self.assertEqual(len(self.heats(log)), measured)
        self.assertEqual(log.read_text().splitlines()[0], json.dumps(self.heats(log)[0], separators=(",", ":")))
        only_heats = self.file("heats.jsonl", "".join(json.dumps(line) + "\n" for line in self.heats(log)).encode())
        self.succeed("pack", DIGITS, "-o", self.folder / "x.qplan", "--tuning", only_heats)

    def test_goes_on_where_a_run_was_interrupted(self):
        log, text = self.tune(DIGITS)
        measured = int(text.split(" schedules to measure")[0].split()[-1])
        heats = self.heats(log)
        kept, gone = heats[: len(heats) // 2], heats[len(heats) // 2 :]
        # The name of another machine, and a line that the interruption cut, are not in the way.
        other = {**gone[0], "cpu": "another"}
        log.write_text("".join(json.dumps(line) + "\n" for line in [*kept, other]) + '{"key": "conv')
        _, text = self.tune(DIGITS)
        self.assertIn(f"resumed: '{log}' has {len(kept)} of them from an earlier run\n", text)
        lines = log.read_text().splitlines()
        after = [json.loads(line) for line in lines[lines.index('{"key": "conv') + 1 :]]
        again = [line for line in after if line.get("stage") == "heat"]
        self.assertEqual(sorted((line["key"], str(line["schedule"])) for line in again),
                         sorted((line["key"], str(line["schedule"])) for line in gone))
        self.assertTrue([line for line in after if "stage" not in line])
        log.write_text("".join(line + "\n" for line in lines if line != '{"key": "conv'))
        _, text = self.tune(DIGITS)
        self.assertIn(f"has {measured} of them", text)
        self.assertEqual(len(self.heats(log)), measured + 1, "no heat is run again")

    def test_a_log_that_fits_nothing_is_an_error(self):
        empty = self.file("empty.jsonl", b"\n")
        other = self.file("other.jsonl", b'{"key": "k", "schedule": {}, "threads": 1, "ns": 5}\n')
        log, _ = self.tune(DIGITS, "--threads", "2")
        output = ("-o", self.folder / "x.qplan")
        self.refused(1, ["empty.jsonl", "no measurements"], "pack", DIGITS, *output, "--tuning", empty)
        self.refused(1, ["other.jsonl", "no line (of 1) fits", "qplan tune"], "pack", DIGITS, *output, "--tuning", other)
        self.refused(1, ["measured with 1 thread,", "--tuning-threads"], "pack", DIGITS, *output, "--tuning", log)
        self.assertNotIn("x.qplan", self.left_behind())

    def test_a_log_of_another_model_does_not_fit_by_a_step_without_a_choice(self):
        key = next(line["key"] for line in self.lines(self.tune(DIGITS)[0]) if line["key"].startswith("copy "))
        default = {"key": key, "schedule": {}, "threads": 1, "ns": 5}
        choice = {**default, "schedule": {"grain": 2}}
        output = ("-o", self.folder / "x.qplan")

        def log(*lines):
            return self.file("log.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())

        other = log(default, {**choice, "key": "k"}, {**default, "key": "k"})
        self.refused(1, ["log.jsonl", "no line (of 3) for a step with a choice fits", "qplan tune"],
                     "pack", DIGITS, *output, "--tuning", other)
        self.succeed("pack", DIGITS, *output, "--tuning", log(default, choice))
        self.succeed("pack", DIGITS, *output, "--tuning", log(default))  # a model whose steps have no choice

    def test_appends_to_the_log(self):
        log, _ = self.tune(DIGITS)
        before = log.read_text()
        _, text = self.tune(DIGITS)
        self.assertIn("\nresumed: ", text)
        self.assertTrue(log.read_text().startswith(before))
        self.assertGreater(len(log.read_text()), len(before))

    def test_a_log_without_a_last_newline_keeps_its_last_line(self):
        log, _ = self.tune(DIGITS)
        before = self.lines(log)
        log.write_text(log.read_text().rstrip("\n"))
        self.tune(DIGITS)
        self.assertEqual(self.lines(log)[:len(before)], before)
        self.succeed("pack", DIGITS, "-o", self.folder / "x.qplan", "--tuning", log)

    def test_schedules_are_shown_by_name(self):
        key = next(line["key"] for line in self.lines(self.tune(DIGITS)[0]) if line["key"].startswith("conv2d "))
        log = self.file("one.jsonl", json.dumps(
            {"key": key, "schedule": {"block_pixels": 24, "isa": "sse41"}, "threads": 1, "ns": 1}).encode())
        plan = self.folder / "x.qplan"
        self.succeed("pack", DIGITS, "-o", plan, "--tuning", log)
        self.assertIn("schedule {block_pixels=24, isa=sse41}", self.succeed("disasm", plan))
        self.assertNotIn("schedule", self.succeed("disasm", self.plan))
        shown = [step["schedule"] for step in self.succeed_json("inspect", plan, "--json")["steps"]]
        self.assertIn({"block_pixels": 24, "isa": "sse41"}, shown)
        bench = self.succeed_json("bench", plan, "--per-step", "--runs", "1", "--json")
        self.assertEqual([step["schedule"] for step in bench["steps"]], shown)
        self.assertIn("{block_pixels=24, isa=sse41}", self.succeed("bench", plan, "--per-step", "--runs", "1"))

    def test_unknown_knobs_are_passed_over_with_a_warning(self):
        key = next(line["key"] for line in self.lines(self.tune(DIGITS)[0]) if line["key"].startswith("conv2d "))
        log = self.file("one.jsonl", json.dumps(
            {"key": key, "schedule": {"warp": 1}, "threads": 1, "ns": 1}).encode())
        result = run("pack", DIGITS, "-o", self.folder / "x.qplan", "--tuning", log)
        self.assertEqual(result.returncode, 0)
        self.assertIn("line 1: conv2d has no knob 'warp'", result.stderr)
        self.assertEqual((self.folder / "x.qplan").read_bytes(), self.plan.read_bytes())

    def test_a_torn_line_is_passed_over_with_a_warning(self):
        log, _ = self.tune(DIGITS)
        whole, torn = self.folder / "whole.qplan", self.folder / "torn.qplan"
        self.succeed("pack", DIGITS, "-o", whole, "--tuning", log)
        number = len(log.read_text().splitlines()) + 1
        log.write_text(log.read_text() + '{"key": "conv')
        result = run("pack", DIGITS, "-o", torn, "--tuning", log)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"tuning '{log}' line {number}: is not JSON", result.stderr)
        self.assertIn("the line is passed over", result.stderr)
        self.assertEqual(torn.read_bytes(), whole.read_bytes())

    def test_what_is_wrong_is_an_error(self):
        log = self.file("bad.jsonl", b'\n{"key": 7\n')
        self.refused(1, [f"tuning '{log}' line 2: is not JSON (byte 10)"], "pack", DIGITS, "-o",
                     self.folder / "x.qplan", "--tuning", log)
        self.refused(1, ["missing.jsonl"], "pack", DIGITS, "-o", self.folder / "x.qplan", "--tuning",
                     self.folder / "missing.jsonl")
        self.assertEqual(self.left_behind(), ["bad.jsonl"])
        self.refused(2, ["--log"], "tune", DIGITS)


# Steps that take less are next to the clock's own time.
LEAST_SHARE = 0.03
FACTOR = 1.5


def estimate_ns(costs, cost):
    """What docs/placement.md says of the figures of a target file, for the "cost" of a step in inspect --json."""
    table = costs["cycles_per_million"]
    rate = table[cost["work"]]
    millionths = cost["macs"] * rate.get("macs", 0) + cost["bytes"] * rate.get("bytes", 0)
    millionths += cost["weight_bytes"] * table["weights"]["bytes"]
    return (millionths / 1e6 + costs["step_cycles"]) / costs["clock_mhz"] * 1e3


class Calibrate(CommandTest):
    def calibrate(self, source, *arguments, budget=0):
        """The costs of the CPU in the file, the file, and the printed text."""
        path = self.folder / "board.json"
        text = self.succeed("tune", source, "--calibrate", path, "--budget", budget, *arguments)
        targets = json.loads(path.read_text())["targets"]
        return next(target["costs"] for target in targets if target["target"].startswith("cpu")), path, text

    def test_writes_a_target_file_that_pack_and_explain_take(self):
        costs, path, text = self.calibrate(DIGITS, "--target", "vta,sram=quarter, cpu,clock=2GHz")
        self.assertEqual([target["target"] for target in json.loads(path.read_text())["targets"]], ["vta,sram=quarter", "cpu"])
        self.assertEqual(costs["clock_mhz"], 2000)
        # All of them run on the CPU, whatever a device could take.
        self.succeed("pack", DIGITS, "-o", self.folder / "x.qplan", "--fuse", "off")
        steps = len(self.succeed_json("inspect", self.folder / "x.qplan", "--json")["steps"])
        self.assertRegex(text, rf"^calibrated with \w+: {steps} steps of 1 plan\n")
        self.assertRegex(text, r"\n\d+ of \d+ steps within a factor of 1\.5 of their times, \d+ before\n")
        self.assertEqual(text.splitlines()[-1], f"next: qplan explain {DIGITS} --target-file {path}")
        self.succeed("pack", DIGITS, "-o", self.folder / "x.qplan", "--target-file", path, "--prefer", "latency")
        devices = {device["target"]: device["costs"] for device in
                   self.succeed_json("explain", DIGITS, "--target-file", path, "--json")["devices"]}
        self.assertEqual(devices["cpu"]["clock_khz"], 2_000_000)
        macs = costs["cycles_per_million"]["convolution"]["macs"]
        self.assertEqual(devices["cpu"]["macs_per_us"], 2_000_000 * 1000 // macs)

    # The estimates differ from the times by the same factor for all layers, however busy the machine is.
    @needs_shared
    def test_estimates_and_times_have_the_same_ratios_between_layers(self):
        for name in ("kws_ref_model", "person_detect", "pretrainedResnet_quant"):
            model = SHARED / "models" / f"{name}.tflite"
            with self.subTest(model=name):
                plan = self.folder / f"{name}.qplan"
                self.succeed("pack", model, "-o", plan, "--fuse", "off")
                for _ in range(8):  # other tests may disturb the times of a layer
                    outside = self.layers_outside(plan)
                    if not outside:
                        break
                self.assertEqual(outside, [])

    def layers_outside(self, plan):
        costs, _, _ = self.calibrate(plan, budget=1)
        of_steps = [step["cost"] for step in self.succeed_json("inspect", plan, "--json")["steps"]]
        bench = json.loads(run("bench", plan, "--per-step", "--json", "--runs", "300").stdout)["steps"]
        layers = [(step["name"], step["min_ns"], estimate_ns(costs, cost)) for step, cost in zip(bench, of_steps) if cost]
        self.assertGreater(len(layers), 8)
        measured, estimated = (sum(layer[i] for layer in layers) for i in (1, 2))
        ratios = [(name, ns / measured, ns / of * estimated / measured) for name, ns, of in layers]
        return [layer for layer in ratios if layer[1] >= LEAST_SHARE and not 1 / FACTOR < layer[2] < FACTOR]

    def test_a_list_without_the_cpu_gets_it(self):
        _, path, _ = self.calibrate(DIGITS, "--target", "vta")
        self.assertEqual([target["target"] for target in json.loads(path.read_text())["targets"]], ["vta", "cpu"])

    def test_takes_the_target_of_a_plan(self):
        self.succeed("pack", DIGITS, "-o", self.folder / "a.qplan", "--target", "cpu,isa=reference")
        _, path, text = self.calibrate(self.folder / "a.qplan", "--isa", "reference", "--with", self.folder / "a.qplan")
        self.assertEqual(json.loads(path.read_text())["targets"][0]["target"], "cpu,arch=x86_64,isa=reference")
        self.assertIn("of 2 plans\n", text)
        self.assertIn("next: qplan explain MODEL --target-file ", text)

    def test_steps_without_an_estimate_are_left_out(self):
        self.succeed("pack", DIGITS, "-o", self.folder / "a.qplan", "--fuse", "all")
        kinds = [step["cost"] for step in self.succeed_json("inspect", self.folder / "a.qplan", "--json")["steps"]]
        self.assertIn(None, kinds)
        _, _, text = self.calibrate(self.folder / "a.qplan")
        self.assertRegex(text, r"\nleft out: \d+ steps? of 'chain', which has no estimate\n")

    def test_what_is_wrong_is_an_error(self):
        path = self.folder / "board.json"
        self.refused(2, ["found both"], "tune", DIGITS, "--calibrate", path, "--log", path)
        self.refused(2, ["found neither"], "tune", DIGITS)
        self.refused(2, ["--with: has no effect without --calibrate"], "tune", DIGITS, "--log", path, "--with", DIGITS)
        self.refused(2, ["--threads 2, expected 1"], "tune", DIGITS, "--calibrate", path, "--threads", "2")
        self.refused(2, ["2 processors after --affinity, expected 1"], "tune", DIGITS, "--calibrate", path, "--affinity",
                     "0,0")
        self.refused(2, ["found --target-file"], "tune", DIGITS, "--calibrate", path, "--target-file", path)
        self.refused(1, ["clock '2' of 'cpu'"], "tune", DIGITS, "--calibrate", path, "--target", "cpu,clock=2")
        for target, expected in (("cpu,arch=cortex-m4", "expected one for this machine"), ("cpu,isa=sse41", "pack them for one target")):
            self.succeed("pack", DIGITS, "-o", self.folder / "other.qplan", "--target", target)
            self.refused(1, ["other.qplan", expected], "tune", DIGITS, "--calibrate", path, "--with", self.folder / "other.qplan")
        self.assertEqual(self.left_behind(), ["other.qplan"])


if __name__ == "__main__":
    unittest.main()
