// What the cost model knows of a plan's steps.
#include <optional>

#include "src/packer/inspect/inspect.h"
#include "src/packer/target/cost_file.h"

namespace qplan::inspect {
namespace {

using target::CpuWork;

bool is_of_bytes(const StepView& step) {
  return step.input_dtype(0) == Dtype::kS8 || step.input_dtype(0) == Dtype::kU8;
}

CpuWork convolution_of(const StepView& step) {
  const StepTensor input = step.input(0);
  const bool narrow =
      input.rank > 0 && target::is_narrow(static_cast<uint64_t>(input.extents[input.rank - 1]));
  return narrow ? CpuWork::kNarrowConvolution : CpuWork::kConvolution;
}

// As target::cpu_work tells operators apart. Nothing: cascades, and families that were never measured.
std::optional<CpuWork> kind_of_work(const StepView& step) {
  if (step.num_inputs() == 0) return std::nullopt;
  switch (step.step->kernel()) {
    case kKernel_conv2d:
      return convolution_of(step);
    case kKernel_fully_connected:
    case kKernel_conv2d_transpose:
    case kKernel_batch_matmul:
      return CpuWork::kConvolution;
    case kKernel_depthwise_conv2d:
      return CpuWork::kDepthwise;
    case kKernel_add:
    case kKernel_sub:
    case kKernel_mul:
    case kKernel_maximum:
    case kKernel_minimum:
      return CpuWork::kArithmetic;
    case kKernel_lut8:
      return CpuWork::kTable;
    case kKernel_avg_pool2d:
    case kKernel_max_pool2d:
    case kKernel_mean:
      return CpuWork::kPool;
    case kKernel_softmax:
      return CpuWork::kSoftmax;
    case kKernel_quantize:
    case kKernel_dequantize:
    case kKernel_arg_max:
      return CpuWork::kConvert;
    case kKernel_requantize:
      return is_of_bytes(step) ? CpuWork::kTable : CpuWork::kConvert;
    case kKernel_copy:
    case kKernel_pad:
    case kKernel_transpose:
    case kKernel_concat:
    case kKernel_split:
      return CpuWork::kMove;
    case kKernel_resize_bilinear:
      return CpuWork::kResize;
    default:
      return std::nullopt;
  }
}

}  // namespace

ir::Json cost_json(const StepView& step) {
  const std::optional<CpuWork> work = kind_of_work(step);
  if (!work) return nullptr;
  uint64_t bytes = 0, weight_bytes = 0;
  for (uint32_t i = 0; i < step.num_inputs(); ++i) {
    const StepTensor input = step.input(i);
    (input.is_constant ? weight_bytes : bytes) += input.size_bytes;
  }
  for (uint32_t i = 0; i < step.num_outputs(); ++i) bytes += step.output(i).size_bytes;
  return {{"work", target::work_name(*work)},
          {"macs", step.step->macs()},
          {"bytes", bytes},
          {"weight_bytes", weight_bytes}};
}

}  // namespace qplan::inspect
