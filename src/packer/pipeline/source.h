// Models as files: which importer reads them, and what a plan remembers of them.
#ifndef QPLAN_SRC_PACKER_PIPELINE_SOURCE_H_
#define QPLAN_SRC_PACKER_PIPELINE_SOURCE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/packer/import/import_options.h"
#include "src/packer/ir/module.h"
#include "src/packer/log.h"

namespace qplan::pipeline {

// The content decides, not the name. PackError (QPLAN_MODEL_INVALID) with the formats known.
ir::Module import_any(std::span<const uint8_t> model, std::string_view name, const LogFunction& log,
                      const ImportOptions& options);

std::string last_component(std::string_view path);
std::string sha256_text(std::span<const uint8_t> bytes);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_SOURCE_H_
