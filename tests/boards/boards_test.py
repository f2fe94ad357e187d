"""Boards: the runtime and the command without the packer, cross-compiled, run in QEMU's user mode on several processors,
equal to the golden outputs and to what the host's command says of the same plan.

usage: boards_test.py QPLAN BUILD_DIR ARCH    (run by ctest; needs g++-<ARCH>-linux-gnu and qemu-user)
  QPLAN_BOARD_MODELS   all: also the models and processors that take minutes
"""
import json
import os
import re
import shutil
import sys
import unittest

from board import ARCH, BUILD, DATA, EMULATOR, PREFIX, QPLAN, ROOT, build_tree, emulated, needs_tools, pack, run

EVERYTHING = os.environ.get("QPLAN_BOARD_MODELS") == "all"
# The least processor, which has only what all of them have, and the best that QEMU knows; then those in between.
CPUS = {"aarch64": ("cortex-a53", "neoverse-n1", "max"), "riscv64": ("rv64", "rv64,v=true,vext_spec=v1.0,vlen=128")}[ARCH]
if EVERYTHING:
    CPUS += {"aarch64": ("cortex-a76",), "riscv64": ("rv64,v=true,vext_spec=v1.0,vlen=256",)}[ARCH]
# What kernels/cpu.cc finds there.
BEST_ISA = {"cortex-a53": "neon", "neoverse-n1": "dotprod", "cortex-a76": "dotprod", "max": "i8mm",
            "rv64,v=true,vext_spec=v1.0,vlen=128": "rvv", "rv64,v=true,vext_spec=v1.0,vlen=256": "rvv"}
# The one with all instruction sets.
BEST_CPU = {"aarch64": "max", "riscv64": CPUS[-1]}[ARCH]
# What every program gets from its compiler: RV64GC has no instruction that counts zeros at either end or swaps bytes.
COMPILERS_OWN = {"aarch64": (), "riscv64": ("__(c[lt]zdi2|bswapsi2)",)}[ARCH]
SMALL = ("kws_ref_model", "person_detect", "pretrainedResnet_quant", "ad01_int8")
EVERY = SMALL + ("mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.75_192_quant", "mobilenet_v2_1.0_224_quant",
                 "tf2_mobilenet_v2_1.0_224_ptq", "deeplabv3_mnv2_dm05_pascal_quant")
with open(os.path.join(ROOT, "kernels", "isa.def"), encoding="utf-8") as text:
    ISAS = ["reference"] + re.findall(rf"^QPLAN_ISA\({ARCH}, +(\w+),", text.read(), re.MULTILINE)


def cases():
    """(name, model, input, expected output): digits, the repository's own, and models of the data directory with one
    input and one output."""
    own = os.path.join(ROOT, "tests", "data", "digits")
    yield ("digits", os.path.join(ROOT, "samples", "models", "digits.tflite"),
           os.path.join(own, "digit0_input.bin"), os.path.join(own, "digit0_output.bin"))
    goldens = os.path.join(DATA, "golden")
    for name in EVERY if EVERYTHING else SMALL:
        golden = os.path.join(goldens, name, "rand1")
        model = os.path.join(DATA, "models", name + ".tflite")
        if os.path.exists(model) and os.path.exists(os.path.join(golden, "output0.bin")) \
                and not os.path.exists(os.path.join(golden, "input1.bin")):
            yield name, model, os.path.join(golden, "input0.bin"), os.path.join(golden, "output0.bin")


@needs_tools
class Board(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = build_tree()
        cls.archive = os.path.join(cls.tree, "lib", "libqplan.a")
        cls.own_cases = list(cases())
        cls.digits = cls.own_cases[0]

    def command(self, cpu, *arguments, check=True):
        """The board's command."""
        return run(*emulated(cpu), os.path.join(self.tree, "bin", "qplan"), *arguments, check=check)

    def assert_gives(self, expected, cpu, plan, input_file, *options):
        folder = os.path.join(BUILD, "outputs")
        self.command(cpu, "run", plan, "--input", input_file, "--output-dir", folder, *options)
        with open(os.path.join(folder, "output0.bin"), "rb") as found, open(expected, "rb") as wanted:
            self.assertEqual(found.read(), wanted.read())

    def test_every_instruction_set_gives_the_goldens_on_every_processor(self):
        for name, model, input_file, expected in self.own_cases:
            for isa in ISAS:
                if isa == "reference" and len(ISAS) > 1 and name != "digits":
                    continue  # slow, and the same code as on the host
                plan = pack(name, model, isa)
                for cpu in CPUS:
                    for threads in ("1", "2") if EVERYTHING else ("1" if cpu == CPUS[0] else "2",):
                        with self.subTest(model=name, isa=isa, cpu=cpu, threads=threads):
                            self.assert_gives(expected, cpu, plan, input_file, "--threads", threads)

    def test_plans_without_and_with_all_cascades_give_the_goldens(self):
        for name, model, input_file, expected in self.own_cases if EVERYTHING else self.own_cases[:2]:
            for fuse in ("off", "all"):
                with self.subTest(model=name, fuse=fuse):
                    self.assert_gives(expected, BEST_CPU, pack(name, model, ISAS[-1], "--fuse", fuse), input_file)

    def test_the_limit_of_instruction_sets_holds_and_a_processor_without_one_says_so(self):
        _, model, input_file, expected = self.digits
        plan = pack("digits", model, ISAS[-1])
        for cpu in CPUS:
            best = BEST_ISA.get(cpu, "reference")
            for isa in ISAS:
                done = self.command(cpu, "run", plan, "--input", input_file, "--isa", isa, "--json", check=False)
                with self.subTest(cpu=cpu, isa=isa):
                    if ISAS.index(isa) > ISAS.index(best):
                        self.assertEqual(done.returncode, 1)
                        self.assertIn(f"this machine or build lacks '{isa}'; it has reference", done.stdout)
                        # Nothing of it has run: an illegal instruction would have ended the program by a signal.
                    else:
                        self.assertEqual(json.loads(done.stdout)["isa"], isa)
                        self.assert_gives(expected, cpu, plan, input_file, "--isa", isa)

    def test_inspect_and_disasm_print_what_the_host_prints(self):
        for name, model, *_ in self.own_cases[:2]:
            plan = pack(name, model, ISAS[-1])
            with self.subTest(model=name):
                self.assertEqual(self.command(CPUS[0], "disasm", plan).stdout, run(QPLAN, "disasm", plan).stdout)
                board, host = (json.loads(text) for text in (self.command(CPUS[0], "inspect", plan, "--json").stdout,
                                                             run(QPLAN, "inspect", plan, "--json").stdout))
                # The board names the kernels of its own build, which the host's lacks.
                kernels = [variant["kernel"] for step in board["steps"] for variant in step.pop("variants") or []]
                self.assertTrue(any(kernel.endswith("_" + ISAS[-1].replace("reference", "ref")) for kernel in kernels))
                for step in host["steps"]:
                    del step["variants"]
                self.assertEqual(board, host)

    def test_bench_measures_the_plan_on_the_best_instruction_set_of_the_processor(self):
        name, model, *_ = self.own_cases[-1]
        plan = pack(name, model, ISAS[-1])
        macs = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)["functions"][0]["macs"]
        for cpu in CPUS:
            with self.subTest(cpu=cpu):
                report = json.loads(self.command(cpu, "bench", plan, "--runs", "2", "--per-step", "--json").stdout)
                self.assertEqual((report["isa"], report["runs"], report["macs"]),
                                 (BEST_ISA.get(cpu, "reference"), 2, macs))
                self.assertGreater(report["min_ns"], 0)
                self.assertEqual(sum(step["macs"] for step in report["steps"]), macs)

    def test_tune_measures_plans_and_the_host_packs_with_its_log(self):
        _, model, input_file, expected = self.digits
        log = os.path.join(BUILD, "tuning.json")
        if os.path.exists(log):
            os.remove(log)
        self.command(BEST_CPU, "tune", pack("digits", model, ISAS[-1]), "--log", log, "--budget", "1")
        with open(log, encoding="utf-8") as lines:
            self.assertGreater(len(lines.readlines()), 1)
        plan = pack("digits", model, ISAS[-1], "--tuning", log)
        self.assert_gives(expected, BEST_CPU, plan, input_file)

    def test_tune_calibrates_the_estimates_and_the_host_explains_with_them(self):
        name, model, *_ = self.own_cases[0]
        plan, costs_file = pack(name, model, ISAS[-1], "--fuse", "off"), os.path.join(BUILD, "costs.json")
        if os.path.exists(costs_file):
            os.remove(costs_file)
        done = self.command(BEST_CPU, "tune", plan, "--calibrate", costs_file, "--budget", "1", "--affinity",
                            str(min(os.sched_getaffinity(0))))
        self.assertIn(f"calibrated with {BEST_ISA.get(BEST_CPU, 'reference')}: ", done.stdout)
        with open(costs_file, encoding="utf-8") as text:
            (target,) = json.load(text)["targets"]
        self.assertEqual(target["target"], f"cpu,arch={ARCH},isa={ISAS[-1]}")
        explained = json.loads(run(QPLAN, "explain", model, "--target-file", costs_file, "--json").stdout)
        (cpu,) = (device["costs"] for device in explained["devices"] if device["target"] == "cpu")
        macs = target["costs"]["cycles_per_million"]["convolution"]["macs"]
        self.assertEqual(cpu["macs_per_us"], target["costs"]["clock_mhz"] * 1_000_000 // macs)

    def test_a_picture_is_classified_with_its_label(self):
        name = "mobilenet_v2_1.0_224_quant"
        picture, labels = (os.path.join(DATA, "images", file) for file in ("cat.bmp", "imagenet_labels.txt"))
        model, golden = (os.path.join(DATA, *path) for path in (("models", name + ".tflite"), ("golden", name, "cat", "output0.bin")))
        if not all(map(os.path.exists, (picture, labels, model, golden))):
            self.skipTest(f"{DATA} lacks a picture, its label or its golden output")
        with open(golden, "rb") as scores, open(labels, encoding="utf-8") as lines:
            best = max(enumerate(scores.read()), key=lambda score: score[1])[0]
            expected = lines.read().splitlines()[best]
        done = self.command(BEST_CPU, "run", pack(name, model, ISAS[-1]), "--input", picture, "--labels", labels)
        self.assertEqual(re.search(r"^[0-9.]+  (.*)$", done.stdout, re.MULTILINE).group(1), expected, done.stdout)

    def test_commands_that_need_the_packer_say_so(self):
        for arguments in (("pack", self.digits[1], "-o", os.path.join(BUILD, "none.qplan")),
                          ("import", self.digits[1]), ("explain", self.digits[1]), ("tune", self.digits[1], "--log", "x")):
            with self.subTest(arguments=arguments):
                done = self.command(CPUS[0], *arguments, check=False)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("this build of qplan has no packer", done.stdout)
                self.assertIn(f"--target cpu,arch={ARCH}", done.stdout)
        self.assertFalse(os.path.exists(os.path.join(BUILD, "none.qplan")))

    def test_a_program_of_the_c_api_needs_the_archive_alone(self):
        _, model, input_file, expected = self.digits
        program, output = os.path.join(BUILD, "qplan_c_api"), os.path.join(BUILD, "output.bin")
        run(PREFIX + "gcc", "-std=c99", "-O1", "-static", "-I" + os.path.join(ROOT, "include"),
            "-I" + os.path.join(self.tree, "third_party"), os.path.join(ROOT, "samples", "c_api", "main.c"),
            self.archive, "-o", program)
        run(EMULATOR, "-cpu", CPUS[0], program, pack("digits", model, ISAS[-1]), input_file, "-o", output)
        with open(output, "rb") as found, open(expected, "rb") as wanted:
            self.assertEqual(found.read(), wanted.read())

    def test_programs_use_an_installation(self):
        _, model, input_file, expected = self.digits
        prefix, output, plan = os.path.join(BUILD, "prefix"), os.path.join(BUILD, "output.bin"), pack("digits", model, ISAS[-1])
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", self.tree, "--prefix", prefix)
        # C with the shared library; C++ with find_package and the archives.
        c_program, cpp_tree = os.path.join(BUILD, "c_program"), os.path.join(BUILD, "cpp")
        run(PREFIX + "gcc", "-std=c99", "-I" + os.path.join(prefix, "include"), "-I" + os.path.join(prefix, "share", "qplan", "include"),
            os.path.join(ROOT, "samples", "c_api", "main.c"), "-L" + os.path.join(prefix, "lib"), "-lqplan_runtime", "-o", c_program)
        shutil.rmtree(cpp_tree, ignore_errors=True)
        run("cmake", "-S", os.path.join(ROOT, "samples", "cpp_api"), "-B", cpp_tree, "-G", "Ninja",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", ARCH + ".cmake"), "-DCMAKE_PREFIX_PATH=" + prefix,
            "-Dqplan_DIR=" + os.path.join(prefix, "lib", "cmake", "qplan"))
        run("cmake", "--build", cpp_tree)
        library_path = ("-E", "LD_LIBRARY_PATH=" + os.path.join(prefix, "lib"))
        for program in ((c_program, plan, input_file, "-o", output),
                        (os.path.join(cpp_tree, "qplan_cpp_api"), plan, input_file, output)):
            with self.subTest(program=program[0]):
                if os.path.exists(output):
                    os.remove(output)
                run(*emulated(CPUS[0]), *library_path, *program)
                with open(output, "rb") as found, open(expected, "rb") as wanted:
                    self.assertEqual(found.read(), wanted.read())

    def test_the_archive_asks_for_nothing_and_keeps_to_its_own_symbols(self):
        checked = run(sys.executable, os.path.join(ROOT, "cmake", "check_symbols.py"), PREFIX + "nm", PREFIX + "ld",
                      PREFIX + "readelf", self.archive, *COMPILERS_OWN, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)


if __name__ == "__main__":
    del sys.argv[1:4]
    unittest.main()
