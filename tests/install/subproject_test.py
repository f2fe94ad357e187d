"""qplan as a part of another CMake project, which lies in a path with blanks and umlauts. Hardly anything is compiled.

usage: subproject_test.py CMAKE [unittest's arguments]
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C CXX)
add_subdirectory("die quelle" qplan)
foreach(library qplan host runtime_shared)
  add_executable(uses_${library} main.c)
  target_link_libraries(uses_${library} PRIVATE qplan::${library})
endforeach()
"""
PROGRAM = "#include <qplan/host.h>\nint main(void) { return qplan_api_version() == 0; }\n"
LTO_PROJECT = f"""
cmake_minimum_required(VERSION 3.22)
project(lto LANGUAGES CXX)
include("{REPOSITORY}/cmake/QplanLinker.cmake")
file(WRITE ${{CMAKE_BINARY_DIR}}/seven.cc "int seven() {{ return 7; }}")
file(WRITE ${{CMAKE_BINARY_DIR}}/main.cc "int seven(); int main() {{ return seven() - 7; }}")
add_library(seven STATIC ${{CMAKE_BINARY_DIR}}/seven.cc)
add_executable(lto ${{CMAKE_BINARY_DIR}}/main.cc)
target_link_libraries(lto seven)
"""
CMAKE = "cmake"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="surrogateescape", check=False, timeout=300, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


class Subproject(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="qplan_sub project ö_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.folder / "CMakeLists.txt").write_text(PROJECT)
        (cls.folder / "main.c").write_text(PROGRAM)
        (cls.folder / "die quelle").symlink_to(REPOSITORY)
        cls.build = cls.folder / "build"
        cls.configure("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DQPLAN_BUILD_PACKER=OFF")

    @classmethod
    def configure(cls, *options):
        return run(CMAKE, "-S", cls.folder, "-B", cls.build, *options)

    def commands(self, target):
        return [shlex.split(line) for line in run("ninja", "-C", self.build, "-t", "commands", target).splitlines()]

    def test_programs_find_the_headers_of_every_library(self):
        libraries = ("qplan", "host", "runtime_shared")
        run("ninja", "-C", self.build, *[f"CMakeFiles/uses_{library}.dir/main.c.o" for library in libraries])
        for library in libraries:
            words = next(words for words in self.commands(f"CMakeFiles/uses_{library}.dir/main.c.o") if "-c" in words)
            for flag in words:
                self.assertNotRegex(flag, "^-(W|std=c..2|f)")  # qplan's own

    def test_the_list_of_exports_is_one_word(self):
        (link,) = [words for words in self.commands("qplan/lib/libqplan_runtime.so") if "-shared" in words]
        self.assertIn(f"-Wl,--version-script={self.folder}/die quelle/capi/host/exports.map", link)

    def test_nothing_is_installed_with_the_project(self):
        self.configure("-UQPLAN_INSTALL")
        run(CMAKE, "--install", self.build, "--prefix", self.folder / "prefix")
        self.assertFalse((self.folder / "prefix").exists())

    def test_the_firmware_package_under_destdir(self):
        self.configure("-DQPLAN_INSTALL=ON")
        run(CMAKE, "--install", self.build, "--component", "firmware", "--prefix", "/package",
            env=dict(os.environ, DESTDIR=str(self.folder / "dest")))
        package = self.folder / "dest" / "package"
        self.assertTrue((package / "src" / "flatbuffers" / "flatbuffers.h").is_file())
        self.assertGreater(len(list(package.rglob("*.cc"))), 60)
        self.assertRegex((package / "options.txt").read_text(), r"(?m)^src/kernels/isa/\w+\.cc -O2 -m")

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config_names_the_folders_of_the_installation(self):
        folder = self.folder / "moved"
        prefix = self.folder / "prefix"
        for libdir, includedir in (("lib", "include"), ("lib/sub", "include"), ("lib", "/abs/inc"),
                                   (f"{folder}/lib", "include"), (f"{folder}/lib", "/abs/inc")):
            with self.subTest(libdir=libdir, includedir=includedir):
                self.configure("-DQPLAN_INSTALL=ON", f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_INSTALL_LIBDIR={libdir}",
                               f"-DCMAKE_INSTALL_INCLUDEDIR={includedir}")
                packages = prefix / libdir / "pkgconfig"  # an absolute folder is the whole
                packages.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.build / "qplan" / "pkgconfig" / "qplan-runtime.pc", packages)
                for part in (includedir, "share/qplan/include"):
                    if not os.path.isabs(part):
                        (prefix / part).mkdir(parents=True, exist_ok=True)
                printed = run("pkg-config", "--cflags", "--libs", "qplan-runtime", env=dict(
                    os.environ, PKG_CONFIG_PATH=str(packages), PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1"))
                # It escapes each byte of a letter that is not ASCII.
                found = [os.path.realpath(os.fsdecode(os.fsencode(word[2:]))) for word in shlex.split(printed) if word[:2] in ("-I", "-L")]
                self.assertEqual(found, [os.path.realpath(path) for path in (
                    prefix / includedir, prefix / "share/qplan/include", prefix / libdir)])
        shutil.rmtree(prefix)

    def test_other_headers_of_flatbuffers_take_the_place_of_the_first(self):
        cache = (self.build / "CMakeCache.txt").read_text()
        first = pathlib.Path(re.search(r"^QPLAN_FLATBUFFERS_INCLUDE:PATH=(.*)$", cache, re.M).group(1))
        other = self.folder / "other"
        shutil.copytree(first / "flatbuffers", other / "flatbuffers")
        with (other / "flatbuffers" / "base.h").open("a") as header:
            header.write("// other\n")
        os.utime(other / "flatbuffers" / "base.h", (0, 0))  # older than the first copy
        copy = self.build / "qplan" / "third_party" / "flatbuffers" / "base.h"
        before = copy.stat().st_mtime_ns
        self.configure(f"-DQPLAN_FLATBUFFERS_INCLUDE={other}")
        self.assertEqual(copy.read_text(), (other / "flatbuffers" / "base.h").read_text())
        self.assertGreater(copy.stat().st_mtime_ns, before)  # by which Ninja knows
        self.configure(f"-DQPLAN_FLATBUFFERS_INCLUDE={first}")


class Linker(unittest.TestCase):
    def test_what_gcc_optimises_at_link_time_is_linked(self):
        with tempfile.TemporaryDirectory(prefix="qplan_lto_") as folder:
            (pathlib.Path(folder) / "CMakeLists.txt").write_text(LTO_PROJECT)
            run(CMAKE, "-G", "Ninja", "-S", folder, "-B", f"{folder}/build", "-DCMAKE_CXX_COMPILER=g++",
                "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON")
            run(CMAKE, "--build", f"{folder}/build")
            run(f"{folder}/build/lto")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    CMAKE = sys.argv.pop(1)
    unittest.main()
