#include "src/packer/layer/weight_only.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/float/weight_only_dense.h"

namespace qplan::layer {
namespace {

constexpr size_t kBlocks[] = {256, 128, 64, 32, 16};
constexpr int32_t kMostZero = 255;

// A block of weights whose integers are in 0 to the largest one.
struct Fit {
  float scale = 0;
  int32_t zero = 0;
};

// Whether each weight is an integer times the scale, and the integers fit `largest` once a zero point is
// added.
bool fits(std::span<const float> weights, float scale, int32_t largest, Fit* fit) {
  int32_t least = 0, most = 0;
  for (const float weight : weights) {
    const float quotient = std::nearbyint(weight / scale);
    if (!(std::fabs(quotient) <= static_cast<float>(kMostZero)) || quotient * scale != weight) return false;
    least = std::min(least, static_cast<int32_t>(quotient));
    most = std::max(most, static_cast<int32_t>(quotient));
    if (most - least > largest) return false;
  }
  *fit = {scale, -least};
  return true;
}

// The weight with the largest magnitude is an integer times the scale, rounded: for each integer that it
// could be there are three scales near their quotient. Quantisers make it most often the end of a range. The
// smallest one tells soonest that a scale is another.
std::optional<Fit> find_fit(std::span<const float> weights, int32_t largest) {
  float extreme = 0, smallest = 0;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) return std::nullopt;
    if (std::fabs(weight) > std::fabs(extreme)) extreme = weight;
    if (weight != 0 && (smallest == 0 || std::fabs(weight) < std::fabs(smallest))) smallest = weight;
  }
  Fit fit;
  if (extreme == 0) return fit;
  const auto try_scale = [&](float scale) {
    return fits({&smallest, 1}, scale, largest, &fit) && fits(weights, scale, largest, &fit);
  };
  const auto try_integer = [&](int32_t integer) {
    const float scale = extreme / static_cast<float>(integer);
    return std::isnormal(scale) && (try_scale(scale) || try_scale(std::nextafter(scale, 0.0f)) ||
                                    try_scale(std::nextafter(scale, 2 * scale)));
  };
  const int32_t half = largest / 2;
  for (const int32_t integer : {half, half + 1, largest}) {
    if (try_integer(integer)) return fit;
  }
  for (int32_t integer = 1; integer < largest; ++integer) {
    if (integer != half && integer != half + 1 && try_integer(integer)) return fit;
  }
  return std::nullopt;
}

// Rows of k integers become blocks of 16 outputs.
class Layout {
 public:
  Layout(size_t num_o, size_t num_k, uint32_t bits, size_t block)
      : steps_(bits == 8 ? num_k : (num_k + 1) / 2), num_scales_((num_k - 1) / block + 1) {
    const size_t outputs = (num_o + kFloatBlock - 1) / kFloatBlock * kFloatBlock;
    form_.bits = bits;
    form_.block = static_cast<uint32_t>(block);
    form_.weights.resize(outputs * steps_);
    form_.scales.resize(outputs * num_scales_);
    form_.zeros.resize(outputs * num_scales_);
  }

  void add(size_t o, size_t begin, std::span<const float> weights, Fit fit) {
    const size_t of = place(o, num_scales_, begin / form_.block);
    form_.scales[of] = fit.scale;
    form_.zeros[of] = static_cast<uint8_t>(fit.zero);
    for (size_t i = 0; i < weights.size(); ++i) {
      const float quotient = fit.scale == 0 ? 0 : std::nearbyint(weights[i] / fit.scale);
      const auto q = static_cast<uint32_t>(static_cast<int32_t>(quotient) + fit.zero);
      const size_t k = begin + i;
      if (form_.bits == 8) {
        form_.weights[place(o, steps_, k)] = static_cast<uint8_t>(q);
      } else {
        form_.weights[place(o, steps_, k / 2)] |= static_cast<uint8_t>(q << (k % 2 * 4));
      }
    }
  }

  WeightOnly finish() && { return std::move(form_); }

 private:
  static size_t place(size_t o, size_t steps, size_t step) {
    return (o / kFloatBlock * steps + step) * kFloatBlock + o % kFloatBlock;
  }

  const size_t steps_, num_scales_;
  WeightOnly form_;
};

std::optional<WeightOnly> in_form(std::span<const float> weights, size_t num_o, uint32_t bits, size_t block) {
  const size_t num_k = weights.size() / num_o;
  const int32_t largest = (1 << bits) - 1;
  // A row has integers, and for each block a scale and a zero point, in at most three quarters of the bytes.
  const size_t bytes = num_k * bits / 8 + ((num_k - 1) / block + 1) * (sizeof(float) + 1);
  if (4 * bytes > 3 * num_k * sizeof(float)) return std::nullopt;
  const auto part = [&](size_t o, size_t begin) {
    return weights.subspan(o * num_k + begin, std::min(block, num_k - begin));
  };
  // The first blocks tell most often that there is no such form, before there is memory for it.
  if (!find_fit(part(0, 0), largest) || !find_fit(part(num_o - 1, 0), largest)) return std::nullopt;
  Layout layout(num_o, num_k, bits, block);
  for (size_t o = 0; o < num_o; ++o) {
    for (size_t begin = 0; begin < num_k; begin += block) {
      const std::optional<Fit> fit = find_fit(part(o, begin), largest);
      if (!fit) return std::nullopt;
      layout.add(o, begin, part(o, begin), *fit);
    }
  }
  return std::move(layout).finish();
}

}  // namespace

std::optional<WeightOnly> as_weight_only(std::span<const float> weights, size_t num_o) {
  const size_t num_k = weights.size() / num_o;
  for (const uint32_t bits : {4u, 8u}) {
    if (auto rows = in_form(weights, num_o, bits, num_k + num_k % 2)) return rows;
    for (const size_t block : kBlocks) {
      if (block >= num_k) continue;
      if (auto blocks = in_form(weights, num_o, bits, block)) return blocks;
    }
  }
  return std::nullopt;
}

}  // namespace qplan::layer
