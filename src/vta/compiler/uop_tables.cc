#include "src/vta/compiler/uop_tables.h"

#include <cstring>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::target::vta {

UopTables::Place UopTables::use(const std::vector<::qplan::vta::Uop>& table) {
  if (table.size() > config_.uop_elements) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    cat("vta: a sequence of ", table.size(), " micro-ops, their memory has ",
                        config_.uop_elements, "; use a configuration with larger memories"));
  }
  std::vector<uint32_t> words(table.size());
  for (size_t i = 0; i < table.size(); ++i) {
    if (!encode(config_, table[i], &words[i]))
      throw PackError(QPLAN_INTERNAL, "vta: a micro-op does not fit");
  }
  const auto [at, is_new] = tables_.try_emplace(words);
  Table& entry = at->second;
  if (is_new) {
    entry.dram = static_cast<uint32_t>(words_.size());
    entry.size = static_cast<uint32_t>(words.size());
    words_.insert(words_.end(), words.begin(), words.end());
  }
  if (entry.is_resident) return {entry.begin, false, entry.dram};
  if (entry.size > config_.uop_elements - next_) next_ = 0;
  const uint32_t begin = next_, end = begin + entry.size;
  for (auto& [content, other] : tables_) {
    if (other.begin < end && begin < other.begin + other.size) other.is_resident = false;
  }
  entry.begin = begin;
  entry.is_resident = true;
  next_ = end;
  return {begin, true, entry.dram};
}

std::vector<uint8_t> UopTables::bytes() const {
  std::vector<uint8_t> bytes(words_.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), words_.data(), bytes.size());
  return bytes;
}

}  // namespace qplan::target::vta
