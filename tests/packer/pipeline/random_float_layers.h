// Steps of random_operators.h that are layers and pools of float32, and the windows of pools.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_RANDOM_FLOAT_LAYERS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_RANDOM_FLOAT_LAYERS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "tests/packer/pipeline/random_values.h"

namespace qplan::naive {

class RandomFloatLayers : public RandomValues {
 protected:
  using RandomValues::RandomValues;

  ir::ValueId floats(const ir::Shape& extents) {
    return b_.function().add_constant(data(ir::kFloat32, extents));
  }
  std::string layout() { return chance(0.5) ? "NHWC" : "NCHW"; }

  ir::Attrs window(const Value& x) {
    const std::string order = layout();
    const int64_t kh = integer(1, std::min<int64_t>(3, x.shape[order.find('H')]));
    const int64_t kw = integer(1, std::min<int64_t>(3, x.shape[order.find('W')]));
    ir::Attrs attrs = {{"pool_size", ir::Ints{kh, kw}}, {"layout", order}};
    if (chance(0.5)) attrs.set("strides", ir::Ints{integer(1, 2), integer(1, 3)});
    if (chance(0.5))
      attrs.set("padding",
                ir::Ints{integer(0, kh - 1), integer(0, kw - 1), integer(0, kh - 1), integer(0, kw - 1)});
    return attrs;
  }

  void float_layer(const Value& x) {
    if (x.shape.size() == 4 && chance(0.7)) return chance(0.5) ? convolution(x) : pool(x);
    if (x.shape.size() > 1) return chance(0.5) ? dense(x) : product(x);
  }

  void pool(const Value& x) {
    ir::Attrs attrs = window(x);
    if (chance(0.5)) return add(call("nn.max_pool2d", {x.id}, attrs), x);
    if (chance(0.2)) return add(call("nn.global_avg_pool2d", {x.id}, {{"layout", layout()}}), x);
    if (chance(0.4)) attrs.set("count_include_pad", true);
    add(call("nn.avg_pool2d", {x.id}, attrs), x);
  }

  // What comes after a layer's sums: a bias and a clamp, or parts of it.
  void finish_layer(ir::ValueId id, int64_t channels, int64_t axis, const Value& x) {
    if (chance(0.6)) id = call("nn.bias_add", {id, floats({channels})}, {{"axis", axis}});
    if (chance(0.3)) id = call("clip", {id}, {{"a_min", 0.0}, {"a_max", 6.0}});
    if (chance(0.2)) id = call("nn.relu", {id});
    add(id, x);
  }

  void convolution(const Value& x) {
    const std::string order = layout(), weights = pick_name({"OIHW", "OHWI", "HWIO"});
    const int64_t in = x.shape[order.find('C')], kh = integer(1, 3), kw = integer(1, 3);
    const int64_t groups = chance(0.3) ? in : 1, out = groups == 1 ? channels(5) : groups * integer(1, 2);
    ir::Shape form;
    for (const char letter : weights)
      form.push_back(letter == 'O' ? out : letter == 'I' ? in / groups : letter == 'H' ? kh : kw);
    ir::Ints padding = {integer(0, kh - 1), integer(0, kw - 1), integer(0, kh - 1), integer(0, kw - 1)};
    if (x.shape[order.find('H')] < kh) padding[0] = kh - 1;
    if (x.shape[order.find('W')] < kw) padding[1] = kw - 1;
    const ir::Attrs attrs = {{"padding", padding},
                             {"groups", groups},
                             {"strides", ir::Ints{integer(1, 2), integer(1, 2)}},
                             {"data_layout", order},
                             {"kernel_layout", weights}};
    const ir::ValueId id = call("nn.conv2d", {x.id, floats(form)}, attrs);
    finish_layer(id, out, static_cast<int64_t>(order.find('C')), x);
  }

  void dense(const Value& x) {
    const int64_t units = channels(5);
    const ir::ValueId id = call("nn.dense", {x.id, floats({units, x.shape.back()})});
    finish_layer(id, units, rank_of(x) - 1, x);
  }

  void product(const Value& x) {
    const bool transposed = chance(0.5);
    const int64_t depth = x.shape.back(), columns = channels(5);
    ir::Shape form(x.shape.begin(), x.shape.end() - 2);
    for (int64_t& extent : form) extent = chance(0.3) ? 1 : extent;
    if (chance(0.4)) form.clear();
    form.insert(form.end(), {transposed ? columns : depth, transposed ? depth : columns});
    const ir::ValueId other = transposed && chance(0.5) ? x.id : floats(form);
    add(call("nn.batch_matmul", {x.id, other}, {{"transpose_b", transposed}}), x);
  }
};

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_RANDOM_FLOAT_LAYERS_H_
