#include "tools/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "tools/tensor.h"
#include "tools/words.h"

namespace qplan::tools {
namespace {

constexpr uint64_t kNotComparable = UINT64_MAX;

// Floats in the order of their values as integers without gaps: -0 and 0 are one number.
template <typename Float, typename Bits>
Bits ordered_bits(const void* bytes, uint64_t index) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char*>(bytes) + index * sizeof(Float), sizeof bits);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  return (bits & kSign) != 0 ? kSign - (bits & ~kSign) : kSign + bits;
}

template <typename Float, typename Bits>
uint64_t float_steps(const void* expected, const void* found, uint64_t index) {
  Float a, b;
  std::memcpy(&a, static_cast<const char*>(expected) + index * sizeof a, sizeof a);
  std::memcpy(&b, static_cast<const char*>(found) + index * sizeof b, sizeof b);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 1 : kNotComparable;
  const Bits p = ordered_bits<Float, Bits>(expected, index), q = ordered_bits<Float, Bits>(found, index);
  return std::max<uint64_t>(p > q ? p - q : q - p, 1);  // the bytes differ
}

// The distance of two elements whose bytes differ.
uint64_t steps_between(const qplan_tensor_info& info, const void* expected, const void* found,
                       uint64_t index) {
  if (is_type(info.dtype, kDLFloat, 32)) return float_steps<float, uint32_t>(expected, found, index);
  if (is_type(info.dtype, kDLFloat, 64)) return float_steps<double, uint64_t>(expected, found, index);
  const auto a = element(info, expected, index), b = element(info, found, index);
  if (!a || !b) return 1;
  return std::max<uint64_t>(static_cast<uint64_t>(std::fabs(*a - *b)), 1);
}

uint64_t bucket_of(uint64_t steps) {
  if (steps <= 2 || steps == kNotComparable) return steps;
  uint64_t low = 3;  // 3..4, 5..8, 9..16
  while (low <= UINT64_MAX / 4 && steps > 2 * (low - 1)) low = 2 * (low - 1) + 1;
  return low;
}

std::string bucket_text(uint64_t low) {
  if (low == kNotComparable) return "NaN";
  return low <= 2 ? std::to_string(low) : std::to_string(low) + ".." + std::to_string(2 * (low - 1));
}

uint64_t best_of_row(const qplan_tensor_info& info, const void* bytes, uint64_t begin, uint64_t count) {
  uint64_t best = 0;
  double score = -HUGE_VAL;
  for (uint64_t i = 0; i < count; ++i) {
    const double value = real_value(info, bytes, begin + i).value_or(-HUGE_VAL);
    if (value > score) {
      score = value;
      best = i;
    }
  }
  return best;
}

void compare_rows(const qplan_tensor_info& info, const void* expected, const void* found,
                  TensorComparison* result) {
  const auto scores = info.ndim == 0 ? uint64_t{1} : static_cast<uint64_t>(info.shape[info.ndim - 1]);
  if (scores < 2) return;
  result->rows = result->elements / scores;
  for (uint64_t row = 0; row < result->rows; ++row) {
    const uint64_t begin = row * scores;
    result->same_top1 +=
        best_of_row(info, expected, begin, scores) == best_of_row(info, found, begin, scores) ? 1 : 0;
  }
}

}  // namespace

TensorComparison compare_tensors(const qplan_tensor_info& info, const void* expected, const void* found) {
  TensorComparison result;
  result.elements = element_count(info);
  if (std::memcmp(expected, found, info.size_bytes) == 0) {
    compare_rows(info, expected, expected, &result);
    return result;
  }
  const size_t width = info.size_bytes / std::max<uint64_t>(result.elements, 1);
  double signal = 0, noise = 0;
  for (uint64_t i = 0; i < result.elements; ++i) {
    const double a = real_value(info, expected, i).value_or(0), b = real_value(info, found, i).value_or(0);
    signal += a * a;
    if (std::memcmp(static_cast<const char*>(expected) + i * width,
                    static_cast<const char*>(found) + i * width, width) == 0) {
      continue;
    }
    noise += (a - b) * (a - b);
    const uint64_t steps = steps_between(info, expected, found, i);
    if (result.different++ == 0) result.first_different = i;
    result.max_steps = std::max(result.max_steps, steps);
    ++result.histogram[bucket_of(steps)];
  }
  if (signal > 0 && noise > 0 && std::isfinite(signal) && std::isfinite(noise))
    result.snr_db = 10 * std::log10(signal / noise);
  compare_rows(info, expected, found, &result);
  return result;
}

std::string comparison_text(const TensorComparison& comparison) {
  if (comparison.equal()) return "equal, " + count_text(comparison.elements, "element", "elements");
  std::string text = grouped(comparison.different) + " of " +
                     count_text(comparison.elements, "element", "elements") +
                     (comparison.different == 1 ? " differs" : " differ") + ", by ";
  bool is_first = true;
  for (const auto& [low, count] : comparison.histogram) {
    text += (is_first ? "" : ", ") + bucket_text(low) + " (" + grouped(count) + ")";
    is_first = false;
  }
  text += " steps";
  if (comparison.snr_db) {
    char number[32];
    std::snprintf(number, sizeof number, "%.1f", *comparison.snr_db);
    text += "; SNR " + std::string(number) + " dB";
  }
  if (comparison.rows == 1) {
    text += comparison.same_top1 == 1 ? "; top-1 the same" : "; top-1 another";
  } else if (comparison.rows > 1) {
    text +=
        "; top-1 the same in " + grouped(comparison.same_top1) + " of " + grouped(comparison.rows) + " rows";
  }
  return text;
}

nlohmann::ordered_json comparison_json(const TensorComparison& comparison) {
  nlohmann::ordered_json json;
  json["equal"] = comparison.equal();
  json["elements"] = comparison.elements;
  json["different"] = comparison.different;
  json["max_steps"] = comparison.max_steps;
  json["first_different"] =
      comparison.equal() ? nlohmann::ordered_json() : nlohmann::ordered_json(comparison.first_different);
  json["histogram"] = nlohmann::ordered_json::object();
  for (const auto& [low, count] : comparison.histogram) json["histogram"][bucket_text(low)] = count;
  json["snr_db"] = comparison.snr_db ? nlohmann::ordered_json(*comparison.snr_db) : nlohmann::ordered_json();
  json["rows"] = comparison.rows;
  json["same_top1"] = comparison.same_top1;
  return json;
}

}  // namespace qplan::tools
