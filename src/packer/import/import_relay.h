// Reads Relay text (text/README.md).
#ifndef QPLAN_SRC_PACKER_IMPORT_IMPORT_RELAY_H_
#define QPLAN_SRC_PACKER_IMPORT_IMPORT_RELAY_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "src/packer/import/import_options.h"
#include "src/packer/ir/module.h"
#include "src/packer/log.h"

namespace qplan {

// Whether the bytes can be a text: no control characters in their first part.
bool is_text(std::span<const uint8_t> bytes);

// The module of the text, which is untrusted. A body without a header becomes @main. The log reports
// requantisations whose multiplier differs from the one that their printed scale gives. PackError with line,
// column and the line.
ir::Module import_relay(std::span<const uint8_t> bytes, std::string_view name, const LogFunction& log = {},
                        const ImportOptions& options = {});

}  // namespace qplan

#endif  // QPLAN_SRC_PACKER_IMPORT_IMPORT_RELAY_H_
