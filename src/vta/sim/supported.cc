#include <string>

#include "src/vta/sim/device.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {
namespace {

class Checker {
 public:
  Checker(const vta::Config& config, const qplan_npu_op& op) : config_(config), op_(op) {}

  std::vector<qplan_npu_reason> run() {
    if (op_.op < QPLAN_NPU_OP_CONV2D || op_.op > QPLAN_NPU_OP_CLIP) {
      refuse(kOpKind, "operator " + std::to_string(op_.op) + " is unknown to this driver", QPLAN_NPU_OP_CLIP,
             op_.op);
      return reasons_;
    }
    contract();
    if (tensors()) {
      types();
      if (op_.op == QPLAN_NPU_OP_CONV2D) convolution();
    }
    return reasons_;
  }

 private:
  void refuse(OpRule rule, const std::string& text, int64_t limit = 0, int64_t actual = 0) {
    reasons_.emplace_back();
    give_reason(&reasons_.back(), text, limit, actual);
    reasons_.back().code = rule;
  }

  bool has_weights() const { return op_.op == QPLAN_NPU_OP_CONV2D || op_.op == QPLAN_NPU_OP_DENSE; }

  void contract() {
    const uint32_t executed = contracts_of(config_);
    if ((op_.contract & executed) == 0 || (op_.contract & (op_.contract - 1)) != 0) {
      refuse(kOpContract, "the contract is not one that this device executes bit for bit", executed,
             op_.contract);
    }
    if (has_weights() && op_.num_scales == 0 && op_.contract != QPLAN_NPU_ACC32) {
      refuse(kOpScales, "no scales to requantise with", 1, 0);
    }
  }

  bool tensors() {
    const uint32_t inputs = op_.op == QPLAN_NPU_OP_ADD ? 2 : 1;
    bool is_complete = op_.output != nullptr && (!has_weights() || op_.weights != nullptr);
    for (uint32_t i = 0; i < inputs; ++i) is_complete = is_complete && op_.inputs[i] != nullptr;
    const bool is_image = op_.op == QPLAN_NPU_OP_CONV2D || op_.op == QPLAN_NPU_OP_MAX_POOL2D ||
                          op_.op == QPLAN_NPU_OP_AVG_POOL2D;
    if (is_complete && is_image) {
      is_complete = op_.inputs[0]->ndim == 4 && op_.output->ndim == 4 && op_.inputs[0]->shape != nullptr &&
                    op_.output->shape != nullptr;
      if (op_.op == QPLAN_NPU_OP_CONV2D) {
        is_complete = is_complete && op_.weights->ndim == 4 && op_.weights->shape != nullptr;
      }
    }
    if (!is_complete) refuse(kOpTensors, "a tensor is missing, or has not the rank that the operator needs");
    return is_complete;
  }

  static bool is_8_bit(const DLDataType& type, bool signed_only) {
    return type.bits == 8 && type.lanes == 1 &&
           (type.code == kDLInt || (type.code == kDLUInt && !signed_only));
  }

  void types() {
    if (!is_8_bit(op_.inputs[0]->dtype, false) ||
        (op_.op == QPLAN_NPU_OP_ADD && !is_8_bit(op_.inputs[1]->dtype, false))) {
      refuse(kOpInputType, "inputs have 8 bits", 8, op_.inputs[0]->dtype.bits);
    }
    if (has_weights() && !is_8_bit(op_.weights->dtype, true)) {
      refuse(kOpWeightType, "weights are int8 with zero point 0", 8, op_.weights->dtype.bits);
    }
  }

  void convolution() {
    const int64_t channels = op_.inputs[0]->shape[3];
    if (op_.groups != 1 && op_.groups != channels) {
      refuse(kOpGroups, "groups are 1 or as many as input channels", channels, op_.groups);
    }
    const int64_t window = op_.weights->shape[1] * op_.weights->shape[2];
    if (window > config_.uop_elements) {
      refuse(kOpWindow, "positions of the window exceed the micro-op memory", config_.uop_elements, window);
    }
  }

  const vta::Config& config_;
  const qplan_npu_op& op_;
  std::vector<qplan_npu_reason> reasons_;
};

}  // namespace

std::vector<qplan_npu_reason> why_unsupported(const vta::Config& config, const qplan_npu_op& op) {
  return Checker(config, op).run();
}

}  // namespace qplan::sim
