// Convolutions, depthwise convolutions and fully connected layers.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "src/ethosu/compiler/region.h"
#include "src/ethosu/compiler/weight_encoder.h"
#include "src/ethosu/isa/weights.h"
#include "src/packer/ir/cat.h"

namespace qplan::ethosu::compiler {
namespace {

using layer::QuantizedLayer;

template <typename T>
const T& need(const std::string& name, const layer::Part<T>& part) {
  if (!part) refuse_unit(name, part.why());
  return *part;
}

bool is_transposed(const QuantizedLayer& layer) {
  return layer.nodes.product->op->name == "qnn.conv2d_transpose";
}

// What the border holds is the input's zero point on the device: where the layer pads with another value,
// that value is the device's zero point, and the difference goes into the bias.
int32_t device_zero_point(const QuantizedLayer& layer) {
  return layer.padding && !layer.padding->is_empty() && layer.padding->value ? *layer.padding->value
                                                                             : *layer.input_zero_point;
}

std::vector<int64_t> device_bias(const QuantizedLayer& layer) {
  const layer::LayerWeights& weights = *layer.weights;
  std::vector<int64_t> bias = *layer.wide_channel_bias();
  const int64_t difference = int64_t{device_zero_point(layer)} - *layer.input_zero_point;
  for (size_t o = 0; difference != 0 && o < weights.num_o; ++o) {
    int64_t sum = 0;
    for (size_t k = 0; k < weights.num_k; ++k) sum += weights(o, k);
    bias[o] += difference * sum;
  }
  return bias;
}

// One of input and output is uint8, the other is int8.
bool is_mixed(const QuantizedLayer& layer) { return layer.input_dtype != layer.output_dtype; }

// The taps of the last output in the opposite order, with their inputs in their own.
void turn_window(size_t inputs, std::vector<int16_t>* weights, size_t count) {
  const auto begin = weights->end() - static_cast<int64_t>(count);
  std::reverse(begin, weights->end());
  for (auto tap = begin; tap != weights->end(); tap += static_cast<int64_t>(inputs))
    std::reverse(tap, tap + static_cast<int64_t>(inputs));
}

// The device's depthwise convolution of 16-bit elements is not known: an ordinary one, whose weights are 0
// for the other channels, gives the same sums.
void append_diagonal(const layer::LayerWeights& from, size_t output, std::vector<int16_t>* weights) {
  for (size_t tap = 0; tap < from.num_k; ++tap) {
    for (size_t input = 0; input < from.num_o; ++input)
      weights->push_back(input == output ? static_cast<int16_t>(from(output, tap)) : int16_t{0});
  }
}

// What the layer is, without what its readers and writers are.
struct LayerData {
  std::string name;
  Kernel kernel;
  uint32_t in_c = 1;
  std::vector<int16_t> weights;  // [o][ky][kx][i]
  std::vector<ScaleEntry> entries;
  // Streams of weights by what their order depends on: kernels that differ in the rest have the same ones.
  mutable std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, bool>, std::vector<uint8_t>> streams;
};

// Rows of padding after the input that the last window reaches.
uint32_t pad_after(int64_t out, int64_t stride, int64_t window, int64_t before, int64_t in) {
  return static_cast<uint32_t>(std::max<int64_t>(0, (out - 1) * stride + window - before - in));
}

void set_window(const layer::Geometry& g, Kernel* k) {
  const op::Window2d& w = g.window;
  k->window_h = static_cast<uint32_t>(g.window_h()), k->window_w = static_cast<uint32_t>(g.window_w());
  k->dilation_y = w.kernel_h == 1 ? 1 : static_cast<uint32_t>(w.dilation_h);
  k->dilation_x = w.kernel_w == 1 ? 1 : static_cast<uint32_t>(w.dilation_w);
  // One position has no stride.
  k->stride_y = g.out_h == 1 ? 1 : static_cast<uint32_t>(w.stride_h);
  k->stride_x = g.out_w == 1 ? 1 : static_cast<uint32_t>(w.stride_w);
  k->pad_top = static_cast<uint32_t>(w.pad_top), k->pad_left = static_cast<uint32_t>(w.pad_left);
  k->pad_bottom = pad_after(g.out_h, k->stride_y, g.window_h(), w.pad_top, g.in_h);
  k->pad_right = pad_after(g.out_w, k->stride_x, g.window_w(), w.pad_left, g.in_w);
}

// The constraints demand that no padding is below 0.
void set_transposed_window(const std::string& name, const layer::Geometry& g, Kernel* k) {
  const std::optional<TransposedWindow> window = transposed_window(g);
  if (!window) refuse_unit(name, "strides that the device does not have");
  k->window_h = static_cast<uint32_t>(g.window.kernel_h);
  k->window_w = static_cast<uint32_t>(g.window.kernel_w);
  k->upscale = window->upscale;
  k->pad_top = static_cast<uint32_t>(window->pad_top), k->pad_left = static_cast<uint32_t>(window->pad_left);
  k->pad_bottom = static_cast<uint32_t>(window->pad_bottom);
  k->pad_right = static_cast<uint32_t>(window->pad_right);
}

LayerData read_data(const Candidate& c) {
  const QuantizedLayer& from = c.layer();
  LayerData data;
  data.name = from.nodes.product->name;
  (void)need(data.name, from.input_zero_point);
  (void)need(data.name, from.padding);
  (void)need(data.name, from.scales);
  const layer::LayerWeights& weights = need(data.name, from.weights);
  (void)need(data.name, from.wide_channel_bias());
  const layer::Geometry g = from.unpadded_geometry();
  Kernel& k = data.kernel;
  const bool is_int16 = from.input_dtype == ir::kInt16;
  k.kind = g.is_depthwise() && !is_int16 ? KernelKind::kDepthwise : KernelKind::kConv;
  k.is_acc40 = is_int16;
  k.rounding = is_int16 ? Rounding::kNatural : Rounding::kDouble;
  if (is_transposed(from)) {
    set_transposed_window(data.name, g, &k);
  } else {
    set_window(g, &k);
  }
  const int32_t offset = is_mixed(from) ? kSignOffset : 0;  // of the map that is uint8
  const int32_t ifm_offset = from.input_dtype == ir::kUint8 ? offset : 0, ofm_offset = offset - ifm_offset;
  k.ifm.zero_point = device_zero_point(from) - ifm_offset;
  k.ofm.zero_point = need(data.name, from.output_zero_point) - ofm_offset;
  k.min = from.clamp.min - ofm_offset, k.max = from.clamp.max - ofm_offset;
  data.in_c = static_cast<uint32_t>(k.kind == KernelKind::kDepthwise ? 1 : g.in_c);
  data.weights.reserve(weights.num_o * static_cast<size_t>(g.taps()) * data.in_c);
  for (size_t o = 0; o < weights.num_o; ++o) {
    if (g.is_depthwise() && is_int16) {
      append_diagonal(weights, o, &data.weights);
      continue;
    }
    for (size_t i = 0; i < weights.num_k; ++i) data.weights.push_back(static_cast<int16_t>(weights(o, i)));
    if (is_transposed(from)) turn_window(data.in_c, &data.weights, weights.num_k);
  }
  const std::vector<int64_t> bias = device_bias(from);
  const std::vector<QuantizedMultiplier> multipliers = from.multipliers();
  for (size_t o = 0; o < weights.num_o; ++o) {
    const QuantizedMultiplier& multiplier = multipliers[multipliers.size() == 1 ? 0 : o];
    const Scale scale = is_int16 ? reduced_scale_of(multiplier) : scale_of(multiplier);
    data.entries.push_back({bias[o], scale.multiplier, scale.shift});
  }
  return data;
}

// Weights of every `step`th output channel from `first` on.
std::vector<int16_t> ordered_weights(const LayerData& data, const WeightOrder& order, uint32_t first,
                                     uint32_t step) {
  std::vector<int16_t> ordered;
  ordered.reserve(num_ordered_weights(order));
  visit_weights(order, [&](uint32_t o, uint32_t ky, uint32_t kx, uint32_t i) {
    const bool is_inside = o < order.outputs && ky < order.taps_h && i < order.inputs;
    const uint64_t output = first + uint64_t{o} * step;
    ordered.push_back(
        is_inside ? data.weights[((output * order.taps_h + ky) * order.taps_w + kx) * order.inputs + i]
                  : int16_t{0});
  });
  return ordered;
}

// The weights and scales of one core, of output channels from `first` on.
void add_core(const UnitContext& context, const LayerData& data, uint32_t first, uint32_t core, Kernel* k) {
  WeightOrder order;
  order.outputs = (k->ofm.d + k->cores - 1 - core) / k->cores;
  order.is_depthwise = k->kind == KernelKind::kDepthwise;
  order.inputs = data.in_c;
  order.taps_h = k->taps_h(), order.taps_w = k->taps_w();
  order.dilation_y = k->dilation_y, order.dilation_x = k->dilation_x;
  order.block_d = k->cores == 1 ? k->block_d : (k->block_d + 1 - core) / 2;
  order.unit_d = context.config.unit_d;
  order.is_part_kernel_first = k->is_part_kernel_first;
  order.is_ifm16 = k->ifm.bits == 16;
  std::vector<uint8_t>& stream = data.streams[{
      first, core, order.outputs, std::min(order.block_d, order.outputs), k->is_part_kernel_first}];
  if (stream.empty()) stream = encode_weights(ordered_weights(data, order, first + core, k->cores));
  k->weights[core] = context.constants.add(stream);
  std::vector<uint8_t> scales(uint64_t{order.outputs} * kScaleEntryBytes);
  for (uint32_t o = 0; o < order.outputs; ++o)
    write_scale_entry(data.entries[first + core + uint64_t{o} * k->cores],
                      scales.data() + uint64_t{o} * kScaleEntryBytes);
  k->scales[core] = context.constants.add(scales);
}

// The kernel for some channels of the output.
Kernel channels_of(const Kernel& whole, uint32_t first, uint32_t count) {
  Kernel k = whole;
  const auto cut = [&](FeatureMap* map) {
    map->d = count;
    // Slices begin at multiples of 16 channels.
    const uint64_t offset =
        map->is_nhcwb16 ? first / 16 * map->stride_c : uint64_t{first} * map->element_bytes();
    for (uint64_t& base : map->base) base += offset;
  };
  cut(&k.ofm);
  if (k.kind == KernelKind::kDepthwise) cut(&k.ifm);
  return k;
}

void emit_layer(const LayerData& data, const UnitContext& context) {
  Kernel k = data.kernel;
  k.ifm = context.inputs[0], k.ofm = context.outputs[0];
  k.ifm.zero_point = data.kernel.ifm.zero_point, k.ofm.zero_point = data.kernel.ofm.zero_point;
  k.cores = context.config.cores;
  // The last rows and columns of the input may be read by no window.
  const auto used = [&](uint32_t out, uint32_t stride, uint32_t window, uint32_t before, uint32_t after) {
    const uint32_t extent = (out - 1) * stride + window - before - after;
    return k.upscale == Upscale::kNone ? extent : (extent + 1) / 2;
  };
  k.ifm.h = used(k.ofm.h, k.stride_y, k.window_h, k.pad_top, k.pad_bottom);
  k.ifm.w = used(k.ofm.w, k.stride_x, k.window_w, k.pad_left, k.pad_right);
  const uint32_t depth = context.slice_depth == 0 ? k.ofm.d : context.slice_depth;
  for (uint32_t first = 0; first < k.ofm.d; first += depth) {
    Kernel slice = channels_of(k, first, std::min(depth, k.ofm.d - first));
    // What the block is chosen for.
    for (uint32_t core = 0; core < k.cores; ++core) {
      slice.weights[core].region = slice.scales[core].region =
          context.has_fast_weights ? Placement::kScratch : ConstantData::kRegion;
      slice.scales[core].bytes = uint64_t{slice.ofm.d} * kScaleEntryBytes / k.cores / 16 * 16;
    }
    set_block(context, data.name, &slice);
    for (uint32_t core = 0; core < k.cores && !context.is_estimate; ++core)
      add_core(context, data, first, core, &slice);
    context.stream.add(slice);
  }
}

}  // namespace

std::optional<TransposedWindow> transposed_window(const layer::Geometry& g) {
  const op::Window2d& w = g.window;
  const int64_t stride_h = g.in_h == 1 ? 0 : w.stride_h, stride_w = g.in_w == 1 ? 0 : w.stride_w;
  const int64_t stride = std::max({stride_h, stride_w, int64_t{1}});
  if (stride > 2 || (stride_h != 0 && stride_h != stride) || (stride_w != 0 && stride_w != stride))
    return std::nullopt;
  TransposedWindow window;
  window.upscale = stride == 2 ? Upscale::kZeros : Upscale::kNone;
  window.rows = g.in_h * stride, window.columns = g.in_w * stride;
  // An output reads the products whose window covers it: from the last tap to the first.
  window.pad_top = w.kernel_h - 1 - w.pad_top, window.pad_left = w.kernel_w - 1 - w.pad_left;
  const auto after = [](int64_t out, int64_t kernel, int64_t before, int64_t in) {
    return std::max<int64_t>(0, out - 1 + kernel - before - in);
  };
  window.pad_bottom = after(g.out_h, w.kernel_h, window.pad_top, window.rows);
  window.pad_right = after(g.out_w, w.kernel_w, window.pad_left, window.columns);
  return window;
}

std::vector<AccumulatorBound> accumulator_bounds(const QuantizedLayer& layer) {
  const layer::LayerWeights& weights = *layer.weights;
  const layer::Clamp input = layer::full_clamp(layer.input_dtype);
  const int64_t zero_point = device_zero_point(layer);
  // The range of an input minus its zero point.
  const int64_t low = std::min<int64_t>(0, input.min - zero_point);
  const int64_t high = std::max<int64_t>(0, input.max - zero_point);
  const std::vector<int64_t> bias = device_bias(layer);
  std::vector<AccumulatorBound> bounds(weights.num_o);
  for (size_t o = 0; o < weights.num_o; ++o) {
    int64_t positive = 0, negative = 0;
    for (size_t k = 0; k < weights.num_k; ++k) {
      const int64_t weight = weights(o, k);
      (weight > 0 ? positive : negative) += weight;
    }
    bounds[o].most = positive * high + negative * low + std::max<int64_t>(0, bias[o]);
    bounds[o].least = positive * low + negative * high + std::min<int64_t>(0, bias[o]);
  }
  return bounds;
}

Unit read_layer_unit(const Candidate& c) {
  const auto data = std::make_shared<const LayerData>(read_data(c));
  Unit unit;
  unit.name = data->name;
  unit.inputs = {c.matches["data"].id};
  unit.takes_bricks = true;
  unit.reads_as_int8 = is_mixed(c.layer()) && c.layer().input_dtype == ir::kUint8;
  unit.writes_as_int8 = is_mixed(c.layer()) && c.layer().output_dtype == ir::kUint8;
  unit.emit = [data](const UnitContext& context) { emit_layer(*data, context); };
  return unit;
}

}  // namespace qplan::ethosu::compiler
