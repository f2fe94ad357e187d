"""What the command writes: never over what it reads, whole or not at all, also when a signal ends it."""

import os
import signal
import unittest

from support import DIGITS, DIGITS_DATA, CommandTest, run

# A library that sends a signal to its own process in the place of fsync: in the middle of a write.
INTERRUPTER = os.environ.get("QPLAN_TEST_INTERRUPTER", "")


class Inputs(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.file("m.tflite", DIGITS.read_bytes())

    def keep(self, path, texts, *arguments):
        """The command refuses, names both roles, and path stays as it was."""
        before = path.read_bytes()
        names = self.left_behind()
        self.refused(1, ["is the same file as", str(path), *texts], *arguments)
        self.assertEqual((path.read_bytes(), self.left_behind()), (before, names))

    def test_pack_keeps_its_model(self):
        self.keep(self.model, ["--output", "model"], "pack", self.model, "-o", self.model)

    def test_other_paths_lead_to_the_same_file(self):
        os.symlink("m.tflite", self.folder / "link")
        os.link(self.model, self.folder / "hard")
        (self.folder / "sub").mkdir()
        for path in ("link", "hard", "sub/../m.tflite"):
            self.keep(self.model, ["--output"], "pack", self.model, "-o", f"{self.folder}/{path}")

    def test_pack_keeps_what_options_name(self):
        log = self.file("log.jsonl", b"")
        weights = self.file("w.bin", bytes(4))
        targets = self.file("targets.json", b'{"targets": [{"target": "vta"}]}')
        self.keep(log, ["--tuning"], "pack", self.model, "-o", log, "--tuning", log)
        self.keep(weights, ["--bind"], "pack", self.model, "-o", weights, "--bind", f"w={weights}")
        self.keep(targets, ["--target-file"], "pack", self.model, "-o", targets, "--target-file", targets)

    def test_explain_keeps_its_model(self):
        self.keep(self.model, ["--html"], "explain", self.model, "--html", self.model)

    def test_tune_keeps_its_model(self):
        self.keep(self.model, ["--log"], "tune", self.model, "--log", self.model)

    def test_run_keeps_plan_and_inputs(self):
        plan = self.file("p.qplan", self.plan.read_bytes())
        (self.folder / "out").mkdir()
        data = self.file("out/output0.bin", self.digit_input(3).read_bytes())
        labels = self.file("labels.txt", b"x\n" * 10)
        self.keep(plan, ["--trace", "plan"], "run", plan, "--input", data, "--trace", plan)
        self.keep(data, ["--output-dir", "--input"], "run", plan, "--input", data, "--output-dir", self.folder / "out")
        self.keep(labels, ["--npu-trace", "--labels"], "run", plan, "--input", data, "--labels", labels, "--npu-trace",
                  labels)
        self.refused(1, ["--npu-trace", "is the same file as", "--trace"], "run", plan, "--input", data, "--trace",
                     self.folder / "t", "--npu-trace", self.folder / "out" / ".." / "t")

    def test_report_and_bench_keep_their_inputs(self):
        data = self.file("in.bin", self.digit_input(3).read_bytes())
        self.keep(data, ["--csv", "--input"], "report", self.plan, "--input", data, "--csv", data)
        self.keep(data, ["--trace", "--input"], "bench", self.plan, "--input", data, "--trace", data)

    def test_libraries_of_operators_and_drivers_are_kept(self):
        library, labels = self.file("lib.so", b"a library"), self.file("l.csv", b"")
        for command in (("bench", self.plan, "--csv"), ("report", self.plan, "--dot"), ("run", self.plan, "--trace"),
                        ("eval", self.plan, "--images", self.folder, "--labels", labels, "--csv"),
                        ("tune", self.plan, "--log"), ("tune", self.plan, "--calibrate")):
            self.keep(library, ["--driver"], *command, library, "--driver", f"{library},seed=1")
            self.keep(library, ["--custom-operators"], *command, library, "--custom-operators", library)
        for command in (("pack", self.model, "-o"), ("explain", self.model, "--html")):
            self.keep(library, ["--custom-operators"], *command, library, "--custom-operators", library)

    def one_file(self, texts, *arguments):
        names = self.left_behind()
        self.refused(1, ["is the same file as", *texts], *arguments)
        self.assertEqual(self.left_behind(), names)

    def test_two_outputs_are_two_files_whatever_their_paths(self):
        new = self.folder / "new"
        os.symlink("new", self.folder / "link")  # leads nowhere yet
        for other in (os.path.relpath(new), self.folder / "link", self.folder / ".." / self.folder.name / "new"):
            self.one_file(["--trace", "--csv"], "bench", self.plan, "--csv", new, "--trace", other)
            self.one_file(["--dot", "--output"], "report", self.plan, "--runs", "0", "-o", other, "--dot", new)

    def test_a_dumped_tensor_is_no_other_output(self):
        dump = self.folder / "dump"
        given = ("run", self.plan, "--input", self.digit_input(3), "--dump-tensors", dump)
        self.one_file(["--dump-tensors", "--trace"], *given, "--trace", dump / "tensors.json")
        self.one_file(["--dump-tensors", "--npu-trace"], *given, "--npu-trace", dump / "tensors.json")
        self.succeed(*given)
        tensor = next(dump.glob("*.npy"))
        tensor.unlink()
        self.one_file(["--dump-tensors", "--trace"], *given, "--trace", tensor)

    def test_run_keeps_an_input_in_a_recorded_job(self):
        (self.folder / "jobs" / "job-0000").mkdir(parents=True)
        self.file("jobs/job-0000/job.txt", b"")
        data = self.file("jobs/job-0000/in.bin", self.digit_input(3).read_bytes())
        self.refused(1, ["--npu-record", "in.bin", "would be removed"], "run", self.plan, "--input", data, "--npu-record",
                     self.folder / "jobs")
        self.assertTrue(data.exists())

    def test_eval_keeps_its_pictures(self):
        (self.folder / "pictures").mkdir()
        picture = self.file("pictures/3.bin", self.digit_input(3).read_bytes())
        labels = self.file("labels.csv", b"3.bin,3\n")
        self.keep(picture, ["--csv", "--images"], "eval", self.plan, "--images", self.folder / "pictures", "--labels", labels,
                  "--csv", picture)

    def test_check_keeps_inputs_and_expected_outputs(self):
        (self.folder / "golden").mkdir()
        data = self.file("golden/input0.bin", self.digit_input(3).read_bytes())
        self.file("golden/output0.bin", bytes(10))
        golden = self.folder / "golden"
        self.keep(data, ["--reproduce", "--input"], "check", self.plan, "--against", self.plan, "--input", data, "--reproduce",
                  golden)
        for folder in (golden, self.folder, golden / "new"):
            self.refused(1, ["--reproduce", "--expect", "would mix their files"], "check", self.plan, "--expect", golden,
                         "--reproduce", folder)

    def test_emit_c_and_link_keep_their_plans(self):
        # The name that a file of the C gets.
        another = self.file("another.qplan", self.plan.read_bytes())
        for name, arguments in (("kws.h", ("emit-c",)), ("kws.c", ("emit-c", "--aot")), ("kws.c", ("link", another))):
            plan = self.file(name, self.plan.read_bytes())
            self.keep(plan, ["--output", "plan"], *arguments, plan, "-o", self.folder)
            plan.unlink()

    def test_emit_c_leaves_what_was_there_where_a_file_cannot_be_written(self):
        header = self.file("kws.h", b"precious")
        (self.folder / "kws.c").mkdir()
        self.refused(1, ["kws.c", "is a directory"], "emit-c", self.plan, "--name", "kws", "-o", self.folder)
        self.assertEqual(header.read_bytes(), b"precious")
        self.assertEqual(self.left_behind(), ["kws.c", "kws.h", "m.tflite"])

    def test_emit_c_mixes_no_forms_in_a_folder(self):
        out = self.folder / "out"
        self.succeed("emit-c", self.plan, "--name", "kws", "-o", out)
        self.refused(1, ["kws_plan.c", "does not belong to files of --aot; remove it"], "emit-c", self.plan, "--aot",
                     "--name", "kws", "-o", out)
        self.succeed("emit-c", self.plan, "--name", "kws", "-o", out)
        (out / "kws_plan.c").unlink()
        self.succeed("emit-c", self.plan, "--aot", "--name", "kws", "-o", out)

    def test_devices_are_no_files(self):
        self.succeed("run", self.plan, "--input", self.digit_input(3), "--labels", self.labels(), "--trace", "/dev/null",
                     "--output-dir", self.folder / "out")
        self.succeed("bench", self.plan, "--runs", "1", "--csv", "/dev/null", "--trace", "/dev/null")

    def test_an_empty_name_is_no_name(self):
        plan = self.file("p.qplan", self.plan.read_bytes())
        run = ("run", plan, "--input", self.digit_input(3))
        names = self.left_behind()
        for *arguments, option in (("sign", plan, "--key", self.labels(), "-o"), ("pack", self.model, "-o", plan, "--tuning"),
                                   ("import", self.model, "--diff"), ("link", plan, self.plan, "-o"),
                                   ("eval", plan, "--images", self.folder, "--names"), ("bench", plan, "--custom-operators"),
                                   *((*run, option) for option in ("--labels", "--trace", "--output-dir", "--dump-tensors",
                                                                   "--npu-record", "--npu-trace"))):
            self.refused(2, [f"qplan: {'--output' if option == '-o' else option}: found '', expected the name of a file"],
                         *arguments, option, "")
        self.assertEqual(plan.read_bytes(), self.plan.read_bytes())
        self.assertEqual(self.left_behind(), sorted([*names, "labels.txt"]))

    def test_a_pipe_is_no_plan_and_no_model(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for command in (("explain", pipe), ("tune", pipe, "--log", self.folder / "log"), ("check", self.plan, "--against", pipe),
                        ("eval", pipe, "--images", DIGITS_DATA, "--against", self.plan)):
            self.refused(1, [str(pipe), "is not a regular file"], *command)

    def labels(self):
        return self.file("labels.txt", b"x\n" * 10)


class SeveralOutputs(CommandTest):
    """All are written, or none that was not there before."""

    def leaves(self, names, *arguments, **limits):
        result = run(*arguments, **limits)
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 1), result.stderr)
        self.assertEqual(self.left_behind(), names, result.stderr)

    def test_what_was_written_before_the_one_that_fails(self):
        trace, out = self.folder / "t.json", self.folder / "out" / "new"
        given = ("run", self.plan, "--input", self.digit_input(3))
        # Larger than the outputs, smaller than tensors.json and the page.
        self.leaves([], *given, "--output-dir", out, "--dump-tensors", self.folder / "a" / "b", file_size_limit=2000)
        self.leaves([], "report", self.plan, "--runs", "0", "--csv", self.folder / "x.csv", "--dot", self.folder / "x.dot",
                    "-o", "/dev/full")
        self.leaves([], "emit-c", self.plan, "-o", out, file_size_limit=2000)
        out.mkdir(parents=True)
        (out / "output0.bin").mkdir()
        self.leaves(["out", "out/new", "out/new/output0.bin"], *given, "--trace", trace, "--output-dir", out)
        (out / "output0.bin").rmdir()
        (out / "tensors.json").mkdir()
        self.leaves(["out", "out/new", "out/new/tensors.json"], *given, "--trace", trace, "--output-dir",
                    self.folder / "other", "--dump-tensors", out)

    def test_what_cannot_be_written_is_known_before_the_work(self):
        """An input that is missing would be the next error."""
        missing, page, x = self.folder / "gone", self.folder / "x.html", self.folder / "none" / "x"
        for command in (("bench", self.plan, "--input", missing, "--csv"), ("run", self.plan, "--input", missing, "--trace"),
                        ("report", self.plan, "--input", missing, "-o", page, "--dot"), ("pack", missing, "-o"),
                        ("eval", self.plan, "--images", DIGITS_DATA, "--labels", missing, "--csv"),
                        ("explain", missing, "--html"), ("tune", missing, "--calibrate"), ("tune", missing, "--log")):
            self.refused(1, [str(x), "cannot create a file in", "No such file or directory"], *command, x)
            self.refused(1, [str(self.folder), "is a directory"], *command, self.folder)
        self.assertEqual(self.left_behind(), [])


@unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
class FullDisk(CommandTest):
    """The system's reason is in every error of a write."""

    def full(self, *arguments):
        self.refused(1, ["/dev/full", "No space left on device"], *arguments)

    def test_pack_explain_run_tune(self):
        self.full("pack", DIGITS, "-o", "/dev/full")
        self.full("explain", DIGITS, "--target", "vta, cpu", "--html", "/dev/full")
        self.full("run", self.plan, "--input", self.digit_input(3), "--trace", "/dev/full")
        result = run("tune", DIGITS, "--log", "/dev/full", "--budget", "0")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^qplan: log '/dev/full': cannot be written: No space left on device\n$")

    def test_tune_takes_nothing_out_of_its_log(self):
        """Others may have appended to it since: the file ends within a line, which the next run goes past."""
        log = self.file("log", b'{"key": "k", "schedule": {}, "threads": 1, "ns": 1}\n')
        before = log.read_bytes()
        result = run("tune", DIGITS, "--log", log, "--budget", "0", file_size_limit=len(before) + 8)
        self.assertIn("cannot be written: File too large", result.stderr)
        self.assertEqual(log.read_bytes(), before + b'{"key":"')
        self.succeed("tune", DIGITS, "--log", log, "--budget", "0")
        self.assertEqual(log.read_bytes().split(b"\n")[:2], [before[:-1], b'{"key":"'])
        result = run("pack", DIGITS, "-o", self.folder / "x.qplan", "--tuning", log)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_log_that_cannot_be_made_is_known_at_once(self):
        self.refused(1, ["No such file or directory"], "tune", DIGITS, "--log", self.folder / "none" / "log")
        self.refused(1, [str(self.folder), "is a directory"], "tune", DIGITS, "--log", self.folder)


@unittest.skipUnless(os.path.exists(INTERRUPTER), "no QPLAN_TEST_INTERRUPTER, or a sanitizer that lets nothing be loaded")
class Signals(CommandTest):
    def interrupted(self, number, *arguments):
        return run(*arguments, env={"LD_PRELOAD": INTERRUPTER, "QPLAN_TEST_SIGNAL": str(int(number))})

    def test_a_signal_during_a_write_leaves_nothing_and_ends_as_signals_do(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                result = self.interrupted(number, "pack", DIGITS, "-o", self.folder / "x.qplan")
                self.assertEqual((result.returncode, self.left_behind()), (-number, []))

    def test_a_signal_keeps_the_file_that_was_there(self):
        old = self.file("x.qplan", b"the old plan")
        result = self.interrupted(signal.SIGTERM, "pack", DIGITS, "-o", old)
        self.assertEqual((result.returncode, self.left_behind()), (-signal.SIGTERM, ["x.qplan"]))
        self.assertEqual(old.read_bytes(), b"the old plan")

    def test_an_interrupted_call_is_no_failed_write(self):
        for call in ("fsync", "close"):
            with self.subTest(call):
                result = run("pack", DIGITS, "-o", self.folder / "x.qplan", env={"LD_PRELOAD": INTERRUPTER, "QPLAN_TEST_EINTR": call})
                self.assertEqual((result.stderr, result.returncode, self.left_behind()), ("", 0, ["x.qplan"]))

    def test_without_a_signal_the_write_ends(self):
        result = self.interrupted(0, "pack", DIGITS, "-o", self.folder / "x.qplan")
        self.assertEqual((result.returncode, self.left_behind()), (0, ["x.qplan"]))


if __name__ == "__main__":
    unittest.main()
