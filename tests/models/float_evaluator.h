// Float operators of imported functions, computed directly from their definitions: NCHW, OIHW, sums in
// double. They have no kernels; this is how tests know that an importer read windows, axes and layouts right.
#ifndef QPLAN_TESTS_MODELS_FLOAT_EVALUATOR_H_
#define QPLAN_TESTS_MODELS_FLOAT_EVALUATOR_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>
#include <xtensor/xstrided_view.hpp>

#include "src/packer/ir/module.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"
#include "src/packer/op/evaluate.h"

namespace qplan::testing {

struct FloatTensor {
  ir::Shape shape;
  std::vector<double> values;

  explicit FloatTensor(ir::Shape s, double value = 0)
      : shape(std::move(s)),
        values(static_cast<size_t>(ir::TensorType{ir::kFloat32, shape}.num_elements()), value) {}
  explicit FloatTensor(const ir::Constant& constant) : shape(constant.type().shape) {
    if (constant.type().dtype != ir::kFloat32) throw std::runtime_error("not float32");
    const auto floats = constant.as<float>();
    values.assign(floats.begin(), floats.end());
  }
  ir::ConstantRef constant() const {
    return ir::make_constant(ir::kFloat32, shape, std::vector<float>(values.begin(), values.end()));
  }
  double& at(int64_t n, int64_t c, int64_t h, int64_t w) {
    return values[static_cast<size_t>(((n * shape[1] + c) * shape[2] + h) * shape[3] + w)];
  }
  // 0 outside of the image.
  double padded(int64_t n, int64_t c, int64_t h, int64_t w) {
    return h < 0 || w < 0 || h >= shape[2] || w >= shape[3] ? 0 : at(n, c, h, w);
  }
};

namespace internal {

// visit(n, c, y, x) for every element of a four-dimensional result.
template <typename Visit>
void for_each(const ir::Shape& shape, const Visit& visit) {
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < shape[1]; ++c)
      for (int64_t y = 0; y < shape[2]; ++y)
        for (int64_t x = 0; x < shape[3]; ++x) visit(n, c, y, x);
}

inline void conv2d(const ir::Node& node, FloatTensor& data, FloatTensor& weight, FloatTensor* out) {
  const op::Window2d w = op::conv2d_window(node, {ir::kFloat32, weight.shape});
  const int64_t groups = op::attr_int(node, "groups");
  const int64_t in_per_group = weight.shape[1], out_per_group = weight.shape[0] / groups;
  for_each(out->shape, [&](int64_t n, int64_t o, int64_t y, int64_t x) {
    double sum = 0;
    for (int64_t i = 0; i < in_per_group; ++i)
      for (int64_t ky = 0; ky < w.kernel_h; ++ky)
        for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
          sum += weight.at(o, i, ky, kx) * data.padded(n, o / out_per_group * in_per_group + i,
                                                       y * w.stride_h - w.pad_top + ky * w.dilation_h,
                                                       x * w.stride_w - w.pad_left + kx * w.dilation_w);
        }
    out->at(n, o, y, x) = sum;
  });
}

inline void pool2d(const ir::Node& node, FloatTensor& data, FloatTensor* out) {
  const op::Window2d w = op::pool2d_window(node);
  const bool is_max = node.op->name == "nn.max_pool2d";
  const bool include = !is_max && op::attr_bool(node, "count_include_pad");
  for_each(out->shape, [&](int64_t n, int64_t c, int64_t y, int64_t x) {
    double sum = 0, largest = -INFINITY, inside = 0;
    for (int64_t ky = 0; ky < w.kernel_h; ++ky)
      for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
        const int64_t h = y * w.stride_h - w.pad_top + ky, v = x * w.stride_w - w.pad_left + kx;
        if (h < 0 || v < 0 || h >= data.shape[2] || v >= data.shape[3]) continue;
        inside += 1;
        sum += data.at(n, c, h, v);
        largest = std::max(largest, data.at(n, c, h, v));
      }
    const double count = include ? static_cast<double>(w.kernel_h * w.kernel_w) : inside;
    out->at(n, c, y, x) = is_max ? largest : sum / count;
  });
}

inline void global_average(FloatTensor& data, FloatTensor* out) {
  for_each(data.shape, [&](int64_t n, int64_t c, int64_t y, int64_t x) {
    out->at(n, c, 0, 0) += data.at(n, c, y, x) / static_cast<double>(data.shape[2] * data.shape[3]);
  });
}

inline void dense(const FloatTensor& data, const FloatTensor& weight, FloatTensor* out) {
  const auto n = static_cast<size_t>(weight.shape[0]), k = static_cast<size_t>(weight.shape[1]);
  for (size_t i = 0; i < out->values.size(); ++i) {
    for (size_t j = 0; j < k; ++j)
      out->values[i] += data.values[i / n * k + j] * weight.values[i % n * k + j];
  }
}

// The index along the axis of each element.
inline size_t along(const ir::Shape& shape, int64_t axis, size_t element) {
  const auto a = static_cast<size_t>(op::normalized_axis(axis, shape.size()));
  size_t stride = 1;
  for (size_t d = a + 1; d < shape.size(); ++d) stride *= static_cast<size_t>(shape[d]);
  return element / stride % static_cast<size_t>(shape[a]);
}

inline void pad(const ir::Node& node, const FloatTensor& data, FloatTensor* out) {
  const auto& width = op::attr_int_lists(node, "pad_width");
  xt::xstrided_slice_vector inside;
  for (size_t d = 0; d < width.size(); ++d) {
    inside.push_back(xt::range(width[d][0], width[d][0] + data.shape[d]));
  }
  auto padded =
      xt::adapt(out->values.data(), out->values.size(), xt::no_ownership(), op::extents(out->shape));
  xt::strided_view(padded, inside) = op::tensor_of(data.values.data(), data.shape);
}

}  // namespace internal

// The result of a node without an evaluation of its own; throws for operators that are not float layers.
inline ir::ConstantRef evaluate_layer(const ir::Node& node, const ir::TensorType& type,
                                      const std::vector<ir::ConstantRef>& operands) {
  std::vector<FloatTensor> in;
  for (const ir::ConstantRef& operand : operands) in.emplace_back(*operand);
  FloatTensor out(type.shape);
  const std::string& name = node.op->name;
  if (name == "nn.conv2d") {
    internal::conv2d(node, in[0], in[1], &out);
  } else if (name == "nn.avg_pool2d" || name == "nn.max_pool2d") {
    internal::pool2d(node, in[0], &out);
  } else if (name == "nn.global_avg_pool2d") {
    internal::global_average(in[0], &out);
  } else if (name == "nn.dense") {
    internal::dense(in[0], in[1], &out);
  } else if (name == "nn.bias_add") {
    for (size_t i = 0; i < out.values.size(); ++i) {
      out.values[i] =
          in[0].values[i] + in[1].values[internal::along(out.shape, op::attr_int(node, "axis"), i)];
    }
  } else if (name == "nn.batch_norm") {
    for (size_t i = 0; i < out.values.size(); ++i) {
      const size_t c = internal::along(out.shape, op::attr_int(node, "axis"), i);
      const double deviation = std::sqrt(in[4].values[c] + op::attr_float(node, "epsilon"));
      out.values[i] = (in[0].values[i] - in[3].values[c]) / deviation * in[1].values[c] + in[2].values[c];
    }
  } else if (name == "nn.pad") {
    out = FloatTensor(type.shape, in[1].values[0]);
    internal::pad(node, in[0], &out);
  } else {
    throw std::runtime_error("no evaluation of " + name);
  }
  return out.constant();
}

// The outputs of a function without parameters.
inline std::vector<ir::ConstantRef> evaluate_floats(const ir::Function& main) {
  std::vector<ir::ConstantRef> values(main.num_values());
  const auto value_of = [&](ir::ValueId id) {
    return main.is_constant(id) ? main.value(id).constant : values[id.index];
  };
  for (const ir::Node& node : main.nodes()) {
    std::vector<ir::ConstantRef> operands;
    for (const ir::ValueId operand : node.operands) operands.push_back(value_of(operand));
    if (const auto results = op::evaluate(node, operands)) {
      for (size_t i = 0; i < results->size(); ++i) values[node.results[i].index] = (*results)[i];
    } else {
      values[node.results[0].index] = evaluate_layer(node, main.type(node.results[0]), operands);
    }
  }
  std::vector<ir::ConstantRef> outputs;
  for (const ir::ValueId output : main.outputs()) outputs.push_back(value_of(output));
  return outputs;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_MODELS_FLOAT_EVALUATOR_H_
