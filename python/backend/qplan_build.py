"""The PEP 517 backend of qplan: CMake builds libqplan.so and the command, and a wheel is made of them and python/qplan.

It needs nothing outside Python's own library, so that pip works without a network. Settings of pip
(--config-settings name=value):
  build-dir   CMake's build directory (default: build/release where it is configured, else build/wheel)
  skip-build  1: the build directory holds what is needed
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "qplan"
NAME = "qplan"
ENTRY_POINTS = "[console_scripts]\nqplan = qplan.__main__:main\n"


def _version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(qplan VERSION ([0-9.]+)", text).group(1)


def _tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def _metadata():
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {_version()}",
        "Summary: Packs quantised neural networks into plans, ahead of time, and runs them",
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
        "Requires-Dist: numpy",
        "Provides-Extra: plot",
        'Requires-Dist: matplotlib; extra == "plot"',
        "Description-Content-Type: text/markdown",
        "",
    ]
    return "\n".join(lines) + "\n" + (ROOT / "README.md").read_text(encoding="utf-8")


def _run(*command):
    print("+", *command, flush=True)
    done = subprocess.run([str(part) for part in command], cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"qplan: '{command[0]}' failed; docs/install.md lists what the build needs")


def _build(settings):
    """Builds library and command; returns the build directory."""
    if shutil.which("cmake") is None:
        sys.exit("qplan: CMake was not found; docs/install.md lists what the build needs")
    ready = ROOT / "build" / "release"
    build = pathlib.Path(settings.get("build-dir") or (ready if (ready / "CMakeCache.txt").is_file() else ROOT / "build" / "wheel"))
    build = ROOT / build
    if settings.get("skip-build") == "1":
        return build
    if not (build / "CMakeCache.txt").is_file():
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        _run("cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release")
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    _run("cmake", "--build", build, "--parallel", jobs, "--target", "qplan_shared", "qplan_command")
    return build


class _Wheel:
    """A wheel under construction: a zip file with a RECORD of what is in it."""

    def __init__(self, folder, tag):
        self.name = f"{NAME}-{_version()}-{tag}.whl"
        self._info = f"{NAME}-{_version()}.dist-info"
        self._zip = zipfile.ZipFile(pathlib.Path(folder) / self.name, "w", zipfile.ZIP_DEFLATED)
        self._record = []
        self._tag = tag

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same files give the same wheel
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        about = f"Wheel-Version: 1.0\nGenerator: qplan_build\nRoot-Is-Purelib: false\nTag: {self._tag}\n"
        for name, text in (("METADATA", _metadata()), ("WHEEL", about), ("entry_points.txt", ENTRY_POINTS)):
            self.add(f"{self._info}/{name}", text.encode())
        self.add(f"{self._info}/LICENSE", (ROOT / "LICENSE").read_bytes())
        record = f"{self._info}/RECORD"
        entry = zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = 0o100644 << 16
        self._zip.writestr(entry, "\n".join(self._record + [f"{record},,", ""]))
        self._zip.close()


def _stripped(path):
    """The file without debugging symbols, which users of a wheel have no use for."""
    strip = shutil.which("strip")
    copy = path.with_name(path.name + ".stripped")
    if strip is None or subprocess.run([strip, "-o", copy, path], check=False).returncode != 0:
        return path.read_bytes()
    data = copy.read_bytes()
    copy.unlink()
    return data


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = _build(config_settings or {})
    wheel = _Wheel(wheel_directory, _tag())
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix == ".py" or path.name == "py.typed":
            wheel.add(f"qplan/{path.relative_to(PACKAGE).as_posix()}", path.read_bytes())
    wheel.add("qplan/lib/libqplan.so", _stripped((build / "lib" / "libqplan.so").resolve()), 0o755)
    wheel.add("qplan/bin/qplan", _stripped(build / "bin" / "qplan"), 0o755)
    wheel.close()
    return wheel.name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """pip install -e .: the package in this tree, with the library of build/release."""
    _build(dict(config_settings or {}, **{"build-dir": "build/release"}))
    wheel = _Wheel(wheel_directory, _tag())
    wheel.add("qplan.pth", (str(PACKAGE.parent) + "\n").encode())
    wheel.close()
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}-{_version()}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(pathlib.Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(listed.decode().split("\0")):
            if path and (ROOT / path).is_file():
                archive.add(ROOT / path, f"{name}/{path}", recursive=False)
        metadata = pathlib.Path(sdist_directory) / "PKG-INFO"
        metadata.write_text(_metadata(), encoding="utf-8")
        archive.add(metadata, f"{name}/PKG-INFO")
        metadata.unlink()
    return f"{name}.tar.gz"
