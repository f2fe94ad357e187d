"""Installs a build into an empty prefix and uses it from outside: find_package(qplan), the command, Python.

usage: install_test.py CMAKE BUILD_DIRECTORY [unittest's arguments]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DIGITS = REPOSITORY / "samples" / "models" / "digits.tflite"
DATA = REPOSITORY / "tests" / "data" / "digits"

HOST_PROGRAM = """
#include <qplan/host.h>
#include <qplan/pack.h>
#include <stdio.h>
#include <string.h>
static void count(void* user, const char* bytes, size_t size) { (void)bytes; *(size_t*)user += size; }
int main(int argc, char** argv) {
  size_t size = 0;
  qplan_error error;
  const qplan_thread_pool* pools[2];
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  if (argc != 2 || qplan_pack_file(argv[1], NULL, count, &size, &error) < 0) return 1;
  pools[0] = qplan_pool_create(2);
  pools[1] = qplan_openmp_pool_create(2);
  printf("%u %u %d\\n", pools[0]->num_threads, pools[1]->num_threads, size > 1000);
  qplan_pool_destroy(pools[0]);
  qplan_openmp_pool_destroy(pools[1]);
  return 0;
}
"""

HOST_PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(host_program LANGUAGES C)
find_package(qplan 0.1 REQUIRED COMPONENTS host pack shared)
set(CMAKE_C_STANDARD 99)
add_executable(static_program main.c)
target_link_libraries(static_program PRIVATE qplan::pack)
add_executable(shared_program main.c)
target_link_libraries(shared_program PRIVATE qplan::shared)
"""


class Install(unittest.TestCase):
    cmake = ""
    build = ""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="qplan_install_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "a prefix"  # a path with a blank
        cls.run_command(cls.cmake, "--install", cls.build, "--prefix", cls.prefix)
        cls.plan = cls.folder / "digits.qplan"
        cls.run_command(cls.prefix / "bin" / "qplan", "pack", DIGITS, "-o", cls.plan)

    @staticmethod
    def run_command(*arguments, **options):
        result = subprocess.run(
            [str(argument) for argument in arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
            **options,
        )
        assert result.returncode == 0, f"{arguments}: {result.stdout}"
        return result.stdout

    def build_project(self, source, name, *options):
        directory = self.folder / name
        self.run_command(self.cmake, "-G", "Ninja", "-S", source, "-B", directory,
                         f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release", *options)
        self.run_command(self.cmake, "--build", directory)
        return directory

    def test_files(self):
        files = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()}
        libdir = next(path for path in files if path.endswith("/libqplan.a")).rsplit("/", 1)[0]
        expected = {f"{libdir}/{name}" for name in ("libqplan.a", "libqplan_host.a", "libqplan_npu_isa.a",
                                                      "libqplan_sim.a", "libqplan_pack.a", "libqplan.so.1",
                                                      "libqplan_runtime.so.1", "pkgconfig/qplan.pc",
                                                      "pkgconfig/qplan-runtime.pc")}
        expected |= {f"{libdir}/libqplan_vta_sim.so", "bin/qplan-npu-conformance"}
        expected |= {f"include/qplan/{name}" for name in ("qplan.h", "qplan.hpp", "npu_driver.h", "npu_op.h", "npu_oplist.h", "npu_target.h",
                                                          "host.h", "npu_sim.h", "pack.h",
                                                          "pass.hpp", "pattern.hpp")}
        expected |= {"bin/qplan", f"{libdir}/cmake/qplan/qplanConfig.cmake", "lib/python3/dist-packages/qplan/py.typed"}
        expected |= {"share/man/man1/qplan.1", "share/man/man1/qplan-pack.1", "share/man/man1/qplan-npu-replay.1",
                     "share/bash-completion/completions/qplan", "share/zsh/vendor-completions/_qplan"}
        self.assertLessEqual(expected, files)
        for path in files:
            self.assertNotIn("__pycache__", path)

    def test_a_c99_program_finds_and_uses_it(self):
        program = self.build_project(REPOSITORY / "samples" / "c_api", "c_api") / "qplan_c_api"
        for digit in (0, 7):
            output = self.folder / "output.bin"
            text = self.run_command(program, self.plan, DATA / f"digit{digit}_input.bin", "-o", output)
            self.assertIn(f"value {digit}:", text)
            self.assertEqual(output.read_bytes(), (DATA / f"digit{digit}_output.bin").read_bytes())

    def libdir(self):
        return next(self.prefix.rglob("libqplan.so")).parent

    def test_shared_libraries_have_a_version(self):
        for name in ("libqplan", "libqplan_runtime"):
            text = self.run_command("readelf", "-d", self.libdir() / f"{name}.so")
            self.assertIn(f"Library soname: [{name}.so.1]", text)
        needed = self.run_command("readelf", "-d", self.libdir() / "libqplan_runtime.so")
        for library in ("protobuf", "onnx", "spdlog", "libz"):
            self.assertNotIn(library, needed)

    def test_a_cpp_program(self):
        for standard in (17, 20):
            program = self.build_project(REPOSITORY / "samples" / "cpp_api", f"cpp_api_{standard}",
                                         f"-DCMAKE_CXX_STANDARD={standard}") / "qplan_cpp_api"
            for digit in (0, 7):
                output = self.folder / "cpp_output.bin"
                text = self.run_command(program, self.plan, DATA / f"digit{digit}_input.bin", output)
                self.assertIn(f"class {digit}", text.splitlines()[0])
                self.assertEqual(output.read_bytes(), (DATA / f"digit{digit}_output.bin").read_bytes())
            failed = subprocess.run([program, self.folder / "none.qplan", "x"], stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(failed.returncode, 1)
            self.assertIn("[QPLAN_FILE_ERROR]", failed.stderr)

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.libdir() / "pkgconfig"))
        source = self.folder / "pkg.c"
        source.write_text(HOST_PROGRAM)
        for package, text, fails in (("qplan", HOST_PROGRAM, False), ("qplan-runtime", HOST_PROGRAM, True),
                                     ("qplan-runtime", (REPOSITORY / "samples" / "c_api" / "main.c").read_text(), False)):
            source.write_text(text)
            flags = self.run_command("pkg-config", "--cflags", "--libs", package, env=environment).replace("\\ ", "\0").split()
            command = ["cc", source, "-o", self.folder / "pkg", *(flag.replace("\0", " ") for flag in flags),
                       f"-Wl,-rpath,{self.libdir()}"]
            done = subprocess.run([str(part) for part in command], stderr=subprocess.PIPE, text=True, check=False)
            if fails:
                self.assertIn("qplan_pack_file", done.stderr)  # the runtime has no packer
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            if package == "qplan":
                self.assertEqual(self.run_command(self.folder / "pkg", DIGITS), "2 2 1\n")

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_manual_and_completion(self):
        text = (self.prefix / "share" / "man" / "man1" / "qplan-pack.1").read_text()
        for part in (".TH QPLAN-PACK 1", ".SH OPTIONS", r"\-\-fuse"):
            self.assertIn(part, text)
        script = str(self.prefix / "share" / "bash-completion" / "completions" / "qplan")
        complete = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _qplan; echo "${COMPREPLY[@]}"'
        for words, expected in ((("qplan", "pa"), "pack"), (("qplan", "npu", "rep"), "replay"),
                                (("qplan", "pack", "--fuse", "m"), "memory"), (("qplan", "pack", "--io-l"), "--io-layout"),
                                (("qplan", "run", "--isa", "avx5"), "avx512vnni"), (("qplan", "pack", "--io", "u"), "uint8"),
                                (("qplan", "check", "--against", "ref"), "reference"),
                                (("qplan", "check", "--against", script[:-2]), script)):
            self.assertEqual(self.run_command("bash", "-c", complete, script, *words).strip(), expected)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_completion_of_zsh(self):
        script = self.prefix / "share" / "zsh" / "vendor-completions" / "_qplan"
        self.run_command("zsh", "-n", script)
        text = script.read_text()
        self.assertTrue("without it the model'\\''s]:dtype:(int8 uint8 float)'" in text, text[:2000])
        self.assertRegex("".join(line for line in text.splitlines() if "--against[" in line), r":what:\{_alternative \"words:word:\(reference isas [a-z ]+\)\" \"files:file:_files\"\}")

    def test_version(self):
        text = self.run_command(self.prefix / "bin" / "qplan", "--version")
        self.assertRegex(text, r"^qplan \d+\.\d+\.\d+\ncommit +\S+\ncompiler +\w+ [\d.]+, \w+\ninstruction sets +reference .*of this build")

    def test_a_c99_program_with_a_driver_and_buffers(self):
        program = self.build_project(REPOSITORY / "samples" / "npu_buffers", "npu_buffers") / "qplan_npu_buffers"
        plan = self.folder / "digits_npu.qplan"
        self.run_command(self.prefix / "bin" / "qplan", "pack", DIGITS, "-o", plan, "--target", "vta, cpu", "--no-cost-gate")
        output = self.folder / "npu_output.bin"
        for options, where in (([], "1 runs on 'vta', 0 on the cpu"), (["coherent=0"], "1 runs on 'vta', 0 on the cpu"),
                               (["faults=at=0:0 kind=bus_error"], "0 runs on 'vta', 1 on the cpu")):
            for digit in (0, 7):
                text = self.run_command(program, plan, DATA / f"digit{digit}_input.bin", output, *options)
                self.assertIn(where, text)
                self.assertEqual(output.read_bytes(), (DATA / f"digit{digit}_output.bin").read_bytes())

    def test_a_program_with_a_pass_of_its_own(self):
        source = REPOSITORY / "samples" / "custom_pass"
        plan = self.folder / "average.qplan"
        self.run_command(self.prefix / "bin" / "qplan", "pack", source / "average.relay", "-o", plan)
        self.assertIn("float_binary 2", self.run_command(self.prefix / "bin" / "qplan", "inspect", plan))
        for name, options in (("installed", []), ("build_tree", [f"-DQPLAN_BUILD_DIR={self.build}"])):
            program = self.build_project(source, f"custom_pass_{name}", *options) / "custom_pass"
            text = self.run_command(program, source / "average.relay", plan)
            self.assertEqual(text, "factor_into_scales: 'half': the factor is in the scales now\n1 x qnn.add\n")
            inspected = self.run_command(self.prefix / "bin" / "qplan", "inspect", plan)
            self.assertIn("1 (add 1)", inspected)
            self.assertNotIn("float_binary", inspected)

    def test_a_driver_passes_the_conformance_suite(self):
        driver = self.build_project(REPOSITORY / "samples" / "npu_driver_skeleton", "skeleton") / "libnpu_skeleton.so"
        text = self.run_command(self.prefix / "bin" / "qplan-npu-conformance", driver)
        self.assertIn(" 0 failed, 0 skipped", text)

    def test_the_first_ten_minutes_of_a_port(self):
        page = (REPOSITORY / "docs" / "porting-npu.md").read_text()
        section = page[page.index("## The first ten minutes"):]
        block, prose = section.split("```sh\n")[1].split("```\n")[:2]
        folder = self.folder / "port"
        folder.mkdir()
        for name in ("samples", "tests"):
            (folder / name).symlink_to(REPOSITORY / name)
        environment = dict(os.environ, PATH=f"{self.prefix / 'bin'}{os.pathsep}{os.environ['PATH']}")
        lines = block.replace("\\\n", " ").replace("=PREFIX", f"='{self.prefix}'").splitlines()
        self.assertEqual(len(lines), 5)
        first = " ".join(prose.split("\n\n")[0].split())
        claims = re.findall(r"`(\d+ checks, [^`]*|skeleton \d+[^`]*|\d+ of [^`]*)`", first)
        self.assertEqual(len(claims), 3)
        for commands in (lines, lines[1:]):  # the second time as after a change
            printed = "".join(self.run_command("bash", "-c", line, cwd=folder, env=environment) for line in commands)
            for claim in claims:
                self.assertIn(claim, printed)

    def test_components(self):
        source = self.folder / "host_source"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(HOST_PROJECT)
        (source / "main.c").write_text(HOST_PROGRAM)
        build = self.build_project(source, "host_build")
        for program in ("static_program", "shared_program"):
            self.assertEqual(self.run_command(build / program, DIGITS), "2 2 1\n")

    # How a toolchain file for another processor has find_path search: nowhere on this machine.
    CROSS = ("-DCMAKE_FIND_ROOT_PATH=/nonexistent", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY")

    def test_a_cross_build_finds_the_installed_dlpack(self):
        build = self.build_project(REPOSITORY / "samples" / "c_api", "cross", *self.CROSS)
        cache = (build / "CMakeCache.txt").read_text()
        self.assertIn(f"QPLAN_DLPACK_INCLUDE_DIR:PATH={self.prefix / 'share' / 'qplan' / 'include'}", cache)

    def test_a_missing_dlpack_is_reported(self):
        bare = self.folder / "bare"
        shutil.copytree(self.prefix, bare)
        shutil.rmtree(bare / "share" / "qplan" / "include")
        result = subprocess.run(
            [self.cmake, "-G", "Ninja", "-S", REPOSITORY / "samples" / "c_api", "-B", self.folder / "no_dlpack",
             f"-DCMAKE_PREFIX_PATH={bare}", *self.CROSS],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("libdlpack-dev", result.stdout)

    def test_a_missing_component_is_reported(self):
        bare = self.folder / "no_packer"
        shutil.copytree(self.prefix, bare, symlinks=True)
        next(bare.rglob("libqplan_pack.a")).unlink()
        source = self.folder / "host_source_of_no_packer"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(HOST_PROJECT)
        result = subprocess.run([self.cmake, "-S", source, "-B", self.folder / "no_packer_build", f"-DCMAKE_PREFIX_PATH={bare}"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertNotEqual(result.returncode, 0)
        text = " ".join(result.stdout.split())
        self.assertIn(f"the installation in '{bare}/{self.libdir().relative_to(self.prefix)}' has no 'pack'; a build with", text)
        self.assertIn("QPLAN_BUILD_PACKER=ON", text)

    def test_python_finds_the_installed_library(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("NumPy is not installed")
        environment = {name: value for name, value in os.environ.items() if name != "QPLAN_LIBRARY"}
        environment["PYTHONPATH"] = str(self.prefix / "lib" / "python3" / "dist-packages")
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        script = (
            "import numpy, qplan, sys\n"
            "from qplan._library import library\n"
            "plan = qplan.Plan(sys.argv[1])\n"
            "print(library()._name)\n"
            "print(qplan.Session(plan).run(numpy.fromfile(sys.argv[2], numpy.int8).reshape(1, 16, 16, 1))[0].argmax())\n"
        )
        text = self.run_command(sys.executable, "-c", script, self.plan, DATA / "digit4_input.bin",
                                cwd=self.folder, env=environment)
        library, digit = text.splitlines()
        self.assertTrue(library.startswith(str(self.prefix)), library)
        self.assertEqual(digit, "4")
        # The sample, as the installation's user would call it.
        text = self.run_command(sys.executable, REPOSITORY / "samples" / "python" / "classify.py", self.plan,
                                self.npy("digit6"), "--labels", DIGITS.with_name("digits_labels.txt"),
                                cwd=self.folder, env=environment)
        self.assertIn(": six ", text)
        refused = subprocess.run([sys.executable, REPOSITORY / "samples" / "python" / "classify.py", self.plan, self.npy("digit6"),
                                  "--top", "0"], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("argument --top: found 0, expected at least 1", refused.stderr)

    def npy(self, name):
        import numpy

        path = self.folder / f"{name}.npy"
        numpy.save(path, numpy.fromfile(DATA / f"{name}_input.bin", numpy.int8).reshape(1, 16, 16, 1))
        return path


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Install.cmake, Install.build = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
