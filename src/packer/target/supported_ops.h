// docs/supported_ops.md, written from the tables of the targets.
#ifndef QPLAN_SRC_PACKER_TARGET_SUPPORTED_OPS_H_
#define QPLAN_SRC_PACKER_TARGET_SUPPORTED_OPS_H_

#include <span>
#include <string>
#include <string_view>

#include "src/packer/target/target.h"

namespace qplan::target {

// The CPU, which takes what is left, comes last.
std::string supported_ops_page(std::span<const TargetKind> kinds);

// ---- sections: TargetKind::page
// The conditions of a table. What the options `variant` require instead is added where it differs.
std::string rows_text(std::span<const PatternRow> rows, std::string_view variant,
                      std::span<const PatternRow> variant_rows);
std::string cpu_page();

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_SUPPORTED_OPS_H_
