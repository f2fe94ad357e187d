// QUANTIZE and DEQUANTIZE.
#include "src/packer/import/tflite/ops.h"

namespace qplan::tfl {

void import_quantize(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  op.require_8bit(op.output(), "output");
  const QuantParams out = op.quantization(op.output());
  ir::Attrs attrs{{"out_dtype", ir::to_string(*op.output().dtype)}};
  if (input.dtype == ir::kFloat32) {
    op.define(op.output(),
              op.emit("qnn.quantize", {op.value(input), op.scale(out.scale), op.zero_point(out.zero_point)},
                      std::move(attrs)));
    return;
  }
  op.require_8bit(input, "input");
  const QuantParams in = op.quantization(input);
  op.define(op.output(), op.emit("qnn.requantize",
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 std::move(attrs)));
}

void import_dequantize(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const TensorInfo& input = op.input(0);
  op.require_8bit(input, "input");
  if (op.output().dtype != ir::kFloat32) throw Unsupported{type_name(op.output().file_type) + " output"};
  const QuantParams in = op.quantization(input);
  op.define(op.output(), op.emit("qnn.dequantize",
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point)}, {}));
}

}  // namespace qplan::tfl
