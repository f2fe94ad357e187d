// How far two tensors of one type are from each other.
#ifndef QPLAN_TOOLS_COMPARE_H_
#define QPLAN_TOOLS_COMPARE_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "qplan/qplan.h"

namespace qplan::tools {

struct TensorComparison {
  uint64_t elements = 0;
  uint64_t different = 0;        // elements whose bytes differ
  uint64_t max_steps = 0;        // the largest difference
  uint64_t first_different = 0;  // index of the first element that differs
  // Differences in steps: of integers the difference of the stored numbers, of floats how many floats lie
  // between, plus 1 (a NaN is UINT64_MAX steps from every number). Key: the lowest of 1, 2, 3..4, 5..8,
  // 9..16, ...
  std::map<uint64_t, uint64_t> histogram;
  // Signal to noise in dB: of real values, sums over all elements. Nothing where no element differs, or the
  // expected values are 0 or no numbers.
  std::optional<double> snr_db;
  // The last axis as scores: of how many rows the best score is at the same index. 0 rows: fewer than 2
  // scores.
  uint64_t rows = 0;
  uint64_t same_top1 = 0;

  [[nodiscard]] bool equal() const { return different == 0; }
  // Whether no element differs by more steps.
  [[nodiscard]] bool within(uint64_t steps) const { return max_steps <= steps; }
};

// Both packed, of info's type; quantisation is that of info.
TensorComparison compare_tensors(const qplan_tensor_info& info, const void* expected, const void* found);

// "3 of 10 elements differ, by 1 (2), 3..4 (1) steps; SNR 31.2 dB; top-1 the same"
std::string comparison_text(const TensorComparison& comparison);
nlohmann::ordered_json comparison_json(const TensorComparison& comparison);

}  // namespace qplan::tools

#endif  // QPLAN_TOOLS_COMPARE_H_
