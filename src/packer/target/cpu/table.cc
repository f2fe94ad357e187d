#include "src/packer/target/cpu/table.h"

#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {
namespace {

constexpr TableRow kTable[] = {
#define QPLAN_LOWERING(name) {#name, match_##name, lower_##name},
#include "src/packer/target/cpu/lowerings.def"
#undef QPLAN_LOWERING
};

}  // namespace

std::span<const TableRow> lowering_table() { return kTable; }

}  // namespace qplan::target::cpu
