// What random_operators.h builds a network with: values of int8, uint8, int16, int32, int64 and float32 with
// what their integers stand for, random data, choices among what is there.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_VALUES_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_VALUES_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/ir_builder.h"
#include "tests/support/random.h"

namespace qplan::naive {

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed), b_(&module_.add_function("main")) {}

  const ir::Module& module() const { return module_; }
  const ir::Function& function() const { return module_.main(); }
  std::vector<ir::ConstantRef> inputs() {
    std::vector<ir::ConstantRef> result;
    for (const ir::ValueId param : function().params()) {
      const ir::TensorType& type = function().type(param);
      result.push_back(data(type.dtype, type.shape));
    }
    return result;
  }

 protected:
  // Scale and zero point of int8, uint8 and int16.
  struct Value {
    ir::ValueId id;
    ir::DType dtype;
    ir::Shape shape;
    float scale = 1.0f;
    int32_t zero_point = 0;
    bool dequantized = false;  // floats that integers stand for: TFL2 converts those, not the floats
  };
  static constexpr int64_t kMostElements = 1500;

  // ---- small choices ----
  bool chance(double p) { return random_.chance(p); }
  int64_t integer(int64_t lo, int64_t hi) { return random_.integer(lo, hi); }
  int64_t rank_of(const Value& v) { return std::ssize(v.shape); }
  std::string pick_name(std::vector<std::string> names) { return random_.pick(names); }
  static bool is_8_bit(ir::DType dtype) { return dtype == ir::kInt8 || dtype == ir::kUint8; }
  static bool is_quantized(ir::DType dtype) { return is_8_bit(dtype) || dtype == ir::kInt16; }
  static bool is_number(ir::DType dtype) { return dtype == ir::kInt32 || dtype == ir::kInt64; }
  float scale(double around) { return static_cast<float>(around * std::exp2(random_.unit() * 3 - 1.5)); }
  int32_t zero_point(ir::DType dtype) {
    if (!is_8_bit(dtype)) return 0;
    if (chance(0.2)) return static_cast<int32_t>(chance(0.5) ? dtype.min() : dtype.max());
    return static_cast<int32_t>((dtype.min() + dtype.max() + 1) / 2 + integer(-30, 30));
  }
  ir::Shape shape(int64_t rank) {
    ir::Shape extents;
    for (int64_t i = 0; i < rank; ++i) extents.push_back(chance(0.15) ? 1 : integer(1, 5));
    // As channels: more than the lanes of a vector.
    if (rank > 0 && chance(0.15)) extents.back() = integer(6, 40);
    return extents;
  }
  static bool broadcasts_to(const ir::Shape& from, const ir::Shape& to) {
    if (from.size() > to.size()) return false;
    for (size_t i = 1; i <= from.size(); ++i) {
      if (from[from.size() - i] != 1 && from[from.size() - i] != to[to.size() - i]) return false;
    }
    return true;
  }
  static bool broadcast(const std::vector<ir::Shape>& shapes) {
    for (size_t i = 1; i <= 8; ++i) {
      int64_t most = 1;
      for (const ir::Shape& s : shapes) {
        const int64_t extent = i <= s.size() ? s[s.size() - i] : 1;
        if (most != 1 && extent != 1 && extent != most) return false;
        most = std::max(most, extent);
      }
    }
    return true;
  }
  // Outputs of a layer.
  int64_t channels(int64_t most) { return chance(0.15) ? integer(6, 40) : integer(1, most); }
  // An operand that broadcasts with this shape: axes of extent 1, leading ones left out.
  ir::Shape broadcasting(ir::Shape extents) {
    for (int64_t& extent : extents) extent = chance(0.3) ? 1 : extent;
    while (!extents.empty() && chance(0.25)) extents.erase(extents.begin());
    return extents;
  }

  ir::ConstantRef data(ir::DType dtype, const ir::Shape& extents) {
    const auto count = static_cast<size_t>(ir::TensorType{dtype, extents}.num_elements());
    if (dtype == ir::kInt16) return ir::make_constant(dtype, extents, random_.full_range<int16_t>(count));
    if (dtype == ir::kInt32) {
      const bool small = chance(0.6);  // as the shapes and positions of networks are
      return ir::make_constant(
          dtype, extents,
          small ? random_.integers<int32_t>(count, -6, 6) : random_.full_range<int32_t>(count));
    }
    if (dtype == ir::kInt64) {  // of 53 bits, which the interpreter's doubles hold
      const int64_t most = chance(0.6) ? 6 : (int64_t{1} << 52);
      return ir::make_constant(dtype, extents, random_.integers<int64_t>(count, -most, most));
    }
    if (dtype != ir::kFloat32) return ir::make_constant(dtype, extents, random_.full_range<uint8_t>(count));
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) {
      const double v = random_.unit() * 8 - 4;
      values.push_back(static_cast<float>(chance(0.3) ? std::round(v * 2) / 2 : v));  // ties, zeros
    }
    return ir::make_constant(dtype, extents, values);
  }

  // ---- nodes ----
  std::vector<ir::ValueId> all(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return b_.call_all(op, std::move(operands), std::move(attrs), "n" + std::to_string(next_name_++));
  }
  ir::ValueId call(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return all(op, std::move(operands), std::move(attrs))[0];
  }
  const ir::TensorType& type(ir::ValueId id) { return b_.function().type(id); }
  // A result with the quantisation of `like`, or any where it has another dtype.
  void add(ir::ValueId id, const Value& like) {
    if (type(id).num_elements() > kMostElements || type(id).shape.empty()) return;
    Value v = {id, type(id).dtype, type(id).shape, like.scale, like.zero_point, like.dequantized};
    if (v.dtype != like.dtype) v.scale = scale(0.05), v.zero_point = zero_point(v.dtype);
    values_.push_back(v);
  }
  Value pick() {
    if (chance(0.6)) return values_.back();
    return values_[static_cast<size_t>(integer(0, std::ssize(values_) - 1))];
  }
  template <typename Fits>
  const Value* find(const Fits& fits) {
    std::vector<const Value*> fitting;
    for (const Value& v : values_) {
      if (fits(v)) fitting.push_back(&v);
    }
    return fitting.empty() ? nullptr : random_.pick(fitting);
  }
  void add_input(const std::string& name) {
    Value v;
    v.dtype = random_.pick(std::vector<ir::DType>{ir::kInt8, ir::kInt8, ir::kInt8, ir::kUint8, ir::kUint8,
                                                  ir::kInt16, ir::kInt32, ir::kInt64, ir::kFloat32,
                                                  ir::kFloat32, ir::kFloat32});
    v.shape = shape(chance(0.3) ? 4 : integer(1, 5));
    v.scale = scale(0.05);
    v.zero_point = zero_point(v.dtype);
    v.id = b_.function().add_param(name, {v.dtype, v.shape});
    values_.push_back(v);
  }
  // A second operand of the dtype: a value whose shape broadcasts, or a constant.
  Value partner(const Value& a) {
    if (chance(0.5)) {
      const Value* other = find([&](const Value& v) {
        return v.dtype == a.dtype && broadcast({v.shape, a.shape});
      });
      if (other != nullptr) return *other;
    }
    Value b = a;
    b.shape = broadcasting(a.shape);
    b.id = b_.function().add_constant(data(a.dtype, b.shape));
    b.scale = scale(0.05);
    b.zero_point = zero_point(b.dtype);
    return b;
  }

  testing::Random random_;
  ir::Module module_;
  ir::Builder b_;
  std::vector<Value> values_;
  int next_name_ = 0;
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_VALUES_H_
