#include "src/packer/target/vta/unit.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/vta/alu_units.h"
#include "src/packer/target/vta/gemm_unit.h"

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
};

}  // namespace

UnitPlan read_unit(const Config& config, std::string_view row_name, const Candidate& candidate) {
  const auto* const reader = std::ranges::find(kReaders, row_name, &UnitReader::row_name);
  if (reader == std::end(kReaders))
    throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: there is no compiler for ", row_name));
  return reader->read(config, candidate);
}

}  // namespace qplan::target::vta
