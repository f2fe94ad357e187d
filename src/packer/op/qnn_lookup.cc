// qnn.lookup: any function of an 8-bit value, as a table of its 256 results.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_quantized(input, 0);
  check_quantized(input, 1);
  if (input.type(1).shape != ir::Shape{256}) {
    invalid(cat("'table' is ", input.type(1), ", expected 256 values: one for each byte of 'data'"));
  }
  constant_operand(input, 1);
  return {{input.type(1).dtype, input.type(0).shape}};
}

}  // namespace

OpDef list::qnn_lookup() { return {.name = "qnn.lookup", .operands = {"data", "table"}, .infer = infer}; }

}  // namespace qplan::op
