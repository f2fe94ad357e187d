"""What a roofline says of a model's steps: figures that the drawing and the table share."""

import dataclasses


@dataclasses.dataclass
class Layer:
    step: int
    op: str
    kernel: str
    name: str
    macs: int
    num_bytes: int
    ns: int  # of its fastest run
    share: float  # of the sum of all steps
    intensity: float  # MACs per byte
    rate: float  # GMAC/s
    of_peak: float
    of_roof: float  # of what peak and bandwidth allow; of the bandwidth alone for steps without MACs
    lost_ns: float  # against the roof


def layers_of(model, peak, bandwidth):
    """peak: GMAC/s, bandwidth: GB/s. Steps that did not run are left out."""
    steps = [step for step in model["steps"] if step["min_ns"] > 0]
    total = sum(step["min_ns"] for step in steps)
    layers = []
    for step in steps:
        ns, macs, num_bytes = step["min_ns"], step["macs"], max(step["bytes"], 1)
        rate = macs / ns
        roof_ns = max(macs / peak if peak else 0, num_bytes / bandwidth)
        layers.append(
            Layer(
                step=step["step"],
                op=step["op"],
                kernel=step["kernel"],
                name=step["name"],
                macs=macs,
                num_bytes=num_bytes,
                ns=ns,
                share=ns / total,
                intensity=macs / num_bytes,
                rate=rate,
                of_peak=rate / peak if peak else 0,
                of_roof=min(roof_ns / ns, 1),
                lost_ns=max(ns - roof_ns, 0),
            )
        )
    return layers


def furthest(layers, count):
    """The layers in which most time is lost against the roof, the largest first."""
    return sorted(layers, key=lambda layer: -layer.lost_ns)[:count]


def markdown(name, layers):
    total = sum(layer.ns for layer in layers)
    worst = {layer.step for layer in furthest(layers, 5)}
    lines = [
        f"## {name}\n",
        f"{len(layers)} steps, {total / 1e3:.1f} µs, {sum(layer.macs for layer in layers) / total:.1f} GMAC/s; "
        f"{sum(layer.lost_ns for layer in layers) / 1e3:.1f} µs above the roof, most of it in the steps in bold.\n",
        "| step | layer | kernel | MMAC | kB | MACs/byte | µs | % of time | GMAC/s | % of peak | % of roof | µs above |",
        "|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for layer in layers:
        mark = "**" if layer.step in worst else ""
        label = (layer.name.split(";")[0] or layer.op).replace("|", "\\|")
        lines.append(
            f"| {layer.step} | {mark}{label}{mark} | {layer.kernel} | {layer.macs / 1e6:.3f} | "
            f"{layer.num_bytes / 1e3:.1f} | {layer.intensity:.1f} | {layer.ns / 1e3:.2f} | {100 * layer.share:.1f} | "
            f"{layer.rate:.1f} | {100 * layer.of_peak:.1f} | {100 * layer.of_roof:.0f} | {layer.lost_ns / 1e3:.2f} |"
        )
    return "\n".join(lines) + "\n"
