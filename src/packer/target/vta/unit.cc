#include "src/packer/target/vta/unit.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/vta/gemm_unit.h"

namespace qplan::target::vta {
namespace {

constexpr UnitReader kReaders[] = {
    {"qplan.qconv2d", read_gemm_unit},
    {"qplan.qdepthwise", read_gemm_unit},
    {"qplan.qdense", read_gemm_unit},
};

}  // namespace

UnitPlan read_unit(const Config& config, std::string_view row_name, const Candidate& candidate) {
  const auto* const reader = std::ranges::find(kReaders, row_name, &UnitReader::row_name);
  if (reader == std::end(kReaders))
    throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: there is no compiler for ", row_name));
  return reader->read(config, candidate);
}

}  // namespace qplan::target::vta
