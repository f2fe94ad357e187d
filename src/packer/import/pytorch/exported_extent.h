// The extents that an exported program derives from symbols: "2*s0 + 1" as later versions of PyTorch print
// them, "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))" as 2.6 does.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_EXTENT_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_EXTENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace qplan::pt {

using FindSymbol = std::function<std::optional<int64_t>(const std::string& name)>;

// Sums, products and quotients rounded down, of integers and symbols. None where a symbol is not known, where
// the text has something else, or where a number is no possible extent.
std::optional<int64_t> evaluate_extent(std::string_view expression, const FindSymbol& find);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_EXTENT_H_
