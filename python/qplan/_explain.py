"""Where each operator of a model runs, as which kernel, and why."""

import json
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Union

from ._command import command_path, run_command
from ._errors import Error
from ._options import PathLike
from ._pack import _Call, _choice, _known, pack
from ._plan import Plan
from ._texts import c_model_path, c_path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import PackOptions


def explain(
    model: Union[PathLike, Plan], target: str = "cpu", *, format: str = "json", **options: "Unpack[PackOptions]"
) -> Union[Dict[str, Any], str]:
    """What `qplan explain` says of a model, or of a plan (docs/placement.md).

    format: "json" gives a dict; "coverage" the share of operators and MACs that would run, as a dict; "text" and "html"
    give a string. options: those of pack. Without a device the dict has `isa` and `steps`: the kernel that this machine
    runs each step with, and why not a better one. They come from the command `qplan` and a plan of the model: where the
    command is not installed, or the model cannot be packed because an operator is refused, a model's dict has the
    placement alone, which says of each refused operator why.
    """
    _known("explain", options, also=("why_not", "body"))
    number = _choice("format", format, {"text": 0, "json": 1, "html": 2, "coverage": 3})
    with tempfile.TemporaryDirectory(prefix="qplan_") as folder:
        path = pathlib.Path(folder) / "plan.qplan"
        if isinstance(model, Plan):
            model.save(path)
            if format in ("json", "text") and _is_for_cpu(model):
                return _steps(path, format, options)
        else:
            path = pathlib.Path(os.fsdecode(c_model_path("explain", model)))
        text = _placement(path, target, number, options)
        if format not in ("json", "coverage"):
            return text
        report = json.loads(text)
        if format == "json" and not isinstance(model, Plan) and {device["target"] for device in report["devices"]} == {"cpu"}:
            report.update(_steps_of_model(model, target, pathlib.Path(folder) / "plan.qplan", options))
        return report


def _placement(path, target, number, options):
    call = _Call(target, **options)
    call.run("qplan_explain", c_path("model", path), call.options, number, call.output.function, None)
    return call.output.text()


def _is_for_cpu(plan):
    return all(target["name"] == "cpu" for target in plan.inspect()["targets"])


def _steps_of_model(model, target, plan, options):
    """`isa` and `steps`; nothing without the command, and nothing where an operator is refused."""
    once = ("why_not", "body", "dump_after", "dump")  # the placement has done what these ask for
    try:
        command_path()
    except FileNotFoundError:
        return {}
    try:
        pack(model, plan, target, **{name: value for name, value in options.items() if name not in once})
    except Error:  # the placement says which operator it is
        return {}
    try:
        return _steps(plan, "json", options)
    except FileNotFoundError:  # what QPLAN_COMMAND names
        return {}


def _steps(plan, format, options):
    words = ["explain", str(plan)]
    if options.get("custom_operators") is not None:
        words += ["--custom-operators", os.fspath(options["custom_operators"])]
    if format == "text":
        return run_command(words)
    return json.loads(run_command([*words, "--json"]))
