"""Tests the backend of `pip install .` (python/backend/qplan_build.py) on a small copy of the source tree, with a fake
cmake that writes small files: where it builds, what it writes, what it refuses.

usage: backend_test.py [unittest's arguments]
"""

import email
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Writes down how it was called, and what the backend asks for.
CMAKE = """#!/bin/sh
echo "$@" >>"$CALLS"
if [ "$1" = -S ]; then
  mkdir -p "$4"
  printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\\nCMAKE_CACHEFILE_DIR:INTERNAL=%s\\n' "$2" "$4" >"$4/CMakeCache.txt"
else
  mkdir -p "$2/lib" "$2/bin"
  echo library >"$2/lib/libqplan.so"
  echo command >"$2/bin/qplan"
fi
"""
STRIP = """#!/bin/sh
echo "$2" >>"$STRIPPED"
cp "$3" "$2"
"""


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments], check=True,
                   stdout=subprocess.DEVNULL)


class Backend(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qplan_backend_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.root = self.make_tree("a b ö")
        self.backend = self.load(self.root)
        self.out = self.folder / "out"
        self.out.mkdir()
        tools = self.folder / "tools"
        tools.mkdir()
        for name, text in (("cmake", CMAKE), ("strip", STRIP)):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        self.calls = self.folder / "calls"
        environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "CALLS": str(self.calls),
                       "STRIPPED": str(self.folder / "stripped"), "GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        patch = unittest.mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)

    def make_tree(self, name):
        root = self.folder / name
        for path in ("CMakeLists.txt", "README.md", "LICENSE", "pyproject.toml", "python"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (REPOSITORY / path).is_dir() else shutil.copy
            copy(REPOSITORY / path, root / path)
        return root

    @staticmethod
    def load(root):
        with unittest.mock.patch.object(sys, "dont_write_bytecode", True):
            spec = importlib.util.spec_from_file_location("qplan_build", root / "python" / "backend" / "qplan_build.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        return module

    def configure(self, build, home=None, **cache):
        build.mkdir(parents=True)
        lines = [f"CMAKE_HOME_DIRECTORY:INTERNAL={home or self.root}", f"CMAKE_CACHEFILE_DIR:INTERNAL={build}"]
        (build / "CMakeCache.txt").write_text("\n".join(lines + [f"{name}:BOOL={cache[name]}" for name in cache]) + "\n")

    def wheel(self, settings=None):
        return self.out / self.backend.build_wheel(str(self.out), settings)

    def refused(self, hook, settings=None, backend=None):
        with self.assertRaises(SystemExit) as raised:
            getattr(backend or self.backend, hook)(str(self.out), settings)
        self.assertEqual(list(self.out.iterdir()), [])  # nothing is left half-written
        return str(raised.exception)

    def built_in(self):
        return [line.split("--build ")[1].split(" --parallel")[0] for line in self.calls.read_text().splitlines()
                if "--build " in line]

    # Where it builds.

    def test_a_configured_release_is_used_and_configured_again(self):
        self.configure(self.root / "build" / "release")
        self.wheel()
        self.assertEqual(self.calls.read_text().splitlines()[0], f"-S {self.root} -B {self.root}/build/release")
        self.assertEqual(self.built_in(), [f"{self.root}/build/release"])

    def test_a_release_of_another_tree_or_without_the_packer_is_passed_over(self):
        for home, cache in ((self.folder, {}), (None, {"QPLAN_BUILD_PACKER": "OFF"})):
            with self.subTest(home=home, cache=cache):
                self.configure(self.root / "build" / "release", home, **cache)
                self.wheel()
                self.assertEqual(self.built_in(), [f"{self.root}/build/wheel"])
                shutil.rmtree(self.root / "build")
                self.calls.unlink()

    def test_a_named_directory_that_does_not_fit_is_refused(self):
        build = self.folder / "build"
        self.configure(build, self.folder / "other")
        text = self.refused("build_wheel", {"build-dir": str(build)})
        self.assertIn(f"CMAKE_HOME_DIRECTORY is '{self.folder / 'other'}', expected '{self.root}'", text)
        shutil.rmtree(build)
        self.configure(build, QPLAN_BUILD_PACKER="OFF")
        text = self.refused("build_wheel", {"build-dir": str(build)})
        self.assertIn("QPLAN_BUILD_PACKER is 'OFF', expected 'ON'", text)
        moved = self.folder / "moved"
        shutil.rmtree(build)
        self.configure(build)
        build.rename(moved)
        text = self.refused("build_wheel", {"build-dir": str(moved)})
        self.assertIn(f"CMAKE_CACHEFILE_DIR is '{build}', expected '{moved}'", text)
        self.assertFalse(self.calls.exists())

    def test_a_directory_that_cannot_be_written_is_named(self):
        (self.root / "build").write_text("a file")
        text = self.refused("build_wheel")
        self.assertIn(f"'{self.root}/build/wheel' cannot be written to: ", text)
        self.assertIn("build-dir", text)

    def test_settings_that_cannot_be_meant_are_refused(self):
        self.assertIn("'build-dir' is given 2 times (a, b)", self.refused("build_wheel", {"build-dir": ["a", "b"]}))
        self.assertIn("'skip-build' is 'maybe', expected 1 or 0", self.refused("build_wheel", {"skip-build": "maybe"}))

    def test_skip_build_takes_what_is_there(self):
        build = self.folder / "build"
        for value in ("1", "true", "ON"):
            settings = {"build-dir": str(build), "skip-build": value}
            self.assertIn("libqplan.so' is missing", self.refused("build_wheel", settings))
        (build / "lib").mkdir(parents=True)
        (build / "bin").mkdir()
        for name in ("lib/libqplan.so", "bin/qplan"):
            (build / name).write_text(name)
        with zipfile.ZipFile(self.wheel(settings)) as archive:
            self.assertEqual(archive.read("qplan/lib/libqplan.so"), b"lib/libqplan.so")
        self.assertFalse(self.calls.exists())

    # Editable installs.

    def test_an_editable_install_is_read_under_every_locale(self):
        name = self.backend.build_editable(str(self.out))
        with zipfile.ZipFile(self.out / name) as archive:
            line = archive.read("qplan.pth")
        self.assertTrue(line.isascii())
        site = self.folder / "site"
        site.mkdir()
        (site / "qplan.pth").write_bytes(line)
        for encoding in ("POSIX", "C.UTF-8"):
            program = f"import site, sys; site.addsitedir({str(site)!a}); print(ascii(sys.path[-1]))"
            done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={"LC_ALL": encoding}, check=True)
            self.assertEqual((done.stdout, done.stderr), (f"{ascii(str(self.root / 'python'))}\n", ""))

    def test_an_editable_install_in_an_ascii_path_is_a_path_for_type_checkers(self):
        root = self.make_tree("plain")
        name = self.load(root).build_editable(str(self.out))
        with zipfile.ZipFile(self.out / name) as archive:
            self.assertEqual(archive.read("qplan.pth").decode(), f"{root}/python\n")

    def test_an_editable_install_takes_no_other_build_directory(self):
        text = self.refused("build_editable", {"build-dir": "elsewhere"})
        self.assertIn("'build-dir' is 'elsewhere'", text)
        self.backend.build_editable(str(self.out), {"build-dir": "build/release"})
        self.assertEqual(self.built_in(), [f"{self.root}/build/release"])

    # Wheels.

    def test_two_wheels_at_once_share_no_file(self):
        for _ in range(2):
            self.wheel()
        stripped = (self.folder / "stripped").read_text().splitlines()
        self.assertEqual(len(set(stripped)), 4)
        for path in stripped:
            self.assertNotIn(self.root, pathlib.Path(path).parents)
            self.assertFalse(os.path.exists(path))

    def test_a_failure_leaves_the_wheel_that_was_there(self):
        self.wheel()
        (wheel,) = self.out.iterdir()
        before = wheel.read_bytes()
        with unittest.mock.patch.object(zipfile.ZipFile, "writestr", side_effect=OSError("no space")):
            with self.assertRaises(OSError):
                self.wheel()
        self.assertEqual(list(self.out.iterdir()), [wheel])
        self.assertEqual(wheel.read_bytes(), before)

    def test_prepared_metadata_is_the_wheels(self):
        folder = self.backend.prepare_metadata_for_build_wheel(str(self.out))
        with zipfile.ZipFile(self.wheel()) as archive:
            for path in (self.out / folder).iterdir():
                self.assertEqual(path.read_bytes(), archive.read(f"{folder}/{path.name}"))

    def test_metadata_is_what_the_project_declares(self):
        try:
            import tomllib
        except ImportError:
            self.skipTest("tomllib comes with Python 3.11")
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
        folder = self.out / self.backend.prepare_metadata_for_build_wheel(str(self.out))
        metadata = email.message_from_string((folder / "METADATA").read_text())
        extras = project["optional-dependencies"]
        self.assertEqual(metadata["Name"], project["name"])
        self.assertEqual(metadata["Summary"], project["description"])
        self.assertEqual(metadata["Requires-Python"], project["requires-python"])
        self.assertEqual(metadata.get_all("Provides-Extra"), list(extras))
        self.assertEqual(metadata.get_all("Requires-Dist"), project["dependencies"] + [
            f'{name}; extra == "{extra}"' for extra in extras for name in extras[extra]])
        scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
        self.assertEqual((folder / "entry_points.txt").read_text(), f"[console_scripts]\n{scripts}")

    # Source distributions.

    def test_a_source_distribution_has_what_git_tracks(self):
        git(self.root, "init", "-q")
        git(self.root, "add", "CMakeLists.txt", "README.md", "pyproject.toml")
        (self.out / "PKG-INFO").write_text("somebody's")
        name = self.backend.build_sdist(str(self.out))
        self.assertEqual({path.name for path in self.out.iterdir()}, {name, "PKG-INFO"})
        self.assertEqual((self.out / "PKG-INFO").read_text(), "somebody's")
        folder = name[:-len(".tar.gz")]
        with tarfile.open(self.out / name) as archive:
            self.assertEqual(archive.getnames(), [f"{folder}/{file}" for file in
                                                  ("CMakeLists.txt", "README.md", "pyproject.toml", "PKG-INFO")])
            self.assertTrue(archive.extractfile(f"{folder}/PKG-INFO").read().startswith(b"Metadata-Version: "))

    def test_a_source_distribution_of_no_clone_is_refused(self):
        self.assertIn(f"'{self.root}' is no clone that git reads: fatal: ", self.refused("build_sdist"))
        git(self.folder, "init", "-q")  # a repository around it, which knows nothing of it
        self.assertIn("git tracks no pyproject.toml there", self.refused("build_sdist"))
        with unittest.mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertIn("git was not found", self.refused("build_sdist"))


if __name__ == "__main__":
    unittest.main()
