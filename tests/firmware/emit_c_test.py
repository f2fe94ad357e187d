"""What `qplan emit-c` writes: C99 for every compiler, nothing linked but its own kernels, the same bytes natively and on a
Cortex-M4 in QEMU, as an array and as direct calls.

usage: emit_c_test.py QPLAN LIBQPLAN BUILD_DIR    (run by ctest; firmware needs gcc-arm-none-eabi and qemu-system-arm)
"""
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QPLAN_SHARED", os.path.join(ROOT, os.pardir, "shared"))
DIGITS = os.path.join(ROOT, "samples", "models", "digits.tflite")
DIGIT_INPUT, DIGIT_OUTPUT = (os.path.join(ROOT, "tests", "data", "digits", f"digit0_{what}.bin")
                             for what in ("input", "output"))
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Werror"]
FORMS = {"array": [], "aot": ["--aot"]}
QEMU = ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none",
        "-semihosting-config", "enable=on,target=native", "-kernel"]
QPLAN = LIBRARY = BUILD = None

# Reads the input from a file, writes the output to standard output; the header alone says how many bytes they are.
NATIVE_MAIN = """
#include <stdio.h>
#include "digits.h"
int main(int argc, char **argv) {
  FILE *file = fopen(argv[argc - 1], "rb");
  if (digits_init() != 0 || file == NULL) return 1;
  if (digits_input(DIGITS_INPUTS) != NULL || digits_output(DIGITS_OUTPUTS) != NULL) return 2;
  if (fread(digits_input(0), 1, DIGITS_INPUT0_BYTES, file) != DIGITS_INPUT0_BYTES) return 3;
  if (digits_run() != 0) return 4;
  if (digits_run() != 0) return 4;
  fwrite(digits_output(0), 1, DIGITS_OUTPUT0_BYTES, stdout);
  return 0;
}
"""


def run(*command, binary=False):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout.decode(errors='replace')}")
    return done.stdout if binary else done.stdout.decode()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def emit(folder, model, target, name, form, *pack_options):
    """Packs the model, writes its C; returns the folder of the C and the plan's path."""
    os.makedirs(folder, exist_ok=True)
    plan, code = os.path.join(folder, name + ".qplan"), os.path.join(folder, "c")
    shutil.rmtree(code, ignore_errors=True)
    run(QPLAN, "pack", model, "-o", plan, "--target", target, *pack_options)
    run(QPLAN, "emit-c", plan, "-o", code, "--name", name, *FORMS[form])
    return code, plan


def sources(code):
    return sorted(os.path.join(code, file) for file in os.listdir(code) if file.endswith(".c"))


def write(folder, **texts):
    """Writes main_c=TEXT to FOLDER/main.c, and so on; the paths, in this order."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name.replace("_", ".")) for name in texts]
    for path, text in zip(paths, texts.values()):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return paths


def build(program, code, main, *options, compiler="gcc"):
    """A program for this machine of what emit-c wrote to CODE and of MAIN; its path."""
    run(compiler, *STRICT, "-I" + os.path.join(ROOT, "include"), "-I" + code, *options, main, *sources(code), LIBRARY,
        "-Wl,--gc-sections", "-o", program)
    return program


def scratch_size_at(plan, step):
    """Where a plan has Function.scratch_sizes[step] of its first function: format/plan.fbs, FlatBuffers' own layout."""
    def number(kind, at):
        return struct.unpack_from(kind, plan, at)[0]

    def follow(at):
        return at + number("<I", at)

    def field(table, index):
        vtable = table - number("<i", table)
        return table + number("<H", vtable + 4 + 2 * index)

    functions = follow(field(follow(64), 4))  # 64 bytes of header, then the root: Plan.functions
    sizes = follow(field(follow(functions + 4), 7))  # after the vector's length the first one: Function.scratch_sizes
    assert step < number("<I", sizes)
    return sizes + 4 + 4 * step


class Native(unittest.TestCase):
    def test_digits_give_the_expected_bytes_by_every_compiler(self):
        for form in FORMS:
            folder = os.path.join(BUILD, "native-" + form)
            code, _ = emit(folder, DIGITS, "cpu", "digits", form)
            (main,) = write(folder, main_c=NATIVE_MAIN)
            for compiler in filter(shutil.which, ("gcc", "clang")):
                with self.subTest(form=form, compiler=compiler):
                    program = build(os.path.join(folder, compiler), code, main, "-ffunction-sections", compiler=compiler)
                    self.assertEqual(run(program, DIGIT_INPUT, binary=True), read(DIGIT_OUTPUT))

    def test_program_links_the_kernels_of_its_plan_alone(self):
        for form in FORMS:
            with self.subTest(form):
                folder = os.path.join(BUILD, "native-" + form)
                code, plan = emit(folder, DIGITS, "cpu", "digits", form)
                (main,) = write(folder, main_c=NATIVE_MAIN)
                program = build(os.path.join(folder, "linked"), code, main)
                steps = json.loads(run(QPLAN, "inspect", plan, "--json"))["steps"]
                used = {step["op"] for step in steps}
                linked = set(re.findall(r"qplan::(\w+?)_(?:ref|avx2|sse41|avxvnni|avx512vnni|dsp)::run\(", run("nm", "-C", program)))
                # Convolutions with vectors add residuals by the kernel of `add` and call the product that they share with
                # other layers; depthwise ones have two files.
                self.assertEqual(linked - {"add", "depthwise_columns", "gemm"}, used)
                symbols = run("nm", "-C", program)
                self.assertNotIn("Sha256", symbols)
                self.assertNotIn("PlanVerifier::npu", symbols)
                if form == "aot":
                    self.assertNotIn("flatbuffers", symbols)
                    self.assertNotIn("PlanView", symbols)

    def test_yields_between_pieces_of_work_and_gives_the_same_bytes(self):
        # Arduino has a function of that name.
        header = "extern unsigned yields;\nvoid yield(void);\n#define QPLAN_YIELD() yield()\n"
        body = NATIVE_MAIN.replace("int main", "unsigned yields;\nvoid yield(void) { ++yields; }\nint main").replace(
            "  return 0;", "  fwrite(&yields, sizeof(yields), 1, stdout);\n  return 0;")
        for name, model, input_file, expected in models():
            for form in FORMS:
                for fuse in ("off", "auto"):
                    with self.subTest(name=name, form=form, fuse=fuse):
                        folder = os.path.join(BUILD, "yield-" + form)
                        target = "cpu" if form == "array" else "cpu,arch=cortex-m4"
                        code, plan = emit(folder, model, target, "digits", form, "--fuse", fuse)
                        yield_header, main = write(folder, yield_h=header, main_c=body)
                        program = build(os.path.join(folder, "program"), code, main, "-include", yield_header)
                        printed = run(program, input_file, binary=True)
                        self.assertEqual(printed[:-4], read(expected))
                        steps = json.loads(run(QPLAN, "inspect", plan, "--json"))["steps"]
                        runs, (yields,) = 2, struct.unpack("<I", printed[-4:])
                        # A step is one piece or more: about one for each 131,072 operations, at most one for each work item.
                        most = sum(1 + step["work"] // 131072 for step in steps)
                        self.assertGreaterEqual(yields, runs * len(steps))
                        if form == "array":
                            self.assertLessEqual(yields, runs * (2 * most + 16 * sum(step["op"] == "chain" for step in steps)))
                        if fuse == "off":
                            self.assertLessEqual(yields, runs * 2 * most)
                            if name in ("kws", "person", "resnet"):
                                self.assertGreater(yields, runs * len(steps))

    def test_scratch_of_every_instruction_set_has_room_of_its_own(self):
        """A plan for a small device has scratch in its arena, as much as the kernels of its own instruction sets need."""
        cases = [(name, model, input_file, expected, fuse) for name, model, input_file, expected in models()
                 for fuse in ("auto", "all", "memory")]
        for name, model, input_file, expected, fuse in cases:
            folder = os.path.join(BUILD, "scratch")
            emit(folder, model, "cpu,arch=cortex-m4", "digits", "aot", "--fuse", fuse)
            (main,) = write(folder, main_c=NATIVE_MAIN.replace("  if (digits_run() != 0) return 4;\n", "", 1))
            for isa in ("reference", "dsp", "sse41"):
                with self.subTest(name=name, fuse=fuse, isa=isa):
                    code, program = os.path.join(folder, isa), os.path.join(folder, "program")
                    shutil.rmtree(code, ignore_errors=True)
                    run(QPLAN, "emit-c", os.path.join(folder, "digits.qplan"), "-o", code, "--name", "digits", "--aot",
                        "--isa", isa)
                    build(program, code, main)
                    self.assertEqual(run(program, input_file, binary=True), read(expected))

    def test_scratch_beyond_that_of_the_plan_is_an_error(self):
        """As of a plan that another version packed for kernels that take less: its file states 64 bytes for one step."""
        folder = os.path.join(BUILD, "short")
        _, plan = emit(folder, DIGITS, "cpu,arch=cortex-m4", "digits", "aot", "--fuse", "all")
        content = bytearray(read(plan))
        steps = json.loads(run(QPLAN, "inspect", plan, "--json"))["steps"]
        (step,) = [step["index"] for step in steps if step["name"] == "block2/add"]
        at = scratch_size_at(content, step)
        self.assertGreater(struct.unpack_from("<I", content, at)[0], 64)
        struct.pack_into("<I", content, at, 64)
        content[32:64] = hashlib.sha256(content[64:]).digest()
        with open(plan, "wb") as file:
            file.write(content)
        shutil.rmtree(os.path.join(folder, "none"), ignore_errors=True)
        done = subprocess.run([QPLAN, "emit-c", plan, "-o", os.path.join(folder, "none"), "--aot"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout,
                         rf"step {step} 'block2/add': .* needs \d+ bytes of scratch, the plan provides 64; pack")
        self.assertFalse(os.path.exists(os.path.join(folder, "none")), "nothing is written")

    def test_what_has_no_form_in_c_is_refused_by_name(self):
        folder = os.path.join(BUILD, "refused")
        model = os.path.join(folder, "model.relay")
        os.makedirs(folder, exist_ok=True)
        with open(model, "w", encoding="utf-8") as file:
            file.write('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), uint8]) {\n  transpose(%x, axes=[1, 0])\n}\n')
        plan = os.path.join(folder, "m.qplan")
        run(QPLAN, "pack", model, "-o", plan)
        done = subprocess.run([QPLAN, "emit-c", plan, "-o", os.path.join(folder, "c"), "--aot"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("kernel 'transpose' has no arguments in C", done.stdout)
        self.assertFalse(os.path.exists(os.path.join(folder, "c")), "nothing is written")
        done = subprocess.run([QPLAN, "emit-c", plan, "-o", os.path.join(folder, "c"), "--name", "1st"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertIn("'1st' cannot be part of a name in C", done.stdout)

    def refused(self, plan, *options):
        """The error of emit-c, which writes nothing."""
        code = os.path.join(BUILD, "refused-options", "none")
        shutil.rmtree(code, ignore_errors=True)
        done = subprocess.run([QPLAN, "emit-c", plan, "-o", code, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertFalse(os.path.exists(code), "nothing is written")
        return done.stdout

    def test_names_of_headers_are_refused(self):
        folder = os.path.join(BUILD, "refused-options")
        _, plan = emit(folder, DIGITS, "cpu", "digits", "array")
        # In capitals, too: file systems may not tell them apart.
        for name in ("string", "stdint", "String"):
            text = self.refused(plan, "--name", name, "--aot")
            self.assertIn(f"'{name}' is the name of a header of the C library", text)
            self.assertIn("pass another one with --name", text)
        for name in ("qplan_firmware", "qplan", "QPLAN_x"):
            self.assertIn(f"'{name}' begins as the names that qplan's own headers declare", self.refused(plan, "--name", name))
        # The default, of the plan's file.
        of_file = os.path.join(folder, "math.v2.qplan")
        shutil.copy(plan, of_file)
        self.assertIn("'math' is the name of a header", self.refused(of_file))
        for name in ("mtx", "cnd", "sem", "atomic", "pthread_mutex", "Posix_spawn"):
            self.assertIn(f"functions the names of some of the C library's: '{name}_init'", self.refused(plan, "--name", name))
        for name in ("step0_layer0", "STEP1"):
            self.assertIn(f"'{name}' begins as the names of steps", self.refused(plan, "--name", name, "--aot"))
        self.assertIn("at most 63 letters", self.refused(plan, "--name", "n" * 64))
        for name in ("strings1", "firmware", "qplans", "stepper", "mtx1", "n" * 63):
            run(QPLAN, "emit-c", plan, "-o", os.path.join(folder, "c"), "--name", name)

    def test_instruction_sets_that_change_nothing_are_refused(self):
        _, plan = emit(os.path.join(BUILD, "refused-options"), DIGITS, "cpu", "digits", "array")
        self.assertIn("'dsp' is given without --aot", self.refused(plan, "--isa", "dsp"))
        known = {name for step in json.loads(run(QPLAN, "inspect", plan, "--json"))["steps"]
                 for name in [variant["isa"] for variant in step["variants"]]}
        other = "rvv" if "rvv" not in known else "neon"
        self.assertIn(f"knows no kernels of the instruction set '{other}'", self.refused(plan, "--aot", "--isa", other))
        run(QPLAN, "emit-c", plan, "-o", os.path.join(BUILD, "refused-options", "aot"), "--aot", "--isa", "reference")


# Two states: the next value of the first is copied after a run, the second's is written over it.
STATES_MODEL = '''#[version = "0.0.5"]
def @main(%x: Tensor[(4), int8], %s: Tensor[(4), int8], %t: Tensor[(4), int8], states=[[1, 1], [2, 2]],
          state_bytes=[[1, 2, 3, 4], [5]]) {
  %0 = qnn.add(%s, %x, 1f, 0, 1f, 0, 1f, 0);
  %1 = qnn.add(%t, %0, 1f, 0, 1f, 0, 1f, 0);
  %2 = qnn.add(%1, %x, 1f, 0, 1f, 0, 1f, 0);
  (%1, %0, %2)
}
'''
# Every argument is the file of one run's input; "reset" begins again.
STATES_MAIN = """
#include <stdio.h>
#include <string.h>
#include "states.h"
int main(int argc, char **argv) {
  int i;
  if (states_init() != 0) return 1;
  for (i = 1; i < argc; ++i) {
    FILE *file;
    if (strcmp(argv[i], "reset") == 0) {
      states_reset_state();
      continue;
    }
    file = fopen(argv[i], "rb");
    if (file == NULL || fread(states_input(0), 1, STATES_INPUT0_BYTES, file) != STATES_INPUT0_BYTES) return 3;
    fclose(file);
    if (states_run() != 0) return 4;
    fwrite(states_output(0), 1, STATES_OUTPUT0_BYTES, stdout);
  }
  return 0;
}
"""


class States(unittest.TestCase):
    def test_runs_go_on_from_each_other_until_a_reset(self):
        folder = os.path.join(BUILD, "states")
        model, main = write(folder, states_relay=STATES_MODEL, main_c=STATES_MAIN)
        inputs, expected = [], b""
        s, t = [1, 2, 3, 4], [5] * 4
        for i, x in enumerate(([1, 2, 3, 4], [-9, 8, -7, 6], [0, 0, 0, 0], None, [1, 1, 1, 1])):
            if x is None:
                inputs.append("reset")
                s, t = [1, 2, 3, 4], [5] * 4
                continue
            inputs.append(os.path.join(folder, f"x{i}.bin"))
            with open(inputs[-1], "wb") as file:
                file.write(bytes(v & 255 for v in x))
            s = [a + b for a, b in zip(s, x)]
            out = [a + b for a, b in zip(t, s)]
            t = [a + b for a, b in zip(out, x)]
            expected += bytes(v & 255 for v in out)
        for form in FORMS:
            with self.subTest(form):
                code, plan = emit(os.path.join(folder, form), model, "cpu", "states", form)
                states = json.loads(run(QPLAN, "inspect", plan, "--json"))["states"]
                self.assertEqual([state["in_place"] for state in states], [False, True])
                program = build(os.path.join(folder, form, "program"), code, main)
                self.assertEqual(run(program, *inputs, binary=True), expected)


# Outputs that no step computes: constants of several types, one of them twice.
CONSTANTS_MODEL = '''#[version = "0.0.5"]
def @main(%x: Tensor[(4), int8]) {
  %0 = qnn.add(%x, %x, 1f, 0, 1f, 0, 1f, 0);
  %1 = const(Tensor[(4), int8], [1, -2, 127, -128]);
  (%1, %0, const(Tensor[(3), float32], [0.5, -2, 1e30]), %1, const(Tensor[(2), int32], [-2147483648, 7]))
}
'''
CONSTANTS_MAIN = """
#include <stdio.h>
#include <string.h>
#include "constants.h"
int main(void) {
  int runs;
  if (constants_init() != 0) return 1;
  for (runs = 0; runs < 2; ++runs) {
    memset(constants_input(0), 5, CONSTANTS_INPUT0_BYTES);
    if (constants_run() != 0) return 2;
    fwrite(constants_output(0), 1, CONSTANTS_OUTPUT0_BYTES, stdout);
    fwrite(constants_output(1), 1, CONSTANTS_OUTPUT1_BYTES, stdout);
    fwrite(constants_output(2), 1, CONSTANTS_OUTPUT2_BYTES, stdout);
    fwrite(constants_output(3), 1, CONSTANTS_OUTPUT3_BYTES, stdout);
    fwrite(constants_output(4), 1, CONSTANTS_OUTPUT4_BYTES, stdout);
  }
  return constants_output(CONSTANTS_OUTPUTS) == NULL ? 0 : 3;
}
"""


# Zeros that a plan has once: weights as int8 and a bias as int32; bytes of any type of a sum, and the bias of another step,
# which has 16 channels on a Cortex-M4.
EQUAL_MODELS = {name: f'''#[version = "0.0.5"]
def @main(%x: Tensor[({shape}), int8]) {{
  %0 = {before};
  %1 = qnn.dense(%0, const(Tensor[({weights_shape}), int8], [{weights}]), 0, 0, 1f, 1f);
  %2 = nn.bias_add(%1, const(Tensor[(4), int32], [0, 0, 0, 0]));
  qnn.requantize(%2, 1f, 0, 40f, 0)
}}
''' for name, shape, before, weights_shape, weights in (
    ("weights", "4, 4", "clip(%x, a_min=-100f, a_max=100f)", "4, 4", ", ".join(["0"] * 16)),
    ("sum", "1, 64", f"qnn.add(%x, const(Tensor[(64), int8], [{', '.join(['0'] * 64)}]), 0.5f, 0, 0.25f, 3, 0.5f, 0)", "4, 64",
     ", ".join(str(7 * i % 11 - 5) for i in range(256))))}
# The plan has no steps: the output is the input.
SAME_MODEL = '''#[version = "0.0.5"]
def @main(%x: Tensor[(4), int8]) {
  %x
}
'''
ONE_MAIN = """
#include <stdio.h>
#include "one.h"
int main(int argc, char **argv) {
  FILE *file = fopen(argv[argc - 1], "rb");
  if (one_init() != 0 || file == NULL) return 1;
  if (fread(one_input(0), 1, ONE_INPUT0_BYTES, file) != ONE_INPUT0_BYTES) return 3;
  if (one_run() != 0) return 4;
  fwrite(one_output(0), 1, ONE_OUTPUT0_BYTES, stdout);
  return 0;
}
"""


class Constants(unittest.TestCase):
    def output_of(self, folder, model_text, form, target, input_bytes):
        model, main = write(folder, one_relay=model_text, main_c=ONE_MAIN)
        code, plan = emit(folder, model, target, "one", form)
        input_file = os.path.join(folder, "input.bin")
        with open(input_file, "wb") as file:
            file.write(input_bytes)
        outputs = [run(build(os.path.join(folder, compiler), code, main, compiler=compiler), input_file, binary=True)
                   for compiler in filter(shutil.which, ("gcc", "clang"))]
        self.assertEqual(len(set(outputs)), 1)
        return outputs[0], plan

    def test_constants_of_equal_bytes_have_an_array_of_each_type(self):
        for name, text in EQUAL_MODELS.items():
            for form, target in (("array", "cpu"), ("aot", "cpu"), ("aot", "cpu,arch=cortex-m4")):
                with self.subTest(name=name, form=form, target=target):
                    folder = os.path.join(BUILD, "equal", name + form)
                    input_bytes = bytes(v & 255 for v in range(-8, 56 if name == "sum" else 8))
                    output, plan = self.output_of(folder, text, form, target, input_bytes)
                    run(QPLAN, "run", plan, "--isa", "reference", "--input", os.path.join(folder, "input.bin"),
                        "--output-dir", folder)
                    self.assertEqual(output, read(os.path.join(folder, "output0.bin")))

    def test_a_plan_without_steps_is_c(self):
        for form in FORMS:
            with self.subTest(form):
                output, plan = self.output_of(os.path.join(BUILD, "same", form), SAME_MODEL, form, "cpu", b"\1\2\3\4")
                self.assertEqual(json.loads(run(QPLAN, "inspect", plan, "--json"))["steps"], [])
                self.assertEqual(output, b"\1\2\3\4")

    def test_outputs_that_are_constants_have_their_bytes_after_each_run(self):
        folder = os.path.join(BUILD, "constants")
        model, main = write(folder, constants_relay=CONSTANTS_MODEL, main_c=CONSTANTS_MAIN)
        constant = struct.pack("<4b", 1, -2, 127, -128)
        expected = constant + bytes([10] * 4) + struct.pack("<3f", 0.5, -2, 1e30) + constant + struct.pack("<2i", -2 ** 31, 7)
        for form in FORMS:
            with self.subTest(form):
                code, _ = emit(os.path.join(folder, form), model, "cpu", "constants", form)
                program = build(os.path.join(folder, form, "program"), code, main)
                self.assertEqual(run(program, binary=True), 2 * expected)


# Reads floats from standard input; writes them as int8, as uint8 and as floats again.
FLOATS_MAIN = """
#include <stdio.h>
#include <qplan/firmware.h>
int main(void) {
  float values[64], again[64];
  int8_t s8[64];
  uint8_t u8[64];
  size_t n = fread(values, sizeof(float), 64, stdin);
  qplan_quantize_f32(values, n, 0.5f, -3, s8);
  qplan_quantize_f32_u8(values, n, 0.5f, 7, u8);
  fwrite(s8, 1, n, stdout);
  fwrite(u8, 1, n, stdout);
  qplan_dequantize_f32(s8, n, 0.5f, -3, again);
  fwrite(again, sizeof(float), n, stdout);
  qplan_dequantize_f32_u8(u8, n, 0.5f, 7, again);
  fwrite(again, sizeof(float), n, stdout);
  return 0;
}
"""


class Floats(unittest.TestCase):
    def test_floats_are_quantised_half_away_from_zero_and_clamped(self):
        folder = os.path.join(BUILD, "floats")
        (main,) = write(folder, main_c=FLOATS_MAIN)
        # value: how many halves it is, rounded half away from zero
        cases = [(0.0, 0), (0.25, 1), (-0.25, -1), (0.2499999850988388, 0), (0.75, 2), (-0.75, -2), (1.0, 2), (20.25, 41),
                 (-20.3, -41), (63.0, 126), (65.0, 130), (-64.0, -128), (1e9, 10 ** 9), (-1e9, -10 ** 9),
                 (float("inf"), 10 ** 9), (float("-inf"), -10 ** 9), (float("nan"), 0)]
        s8 = [max(-128, min(127, halves - 3)) for _, halves in cases]
        u8 = [max(0, min(255, halves + 7)) for _, halves in cases]
        expected = struct.pack(f"{len(cases)}b{len(cases)}B", *s8, *u8)
        expected += struct.pack(f"<{2 * len(cases)}f", *[(v + 3) * 0.5 for v in s8], *[(v - 7) * 0.5 for v in u8])
        for compiler in filter(shutil.which, ("gcc", "clang")):
            with self.subTest(compiler):
                program = os.path.join(folder, compiler)
                run(compiler, *STRICT, "-Wextra", "-I" + os.path.join(ROOT, "include"), main, "-o", program)
                done = subprocess.run([program], input=struct.pack(f"<{len(cases)}f", *[value for value, _ in cases]),
                                      stdout=subprocess.PIPE, timeout=60, check=True)
                self.assertEqual(done.stdout, expected)


def models():
    """(name, model, input, expected output)"""
    pools = os.path.join(ROOT, "tests", "data", "pools")  # convolutions and pools in one cascade
    cases = [("digits", DIGITS, DIGIT_INPUT, DIGIT_OUTPUT),
             ("pools", *(os.path.join(pools, file) for file in ("model.relay", "a_input.bin", "a_output.bin")))]
    for name, model, golden in (("kws", "kws_ref_model", "rand1"), ("person", "person_detect", "person"),
                                ("resnet", "pretrainedResnet_quant", "bird"), ("ad01", "ad01_int8", "rand1")):
        folder = os.path.join(DATA, "golden", model, golden)
        if os.path.isdir(folder):
            cases.append((name, os.path.join(DATA, "models", model + ".tflite"), os.path.join(folder, "input0.bin"),
                          os.path.join(folder, "output0.bin")))
    return cases


# Bytes of text of an image without constants, input and expected output (docs/firmware.md), rounded up: GCC 12, -Os.
TEXT_LIMITS = {("kws", "array"): 43150, ("kws", "aot"): 14300}


def text_bytes(image, *files):
    """Of an image that contains the files, without the plan or, of direct calls, the constants of layers."""
    text = int(run("arm-none-eabi-size", image).splitlines()[1].split()[0])
    for line in run("arm-none-eabi-nm", "-S", image).splitlines():
        fields = line.split()
        if len(fields) == 4 and re.fullmatch(r"\w+_plan|step\d+(_layer\d+)?_\w+", fields[3]):
            text -= int(fields[1], 16)
    return text - sum(os.path.getsize(file) for file in files)


class CortexM4(unittest.TestCase):
    def setUp(self):
        for tool in ("arm-none-eabi-gcc", "arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")

    def test_models_give_the_golden_bytes(self):
        for name, model, input_file, expected in models():
            for form in FORMS:
                with self.subTest(name=name, form=form):
                    folder = os.path.join(BUILD, f"{name}-{form}")
                    code, plan = emit(folder, model, "cpu,arch=cortex-m4", name, form)
                    tree = os.path.join(BUILD, "tree")
                    run("cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", tree, "-G", "Ninja",
                        "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m4.cmake"),
                        "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DFIRMWARE_C=" + code, "-DFIRMWARE_NAME=" + name,
                        "-DFIRMWARE_INPUT=" + os.path.abspath(input_file), "-DFIRMWARE_EXPECTED=" + os.path.abspath(expected))
                    run("cmake", "--build", tree)
                    image = os.path.join(folder, "firmware.elf")
                    shutil.copy(os.path.join(tree, "firmware.elf"), image)
                    said = dict(line.split() for line in run(*QEMU, image).splitlines() if len(line.split()) == 2)
                    print(f"{name} {form}: {said}")
                    self.assertEqual(int(said["output_bytes"]), os.path.getsize(expected))
                    self.assertEqual(int(said["different"]), 0)
                    stack = json.loads(run(QPLAN, "inspect", plan, "--json"))["memory"]["stack_bytes"]["32_bit"]
                    self.assertLessEqual(int(said["init_stack_bytes"]), stack["open"])
                    self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])
                    text = text_bytes(image, input_file, expected)
                    print(f"{name} {form}: {text} bytes of text")
                    self.assertLessEqual(text, TEXT_LIMITS.get((name, form), text))
                    symbols = run("arm-none-eabi-nm", "-C", image)
                    self.assertNotIn("Sha256", symbols)
                    if name == "pools":
                        self.assertNotIn("resize_bilinear", symbols, "of cascades only the layers that are needed")
                        self.assertNotIn("add_ref::run", symbols)
                    if "qplan_family_chain" not in symbols:  # cascades know convolutions by their whole families
                        self.assertNotIn("conv2d_ref::run", symbols, "cores with DSP instructions need no reference")

    def test_files_of_other_sizes_than_the_tensors_are_refused(self):
        folder = os.path.join(BUILD, "sizes")
        code, _ = emit(folder, DIGITS, "cpu,arch=cortex-m4", "digits", "array")
        empty, = write(folder, empty_bin="")
        for files in ((empty, DIGIT_OUTPUT), (DIGIT_INPUT, empty)):
            done = subprocess.run(
                ["cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", os.path.join(folder, "tree"), "-G", "Ninja",
                 "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m4.cmake"),
                 "-DFIRMWARE_C=" + code, "-DFIRMWARE_NAME=digits", "-DFIRMWARE_INPUT=" + files[0],
                 "-DFIRMWARE_EXPECTED=" + files[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            # CMake wraps its errors to a width, at blanks that depend on the folder's length.
            self.assertIn("empty.bin' has 0 bytes", " ".join(done.stdout.split()))


if __name__ == "__main__":
    QPLAN, LIBRARY, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1], verbosity=2)
