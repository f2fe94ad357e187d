#include "tools/labels.h"

#include <algorithm>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/tensor.h"

namespace qplan::tools {

std::vector<Score> top_scores(const qplan_tensor_info& info, const void* bytes, uint32_t count) {
  std::vector<Score> scores;
  const uint64_t values = element_count(info);
  for (uint64_t i = 0; i < values; ++i) {
    if (const auto value = real_value(info, bytes, i)) scores.push_back({i, *value});
  }
  const size_t kept = std::min<size_t>(count, scores.size());
  std::partial_sort(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(kept), scores.end(),
                    [](const Score& a, const Score& b) {
                      // NaN counts as the smallest, so that the order stays an order.
                      const bool a_number = a.score == a.score;
                      const bool b_number = b.score == b.score;
                      if (a_number != b_number) return a_number;
                      if (a_number && a.score != b.score) return a.score > b.score;
                      return a.index < b.index;
                    });
  scores.resize(kept);
  return scores;
}

Labels::Labels(const std::string& path) : path_(path) {
  const std::vector<uint8_t> bytes = read_file(path, "labels");
  std::string line;
  for (const uint8_t byte : bytes) {
    if (byte == '\n') {
      names_.push_back(line);
      line.clear();
    } else if (byte != '\r') {
      line += static_cast<char>(byte);
    }
  }
  if (!line.empty()) names_.push_back(line);
  while (!names_.empty() && names_.back().empty()) names_.pop_back();
  if (names_.empty()) throw Failure("labels '" + path + "': holds no names, expected one per line");
}

}  // namespace qplan::tools
