// A network written twice: `main` as sources write it (layouts, fake quantisation, weights in float, pads and
// clips beside the layers, ...), `meaning` in integer operators that say the same and that
// naive_interpreter.h knows. Here is what all steps of random_network.h build with: choices, nodes of either
// function, the values made so far.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_NETWORK_PAIR_H_
#define QPLAN_TESTS_PACKER_PIPELINE_NETWORK_PAIR_H_

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ir_builder.h"
#include "tests/support/random.h"

namespace qplan::naive {

// Scale and zero point as the generator knows them.
struct Quantisation {
  float scale = 1.0f;
  int32_t zero_point = 0;
};

// A value of the network. At least one of the two forms in main is there: the 8-bit value, or the float that
// its integers represent.
struct Value {
  ir::ValueId meaning, integer, real;
  ir::DType dtype;
  ir::Shape shape;
  Quantisation q;
};

class NetworkPair {
 public:
  const ir::Module& main_module() const { return main_module_; }
  const ir::Function& meaning() const { return meaning_module_.main(); }

 protected:
  // other_signedness: the same network with each activation that is int8 as uint8 and the other way, so that
  // its integers and zero points are 128 away.
  NetworkPair(uint64_t seed, std::string contract, bool other_signedness)
      : random_(seed),
        contract_(std::move(contract)),
        other_signedness_(other_signedness),
        main_(&main_module_.add_function("main")),
        meaning_(&meaning_module_.add_function("main")) {}

  using Two = std::pair<ir::ValueId, ir::ValueId>;  // in main, in meaning

  // ---- small choices ----
  bool chance(double p) { return random_.chance(p); }
  int64_t integer(int64_t lo, int64_t hi) { return random_.integer(lo, hi); }
  float scale(double around = 0.05) {
    return static_cast<float>(around * std::exp2(random_.unit() * 3 - 1.5));
  }
  ir::DType dtype8() { return chance(0.5) != other_signedness_ ? ir::kInt8 : ir::kUint8; }
  int32_t zero_point(ir::DType dtype) {
    if (chance(0.15)) return static_cast<int32_t>(dtype.min());
    if (chance(0.1)) return static_cast<int32_t>(dtype.max());
    const auto middle = (dtype.min() + dtype.max() + 1) / 2;
    return static_cast<int32_t>(middle + integer(-30, 30));
  }
  Quantisation quantisation(ir::DType dtype, double around = 0.05) {
    return {scale(around), zero_point(dtype)};
  }
  ir::Attrs with_contract(ir::Attrs attrs = {}) {
    if (contract_ != "tfl2" || chance(0.3)) attrs.set("contract", contract_);
    return attrs;
  }
  std::string layout() { return chance(0.5) ? "NCHW" : "NHWC"; }
  std::string name() { return "n" + std::to_string(next_name_++); }
  ir::ConstantRef bytes(ir::DType dtype, const ir::Shape& shape) {
    return ir::make_constant(
        dtype, shape,
        random_.full_range<uint8_t>(static_cast<size_t>(ir::TensorType{dtype, shape}.num_elements())));
  }

  // Constant activations.
  ir::ConstantRef data_bytes(ir::DType dtype, const ir::Shape& shape) {
    const ir::ConstantRef data = bytes(dtype, shape);
    if (!other_signedness_) return data;
    std::vector<uint8_t> moved(data->bytes().begin(), data->bytes().end());
    for (uint8_t& byte : moved) byte ^= 0x80;
    return ir::make_constant(dtype, shape, moved);
  }

  // ---- nodes ----
  ir::ValueId m(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return main_.call(op, std::move(operands), std::move(attrs), name());
  }
  ir::ValueId n(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs = {}) {
    return meaning_.call(op, std::move(operands), std::move(attrs), name());
  }
  ir::ValueId real_of(Value& value) {
    if (!value.real.valid() || (value.integer.valid() && chance(0.3))) {
      value.real = m("qnn.dequantize",
                     {integer_of(value), main_.scalar(value.q.scale), main_.scalar(value.q.zero_point)},
                     with_contract());
    }
    return value.real;
  }
  ir::ValueId integer_of(Value& value) {
    if (!value.integer.valid()) value.integer = quantize(value.real, value.q, value.dtype);
    return value.integer;
  }
  // in_float: as TFLite's importer writes it, which means what TFLite computes in float32.
  ir::ValueId quantize(ir::ValueId real, Quantisation q, ir::DType dtype, bool in_float = false) {
    ir::Attrs attrs = with_contract({{"out_dtype", ir::to_string(dtype)}});
    if (in_float) attrs.set("rule", std::string("div_away"));
    return m("qnn.quantize", {real, main_.scalar(q.scale), main_.scalar(q.zero_point)}, std::move(attrs));
  }
  ir::ValueId n_requantize(ir::ValueId x, Quantisation from, Quantisation to, ir::DType dtype,
                           bool in_float = false) {
    ir::Attrs attrs = {{"out_dtype", ir::to_string(dtype)}, {"contract", contract_}};
    if (in_float) attrs.set("multiplier", std::string("none"));
    return n("qnn.requantize",
             {x, meaning_.scalar(from.scale), meaning_.scalar(from.zero_point), meaning_.scalar(to.scale),
              meaning_.scalar(to.zero_point)},
             std::move(attrs));
  }
  bool chance_of_tflites_floats() { return contract_ == "tfl2" && chance(0.4); }
  void add(Value value) {
    value.shape = meaning().type(value.meaning).shape;
    value.dtype = meaning().type(value.meaning).dtype;
    if (meaning().type(value.meaning).num_elements() > 4000) return;
    values_.push_back(std::move(value));
  }
  // A copy: the vector grows. keep() writes forms that were made on the way back.
  size_t pick() {
    if (chance(0.6)) return values_.size() - 1;
    return static_cast<size_t>(integer(0, static_cast<int64_t>(values_.size()) - 1));
  }
  // Picks a value of this rank; reshapes one where there is none.
  size_t pick_rank4() {
    for (int i = 0; i < 4; ++i) {
      const size_t at = pick();
      if (values_[at].shape.size() == 4) return at;
    }
    for (size_t i = values_.size(); i-- > 0;) {
      if (values_[i].shape.size() == 4) return i;
    }
    return 0;  // an input
  }

  // Data that moves, in either form: the operator's name, attributes.
  void movement(Value& from, const std::string& op, const ir::Attrs& attrs) {
    Value to = from;
    to.meaning = n(op, {from.meaning}, attrs);
    const bool in_float = chance(0.4);
    to.integer = in_float ? ir::ValueId{} : m(op, {integer_of(from)}, attrs);
    to.real = in_float ? m(op, {real_of(from)}, attrs) : ir::ValueId{};
    add(to);
  }

  testing::Random random_;
  const std::string contract_;
  const bool other_signedness_;
  ir::Module main_module_, meaning_module_;
  ir::Builder main_, meaning_;
  std::vector<Value> values_;
  int next_name_ = 0;
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_NETWORK_PAIR_H_
