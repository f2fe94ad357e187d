"""Measures on this machine which schedules of a plan's steps are fastest."""

import os
import pathlib
import tempfile
from typing import Optional, Sequence, Union

from ._command import run_command
from ._options import PathLike
from ._plan import Plan
from ._texts import c_model_path, c_path, listed


def tune(
    model: Union[PathLike, Plan],
    log: PathLike,
    *,
    threads: int = 1,
    isa: str = "auto",
    pool: str = "threads",
    budget_s: float = 20,
    fuse: Optional[str] = None,
    target: Optional[str] = None,
    arguments: Sequence[str] = (),
    progress: bool = False,
) -> str:
    """Runs `qplan tune`, in a process of its own so that this one does not disturb it, and returns what it prints.

    log: where measurements are appended; a call that was interrupted goes on from there. Then
    pack(model, tuning=log, tuning_threads=threads) uses the fastest schedules; outputs stay the same bits.
    progress: show a bar on standard error. fuse and target: as in pack, for models. arguments: more of the command's own.
    """
    words = ["tune", "--log", os.fsdecode(c_path("log", log)), "--threads", str(threads), "--isa", isa, "--pool", pool,
             "--budget", str(budget_s)]
    if fuse is not None:
        words += ["--fuse", fuse]
    if target is not None:
        words += ["--target", target]
    with tempfile.TemporaryDirectory(prefix="qplan_") as folder:
        if isinstance(model, Plan):
            path = pathlib.Path(folder) / "plan.qplan"
            model.save(path)
        else:
            path = pathlib.Path(os.fsdecode(c_model_path("tune", model)))
        return run_command([*words, *listed("arguments", arguments), str(path)], progress)
