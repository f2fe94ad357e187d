#include "src/packer/pipeline/canonical_body.h"

#include <cstdlib>
#include <vector>

#include "src/packer/op/op_def.h"
#include "src/packer/text/text.h"

namespace qplan::pipeline {
namespace {

bool is(const ir::Node& node, const char* op) { return node.op != nullptr && node.op->name == op; }

ir::Attrs without_contract(const ir::Attrs& attrs) {
  ir::Attrs result;
  for (const auto& [name, value] : attrs) {
    if (name != "contract" && name != "rule" && name != "multiplier") result.set(name, value);
  }
  return result;
}

class BodyBuilder {
 public:
  explicit BodyBuilder(const ir::Function& main) : main_(main), body_("body"), map_(main.num_values()) {}

  ir::Function build() {
    for (const ir::ValueId param : main_.params()) {
      if (!is_float(param)) map_[param.index] = body_.add_param(next_param(), main_.type(param));
    }
    std::vector<bool> is_border(main_.num_values(), false);
    for (const ir::ValueId output : main_.outputs()) {
      const ir::Node* producer = main_.producer(output);
      if (producer != nullptr && is(*producer, "qnn.dequantize")) is_border[output.index] = true;
    }
    // A dequantised output that something else reads too is no border.
    for (const ir::Node& node : main_.nodes()) {
      for (const ir::ValueId operand : node.operands) is_border[operand.index] = false;
    }
    for (const ir::Node& node : main_.nodes()) {
      if (is(node, "qnn.quantize") && main_.value(node.operands[0]).kind == ir::ValueKind::kParam) {
        map_[node.results[0].index] = body_.add_param(next_param(), main_.type(node.results[0]));
      } else if (!is_border[node.results[0].index]) {
        copy(node);
      }
    }
    std::vector<ir::ValueId> outputs;
    for (const ir::ValueId output : main_.outputs()) {
      outputs.push_back(mapped(is_border[output.index] ? main_.producer(output)->operands[0] : output));
    }
    body_.set_outputs(std::move(outputs));
    return std::move(body_);
  }

 private:
  bool is_float(ir::ValueId value) const { return main_.type(value).dtype.is_float(); }
  std::string next_param() { return "in" + std::to_string(body_.params().size()); }

  ir::ValueId mapped(ir::ValueId value) {
    ir::ValueId& to = map_[value.index];
    if (!to.valid()) {
      const ir::Value& known = main_.value(value);
      // A float input that something other than qnn.quantize reads.
      to = known.kind == ir::ValueKind::kParam ? body_.add_param(next_param(), known.type)
                                               : body_.add_constant(known.constant);
    }
    return to;
  }

  void copy(const ir::Node& node) {
    std::vector<ir::ValueId> operands;
    for (const ir::ValueId operand : node.operands) operands.push_back(mapped(operand));
    std::vector<ir::ValueId> results;
    if (node.op != nullptr) {
      results = body_.add_node(*node.op, std::move(operands), without_contract(node.attrs), "").results;
    } else {
      std::vector<ir::TensorType> types;
      for (const ir::ValueId result : node.results) types.push_back(main_.type(result));
      results = body_.add_call(node.callee, std::move(operands), std::move(types), "").results;
    }
    for (size_t i = 0; i < results.size(); ++i) map_[node.results[i].index] = results[i];
  }

  const ir::Function& main_;
  ir::Function body_;
  std::vector<ir::ValueId> map_;
};

std::string describe(const ir::Function& body, size_t index) {
  if (index >= body.nodes().size()) return "nothing";
  const ir::Node& node = body.nodes()[index];
  return (node.op == nullptr ? node.callee : node.op->name) + " of type " +
         ir::to_string(body.type(node.results[0]));
}

bool same_constant(const ir::Constant& a, const ir::Constant& b) {
  return a.type() == b.type() && a.content_hash() == b.content_hash() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

// Adds what differs; false when a bias is more than 1 apart.
bool compare_biases(const ir::Constant& a, const ir::Constant& b, BodyDifference* difference) {
  if (a.type() != b.type() || a.type().dtype != ir::kInt32) return false;
  const auto x = a.as<int32_t>(), y = b.as<int32_t>();
  difference->biases_total += x.size();
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t distance = std::llabs(int64_t{x[i]} - int64_t{y[i]});
    if (distance > 1) return false;
    difference->biases += static_cast<uint64_t>(distance);
  }
  return true;
}

class Comparison {
 public:
  Comparison(const ir::Function& a, const ir::Function& b) : a_(a), b_(b), partner_(a.num_values()) {}

  BodyDifference run() {
    if (a_.params().size() != b_.params().size()) return fail("the numbers of inputs differ");
    for (size_t i = 0; i < a_.params().size(); ++i) {
      if (a_.type(a_.params()[i]) != b_.type(b_.params()[i])) {
        return fail("input " + std::to_string(i) + ": " + ir::to_string(a_.type(a_.params()[i])) + " and " +
                    ir::to_string(b_.type(b_.params()[i])));
      }
      partner_[a_.params()[i].index] = b_.params()[i];
    }
    const size_t count = std::max(a_.nodes().size(), b_.nodes().size());
    for (size_t i = 0; i < count; ++i) {
      if (i >= a_.nodes().size() || i >= b_.nodes().size() || !same_node(a_.nodes()[i], b_.nodes()[i])) {
        return fail("node " + std::to_string(i) + ": " + describe(a_, i) + " and " + describe(b_, i) +
                    detail_);
      }
    }
    if (a_.outputs().size() != b_.outputs().size()) return fail("the numbers of outputs differ");
    for (size_t i = 0; i < a_.outputs().size(); ++i) {
      if (!same_operand(a_.outputs()[i], b_.outputs()[i], false))
        return fail("output " + std::to_string(i) + detail_);
    }
    return difference_;
  }

 private:
  BodyDifference fail(std::string text) {
    difference_.first = std::move(text);
    return difference_;
  }

  bool differs(std::string detail) {
    detail_ = ": " + std::move(detail);
    return false;
  }

  bool same_operand(ir::ValueId a, ir::ValueId b, bool is_bias) {
    if (a_.is_constant(a) != b_.is_constant(b)) return differs("a constant on one side only");
    if (!a_.is_constant(a)) return partner_[a.index] == b || differs("another value is read");
    const ir::Constant &x = *a_.value(a).constant, &y = *b_.value(b).constant;
    if (is_bias) return compare_biases(x, y, &difference_) || differs("biases more than 1 apart");
    return same_constant(x, y) || differs("constants " + ir::to_string(x.type()) + " and " +
                                          ir::to_string(y.type()) + " have different contents");
  }

  bool same_node(const ir::Node& a, const ir::Node& b) {
    detail_.clear();
    if (a.op != b.op || a.callee != b.callee || a.operands.size() != b.operands.size() ||
        a.results.size() != b.results.size()) {
      return false;
    }
    if (!(a.attrs == b.attrs)) return differs("attributes differ");
    for (size_t i = 0; i < a.operands.size(); ++i) {
      if (!same_operand(a.operands[i], b.operands[i], i == 1 && is(a, "nn.bias_add"))) {
        detail_ = ": operand " + std::to_string(i) + detail_;
        return false;
      }
    }
    for (size_t i = 0; i < a.results.size(); ++i) {
      if (a_.type(a.results[i]) != b_.type(b.results[i])) return false;
      partner_[a.results[i].index] = b.results[i];
    }
    return true;
  }

  const ir::Function& a_;
  const ir::Function& b_;
  std::vector<ir::ValueId> partner_;  // by value of a
  BodyDifference difference_;
  std::string detail_;
};

}  // namespace

ir::Function canonical_body(const ir::Function& main) { return BodyBuilder(main).build(); }

BodyDifference compare_bodies(const ir::Function& a, const ir::Function& b) { return Comparison(a, b).run(); }

}  // namespace qplan::pipeline
