"""Several plans in one arena (`qplan link`): models in turn give the bytes that each gives alone, keep their states, and
refuse to run where another one has the arena; natively and on a Cortex-M4 in QEMU.

usage: link_test.py QPLAN LIBQPLAN BUILD_DIR    (run by ctest)
"""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import unittest

import emit_c_test
from emit_c_test import DIGITS, DIGIT_INPUT, DIGIT_OUTPUT, FORMS, QEMU, ROOT, STATES_MODEL, STRICT, models, read, run, sources

QPLAN = LIBRARY = BUILD = None

# digits and a model with states in turn; digits writes all over the arena. Every argument is a file of four bytes.
TURNS_MAIN = """
#include <stdio.h>
#include "arena.h"
#include "digits.h"
#include "states.h"
int main(int argc, char **argv) {
  int i;
  FILE *file;
  if (states_init() != 0 || digits_init() != 0) return 1;
  for (i = 2; i < argc; ++i) {
    file = fopen(argv[1], "rb");
    if (file == NULL || fread(digits_input(0), 1, DIGITS_INPUT0_BYTES, file) != DIGITS_INPUT0_BYTES) return 2;
    fclose(file);
    if (states_run() != -2 || states_output(0) != NULL) return 3;
    if (digits_run() != 0 || digits_run() != 0) return 4;
    fwrite(digits_output(0), 1, DIGITS_OUTPUT0_BYTES, stdout);
    file = fopen(argv[i], "rb");
    if (file == NULL || fread(states_input(0), 1, STATES_INPUT0_BYTES, file) != STATES_INPUT0_BYTES) return 5;
    fclose(file);
    if (digits_run() != -2 || digits_output(0) != NULL) return 6;
    if (states_run() != 0) return 7;
    fwrite(states_output(0), 1, STATES_OUTPUT0_BYTES, stdout);
  }
  return states_output(STATES_OUTPUTS) == NULL ? 0 : 8;
}
"""

# A hook that a run calls asks for the other model.
HOOK_HEADER = "void hook(void);\n#define QPLAN_YIELD() hook()\n"
HOOK_MAIN = """
#include <stdio.h>
#include "digits.h"
#include "states.h"
static int calls, refusals;
void hook(void) {
  ++calls;
  refusals += states_input(0) == NULL && states_run() == -2 && states_init() == -2 && digits_run() == -2 &&
              digits_input(0) == NULL && digits_output(0) == NULL;
}
int main(int argc, char **argv) {
  FILE *file = fopen(argv[argc - 1], "rb");
  if (states_init() != 0 || digits_init() != 0) return 1;
  if (file == NULL || fread(digits_input(0), 1, DIGITS_INPUT0_BYTES, file) != DIGITS_INPUT0_BYTES) return 2;
  if (digits_run() != 0) return 3;
  if (calls == 0 || calls != refusals) return 4;
  fwrite(digits_output(0), 1, DIGITS_OUTPUT0_BYTES, stdout);
  return 0;
}
"""

# A model of two inputs, and one that takes the arena in between. Every check that fails returns its line.
TWO_MODEL = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), int8], %y: Tensor[(4), int8]) {
  qnn.add(%x, %y, 1f, 0, 1f, 0, 1f, 0)
}
"""
CHECK_HEAD = """
#include <string.h>
#include "arena.h"
#include "other.h"
#define CHECK(condition) do { if (!(condition)) return __LINE__; } while (0)
"""
OTHER_TURN = """
static int other_turn(void) {
  memset(other_input(0), 100, OTHER_INPUT0_BYTES);
  memset(other_input(1), 10, OTHER_INPUT1_BYTES);
  return other_run() == 0 && ((const signed char *)other_output(0))[0] == 110;
}
"""
TWO_HEAD = CHECK_HEAD + """
#include "two.h"
static int gives(int expected) { return two_output(0) != NULL && ((const signed char *)two_output(0))[3] == expected; }
static void write_two(int index, int value) { memset(two_input(index), value, TWO_INPUT0_BYTES); }
"""
TWO_MAIN = TWO_HEAD + OTHER_TURN + """
int main(void) {
  CHECK(two_init() == 0 && other_init() == 0);
  CHECK(two_init() == 0 && two_run() == -2 && two_output(0) == NULL); /* init alone brings no input */
  write_two(0, 1);
  CHECK(two_run() == -2); /* one of two inputs */
  CHECK(other_turn());
  write_two(1, 2);
  CHECK(two_output(0) == NULL && two_run() == -2 && two_output(0) == NULL); /* input 0 is gone */
  write_two(0, 1);
  CHECK(two_run() == 0 && gives(3));
  CHECK(two_run() == 0 && gives(3)); /* no other model has written to the inputs */
  CHECK(other_input(OTHER_INPUTS) == NULL && other_input(99) == NULL && gives(3)); /* no such input: nothing happens */
  CHECK(other_run() == -2 && gives(3));
  write_two(0, 5);
  CHECK(two_output(0) == NULL); /* an output may be where an input is */
  CHECK(two_run() == 0);
  CHECK(gives(7));
  CHECK(other_init() == 0 && two_run() == -2 && two_output(0) == NULL); /* its init may write to the arena */
  CHECK(other_turn() && two_run() == -2);
  write_two(0, 4);
  write_two(1, 4);
  CHECK(two_init() == 0 && two_run() == -2);
  return 0;
}
"""
# A model without inputs, which adds to its state in each run, and the one of two inputs in between.
COUNTER_MODEL = """#[version = "0.0.5"]
def @main(%s: Tensor[(4), int8], states=[[0, 1]], state_bytes=[[10, 20, 30, 40]]) {
  %0 = qnn.add(%s, const(Tensor[(4), int8], [1, 2, 3, 4]), 1f, 0, 1f, 0, 1f, 0);
  %1 = qnn.add(%0, %s, 1f, 0, 1f, 0, 1f, 0);
  (%1, %0)
}
"""
COUNTER_MAIN = CHECK_HEAD + OTHER_TURN + """
#include "counter.h"
/* Whether the last run was the n-th since the state was 10, 20, 30, 40. */
static int counts(int n) {
  const signed char *out = counter_output(0);
  int i, is_equal = out != NULL;
  for (i = 0; is_equal && i < 4; ++i) is_equal = out[i] == 2 * 10 * (i + 1) + (2 * n - 1) * (i + 1);
  return is_equal;
}
int main(void) {
  CHECK(COUNTER_INPUTS == 0 && counter_init() == 0 && other_init() == 0);
  CHECK(counter_input(0) == NULL && counter_output(0) == NULL);
  CHECK(counter_run() == 0 && counts(1)); /* takes the arena from the model of the last _init */
  CHECK(counter_input(0) == NULL && counts(1));
  CHECK(other_run() == -2 && other_output(0) == NULL && counts(1)); /* a run without inputs takes nothing */
  memset(other_input(0), 100, OTHER_INPUT0_BYTES);
  CHECK(counter_output(0) == NULL);
  CHECK(counter_run() == 0 && counts(2));
  memset(other_input(1), 10, OTHER_INPUT1_BYTES);
  CHECK(other_run() == -2); /* its first input is gone */
  CHECK(other_turn() && counter_output(0) == NULL);
  CHECK(counter_run() == 0 && counts(3) && other_output(0) == NULL && other_run() == -2);
  CHECK(counter_run() == 0 && counts(4)); /* has the arena already */
  CHECK(other_turn());
  counter_reset_state();
  CHECK(((const signed char *)other_output(0))[0] == 110); /* states are not in the arena */
  CHECK(counter_run() == 0 && counts(1));
  return 0;
}
"""
# An interrupt takes the arena at any one instruction of a run: x86's trap flag calls the handler after each.
TRAP_MAIN = TWO_HEAD + """
#include <signal.h>
static volatile int countdown, taken;
static void on_trap(int number) {
  (void)number;
  if (countdown == 0 || --countdown != 0) return;
  if (other_input(0) == NULL || other_input(1) == NULL) return;
  memset(other_input(0), 77, OTHER_INPUT0_BYTES);
  memset(other_input(1), 77, OTHER_INPUT1_BYTES);
  taken = 1;
}
static void trap(void) { __asm__ volatile("pushfq; orq $256, (%%rsp); popfq" ::: "memory", "cc"); }
static void untrap(void) { __asm__ volatile("pushfq; andq $-257, (%%rsp); popfq" ::: "memory", "cc"); }
int main(void) {
  int at, status, count = 0, lost = 0, refused = 0, later = 0;
  CHECK(signal(SIGTRAP, on_trap) != SIG_ERR);
  CHECK(two_init() == 0 && other_init() == 0);
  for (at = 0; at <= count; at += at == 150 && count > 400 ? count - 300 : 1) { /* where a run begins and ends */
    write_two(0, 1);
    write_two(1, 2);
    taken = 0;
    countdown = at == 0 ? 1000000000 : at;
    trap();
    status = two_run();
    untrap();
    if (at == 0) count = 1000000000 - countdown;
    countdown = 0;
    if (status != 0) { /* before the run begins: inputs are gone */
      CHECK(status == -2 && taken && two_output(0) == NULL && refused == 0);
      ++lost;
    } else if (!taken) { /* while it runs */
      CHECK(gives(3) && later == 0);
      refused += at != 0;
    } else { /* after it: outputs are gone */
      CHECK(two_output(0) == NULL && refused != 0);
      ++later;
    }
  }
  CHECK(lost > 3 && refused > 100 && later > 3);
  return 0;
}
"""


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def pack(folder, name, model, target, *options):
    os.makedirs(folder, exist_ok=True)
    plan = os.path.join(folder, name + ".qplan")
    run(QPLAN, "pack", model, "-o", plan, "--target", target, *options)
    return plan


def link(folder, plans, form):
    code = os.path.join(folder, "c-" + form)
    shutil.rmtree(code, ignore_errors=True)
    run(QPLAN, "link", *plans, "-o", code, *FORMS[form])
    return code


def refused(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def macro(code, file, name):
    """The value for pointers of 64 bits."""
    return int(re.search(rf"#define {name} (\d+)u", read(os.path.join(code, file)).decode())[1])


class Native(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(BUILD, "native")
        self.states = write(os.path.join(self.folder, "states.relay"), STATES_MODEL)
        self.plans = [pack(self.folder, "digits", DIGITS, "cpu"), pack(self.folder, "states", self.states, "cpu")]

    def build(self, form, main, *options):
        code = link(self.folder, self.plans, form)
        program = os.path.join(self.folder, "program")
        run("gcc", *STRICT, *options, "-I" + os.path.join(ROOT, "include"), "-I" + code,
            write(os.path.join(self.folder, "main.c"), main), *sources(code), LIBRARY, "-Wl,--gc-sections", "-o", program)
        return code, program

    def test_models_in_turn_keep_their_states(self):
        inputs, expected, s, t = [], b"", [1, 2, 3, 4], [5] * 4
        for i, x in enumerate(([1, 2, 3, 4], [-9, 8, -7, 6], [0, 0, 0, 0])):
            inputs.append(os.path.join(self.folder, f"x{i}.bin"))
            with open(inputs[-1], "wb") as file:
                file.write(bytes(v & 255 for v in x))
            s = [a + b for a, b in zip(s, x)]
            out = [a + b for a, b in zip(t, s)]
            t = [a + b for a, b in zip(out, x)]
            expected += read(DIGIT_OUTPUT) + bytes(v & 255 for v in out)
        for form in FORMS:
            with self.subTest(form):
                _, program = self.build(form, TURNS_MAIN)
                self.assertEqual(run(program, DIGIT_INPUT, *inputs, binary=True), expected)

    def test_hooks_of_a_run_get_no_arena(self):
        header = write(os.path.join(self.folder, "hook.h"), HOOK_HEADER)
        for form in FORMS:
            with self.subTest(form):
                _, program = self.build(form, HOOK_MAIN, "-include", header)
                self.assertEqual(run(program, DIGIT_INPUT, binary=True), read(DIGIT_OUTPUT))

    def pack_texts(self, **models):
        return [pack(self.folder, name, write(os.path.join(self.folder, name + ".relay"), text), "cpu")
                for name, text in models.items()]

    def link_two(self):
        return self.pack_texts(two=TWO_MODEL, other=TWO_MODEL)

    def test_a_model_without_inputs_takes_the_arena_by_its_run(self):
        self.plans = self.pack_texts(counter=COUNTER_MODEL, other=TWO_MODEL)
        for form in FORMS:
            with self.subTest(form):
                _, program = self.build(form, COUNTER_MAIN)
                run(program)

    def test_a_model_runs_only_where_all_its_inputs_are(self):
        self.plans = self.link_two()
        for form in FORMS:
            with self.subTest(form):
                _, program = self.build(form, TWO_MAIN)
                run(program)

    def test_an_interrupt_in_a_run_gets_no_arena_and_one_before_it_is_noticed(self):
        if platform.machine() != "x86_64":
            self.skipTest("single steps are those of x86-64")
        self.plans = self.link_two()
        for form in FORMS:
            with self.subTest(form):
                _, program = self.build(form, TRAP_MAIN, "-D_DEFAULT_SOURCE", "-O1", "-mno-red-zone")
                run(program)

    def test_figures_of_direct_calls_are_those_of_the_written_files(self):
        code = os.path.join(self.folder, "c-figures")
        figures = json.loads(run(QPLAN, "link", *self.plans, "--json", "--aot", "-o", code))
        for plan in figures["plans"]:
            upper, header = plan["name"].upper(), plan["name"] + ".h"
            alone = os.path.join(self.folder, "c-alone")
            shutil.rmtree(alone, ignore_errors=True)
            run(QPLAN, "emit-c", plan["plan"], "-o", alone, "--aot")
            for width in ("32_bit", "64_bit"):
                self.assertEqual(plan[width], {"kept_bytes": macro(code, header, upper + "_MEMORY_BYTES"),
                                               "arena_bytes": macro(code, header, upper + "_ARENA_BYTES"),
                                               "session_bytes": macro(alone, header, upper + "_MEMORY_BYTES")})
        self.assertEqual(figures["shared"]["32_bit"]["arena_bytes"], macro(code, "arena.h", "ARENA_BYTES"))
        page = run(QPLAN, "link", *self.plans, "--aot", "-o", code)
        self.assertIn(f"direct calls:\n  digits: keeps {figures['plans'][0]['32_bit']['kept_bytes']:,} bytes and takes "
                      f"{figures['plans'][0]['32_bit']['arena_bytes']:,} of the arena", page)

    def test_figures_are_those_of_the_written_files(self):
        figures = json.loads(run(QPLAN, "link", *self.plans, "--json"))
        code = link(self.folder, self.plans, "array")
        for plan in figures["plans"]:
            memory = json.loads(run(QPLAN, "inspect", plan["plan"], "--json"))["memory"]
            for width in ("32_bit", "64_bit"):
                states = memory["state_bytes"]
                alone = memory["session_bytes"][width]["1"]
                self.assertGreaterEqual(plan[width]["kept_bytes"] + plan[width]["arena_bytes"], alone + states)
                self.assertLess(plan[width]["kept_bytes"] + plan[width]["arena_bytes"], alone + states + 2 * 64 + 1)
            upper = plan["name"].upper()
            self.assertEqual(macro(code, plan["name"] + ".h", upper + "_MEMORY_BYTES"), plan["64_bit"]["kept_bytes"])
            self.assertEqual(macro(code, plan["name"] + ".h", upper + "_ARENA_BYTES"), plan["64_bit"]["arena_bytes"])
        shared = figures["shared"]["64_bit"]
        self.assertEqual(macro(code, "arena.h", "ARENA_BYTES"), shared["arena_bytes"])
        self.assertEqual(shared["arena_bytes"], max(plan["64_bit"]["arena_bytes"] for plan in figures["plans"]))
        self.assertEqual(shared["bytes"], shared["arena_bytes"] + sum(plan["64_bit"]["kept_bytes"] for plan in figures["plans"]))
        self.assertLess(shared["bytes"], shared["bytes_apart"])

    def test_what_cannot_be_linked_is_refused_by_name(self):
        out = os.path.join(self.folder, "none")
        self.assertEqual(refused(QPLAN, "link", self.plans[0], "-o", out)[0], 2)
        self.assertEqual(refused(QPLAN, "link", *self.plans, "--aot")[0], 2)
        status, text = refused(QPLAN, "link", self.plans[0], self.plans[0], "-o", out)
        self.assertEqual(status, 1)
        self.assertIn("'digits' is the name of two models", text)
        status, text = refused(QPLAN, "link", *self.plans, "-o", out, "--name", "digits")
        self.assertEqual(status, 1)
        self.assertIn("'digits' is the name of two models, or of a model and the arena", text)
        shutil.copy(self.plans[1], os.path.join(self.folder, "digits_plan.qplan"))
        status, text = refused(QPLAN, "link", self.plans[0], os.path.join(self.folder, "digits_plan.qplan"), "-o", out)
        self.assertEqual(status, 1)
        self.assertIn("two models would write 'digits_plan.c'", text)
        for name, other, defined in (("digits_arena", "digits", "DIGITS_ARENA_BYTES"), ("states_memory", "states", "STATES_MEMORY_BYTES"),
                                     ("digits_input0", "digits", "DIGITS_INPUT0_BYTES")):
            status, text = refused(QPLAN, "link", *self.plans, "-o", out, "--name", name)
            self.assertEqual(status, 1)
            self.assertIn(f"link: '{other}.h' and '{name}.h' would both define '{defined}'; rename a plan's file, or pass another "
                          "--name for the arena", text)
        device = pack(self.folder, "device", DIGITS, "vta, cpu", "--no-cost-gate")
        status, text = refused(QPLAN, "link", self.plans[0], device)
        self.assertEqual(status, 1)
        self.assertIn("its steps run on a device", text)
        transposing = write(os.path.join(self.folder, "transposing.relay"),
                            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), uint8]) {\n  transpose(%x, axes=[1, 0])\n}\n')
        plan = pack(self.folder, "transposing", transposing, "cpu")
        status, text = refused(QPLAN, "link", self.plans[0], plan, "-o", out, "--aot")
        self.assertEqual(status, 1)
        self.assertIn("'transposing': emit-c --aot: step 0", text)
        self.assertFalse(os.path.exists(out), "nothing is written")


class CortexM4(unittest.TestCase):
    def setUp(self):
        for tool in ("arm-none-eabi-gcc", "arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")

    def test_two_models_in_turn_give_the_golden_bytes_between_guards(self):
        cases = {case[0]: case for case in models()}
        if "kws" not in cases or "person" not in cases:
            self.skipTest("kws_ref_model and person_detect are not in QPLAN_SHARED")
        for form in FORMS:
            with self.subTest(form):
                folder = os.path.join(BUILD, "cortex_m4")
                plans = [pack(folder, name, cases[name][1], "cpu,arch=cortex-m4") for name in ("kws", "person")]
                code = link(folder, plans, form)
                (_, _, kws_in, kws_out), (_, _, person_in, person_out) = cases["kws"], cases["person"]
                tree = os.path.join(BUILD, "tree")
                run("cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", tree, "-G", "Ninja",
                    "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m4.cmake"),
                    "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DFIRMWARE_C=" + code, "-DFIRMWARE_NAME=kws",
                    "-DFIRMWARE_SECOND_NAME=person", "-DFIRMWARE_INPUT=" + os.path.abspath(kws_in),
                    "-DFIRMWARE_EXPECTED=" + os.path.abspath(kws_out), "-DFIRMWARE_SECOND_INPUT=" + os.path.abspath(person_in),
                    "-DFIRMWARE_SECOND_EXPECTED=" + os.path.abspath(person_out))
                run("cmake", "--build", tree)
                said = dict(line.split() for line in run(*QEMU, os.path.join(tree, "firmware.elf")).splitlines())
                print(f"kws and person {form}: {said}")
                self.assertEqual(int(said["output_bytes"]), os.path.getsize(kws_out) + os.path.getsize(person_out))
                self.assertEqual(int(said["different"]), 0)
                if form == "array":  # up to the padding of three arrays to 64 bytes
                    figures = json.loads(run(QPLAN, "link", *plans, "--json"))["shared"]["32_bit"]
                    self.assertGreaterEqual(int(said["memory_bytes"]), figures["bytes"])
                    self.assertLess(int(said["memory_bytes"]), figures["bytes"] + 3 * 64)


if __name__ == "__main__":
    QPLAN, LIBRARY, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:4])
    emit_c_test.QPLAN, emit_c_test.LIBRARY, emit_c_test.BUILD = QPLAN, LIBRARY, BUILD
    unittest.main(argv=sys.argv[:1], verbosity=2)
