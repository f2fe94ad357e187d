"""Options that would do nothing where they stand are refused, by name."""

import pathlib
import unittest

from support import DIGITS, DIGITS_DATA, CommandTest, run

VALUES = {"--target": "nonsense", "--contract": "zz", "--io": "zz", "--io-layout": "zz", "--placement": "foo", "--fallback": "zz",
          "--log-level": "xx", "--pin": "zz", "--prefer": "npu", "--skip": "zz", "--dump-after": "zz", "--input-shape": "zz"}
INPUT = DIGITS_DATA / "digit1_input.bin"
GOLDEN = DIGITS_DATA  # any folder


class GivenOptions(CommandTest):
    def no_effect(self, option, where, *arguments):
        self.refused(2, [f"{option}: has no effect {where}"], *arguments)

    def test_options_of_models_on_a_plan(self):
        for command, *more in (("check",), ("check", "--against", "isas"), ("explain",), ("tune", "--log", self.folder / "log")):
            for option, value in VALUES.items():
                self.no_effect(option, "on a plan", command, self.plan, *more, option, value)
            self.no_effect("--keep-float", "on a plan", command, self.plan, *more, "--keep-float")
        self.no_effect("--fuse", "on a plan", "check", self.plan, "--fuse", "off")
        self.succeed("check", self.plan, "--against", DIGITS, "--fuse", "off")
        self.assertEqual(self.left_behind(), [])

    def test_options_of_runs_on_a_check_that_runs_nothing(self):
        for option, value in {"--threads": "3", "--isa": "reference", "--affinity": "0", "--pool": "threads"}.items():
            self.no_effect(option, "without --expect or --against or --self", "check", self.plan, option, value)
        for option, value in {"--mean": "abc", "--std": "0", "--tolerance": "5", "--random": "9"}.items():
            for more in ((), ("--self",)):
                self.no_effect(option, "without --expect or --against", "check", self.plan, option, value, *more)

    def test_options_that_a_comparison_does_not_read(self):
        check = ("check", self.plan, "--against")
        self.no_effect("--isa", "on --against isas", *check, "isas", "--isa", "reference")
        self.no_effect("--threads", "on --against threads", *check, "threads", "--threads", "2")
        self.no_effect("--affinity", "on --against threads", *check, "threads", "--affinity", "0")
        self.no_effect("--random", "beside --input", *check, "isas", "--input", INPUT, "--random", "2")
        self.no_effect("--random", "beside --expect", "check", self.plan, "--expect", GOLDEN, "--random", "2")
        self.succeed(*check, "reference,isas", "--isa", "reference")
        for nothing in ("", ",", ",,"):
            self.refused(2, ["--against: names nothing; expected a plan, a model or reference, isas"], *check, nothing)

    def test_normalisation_without_pictures(self):
        for option in ("--mean", "--std"):
            for command, *more in (("run",), ("bench",), ("report", "--json"), ("check", "--against", "isas")):
                self.no_effect(option, "without a picture after --input", command, self.plan, *more, "--input", INPUT, option, "2")

    def test_import_rewrites_nothing_without_canonical(self):
        for option in ("--target", "--io", "--io-layout", "--contract", "--skip"):
            self.no_effect(option, "without --canonical", "import", DIGITS, option, "nonsense")
            self.refused(1, ["nonsense"], "import", DIGITS, option, "nonsense", "--canonical")
        self.no_effect("--dump-after", "without --canonical, except import and all", "import", DIGITS, "--dump-after", "dead_code")
        self.assertTrue(self.succeed("import", DIGITS, "--dump-after", "all").startswith("// after import\n"))

    def test_coverage_makes_no_plan(self):
        for option in (("-o", "x"), ("--tuning", "x"), ("--max-ram", "1"), ("--self-check", "1"), ("--fuse", "all"),
                       ("--strip-names",), ("--observable",)):
            name = "--output" if option[0] == "-o" else option[0]
            self.no_effect(name, "beside --coverage", "pack", DIGITS, "--coverage", *option)

    def test_of_two_options_one_is_refused(self):
        plan = self.folder / "x.qplan"
        self.refused(2, ["--target", "excludes", "--target-file"], "pack", DIGITS, "-o", plan, "--target-file", "f", "--target", "cpu")
        self.refused(2, ["--verbose", "excludes", "--log-level"], "pack", DIGITS, "-o", plan, "-v", "--log-level", "error")
        self.refused(2, ["--tuning-threads requires --tuning"], "pack", DIGITS, "-o", plan, "--tuning-threads", "2")
        self.refused(1, ["option 'isa' of 'cpu' is there twice"], "pack", DIGITS, "-o", plan, "--target", "cpu,isa=avx2,isa=sse41")
        for command in (("explain", DIGITS), ("explain", DIGITS, "--memory"), ("pack", DIGITS, "--coverage"),
                        ("check", DIGITS, "--against", "isas")):
            self.refused(2, ["--json", "excludes", "--dump-after"], *command, "--json", "--dump-after", "import")
        self.assertEqual(self.left_behind(), [])

    def test_options_that_belong_to_another(self):
        self.no_effect("--name", "without --output", "link", self.plan, self.plan, "--name", "x")
        self.no_effect("--fuse", "beside --calibrate", "tune", DIGITS, "--calibrate", self.folder / "f", "--fuse", "all")
        for option in ("--label-offset", "--top", "--worst"):
            self.no_effect(option, "without --labels", "eval", self.plan, "--images", self.folder, "--against", DIGITS, option, "2")
        vta = self.folder / "vta.qplan"
        self.succeed("pack", DIGITS, "-o", vta, "--target", "vta, cpu")
        self.no_effect("--driver", f"on '{vta}'", "npu", "disasm", vta, "--driver", "./libnone.so")
        self.refused(2, ["--driver: found none, expected sim"], "npu", "replay", self.jobs(vta), "--driver", "none")

    def jobs(self, plan):
        self.succeed("run", plan, "--input", INPUT, "--npu-record", self.folder / "jobs")
        return self.folder / "jobs"

    def test_numbers_beyond_their_range_say_the_range(self):
        for command, option, text in ((("eval", "--images", "x"), "--top", "0"), (("eval", "--images", "x"), "--top", "5000000000"),
                                      (("bench",), "--runs", "5000000000"), (("bench",), "--runs", "0")):
            self.refused(2, [f"{option}: '{text}' is not a whole number from 1 to 4294967295"], *command, self.plan, option, text)

    def test_a_model_of_any_format_gets_the_advice_to_pack_it(self):
        for path in (DIGITS, DIGITS.with_name("digits_qdq.onnx"), DIGITS.with_name("digits.pt")):
            error = run("check", path).stderr
            self.assertIn(f"qplan pack '{path}' -o model.qplan", error)

    def test_errors_say_what_a_file_is_for(self):
        w = self.file("w.npy", b"no")
        self.refused(1, [f"binding '{w}': is not a .npy file"], "pack", DIGITS, "-o", "x", "--bind", f"x={w}")
        golden = pathlib.Path(self.folder, "golden")
        golden.mkdir()
        (golden / "input0.bin").write_bytes(INPUT.read_bytes())
        (golden / "output0.bin").write_bytes(b"1")
        self.refused(1, ["output '", "has 1 bytes, output 0"], "check", self.plan, "--expect", golden)

    def test_an_error_of_link_names_it_once(self):
        result = run("link", self.plan, self.plan, "-o", self.folder / "c")
        self.assertEqual(result.stderr.count("link:"), 1, result.stderr)


if __name__ == "__main__":
    unittest.main()
