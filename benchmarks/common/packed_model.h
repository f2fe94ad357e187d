// A model file, packed in memory and opened: what benchmarks run.
#ifndef QPLAN_BENCHMARKS_COMMON_PACKED_MODEL_H_
#define QPLAN_BENCHMARKS_COMMON_PACKED_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/schedule/fuse.h"

namespace qplan::benchmarks {

// A convolution of the model, before the packer joins it with others.
struct Convolution {
  int64_t batch, input_h, input_w, input_c, output_h, output_w, output_c, kernel_h, kernel_w, stride_h,
      stride_w, dilation_h, dilation_w, pad_top, pad_left, groups;
};

class PackedModel {
 public:
  // Uses the default options of `qplan pack` except the given one. std::exception where the file is not a
  // model.
  explicit PackedModel(const std::string& path, schedule::Fuse fuse = schedule::Fuse::kAuto);

  // The file's name without folders and extension.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const format::PlanView& plan() const { return view_; }
  [[nodiscard]] const AlignedBytes& bytes() const { return bytes_; }
  // The convolutions of the canonical model with all their channels, in order.
  [[nodiscard]] const std::vector<Convolution>& convolutions() const { return convolutions_; }

 private:
  std::string name_;
  std::vector<Convolution> convolutions_;
  AlignedBytes bytes_;
  format::PlanView view_;
};

}  // namespace qplan::benchmarks

#endif  // QPLAN_BENCHMARKS_COMMON_PACKED_MODEL_H_
