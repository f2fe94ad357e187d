// SOFTMAX and LOGISTIC: their outputs have one fixed quantisation, which TFLite checks.
#include "src/packer/import/tflite/ops.h"

namespace qplan::tfl {
namespace {

// [0, 1) in 256 steps.
QuantParams probability_quantization(const OpContext& op) {
  const QuantParams out = op.quantization(op.output());
  const auto lowest = static_cast<int32_t>(op.output().dtype->min());
  if (out != QuantParams{1.0f / 256, lowest}) {
    throw Unsupported{"output scale " + to_text(out.scale) + " and zero point " +
                      std::to_string(out.zero_point) + " instead of 0.00390625 and " +
                      std::to_string(lowest)};
  }
  return out;
}

void import_probability(OpContext& op, const char* ir_op, ir::Attrs attrs) {
  const TensorInfo& input = op.input(0);
  op.require_same_8bit({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = probability_quantization(op);
  op.define(op.output(), op.emit(ir_op,
                                 {op.value(input), op.scale(in.scale), op.zero_point(in.zero_point),
                                  op.scale(out.scale), op.zero_point(out.zero_point)},
                                 std::move(attrs)));
}

}  // namespace

void import_softmax(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const double beta = op.options<tflite::SoftmaxOptions>().beta();
  import_probability(op, "qnn.softmax", {{"axis", int64_t{-1}}, {"beta", beta}});
}

void import_logistic(OpContext& op) {
  op.expect_counts(1, 1, 1);
  import_probability(op, "qnn.sigmoid", {});
}

}  // namespace qplan::tfl
