// Which kind of work an operator of the IR is: by which of a processor's rates its time is estimated.
#include "src/packer/op/properties.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/profile.h"

namespace qplan::target {
namespace {

CpuWork convolution_work(const ir::Function& function, const ir::Node& node) {
  const op::AttrDef* attr = op::attr_with(node.op, op::AttrRole::kLayout);
  if (attr == nullptr) return CpuWork::kConvolution;  // a fully connected layer
  const op::DataLayout layout = op::data_layout(op::attr_string(node, attr->name));
  const int64_t channels = function.type(node.operands[0]).shape[layout.c];
  const int64_t groups = op::attr_int(node, "groups");
  if (groups > 1 && groups == channels) return CpuWork::kDepthwise;
  return is_narrow(static_cast<uint64_t>(channels)) ? CpuWork::kNarrowConvolution : CpuWork::kConvolution;
}

}  // namespace

CpuWork cpu_work(const ir::Function& function, const ir::Node& node) {
  if (node.op == nullptr) return CpuWork::kArithmetic;
  const CpuWork work = op::work_of(node.op);
  if (work == CpuWork::kConvolution) return convolution_work(function, node);
  // For 8 bits it is a table of 256 entries.
  if (node.op->name == "qnn.requantize") {
    const bool is_byte =
        function.type(node.operands[0]).size_bytes() == function.type(node.operands[0]).num_elements();
    return is_byte ? CpuWork::kTable : work;
  }
  return work;
}

}  // namespace qplan::target
