"""qplan tune, qplan pack --tuning, and what the other commands show of schedules."""

import json
import unittest

from support import DIGITS, CommandTest, run


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

    def test_measures_a_plan_as_its_model(self):
        log, _ = self.tune(self.plan, "--threads", "2")
        model_log = self.folder / "model.jsonl"
        self.succeed("tune", DIGITS, "--log", model_log, "--budget", "0", "--threads", "2")
        keys = [{line["key"] for line in self.lines(path)} for path in (log, model_log)]
        self.assertEqual(keys[0], keys[1])
        self.assertEqual({line["threads"] for line in self.lines(log)}, {2})

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

    def test_what_is_wrong_is_an_error(self):
        log = self.file("bad.jsonl", b'{"key": "k", "schedule": {}, "threads": 1, "ns": 5}\n{"key": 7\n')
        self.refused(1, [f"tuning '{log}' line 2: is not JSON (byte 10)"], "pack", DIGITS, "-o",
                     self.folder / "x.qplan", "--tuning", log)
        self.refused(1, ["missing.jsonl"], "pack", DIGITS, "-o", self.folder / "x.qplan", "--tuning",
                     self.folder / "missing.jsonl")
        self.assertEqual(self.left_behind(), ["bad.jsonl"])
        self.refused(2, ["--log"], "tune", DIGITS)


if __name__ == "__main__":
    unittest.main()
