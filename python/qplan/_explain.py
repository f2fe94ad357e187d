"""Where each operator of a model runs, as which kernel, and why."""

import json
import os
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Union

from ._options import PathLike
from ._pack import _Call, _choice, _known
from ._plan import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import PackOptions


def explain(
    model: Union[PathLike, Plan], target: str = "cpu", *, format: str = "json", **options: "Unpack[PackOptions]"
) -> Union[Dict[str, Any], str]:
    """What `qplan explain` says of a model, or of a plan (docs/placement.md).

    format: "json" gives a dict; "coverage" the share of operators and MACs that would run, as a dict; "text" and "html"
    give a string. options: those of pack.
    """
    _known("explain", options, also=("why_not", "body"))
    number = _choice("format", format, {"text": 0, "json": 1, "html": 2, "coverage": 3})
    call = _Call(target, **options)
    with tempfile.TemporaryDirectory(prefix="qplan_") as folder:
        if isinstance(model, Plan):
            path = pathlib.Path(folder) / "plan.qplan"
            model.save(path)
        else:
            path = pathlib.Path(os.fspath(model))
        call.run("qplan_explain", os.fsencode(path), call.options, number, call.output.function, None)
    text = call.output.text()
    return json.loads(text) if format in ("json", "coverage") else text
