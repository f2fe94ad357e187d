"""Pictures of a plan's memory and of the times of its steps, with matplotlib.

    import qplan.plot

    qplan.plot.memory(plan).figure.savefig("memory.svg")
    qplan.plot.times(session.step_times()).figure.savefig("times.svg")

memory() and times() draw into the axes that they are given, or make a figure.
"""

from typing import Any, Dict, List, Sequence, Tuple

try:
    import matplotlib.pyplot as pyplot  # type: ignore[import]
    from matplotlib.patches import Rectangle  # type: ignore[import]
except ImportError as error:
    raise ImportError("qplan.plot needs matplotlib: apt-get install python3-matplotlib, or pip install matplotlib") from error

from ._plan import Plan
from ._step_times import StepTime


def lifetimes(plan: Plan) -> List[Tuple[str, int, int, int, int]]:
    """(name of the step that writes it, first step, last step, offset, bytes) of every activation in the arena.

    Inputs and states live as long as the function runs, outputs from the step that writes them on.
    """
    report = plan.inspect()
    tensors, steps = report["tensors"], report["steps"]
    arena = next(index for index, bank in enumerate(report["banks"]) if bank["kind"] == "arena")
    end = max(len(steps) - 1, 0)
    found: Dict[int, List[Any]] = {}

    def touch(tensor, name, first, last):
        """The tensor lives from its first touch to its last."""
        if tensors[tensor]["bank"] == arena:
            lifetime = found.setdefault(tensor, [name, first, last, tensors[tensor]["offset"], tensors[tensor]["bytes"]])
            lifetime[2] = max(lifetime[2], last)

    for tensor in report["inputs"]:
        touch(tensor["tensor"], "input", 0, end)
    for state in report["states"]:
        touch(state["input"], "state", 0, end)
    outputs = {tensor["tensor"] for tensor in report["outputs"]} | {state["output"] for state in report["states"]}
    for step in steps:
        for tensor in [*step["inputs"], *step["outputs"]]:
            touch(tensor, step["name"] or step["op"], step["index"], end if tensor in outputs else step["index"])
    return [(name, first, last, offset, size) for name, first, last, offset, size in found.values()]


def _alive(tensors: Sequence[Tuple[str, int, int, int, int]], step: int) -> int:
    """Bytes of the arena that hold something at a step: buffers that tensors share count once."""
    total = end = 0
    for offset, size in sorted((offset, size) for _, first, last, offset, size in tensors if first <= step <= last):
        total += max(0, offset + size - max(end, offset))
        end = max(end, offset + size)
    return total


def memory(plan: Plan, ax: Any = None) -> Any:
    """The arena over time: a tensor is as wide as it lives and as high as it has bytes. Returns the axes.

    The darker tensors are alive at the step with most bytes in use, which the title states.
    """
    tensors = lifetimes(plan)
    ax = ax if ax is not None else pyplot.subplots(figsize=(9, 4), layout="constrained")[1]
    num_steps = 1 + max((last for _, _, last, _, _ in tensors), default=0)
    sums = [_alive(tensors, step) for step in range(num_steps)]
    peak = max(range(num_steps), key=sums.__getitem__)
    for _, first, last, offset, size in tensors:
        at_peak = first <= peak <= last
        color = "tab:blue" if at_peak else "lightsteelblue"
        ax.add_patch(Rectangle((first - 0.5, offset / 1024), last - first + 1, size / 1024, facecolor=color, edgecolor="white"))
    top = max((offset + size for _, _, _, offset, size in tensors), default=1)
    ax.set(xlim=(-0.5, num_steps - 0.5), ylim=(0, top / 1024 * 1.02), xlabel="step", ylabel="address in the arena (KiB)")
    ax.set_title(f"{top:,} bytes; the most is alive at step {peak}: {sums[peak]:,} bytes")
    return ax


def times(step_times: Sequence[StepTime], ax: Any = None, *, most: int = 25) -> Any:
    """Mean times of the slowest steps, as bars. Returns the axes."""
    rows = sorted(step_times, key=lambda time: time.mean_ns, reverse=True)[:most]
    ax = ax if ax is not None else pyplot.subplots(figsize=(9, 0.5 + 0.28 * max(len(rows), 1)), layout="constrained")[1]
    names = [f"{row.step}  {(row.name or row.op)[-40:]}" for row in rows]
    ax.barh(range(len(rows)), [row.mean_ns / 1000 for row in rows], color="tab:blue")
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    whole = sum(time.mean_ns for time in step_times) / 1000
    ax.set_xlabel("µs")
    ax.set_title(f"{len(rows)} of {len(step_times)} steps; all of them take {whole:,.1f} µs")
    return ax
