"""The runtime as a folder of sources (cmake --install --component firmware): compiled by the compiler alone it gives the golden
bytes on a Cortex-M4, and what describes it to other build systems names all of it.

usage: package_test.py QPLAN BUILD_DIR    (run by ctest; needs gcc-arm-none-eabi and qemu-system-arm)
"""
import concurrent.futures
import glob
import os
import re
import shutil
import sys
import unittest
import xml.etree.ElementTree

import emit_c_test
from emit_c_test import DIGIT_INPUT, DIGIT_OUTPUT, DIGITS, QEMU, ROOT, emit, run

BUILD = None
CORE = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
SAMPLE = os.path.join(ROOT, "samples", "firmware")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("arm-none-eabi-g++", "qemu-system-arm"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"{tool} is not installed (Debian: gcc-arm-none-eabi libnewlib-arm-none-eabi "
                                        "libstdc++-arm-none-eabi-newlib qemu-system-arm)")
        tree = os.path.join(BUILD, "tree")
        run("cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-DQPLAN_BUILD_PACKER=OFF",
            "-DCMAKE_TOOLCHAIN_FILE=" + os.path.join(ROOT, "cmake", "toolchains", "cortex-m4.cmake"))
        # A name that is in no list of what to look for: nothing else of the repository is found from there.
        cls.package = os.path.join(BUILD, "package")
        shutil.rmtree(cls.package, ignore_errors=True)
        run("cmake", "--install", tree, "--component", "firmware", "--prefix", cls.package)
        cls.sources = sorted(os.path.relpath(path, cls.package)
                             for path in glob.glob(os.path.join(cls.package, "src", "**", "*.cc"), recursive=True))

    def test_lists_of_other_build_systems_name_every_source(self):
        self.assertGreater(len(self.sources), 60)
        for file in ("CMakeLists.txt", os.path.join("zephyr", "CMakeLists.txt")):
            with self.subTest(file):
                listed = re.findall(r"^\s+(?:\.\./)?(src/\S+?\.cc)\)?$", read(self.package, file), re.M)
                self.assertEqual(sorted(listed), self.sources)
        description = xml.etree.ElementTree.parse(os.path.join(self.package, "qplan.qplan.pdsc")).getroot()
        self.assertEqual([child.tag for child in description],
                         ["vendor", "name", "description", "url", "license", "releases", "components"])
        files = description.findall("components/component/files/file")
        self.assertEqual(sorted(file.get("name") for file in files if file.get("category") == "source"), self.sources)
        for name in [file.get("name") for file in files] + [description.findtext("license")]:
            self.assertTrue(os.path.exists(os.path.join(self.package, name)), name)
        properties = dict(line.split("=", 1) for line in read(self.package, "library.properties").splitlines())
        self.assertLessEqual({"name", "version", "author", "maintainer", "sentence", "category", "architectures"}, set(properties))
        self.assertTrue(os.path.exists(os.path.join(self.package, "src", properties["includes"])))
        module = read(self.package, "zephyr", "module.yml")
        for key in ("cmake", "kconfig"):
            self.assertTrue(os.path.exists(os.path.join(self.package, re.search(rf"{key}: (\S+)", module).group(1))))

    def test_sources_compile_alone_and_give_the_golden_bytes(self):
        objects = os.path.join(BUILD, "objects")
        shutil.rmtree(objects, ignore_errors=True)
        os.makedirs(objects)
        code, _ = emit(os.path.join(BUILD, "digits"), DIGITS, "cpu,arch=cortex-m4", "digits", "array")
        common = [*CORE, "-Os", "-ffunction-sections", "-fdata-sections", "-I" + os.path.join(self.package, "src")]
        options = {line.split()[0]: line.split()[1:] for line in read(self.package, "options.txt").splitlines()}
        ccache = ["ccache"] if shutil.which("ccache") else []  # to use the results of the runs before
        commands = [[*ccache, "arm-none-eabi-g++", "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", *common,
                     *options.get(source, []), "-c", os.path.join(self.package, source)] for source in self.sources]
        commands += [["arm-none-eabi-gcc", "-std=c99", *common, "-I" + code, "-DMODEL=digits", "-c", path]
                     for path in [*glob.glob(os.path.join(code, "*.c")), os.path.join(SAMPLE, "emitted.c"),
                                  os.path.join(SAMPLE, "startup.c")]]
        commands.append(["arm-none-eabi-gcc", *CORE, "-DFIRMWARE_WITHOUT_PLAN", f'-DFIRMWARE_INPUT="{DIGIT_INPUT}"',
                         f'-DFIRMWARE_EXPECTED="{DIGIT_OUTPUT}"', "-c", os.path.join(SAMPLE, "data.S")])
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda numbered: run(*numbered[1], "-o", os.path.join(objects, f"{numbered[0]}.o")),
                          enumerate(commands)))
        image = os.path.join(BUILD, "digits.elf")
        run("arm-none-eabi-gcc", *CORE, "--specs=nano.specs", "-nostartfiles", "-L" + SAMPLE,
            "-T" + os.path.join(SAMPLE, "mps2.ld"), "-Wl,--gc-sections", "-o", image, *glob.glob(os.path.join(objects, "*.o")))
        said = dict(line.split() for line in run(*QEMU, image).splitlines() if len(line.split()) == 2)
        self.assertEqual((int(said["output_bytes"]), int(said["different"])), (os.path.getsize(DIGIT_OUTPUT), 0))
        symbols = run("arm-none-eabi-nm", image)
        self.assertNotRegex(symbols, r" [tTwW] (malloc|_malloc_r|free|__assert_func)\b")


if __name__ == "__main__":
    emit_c_test.QPLAN, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:3])
    os.makedirs(BUILD, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
