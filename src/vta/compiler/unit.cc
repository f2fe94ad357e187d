#include "src/vta/compiler/unit.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/alu_units.h"
#include "src/vta/compiler/gemm_unit.h"
#include "src/vta/compiler/rename.h"

namespace qplan::target::vta {
namespace {

constexpr UnitReader kReaders[] = {
    {"qplan.qconv2d", read_gemm_unit},
    {"qplan.qdepthwise", read_gemm_unit},
    {"qplan.qdense", read_gemm_unit},
    {"qplan.qconv2d_acc32", read_gemm_unit},
    {"qplan.qdense_acc32", read_gemm_unit},
    {"qplan.qadd", read_add_unit},
    {"qplan.qclip", read_clip_unit},
    {"qplan.qmax_pool2d", read_max_pool_unit},
    {"qplan.qavg_pool2d", read_average_pool_unit},
    {"qplan.qmean", read_mean_unit},
    {"qplan.qreshape", read_rename_unit},
};

}  // namespace

UnitActivation activation(const Candidate& c, ir::ValueId value) {
  const ir::TensorType& type = c.function().type(value);
  UnitActivation result;
  result.value = value;
  result.is_unsigned = type.dtype == ir::kUint8;
  const size_t rank = type.shape.size();
  if (rank > 0) result.channels = type.shape[rank - 1];
  for (size_t i = 0; i + 1 < rank; ++i) {
    const bool is_row = rank == 4 && i < 2;
    (is_row ? result.h : result.w) *= type.shape[i];
  }
  return result;
}

UnitPlan read_unit(const Config& config, std::string_view row_name, const Candidate& candidate) {
  const auto* const reader = std::ranges::find(kReaders, row_name, &UnitReader::row_name);
  if (reader == std::end(kReaders))
    throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: there is no compiler for ", row_name));
  return reader->read(config, candidate);
}

}  // namespace qplan::target::vta
