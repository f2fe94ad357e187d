"""Finds and loads libqplan.so, or where there is none libqplan_runtime.so, once."""

import ctypes
import ctypes.util
import os
import pathlib
import sysconfig
import threading

from . import _capi, _prototypes

_LIBRARIES = ("qplan", "qplan_runtime")  # all of the C API, the runtime alone: what boards have
_NAME = "libqplan.so"
_lock = threading.Lock()
_library = None


def _candidates(name):
    """Where a library may be, best first: in this package (a wheel), the build tree around it, the installation around
    it."""
    package = pathlib.Path(__file__).resolve().parent
    file = f"lib{name}.so"
    yield package / "lib" / file
    repository = package.parent.parent
    if (repository / "CMakeLists.txt").is_file():
        yield repository / "build" / "release" / "lib" / file
    # <prefix>/lib/python3/dist-packages/qplan, or deeper: every lib directory on the way up.
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for folder in list(package.parents)[1:5]:
        for lib in ("lib", "lib64", os.path.join("lib", multiarch)):
            yield folder / lib / file
            yield folder / lib / f"{file}.{_capi.API_VERSION}"  # of installations without development files


def _load():
    named = os.environ.get("QPLAN_LIBRARY")
    if named:
        return ctypes.CDLL(named)
    for name in _LIBRARIES:
        for path in _candidates(name):
            if path.is_file():
                return ctypes.CDLL(str(path))
        try:
            return ctypes.CDLL(ctypes.util.find_library(name) or f"lib{name}.so.{_capi.API_VERSION}")  # what ldconfig knows
        except OSError:
            pass
    raise ImportError(
        f"{_NAME} was not found; build it (cmake --preset release && cmake --build --preset release), install it, "
        "or name it in QPLAN_LIBRARY"
    )


def library():
    """The loaded library. ImportError where there is none, or one of another API version."""
    global _library
    with _lock:
        if _library is None:
            loaded = _load()
            try:
                _prototypes.declare(loaded)
            except AttributeError as error:
                raise ImportError(f"{loaded._name} is not this qplan's library: {error}") from error
            version = loaded.qplan_api_version()
            if version != _capi.API_VERSION:
                raise ImportError(f"{loaded._name} has API version {version}, expected {_capi.API_VERSION}")
            _library = loaded
        return _library
