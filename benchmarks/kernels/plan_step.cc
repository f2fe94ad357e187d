#include "benchmarks/kernels/plan_step.h"

#include <random>
#include <stdexcept>
#include <string_view>

#include "src/packer/inspect/inspect.h"

namespace qplan::benchmarks {
namespace {

std::string tensor_text(const StepTensor& tensor) {
  std::string text;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(tensor.extents[i]);
  }
  return text + "_" + dtype_name(tensor.dtype);
}

// Parameters that say how much work there is or how it is done; zero points, multipliers and the like do not,
// nor do strides and dilations of 1.
bool is_shape(std::string_view parameter, std::string_view value) {
  if (value == "1") return false;
  for (const char* part : {"kernel", "pool", "stride", "dilation", "groups", "contract", "form", "layout",
                           "axis", "axes", "permutation", "rule"}) {
    if (parameter.find(part) != std::string_view::npos) return true;
  }
  return false;
}

// Ordinary values: floats of [-1, 1), any bytes.
void fill(const format::Tensor& tensor, uint8_t* bytes) {
  std::mt19937 random(1);
  if (tensor.type_code() == kDLFloat && tensor.type_bits() == 32) {
    auto* values = reinterpret_cast<float*>(bytes);
    for (uint64_t i = 0; i < tensor.size() / sizeof(float); ++i)
      values[i] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
    return;
  }
  for (uint64_t i = 0; i < tensor.size(); ++i) bytes[i] = static_cast<uint8_t>(random());
}

}  // namespace

PlanStep::PlanStep(const PackedModel& model, uint32_t step)
    : family_(nullptr), data_(model.plan().num_tensors(), nullptr) {
  const format::PlanView& plan = model.plan();
  if (plan.npu_step(step) != nullptr) throw std::runtime_error("not a kernel's step");
  view_ = {&plan.plan(), &plan.step(step), data_.data()};
  family_ = qplan_kernels_all()->families[view_.step->kernel()];
  for (const uint32_t t : *view_.step->inputs()) {
    if (plan.is_constant(t)) {
      data_[t] = const_cast<void*>(plan.constant_data(t));  // NOLINT: kernels only read it
      bytes_ += plan.tensor(t).size();
    } else {
      place(t);
    }
  }
  for (const uint32_t t : *view_.step->outputs()) place(t);
  Error error;
  if (family_->bind(view_, true, args_, &error) < 0) throw std::runtime_error(error.text());
}

void PlanStep::place(uint32_t t) {
  const format::Tensor& tensor = *view_.plan->tensors()->Get(t);
  bytes_ += tensor.size();
  if (data_[t] != nullptr) return;
  buffers_.push_back(aligned_buffer(tensor.size()));
  fill(tensor, buffers_.back().get());
  data_[t] = buffers_.back().get();
}

std::string PlanStep::shape() const {
  std::string text;
  for (uint32_t i = 0; i < view_.num_inputs(); ++i) {
    const StepTensor input = view_.input(i);
    if (!input.is_constant) text += (i == 0 ? "" : "+") + tensor_text(input);
  }
  text += ">";
  for (uint32_t i = 0; i < view_.num_outputs(); ++i)
    text += (i == 0 ? "" : "+") + tensor_text(view_.output(i));
  for (const auto& [name, value] : inspect::step_params(*view_.step)) {
    if (is_shape(name, value)) text += "," + name + "=" + value;
  }
  return text;
}

}  // namespace qplan::benchmarks
