"""The runtime on a Cortex-M4: cross-compiled, run in QEMU, equal to the host and to the golden output.

usage: firmware_test.py QPLAN BUILD_DIR    (run by ctest; needs gcc-arm-none-eabi and qemu-system-arm)
"""
import hashlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("QPLAN_SHARED", os.path.join(ROOT, os.pardir, "shared"))
PREFIX = "arm-none-eabi-"
HEAP = re.compile(r" (_?malloc(_r)?|_?free(_r)?|_?sbrk(_r)?|calloc|realloc|_Znwj|_Znaj|_ZdlPv|__cxa_throw|"
                  r"_Unwind_RaiseException|printf)$", re.M)
# Objects of libqplan.a that are no kernels: what every firmware links.
CORE = r"(error|sha256|self_check|plan|plan_view|verify_\w+|text|options|session|prepare|execute|regions|bindings|abi|kernel|cpu)\.cc"
# What only firmware with an NPU links.
NPU = r"(npu|client|load|transfer|job|buffer)\.cc"
QPLAN = BUILD = None


def run(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done


def models():
    """(name, model, input, expected output): the repository's own, and where the data directory is those whose figures
    docs/firmware.md has. The packer cuts person_detect and ResNet-8 into cascades."""
    f32e = os.path.join(ROOT, "tests", "data", "f32e")
    own = os.path.join(ROOT, "tests", "data", "digits")
    cases = [("digits", os.path.join(ROOT, "samples", "models", "digits.tflite"),
              os.path.join(own, "digit0_input.bin"), os.path.join(own, "digit0_output.bin")),
             ("f32e", os.path.join(f32e, "model.relay"),
              os.path.join(f32e, "case0_input.bin"), os.path.join(f32e, "case0_output.bin"))]
    for name, model, case in (("kws", "kws_ref_model", "rand1"), ("person_detect", "person_detect", "rand1"),
                              ("resnet", "pretrainedResnet_quant", "bird"), ("ad01", "ad01_int8", "rand1")):
        golden = os.path.join(DATA, "golden", model, case)
        if os.path.isdir(golden):
            cases.append((name, os.path.join(DATA, "models", model + ".tflite"),
                          os.path.join(golden, "input0.bin"), os.path.join(golden, "output0.bin")))
    return cases


def small_network(height, width, channels):
    """Three convolutions that the packer cuts into a cascade, as relay."""
    draw = random.Random(1)

    def constant(shape, dtype, most):
        values = ", ".join(str(draw.randint(-most, most)) for _ in range(math.prod(shape)))
        return f"const(Tensor[({', '.join(map(str, shape))}), {dtype}], [{values}])"

    text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, {height}, {width}, 1), int8]) {{\n'
    at = "%x"
    for i, (weights, options) in enumerate((
            ((channels, 3, 3, 1), "padding=[1, 1, 1, 1], "),
            ((channels, 3, 3, 1), f"groups={channels}, padding=[1, 1, 1, 1], "),
            ((channels, 1, 1, channels), ""))):
        text += (f"  %{3 * i} = qnn.conv2d({at}, {constant(weights, 'int8', 90)}, 3, 0, 0.03f, 0.006f, {options}"
                 f'data_layout="NHWC", kernel_layout="OHWI");\n'
                 f"  %{3 * i + 1} = nn.bias_add(%{3 * i}, {constant((channels,), 'int32', 900)}, axis=3);\n"
                 f"  %{3 * i + 2} = qnn.requantize(%{3 * i + 1}, 0.00018f, 0, 0.03f, 3, axis=3, "
                 'contract="f32e");\n')
        at = f"%{3 * i + 2}"
    return text + f"  {at}\n}}\n"


class Firmware(unittest.TestCase):
    def setUp(self):
        for tool in (PREFIX + "gcc", PREFIX + "g++", "qemu-system-arm"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                              "libstdc++-arm-none-eabi-newlib qemu-system-arm)")

    @staticmethod
    def build(name, model, input_file, expected, plan=None, self_check=False, profile=False, definitions=""):
        """Packs for the device (without a plan), builds the image; returns the plan's path and the image's."""
        folder = os.path.join(BUILD, name)
        os.makedirs(folder, exist_ok=True)
        if plan is None:
            plan = os.path.join(folder, "model.qplan")
            run(QPLAN, "pack", model, "-o", plan, "--target", "cpu,arch=cortex-m4")
        # One build tree for all images: the runtime is compiled once.
        tree = os.path.join(BUILD, "tree")
        run("cmake", "-S", os.path.join(ROOT, "samples", "firmware"), "-B", tree, "-G", "Ninja",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m4.cmake"),
            "-DCMAKE_BUILD_TYPE=MinSizeRel", "-DQPLAN_WERROR=ON", "-DFIRMWARE_PLAN=" + plan,
            "-DFIRMWARE_SELF_CHECK=" + ("ON" if self_check else "OFF"), "-DFIRMWARE_PROFILE=" + ("ON" if profile else "OFF"),
            "-DFIRMWARE_DEFINITIONS=" + definitions,
            "-DFIRMWARE_INPUT=" + os.path.abspath(input_file), "-DFIRMWARE_EXPECTED=" + os.path.abspath(expected))
        run("cmake", "--build", tree)
        image = os.path.join(folder, "firmware.elf")
        shutil.copy(os.path.join(tree, "firmware.elf"), image)
        return plan, image, os.path.join(tree, "qplan", "lib", "libqplan.a")

    @staticmethod
    def start(image, *options):
        return run("qemu-system-arm", *options, "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none",
                   "-semihosting-config", "enable=on,target=native", "-kernel", image, check=False)

    def self_checking(self, name, model, input_file, expected):
        """The path of a plan whose self-checks passed, in the declared stack of a run and 400 bytes (docs/c.md)."""
        folder = os.path.join(BUILD, "self_check")
        os.makedirs(folder, exist_ok=True)
        plan = os.path.join(folder, name + ".qplan")
        # The host's reference kernels made the checksums, the Cortex-M4's kernels are compared with them.
        run(QPLAN, "pack", model, "-o", plan, "--target", "cpu,arch=cortex-m4", "--self-check", "2")
        _, image, _ = self.build("self_check_" + name, model, input_file, expected, plan, self_check=True)
        done = self.start(image)
        self.assertEqual(done.returncode, 0, done.stdout)
        print(f"{name}, self-check: {' '.join(done.stdout.split())}")
        said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        stack = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)["memory"]["stack_bytes"]["32_bit"]
        self.assertLessEqual(int(said["self_check_stack_bytes"]), stack["invoke"] + 400)
        return plan

    def test_a_self_check_of_cascades_passes(self):
        cases = [case for case in models() if case[0] == "person_detect"]
        if not cases:
            self.skipTest("the data directory has no person_detect (QPLAN_SHARED)")
        self.self_checking(*cases[0])

    def test_a_self_check_names_the_step_whose_weight_lost_a_bit(self):
        name, model, input_file, expected = models()[0]
        plan = self.self_checking(name, model, input_file, expected)
        with open(plan, "rb") as file:
            content = bytearray(file.read())
        report = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)
        step = next(step for step in report["steps"] if step["op"] == "fully_connected")
        weights = report["tensors"][step["inputs"][1]]
        begin = (64 + int.from_bytes(content[12:16], "little") + 63) // 64 * 64
        content[begin + weights["offset"] + weights["bytes"] // 2] ^= 8
        content[32:64] = hashlib.sha256(content[64:]).digest()
        damaged = os.path.join(os.path.dirname(plan), "damaged.qplan")
        with open(damaged, "wb") as file:
            file.write(content)
        _, image, _ = self.build("self_check_damaged", model, input_file, expected, damaged, self_check=True)
        done = self.start(image)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("self-check: QPLAN_SELF_CHECK_FAILED: self-check: step %d" % step["index"], done.stdout)

    def test_outputs_equal_the_goldens_in_the_declared_memory(self):
        for name, model, input_file, expected in models():
            with self.subTest(name):
                plan, image, _ = self.build(name, model, input_file, expected)
                done = self.start(image)
                print(f"{name}: {' '.join(done.stdout.split())}")
                self.assertEqual(done.returncode, 0, done.stdout)
                said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
                self.assertEqual(int(said["output_bytes"]), os.path.getsize(expected))
                self.assertEqual(int(said["different"]), 0)
                inspected = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)
                self.assertEqual(int(said["memory_bytes"]), inspected["memory"]["session_bytes"]["32_bit"]["1"],
                                 "the packer's figure for 32 bits")
                stack = inspected["memory"]["stack_bytes"]["32_bit"]
                self.assertLessEqual(int(said["init_stack_bytes"]), stack["open"])
                self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])

    def test_files_of_other_sizes_than_the_tensors_are_refused(self):
        name, model, input_file, expected = models()[0]
        with open(input_file, "rb") as file:
            image = file.read()
        for what, content, files in (("input", image + b"\0", lambda other: (other, expected)),
                                     ("expected", b"", lambda other: (input_file, other))):
            with self.subTest(what):
                os.makedirs(BUILD, exist_ok=True)
                other = os.path.join(BUILD, what + "_of_another_size.bin")
                with open(other, "wb") as file:
                    file.write(content)
                _, elf, _ = self.build(name + "_sizes", model, *files(other))
                done = self.start(elf)
                self.assertEqual(done.returncode, 1, done.stdout)
                size = os.path.getsize(input_file if what == "input" else expected)
                self.assertIn(f"the {what} file has {len(content)} bytes, the model's has {size}\n", done.stdout)

    def test_a_profile_has_the_cycles_of_each_step(self):
        name, model, input_file, expected = models()[0]
        plan, image, _ = self.build(name + "_profile", model, input_file, expected, profile=True)
        # An instruction takes 32 ns of QEMU's clock, by which SysTick counts 25 MHz: 0.8 of a cycle. QEMU has no DWT.
        done = self.start(image, "-icount", "shift=5")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("cycles by SysTick", done.stdout)
        steps = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("step ")]
        inspected = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)["steps"]
        self.assertEqual([(step[1], step[2]) for step in steps], [(str(step["macs"]), step["op"]) for step in inspected])
        cycles = [int(step[0]) for step in steps]
        self.assertIn(f"cycles {sum(cycles)}\n", done.stdout)
        for count, step in zip(cycles, inspected):
            # The calls of a kernel take some hundred instructions; a MAC of these kernels takes 0.7 to 10.
            self.assertGreater(count, 0.8 * max(100, 0.7 * step["macs"]), step["name"])
            self.assertLess(count, 0.8 * (20000 + 10 * step["macs"]), step["name"])
        self.assertEqual(self.start(image, "-icount", "shift=5").stdout, done.stdout)

    def test_sums_apart_from_layers_stay_within_the_stated_stack(self):
        name, model, input_file, expected = models()[0]
        plan = os.path.join(BUILD, "sums.qplan")
        run(QPLAN, "pack", model, "-o", plan, "--target", "cpu,arch=cortex-m4", "--fuse", "off")
        inspected = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)
        self.assertIn("add", [step["op"] for step in inspected["steps"]])
        _, image, _ = self.build(name + "_sums", model, input_file, expected, plan)
        done = self.start(image)
        print(f"{name}, sums: {' '.join(done.stdout.split())}")
        self.assertEqual(done.returncode, 0, done.stdout)
        said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        stack = inspected["memory"]["stack_bytes"]["32_bit"]
        self.assertLessEqual(int(said["init_stack_bytes"]), stack["open"])
        self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])

    def test_cascades_start_in_little_memory_within_the_stated_stack(self):
        """Activations without room for the tensor table, and with room for it, but none for what init shares."""
        for height, width, has_table in ((8, 4, False), (20, 8, True)):
            with self.subTest(height=height):
                name = f"small{height}"
                folder = os.path.join(BUILD, name)
                os.makedirs(folder, exist_ok=True)
                model, plan, input_file = (os.path.join(folder, file) for file in ("model.relay", "model.qplan", "x.bin"))
                with open(model, "w") as file:
                    file.write(small_network(height, width, 4))
                with open(input_file, "wb") as file:
                    file.write(random.Random(2).randbytes(height * width))
                # The host's reference kernels without cascades say what comes out.
                apart = os.path.join(folder, "apart.qplan")
                run(QPLAN, "pack", model, "-o", apart, "--fuse", "off")
                run(QPLAN, "run", apart, "--isa", "reference", "--input", input_file, "--output-dir", folder)
                expected = os.path.join(folder, "output0.bin")
                with open(expected, "rb") as file:
                    self.assertGreater(len(set(file.read())), 50)
                # By default the packer makes none of so small a network: the room for arguments takes more than it saves.
                run(QPLAN, "pack", model, "-o", plan, "--target", "cpu,arch=cortex-m4", "--fuse", "all")
                inspected = json.loads(run(QPLAN, "inspect", plan, "--json").stdout)
                self.assertEqual([step["op"] for step in inspected["steps"]], ["chain"])
                arena, table = inspected["memory"]["arena_bytes"], 448 + 40 * len(inspected["tensors"])
                self.assertEqual(arena >= table, has_table)
                self.assertLess(arena, table + 1312)
                _, image, _ = self.build(name, model, input_file, expected, plan)
                done = self.start(image)
                print(f"{name}: {' '.join(done.stdout.split())}")
                self.assertEqual(done.returncode, 0, done.stdout)
                said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
                self.assertEqual(int(said["different"]), 0)
                self.assertEqual(int(said["memory_bytes"]), inspected["memory"]["session_bytes"]["32_bit"]["1"])
                stack = inspected["memory"]["stack_bytes"]["32_bit"]
                self.assertLessEqual(int(said["init_stack_bytes"]), min(stack["open"], 1200))
                self.assertLessEqual(int(said["run_stack_bytes"]), stack["invoke"])

    def test_image_has_no_heap_and_no_static_constructors(self):
        name, model, input_file, expected = models()[0]
        _, image, archive = self.build(name, model, input_file, expected)
        symbols = run(PREFIX + "nm", image).stdout
        self.assertIn("qplan_session_invoke", symbols)
        self.assertEqual(HEAP.findall(symbols), [], "heap, exceptions or stdio in the image")
        sections = run(PREFIX + "readelf", "-SW", image).stdout
        for line in sections.splitlines():
            if ".init_array" in line:
                self.assertRegex(line, r"\s000000\s", "a static constructor in the image")
        done = run(sys.executable, os.path.join(ROOT, "cmake", "check_symbols.py"), PREFIX + "nm", PREFIX + "ld",
                   PREFIX + "readelf", archive, r"__aeabi_\w+|__\w+di3")
        print(done.stdout.strip())

    def test_size_of_the_runtime_is_reported(self):
        name, model, input_file, expected = models()[0]
        _, image, archive = self.build(name, model, input_file, expected)
        groups = {}
        for line in run(PREFIX + "size", archive).stdout.splitlines()[1:]:
            fields = line.split()
            member = fields[5]
            group = "core" if re.match(CORE, member) else "NPU client" if re.match(NPU, member) \
                else "kernels and their glue"
            groups[group] = groups.get(group, 0) + int(fields[0])
        for group, text in sorted(groups.items()):
            print(f"text of libqplan.a for Cortex-M4, {group}: {text} bytes")
        linked = run(PREFIX + "nm", "-S", "--size-sort", image).stdout
        code = sum(int(line.split()[1], 16) for line in linked.splitlines() if line.split()[2] in "tTrR"
                   and not re.search(r"(plan|input|expected)_bytes", line))
        print(f"code and constants linked into the image: {code} bytes")
        self.assertGreater(groups["core"], 0)


if __name__ == "__main__":
    QPLAN, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
