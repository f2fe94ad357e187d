// Evaluation of any operator that has one, and the evaluation of movements: elements are bytes there,
// whatever their dtype.
#include "src/packer/op/evaluate.h"

#include <cstring>
#include <utility>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xstrided_view.hpp>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/op/elements.h"
#include "src/packer/op/infer.h"
#include "src/packer/op/shape.h"

namespace qplan::op {

namespace {

int64_t product(const ir::Shape& shape, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

int64_t index_at(const ir::Constant& indices, size_t i) {
  return indices.type().dtype == ir::kInt32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
}

}  // namespace

std::vector<ir::TensorType> result_types(const ir::Node& node, Operands operands) {
  ir::Function function("evaluate");
  ir::Node on_constants = node;
  on_constants.operands.clear();
  on_constants.results.clear();
  for (const ir::ConstantRef& operand : operands) {
    on_constants.operands.push_back(function.add_constant(operand));
  }
  return infer_types(function, on_constants);
}

std::optional<Results> evaluate(const ir::Node& node, Operands operands) {
  if (node.op == nullptr || node.op->evaluate == nullptr) return std::nullopt;
  int64_t bytes = 0;
  for (const ir::TensorType& type : result_types(node, operands)) {
    if (!checked_add(bytes, type.size_bytes(), &bytes)) return std::nullopt;
  }
  if (bytes > kMaxEvaluatedBytes) return std::nullopt;
  return node.op->evaluate(node, operands);
}

double unary_function(const ir::Node& node, double x) {
  if (node.op->function == nullptr) {
    throw PackError(QPLAN_INTERNAL, node.op->name + " has no function of one number");
  }
  return node.op->function(node, x);
}

// ---- movements ----

Results evaluate_reshape(const ir::Node& node, Operands operands) {
  const std::span<const uint8_t> bytes = operands[0]->bytes();
  return {std::make_shared<const ir::Constant>(result_types(node, operands)[0],
                                               std::vector<uint8_t>(bytes.begin(), bytes.end()))};
}

Results evaluate_transpose(const ir::Node& node, Operands operands) {
  const Elements from(*operands[0]);
  Elements to(result_types(node, operands)[0]);
  const ir::Ints& axes = attr_ints(node, "axes");
  from.visit([&](const auto* elements) {
    to.assign(xt::transpose(tensor_of(elements, operands[0]->type().shape),
                            std::vector<size_t>(axes.begin(), axes.end())));
  });
  return {std::move(to).finish()};
}

Results evaluate_strided_slice(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const ir::Shape& shape = operands[0]->type().shape;
  const Elements from(*operands[0]);
  Elements to(type);
  from.visit([&](const auto* elements) {
    const auto tensor = tensor_of(elements, shape);
    const std::vector<SliceRange> ranges = slice_ranges(node, shape);
    std::vector<ptrdiff_t> strides;
    size_t offset = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto stride = static_cast<int64_t>(tensor.strides()[i]);
      // With one element the step is never taken, and might be too large to multiply.
      strides.push_back(ranges[i].count == 1 ? 0 : ranges[i].step * stride);
      offset += static_cast<size_t>(ranges[i].begin * stride);
    }
    to.assign(
        xt::strided_view(tensor, extents(type.shape), std::move(strides), offset, xt::layout_type::dynamic));
  });
  return {std::move(to).finish()};
}

Results evaluate_concatenate(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), type.shape.size()));
  const int64_t outer = product(type.shape, 0, axis), row = product(type.shape, axis, type.shape.size());
  Elements to(type);
  int64_t begin = 0;  // of the operand within a row
  for (const ir::ConstantRef& operand : operands) {
    const Elements from(*operand);
    const int64_t block = product(operand->type().shape, axis, type.shape.size());
    for (int64_t i = 0; i < outer; ++i) to.copy(i * row + begin, from, i * block, block);
    begin += block;
  }
  return {std::move(to).finish()};
}

Results evaluate_split(const ir::Node& node, Operands operands) {
  const Elements from(*operands[0]);
  const ir::Shape& shape = operands[0]->type().shape;
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), shape.size()));
  const int64_t outer = product(shape, 0, axis), row = product(shape, axis, shape.size());
  Results results;
  int64_t begin = 0;
  for (const ir::TensorType& type : result_types(node, operands)) {
    Elements to(type);
    const int64_t block = product(type.shape, axis, type.shape.size());
    for (int64_t i = 0; i < outer; ++i) to.copy(i * block, from, i * row + begin, block);
    begin += block;
    results.push_back(std::move(to).finish());
  }
  return results;
}

Results evaluate_take(const ir::Node& node, Operands operands) {
  const ir::Shape& shape = operands[0]->type().shape;
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(node, "axis"), shape.size()));
  const Elements from(*operands[0]);
  Elements to(result_types(node, operands)[0]);
  const int64_t outer = product(shape, 0, axis), block = product(shape, axis + 1, shape.size());
  const int64_t extent = shape[axis], count = operands[1]->type().num_elements();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t index = index_at(*operands[1], static_cast<size_t>(k));
    if (index < -extent || index >= extent) {
      throw PackError(QPLAN_MODEL_INVALID,
                      cat("take '", node.name, "': index ", index, " is out of range, expected from ",
                          -extent, " to ", extent - 1));
    }
    const int64_t place = index < 0 ? index + extent : index;
    for (int64_t i = 0; i < outer; ++i) {
      to.copy((i * count + k) * block, from, (i * extent + place) * block, block);
    }
  }
  return {std::move(to).finish()};
}

Results evaluate_where(const ir::Node& node, Operands operands) {
  const ir::TensorType type = result_types(node, operands)[0];
  const Elements condition(*operands[0]), x(*operands[1]), y(*operands[2]);
  Elements to(type);
  const auto broadcast = [&](const auto* elements, size_t operand) {
    return xt::broadcast(tensor_of(elements, operands[operand]->type().shape), extents(type.shape));
  };
  x.visit([&](const auto* of_x) {
    const auto* of_y = reinterpret_cast<decltype(of_x)>(y.at(0));
    const auto choices = broadcast(condition.at(0), 0);
    const auto first = broadcast(of_x, 1), second = broadcast(of_y, 2);
    auto a = first.begin(), b = second.begin();
    int64_t i = 0;
    for (const uint8_t choice : choices) {
      std::memcpy(to.at(i++), choice != 0 ? a->data() : b->data(), sizeof *a);
      ++a;
      ++b;
    }
  });
  return {std::move(to).finish()};
}

}  // namespace qplan::op
