"""The PEP 517 backend of qplan: CMake builds libqplan.so and the command, and a wheel is made of them and python/qplan.

It needs nothing outside Python's own library, so that pip works without a network. Settings of pip
(--config-settings name=value):
  build-dir   CMake's build directory of this tree (default: build/release where it is configured with the packer, else
              build/wheel); pip install -e uses build/release, where the package in this tree looks for its library
  skip-build  1: the build directory, whosever it is, holds what is needed
"""

import base64
import contextlib
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "qplan"
NAME = "qplan"
LIBRARY, COMMAND = pathlib.Path("lib", "libqplan.so"), pathlib.Path("bin", "qplan")
ENTRY_POINTS = "[console_scripts]\nqplan = qplan.__main__:main\n"
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
RELEASE = ROOT / "build" / "release"


def _version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(qplan VERSION ([0-9.]+)", text).group(1)


def _tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


# What pyproject.toml declares, too.
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
        sys.exit(f"qplan: '{' '.join(str(part) for part in command[:3])}' ended with status {done.returncode}, for the reason "
                 "above; docs/install.md lists what the build needs")


def _setting(settings, name):
    value = (settings or {}).get(name)
    if isinstance(value, list):  # pip's form of one that is repeated
        sys.exit(f"qplan: the setting '{name}' is given {len(value)} times ({', '.join(value)}); give it once")
    return value


def _skips_build(settings):
    value = _setting(settings, "skip-build")
    if value is None:
        return False
    if value.lower() not in TRUE + FALSE:
        sys.exit(f"qplan: the setting 'skip-build' is '{value}', expected 1 or 0")
    return value.lower() in TRUE


def _cached(build, name):
    """The value of a variable in the CMake cache of a build directory; None if the cache does not set it."""
    cache = build / "CMakeCache.txt"
    found = cache.is_file() and re.search(rf"^{name}:\w+=(.*)$", os.fsdecode(cache.read_bytes()), re.M)
    return found.group(1) if found else None


def _reason_against(build):
    """Why what a build directory is configured for is not this tree's library; None where it is, or is not configured."""
    for name, expected in (("CMAKE_HOME_DIRECTORY", ROOT), ("CMAKE_CACHEFILE_DIR", build)):
        found = _cached(build, name)
        if found is not None and os.path.realpath(found) != os.path.realpath(expected):
            return f"is another tree's: its {name} is '{found}', expected '{expected}'"
    packer = _cached(build, "QPLAN_BUILD_PACKER")
    if packer is not None and packer.lower() in FALSE:
        return f"is configured without the packer: its QPLAN_BUILD_PACKER is '{packer}', expected 'ON'"
    return None


def _build(build, settings, advice):
    """Builds library and command in this directory, unless the settings say that they are there."""
    if _skips_build(settings):
        for path in (LIBRARY, COMMAND):
            if not (build / path).is_file():
                sys.exit(f"qplan: '{build / path}' is missing; build it, or leave the setting skip-build out")
        return
    if shutil.which("cmake") is None:
        sys.exit("qplan: CMake was not found; docs/install.md lists what the build needs")
    reason = _reason_against(build)
    try:
        build.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=build).close()
    except OSError as error:
        reason = f"cannot be written to: {error.strerror}"
    if reason:
        sys.exit(f"qplan: the build directory '{build}' {reason}; {advice}")
    first = [] if (build / "CMakeCache.txt").is_file() else ["-DCMAKE_BUILD_TYPE=Release"]
    if first and shutil.which("ninja"):
        first += ["-G", "Ninja"]
    _run("cmake", "-S", ROOT, "-B", build, *first)
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    _run("cmake", "--build", build, "--parallel", jobs, "--target", "qplan_shared", "qplan_command")


@contextlib.contextmanager
def _written(path):
    """A temporary name beside the path, which becomes the path where nothing fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _info_folder():
    return f"{NAME}-{_version()}.dist-info"


def _info_files():
    """What a wheel says of itself, but for the record of its files."""
    about = f"Wheel-Version: 1.0\nGenerator: qplan_build\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    return {
        "METADATA": _metadata().encode(),
        "WHEEL": about.encode(),
        "entry_points.txt": ENTRY_POINTS.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    }


def _write_wheel(folder, files):
    """A wheel of these (name, bytes, mode), with its RECORD; returns the wheel's name."""
    files = list(files) + [(f"{_info_folder()}/{name}", data, 0o644) for name, data in _info_files().items()]
    record = f"{_info_folder()}/RECORD"
    lines = []
    for name, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    files.append((record, "".join([*lines, f"{record},,\n"]).encode(), 0o644))
    wheel = pathlib.Path(folder) / f"{NAME}-{_version()}-{_tag()}.whl"
    with _written(wheel) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same files give the same wheel
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel.name


def _stripped(path):
    """The file without debugging symbols, which users of a wheel have no use for."""
    strip = shutil.which("strip")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / path.name
        if strip is None or subprocess.run([strip, "-o", copy, path], check=False).returncode != 0:
            copy = path
        return copy.read_bytes()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    named = _setting(config_settings, "build-dir")
    if named:
        build = ROOT / named
    else:
        is_ready = (RELEASE / "CMakeCache.txt").is_file() and _reason_against(RELEASE) is None
        build = RELEASE if is_ready else ROOT / "build" / "wheel"
    _build(build, config_settings, "name another by --config-settings build-dir=DIR")
    files = [(f"qplan/{path.relative_to(PACKAGE).as_posix()}", path.read_bytes(), 0o644)
             for path in sorted(PACKAGE.rglob("*")) if path.suffix == ".py" or path.name == "py.typed"]
    files += [(f"qplan/{path.as_posix()}", _stripped((build / path).resolve()), 0o755) for path in (LIBRARY, COMMAND)]
    return _write_wheel(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """pip install -e .: the package in this tree, with the library of build/release."""
    named = _setting(config_settings, "build-dir")
    if named and os.path.realpath(ROOT / named) != os.path.realpath(RELEASE):
        sys.exit(f"qplan: the setting 'build-dir' is '{named}', but the package in this tree looks for its library in "
                 f"'{RELEASE}'; leave the setting out of an editable install, and name another library in QPLAN_LIBRARY")
    _build(RELEASE, config_settings, "remove it, and it is configured anew")
    folder = str(PACKAGE.parent)
    # Python reads a .pth file in the encoding of its user's locale, whatever that is, so that the file is ASCII. Type
    # checkers read lines that are paths.
    line = folder if folder.isascii() else f"import sys; sys.path.append({folder!a})"
    return _write_wheel(wheel_directory, [("qplan.pth", f"{line}\n".encode(), 0o644)])


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / _info_folder()
    folder.mkdir(parents=True)
    for name, data in _info_files().items():
        (folder / name).write_bytes(data)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _tracked_files():
    """The paths under the root that git tracks."""
    refusal = f"qplan: a source distribution has the files that git tracks, and '{ROOT}' is no clone"
    if shutil.which("git") is None:
        sys.exit(f"{refusal} that can be asked: git was not found")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    paths = os.fsdecode(listed.stdout).split("\0")
    if listed.returncode != 0:
        sys.exit(f"{refusal} that git reads: {os.fsdecode(listed.stderr).strip()}")
    if "pyproject.toml" not in paths:  # an archive, unpacked inside a repository of something else
        sys.exit(f"{refusal}: git tracks no pyproject.toml there; make it in a clone of qplan")
    return [path for path in sorted(paths) if path and (ROOT / path).is_file()]


def build_sdist(sdist_directory, config_settings=None):
    paths = _tracked_files()
    name = f"{NAME}-{_version()}"
    metadata = _metadata().encode()
    archive_path = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
    with _written(archive_path) as temporary, open(temporary, "wb") as file:
        with tarfile.open(archive_path.name, "w:gz", fileobj=file, format=tarfile.PAX_FORMAT) as archive:
            for path in paths:
                archive.add(ROOT / path, f"{name}/{path}", recursive=False)
            entry = tarfile.TarInfo(f"{name}/PKG-INFO")
            entry.size = len(metadata)
            archive.addfile(entry, io.BytesIO(metadata))
    return archive_path.name
