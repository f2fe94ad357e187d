// Opens plans for tools that show them.
#ifndef QPLAN_SRC_PACKER_INSPECT_PLAN_READER_H_
#define QPLAN_SRC_PACKER_INSPECT_PLAN_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"

namespace qplan::inspect {

// A verified plan; misaligned bytes are copied first. PackError with the runtime's status and text.
class PlanReader {
 public:
  explicit PlanReader(std::span<const uint8_t> bytes);
  const format::PlanView& view() const { return view_; }

 private:
  AlignedBytes copy_;
  format::PlanView view_;
};

// "conv2d", or "kernel 900" when this build does not know it.
std::string kernel_name(uint16_t kernel);
std::string shape_text(const format::Tensor& tensor);  // "1x96x96x3"
std::string dtype_text(const format::Tensor& tensor);  // "int8"

// The parameters of a step by name, in the order of the schema: {"stride_h", "2"}.
std::vector<std::pair<std::string, std::string>> step_params(const format::KernelStep& step);

// SHA-256, hexadecimal, of what is executed: format version, required features, the root and the constants.
std::string content_digest(const format::PlanView& view);
std::string hexadecimal(const uint8_t* bytes, size_t size);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_PLAN_READER_H_
