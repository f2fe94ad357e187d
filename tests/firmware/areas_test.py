"""Plans for several memory areas: the planner's figures, golden bytes on the host and, as an array and as direct calls, on a
Cortex-M4 in QEMU with activations in two memories between guards.

usage: areas_test.py QPLAN LIBQPLAN BUILD_DIR    (run by ctest)
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import emit_c_test
from emit_c_test import DIGITS, DIGIT_INPUT, DIGIT_OUTPUT, FORMS, NATIVE_MAIN, QEMU, ROOT, STRICT, models, read, run, sources

QPLAN = LIBRARY = BUILD = None


# Damages what copies were made of: of the array form the plan's constants, of direct calls all arrays of constants.
DAMAGE_MAIN = """
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "digits.h"
#ifdef DIGITS_PLAN_BYTES
extern const uint8_t digits_plan[DIGITS_PLAN_BYTES];
#else
extern uint8_t __start_constants[], __stop_constants[];
#endif
static void damage(const uint8_t *begin, const uint8_t *end) {
  const uintptr_t page = (uintptr_t)begin / 4096 * 4096;
  if (mprotect((void *)page, (uintptr_t)end - page, PROT_READ | PROT_WRITE) == 0) memset((void *)(uintptr_t)begin, 0x55, end - begin);
}
int main(int argc, char **argv) {
  FILE *file = fopen(argv[argc - 1], "rb");
  uint32_t root;
  uint64_t end;
  if (digits_init() != 0 || file == NULL) return 1;
#ifdef DIGITS_PLAN_BYTES
  memcpy(&root, digits_plan + 12, 4);
  memcpy(&end, digits_plan + 16, 8);
  damage(digits_plan + (64 + root + 63) / 64 * 64, digits_plan + end);
#else
  (void)root, (void)end;
  damage(__start_constants, __stop_constants);
#endif
  if (fread(digits_input(0), 1, DIGITS_INPUT0_BYTES, file) != DIGITS_INPUT0_BYTES || digits_run() != 0) return 3;
  fwrite(digits_output(0), 1, DIGITS_OUTPUT0_BYTES, stdout);
  return 0;
}
"""


def write_target(folder, target, *areas, copies=None):
    """A target file with areas (name, bytes, cost) and where copies of constants are made from (name, cost); its path."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "target.json")
    entry = {"target": target, "areas": [{"name": n, "bytes": b, "cost": c} for n, b, c in areas]}
    if copies is not None:
        entry["copy_constants"] = {"from": copies[0], "cost": copies[1]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"targets": [entry]}, file)
    return path


def pack(folder, name, model, target_file, *options):
    plan = os.path.join(folder, name + ".qplan")
    run(QPLAN, "pack", model, "-o", plan, "--target-file", target_file, *options)
    return plan


def memory_of(plan):
    return json.loads(run(QPLAN, "inspect", plan, "--json"))["memory"]


def emit(folder, plan, name, form):
    code = os.path.join(folder, "c-" + form)
    shutil.rmtree(code, ignore_errors=True)
    run(QPLAN, "emit-c", plan, "-o", code, "--name", name, *FORMS[form])
    return code


class Native(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(BUILD, "native")
        os.makedirs(self.folder, exist_ok=True)
        whole = os.path.join(self.folder, "whole.qplan")
        run(QPLAN, "pack", DIGITS, "-o", whole)
        self.session = memory_of(whole)["session_bytes"]["64_bit"]["1"]

    def target(self, *areas, copies=None):
        return write_target(self.folder, "cpu", *areas, copies=copies)

    def test_digits_in_two_areas_give_the_expected_bytes(self):
        plan = pack(self.folder, "digits", DIGITS, self.target(("fast", self.session - 1024, 1), ("slow", 65536, 4)))
        memory = memory_of(plan)
        self.assertLessEqual(memory["session_bytes"]["64_bit"]["1"], self.session - 1024)
        self.assertEqual(len(memory["areas"]), 1)
        self.assertGreater(memory["areas"][0]["bytes"], 0)
        self.assertIn(f"area 1:    {memory['areas'][0]['bytes']:,} bytes", run(QPLAN, "inspect", plan))
        out = os.path.join(self.folder, "out")
        for threads in ("1", "3"):
            shutil.rmtree(out, ignore_errors=True)
            run(QPLAN, "run", plan, "--input", DIGIT_INPUT, "--output-dir", out, "--threads", threads)
            (file,) = os.listdir(out)
            self.assertEqual(read(os.path.join(out, file)), read(DIGIT_OUTPUT))
        main = os.path.join(self.folder, "main.c")
        with open(main, "w", encoding="utf-8") as file:
            file.write(NATIVE_MAIN)
        for form in FORMS:
            with self.subTest(form):
                code, program = emit(self.folder, plan, "digits", form), os.path.join(self.folder, "program")
                run("gcc", *STRICT, "-I" + os.path.join(ROOT, "include"), "-I" + code, main, *sources(code), LIBRARY,
                    "-Wl,--gc-sections", "-o", program)
                self.assertEqual(run(program, DIGIT_INPUT, binary=True), read(DIGIT_OUTPUT))

    def test_an_area_with_room_for_all_changes_nothing(self):
        plan = pack(self.folder, "all", DIGITS, self.target(("fast", self.session, 1), ("slow", 65536, 4)))
        memory = memory_of(plan)
        self.assertEqual(memory["session_bytes"]["64_bit"]["1"], self.session)
        self.assertEqual([area["bytes"] for area in memory["areas"]], [0])

    def test_copies_of_constants_fill_what_areas_have_left(self):
        areas = (("fast", self.session + 1024, 1), ("slow", 2048, 3), ("slower", 65536, 8))
        without = memory_of(pack(self.folder, "without", DIGITS, self.target(*areas)))
        self.assertEqual(without["copies"], [])
        plan = pack(self.folder, "copies", DIGITS, self.target(*areas, copies=("flash", 8)))
        memory = memory_of(plan)
        copies = memory["copies"]
        self.assertEqual({copy["area"] for copy in copies}, {0, 1}, "the third area costs as much as flash")
        self.assertLessEqual(memory["session_bytes"]["64_bit"]["1"], self.session + 1024)
        sizes = [memory["arena_bytes"], *(area["bytes"] for area in memory["areas"])]
        self.assertLessEqual(sizes[1], 2048)
        self.assertEqual(sizes[2], 0)
        ends = [without["arena_bytes"], 0]
        for copy in copies:
            self.assertGreaterEqual(copy["offset"], ends[copy["area"]])
            ends[copy["area"]] = copy["offset"] + copy["bytes"]
            self.assertLessEqual(ends[copy["area"]], sizes[copy["area"]])
            self.assertEqual(copy["saved_cost"], copy["bytes_read"] * (8 - (1, 3)[copy["area"]]))
        self.assertEqual(sorted(copy["tensor"] for copy in copies), [copy["tensor"] for copy in copies])
        page = run(QPLAN, "inspect", plan)
        largest = max(copies, key=lambda copy: copy["bytes"])
        self.assertRegex(page, rf"\ncopies:    {len(copies)} constants of the plan, {sum(copy['bytes'] for copy in copies):,} bytes .*; a run "
                               rf"saves {sum(copy['saved_cost'] for copy in copies):,} by the costs")
        self.assertRegex(page, rf"\ncopy: +{largest['bytes']:,} bytes to memory {largest['area']} +{largest['bytes_read']:,} read in a run +"
                               rf"{largest['saved_cost']:,} saved  {largest['name']}\n")
        explained = run(QPLAN, "explain", DIGITS, "--memory", "--target-file", self.target(*areas, copies=("flash", 8)))
        self.assertIn("with --fuse auto:\ncopies:    ", explained)
        self.assertEqual(memory_of(pack(self.folder, "again", DIGITS, self.target(*areas))), without)

    def test_copies_stay_below_max_ram(self):
        areas = (("fast", self.session + 65536, 1), ("slow", 65536, 3))
        plan = pack(self.folder, "limited", DIGITS, self.target(*areas, copies=("flash", 8)), "--max-ram", str(self.session + 3000))
        memory = memory_of(plan)
        self.assertGreater(len(memory["copies"]), 0)
        self.assertLessEqual(memory["session_bytes"]["64_bit"]["1"] + memory["areas"][0]["bytes"], self.session + 3000)

    def test_kernels_read_the_copies_alone(self):
        plan = pack(self.folder, "all_copied", DIGITS, self.target(("fast", self.session + (1 << 20), 1), copies=("flash", 8)))
        self.assertGreater(len(memory_of(plan)["copies"]), 0)
        out = os.path.join(self.folder, "copied-out")
        shutil.rmtree(out, ignore_errors=True)
        run(QPLAN, "run", plan, "--input", DIGIT_INPUT, "--output-dir", out)
        (file,) = os.listdir(out)
        self.assertEqual(read(os.path.join(out, file)), read(DIGIT_OUTPUT))
        (main,) = emit_c_test.write(self.folder, damage_c=DAMAGE_MAIN)
        for form in FORMS:
            with self.subTest(form):
                code = emit(self.folder, plan, "digits", form)
                program = emit_c_test.build(os.path.join(self.folder, "damaged"), code, main,
                                            '-DQPLAN_FLASH=__attribute__((section("constants")))' if form == "aot" else "-DQPLAN_FLASH=")
                self.assertEqual(run(program, DIGIT_INPUT, binary=True), read(DIGIT_OUTPUT))

    def test_wrong_copies_are_refused(self):
        area = ("fast", 65536, 1)
        for copies, text in ((("Flash", 8), "'from' of 'copy_constants', 'Flash', is not of letters a to z"),
                             (("fast", 8), "'from' of 'copy_constants' is the area 'fast'"), (("flash", 0), "'cost' is 0"),
                             ((3, 8), "'from' is not a text")):
            with self.subTest(copies=copies):
                self.assertIn(text, self.refusal(area, copies=copies))
        self.assertIn("'areas' is no list", self.refusal(copies=("flash", 8)))

    def test_models_with_copies_share_no_arena(self):
        plan = pack(self.folder, "digits", DIGITS, self.target(("fast", self.session + 4096, 1), copies=("flash", 8)))
        other = os.path.join(self.folder, "whole.qplan")
        done = subprocess.run([QPLAN, "link", plan, other, "-o", os.path.join(self.folder, "none")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("digits.qplan': the plan has copies of constants in its memory, which other models would write over",
                      done.stdout)

    def refusal(self, *areas, options=(), copies=None):
        done = subprocess.run([QPLAN, "pack", DIGITS, "-o", os.path.join(self.folder, "none.qplan"), "--target-file",
                               self.target(*areas, copies=copies), *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stdout

    def test_what_does_not_fit_is_refused_with_the_step(self):
        self.assertRegex(self.refusal(("fast", self.session - 1024, 1), ("slow", 64, 2)),
                         r"memory areas: step \d+ '[^']+' does not fit: it has \d+ bytes of activations and scratch in use, of "
                         r"which \d+ find no room; there are \d+ in 'fast', 64 in 'slow'")
        self.assertRegex(self.refusal(("fast", 100, 1), ("slow", 65536, 2)),
                         r"'fast' has 100 bytes; the session, which is in the first area, takes \d+ beside activations")

    def test_wrong_files_are_refused(self):
        for areas, text in ((((1, 2, 3),), "'name' is not a text"), ((("Fast", 64, 1),), "name 'Fast' of an area"),
                            ((("a", 64, 1), ("a", 64, 1)), "two areas have the name 'a'"), ((("a", 0, 1),), "'bytes' is 0"),
                            ((("a", 64, 0),), "'cost' is 0"), ([(f"a{i}", 64, 1) for i in range(5)], "no list of 1 to 4 areas"),
                            ((), "no list of 1 to 4 areas")):
            with self.subTest(areas=areas):
                self.assertIn(text, self.refusal(*areas))

    def test_models_that_share_an_arena_have_one_area(self):
        plan = pack(self.folder, "digits", DIGITS, self.target(("fast", self.session - 1024, 1), ("slow", 65536, 4)))
        other = os.path.join(self.folder, "whole.qplan")
        done = subprocess.run([QPLAN, "link", plan, other, "-o", os.path.join(self.folder, "none")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("digits.qplan': the plan has activations in 2 memory areas, of which none can be shared", done.stdout)

    def test_max_ram_counts_all_areas(self):
        target = self.target(("fast", self.session - 2048, 1), ("slow", 65536, 4))
        memory = memory_of(pack(self.folder, "any", DIGITS, target))
        session, slow = memory["session_bytes"]["64_bit"]["1"], memory["areas"][0]["bytes"]
        self.assertGreater(session + slow, self.session, "areas take more than one memory here")
        plan = pack(self.folder, "most", DIGITS, target, "--max-ram", str(session + slow))
        self.assertEqual(memory_of(plan), memory)
        text = self.refusal(("fast", self.session - 2048, 1), ("slow", 65536, 4),
                            options=("--max-ram", str(session + slow - 1)))
        self.assertIn(f"max_ram: the plan takes {session + slow} bytes in all memory areas, expected at most {session + slow - 1}: "
                      f"{session} in 'fast', {slow} in 'slow'", text)


class CortexM4(unittest.TestCase):
    def setUp(self):
        for tool in ("arm-none-eabi-gcc", "arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")

    def test_two_memories_give_the_golden_bytes_between_guards(self):
        for name, model, input_file, expected in models():
            if name not in ("digits", "person"):
                continue
            folder = os.path.join(BUILD, "m4-" + name)
            os.makedirs(folder, exist_ok=True)
            whole = os.path.join(folder, "whole.qplan")
            run(QPLAN, "pack", model, "-o", whole, "--target", "cpu,arch=cortex-m4")
            session = memory_of(whole)["session_bytes"]["32_bit"]["1"]
            # Activations in both; and all activations and a few constants in the first, more constants in the second.
            for what, fast, areas, copies in (("spread", session * 3 // 4, (("psram", 1 << 20, 6),), None),
                                              ("copied", session + 2048, (("psram", 4096, 3),), ("flash", 8))):
                target = write_target(folder, "cpu,arch=cortex-m4", ("sram", fast, 1), *areas, copies=copies)
                plan = pack(folder, name, model, target)
                memory = memory_of(plan)
                self.assertLessEqual(memory["session_bytes"]["32_bit"]["1"], fast)
                self.assertGreater(memory["areas"][0]["bytes"], 0)
                self.assertEqual({copy["area"] for copy in memory["copies"]}, set() if copies is None else {0, 1})
                for form in FORMS:
                    with self.subTest(name=name, form=form, what=what):
                        self.check(name, form, what, folder, plan, input_file, expected)

    def check(self, name, form, what, folder, plan, input_file, expected):
        code, tree = emit(folder, plan, name, form), os.path.join(BUILD, "tree")
        run("cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", tree, "-G", "Ninja",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m4.cmake"),
            "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DFIRMWARE_C=" + code, "-DFIRMWARE_NAME=" + name,
            "-DFIRMWARE_AREAS=ON", "-DFIRMWARE_INPUT=" + os.path.abspath(input_file),
            "-DFIRMWARE_EXPECTED=" + os.path.abspath(expected))
        run("cmake", "--build", tree)
        image = os.path.join(tree, "firmware.elf")
        said = dict(line.split() for line in run(*QEMU, image).splitlines() if len(line.split()) == 2)
        print(f"{name} {form} {what}: {said}")
        stack = memory_of(plan)["stack_bytes"]["32_bit"]
        self.assertEqual(int(said["output_bytes"]), os.path.getsize(expected))
        self.assertEqual(int(said["different"]), 0)
        self.assertLessEqual(int(said["init_stack_bytes"]), stack["open"])
        self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])
        symbols = {fields[2]: int(fields[0], 16) for fields in
                   (line.split() for line in run("arm-none-eabi-nm", image).splitlines()) if len(fields) == 3}
        self.assertTrue(0x20000000 <= symbols["memory"] < 0x20400000, "the first area is SRAM")
        self.assertTrue(0x21000000 <= symbols["area1"] < 0x22000000, "the second one PSRAM")
        links_copies = any("open_copies" in symbol for symbol in symbols)
        self.assertEqual(links_copies, form == "array" and what == "copied", "code of copies where there are some, and only there")


if __name__ == "__main__":
    QPLAN, LIBRARY, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:4])
    emit_c_test.QPLAN, emit_c_test.LIBRARY, emit_c_test.BUILD = QPLAN, LIBRARY, BUILD
    unittest.main(argv=sys.argv[:1], verbosity=2)
