"""Finds and loads the shared library once: libqplan.so, or libqplan_runtime.so if there is no libqplan.so."""

import ctypes
import ctypes.util
import os
import pathlib
import sysconfig
import threading

from . import _capi, _prototypes

_LIBRARIES = ("qplan", "qplan_runtime")  # all of the C API, the runtime alone: what boards have
_lock = threading.Lock()
_library = None


def _candidates():
    """Where the library may be, best first: in this package (a wheel), the build tree around it, the installation around
    it."""
    package = pathlib.Path(__file__).resolve().parent
    places = [package / "lib"]
    repository = package.parent.parent
    if (repository / "CMakeLists.txt").is_file():
        places.append(repository / "build" / "release" / "lib")
    # <prefix>/lib/python3/dist-packages/qplan, or deeper: every lib directory on the way up.
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for folder in list(package.parents)[1:5]:
        places += [folder / lib for lib in ("lib", "lib64", os.path.join("lib", multiarch))]
    for place in places:
        for name in _LIBRARIES:
            yield place / f"lib{name}.so"
            yield place / f"lib{name}.so.{_capi.API_VERSION}"  # of installations without development files


def _load():
    named = os.environ.get("QPLAN_LIBRARY")
    if named:
        return ctypes.CDLL(named)
    for path in _candidates():
        if path.is_file():
            return ctypes.CDLL(str(path))
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(ctypes.util.find_library(name) or f"lib{name}.so.{_capi.API_VERSION}")  # what ldconfig knows
        except OSError:
            pass
    raise ImportError(
        "libqplan.so was not found, nor libqplan_runtime.so; "
        "build one (cmake --preset release && cmake --build --preset release), install it, or name it in QPLAN_LIBRARY"
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
