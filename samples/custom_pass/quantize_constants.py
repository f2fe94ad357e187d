"""A rewrite in Python: folds qnn.quantize of constants, as the built-in pass quantize_constants does.

usage: quantize_constants.py [MODEL]
Packs the model (default: float_weights.relay beside this file, whose weights are floats) with the built-in pass and with
the rewrite below in its place, and compares the plans.
"""

import pathlib
import sys

import numpy
import qplan
from qplan.passes import constant, op


# Rounds half to even, as the sources do whose operators say contract="f32e" (ONNX, PyTorch).
@qplan.rewrite(op("qnn.quantize")(constant().as_("data"), constant().as_("scale"), constant().as_("zero_point")))
def quantize_constant(_pre, post, matches):
    node = matches.root
    data, scale, zero_point = (matches[name].array for name in ("data", "scale", "zero_point"))
    along = [-1 if axis == node["axis"] % data.ndim else 1 for axis in range(data.ndim)]  # one value per index of an axis
    scale, zero_point = (x.reshape(along) if x.ndim else x for x in (scale, zero_point))
    limits = numpy.iinfo(node.result.dtype)
    quantized = numpy.rint(data / scale).astype(numpy.float64) + zero_point
    result = numpy.clip(quantized, limits.min, limits.max).astype(node.result.dtype)
    post.why(f"{result.size} values to {result.dtype}")
    return post.constant(result, matches["data"].name)


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("float_weights.relay")
    built_in = qplan.pack(model)
    mine = qplan.pack(
        model,
        passes=[qplan.Pass("my_quantize_constants", [quantize_constant], after="fold_constants")],
        skip=["quantize_constants"],
    )
    same = bytes(mine) == bytes(built_in)
    print(f"{len(bytes(mine))} bytes, {'the same as' if same else 'other than'} with the built-in pass")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
