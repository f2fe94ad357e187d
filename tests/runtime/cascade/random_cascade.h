// Cascades, and their layers as steps of their own: what they should give.
#ifndef QPLAN_TESTS_KERNELS_CHAIN_RANDOM_CHAIN_H_
#define QPLAN_TESTS_KERNELS_CHAIN_RANDOM_CHAIN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "format/plan_generated.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "kernels/numeric/dtype.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"
#include "tests/support/buffer.h"
#include "tests/support/random.h"

namespace qplan::testing {

// Rows or columns of a convolution; pad: before.
struct CascadeAxis {
  uint32_t kernel, stride, dilation, pad, output;
};

// Layers with random weights, one after another.
class CascadeBuilder {
 public:
  CascadeBuilder(uint64_t seed, std::vector<int64_t> shape) : random_(seed), is_signed_(random_.chance(0.5)) {
    start(std::move(shape));
  }

  const std::vector<int64_t>& shape() const { return shape_; }
  // other: the shape of the other operand, empty: as the first.
  void add_sum(std::vector<int64_t> other = {}) {
    Layer layer;
    layer.kernel = random_.chance(0.7) ? kKernel_add : kKernel_sub;
    layer.inputs = {before_, add_activation(other.empty() ? shape_ : other)};
    if (random_.chance(0.5)) std::swap(layer.inputs[0], layer.inputs[1]);
    layer.params_type = format::KernelParams_AddParams;
    const std::vector<int32_t> zeros = {zero_point(), zero_point(), zero_point()};
    layer.params = [=, lo = low(), hi = high()](flatbuffers::FlatBufferBuilder& b) {
      return format::CreateAddParams(b, format::Contract_TFL2, 20, zeros[0], 1 << 30, 0, zeros[1], 1 << 30,
                                     -1, zeros[2], 1 << 30, -18, lo, hi)
          .Union();
    };
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  void add_convolution(const CascadeAxis& rows, const CascadeAxis& columns, int64_t outputs,
                       bool is_depthwise) {
    const int64_t channels = shape_[3];
    Layer layer;
    layer.kernel = is_depthwise ? kKernel_depthwise_conv2d : kKernel_conv2d;
    uint16_t layout = is_depthwise ? uint16_t{kLayout_hwo16} : layout_of_taps(rows, columns, outputs);
    if (random_.chance(0.2)) layout = kLayout_ohwi;
    const int32_t input_zero = random_.chance(0.8) ? low() : zero_point();
    const auto weights_zero = random_.chance(0.3) ? static_cast<int32_t>(random_.integer(-128, 127)) : 0;
    layer.params_type = format::KernelParams_Conv2dParams;
    layer.params = [=, lo = low(), hi = high(), pad_value = zero_point(),
                    output_zero = zero_point()](flatbuffers::FlatBufferBuilder& b) {
      return format::CreateConv2dParams(b, format::Contract_TFL2, layout, rows.kernel, columns.kernel,
                                        rows.stride, columns.stride, rows.dilation, columns.dilation,
                                        rows.pad, columns.pad,
                                        is_depthwise ? static_cast<uint32_t>(channels) : 1, input_zero,
                                        weights_zero, pad_value, output_zero, lo, hi)
          .Union();
    };
    const LayoutWindow window = {rows.kernel, columns.kernel,
                                 static_cast<uint64_t>(is_depthwise ? 1 : channels)};
    const uint64_t num_k = window.h * window.w * window.channels;
    const auto count = static_cast<uint64_t>(outputs);
    const size_t entries = layout_channels(layout, count);
    const size_t weight_bytes = layout_bytes(layout, count, window);
    std::vector<uint8_t> weights(weight_bytes, 0);
    for (uint64_t o = 0; o < count; ++o) {
      for (uint64_t k = 0; k < num_k; ++k) {
        weights[layout_index(layout, o, k, count, window)] = static_cast<uint8_t>(random_.integer(-128, 127));
      }
    }
    layer.inputs = {before_, add_tensor(0, 8, {static_cast<int64_t>(weight_bytes)}, true, weights),
                    add_constant(random_.integers<int32_t>(entries, -20000, 20000)),
                    add_constant(random_.integers<int32_t>(entries, 1 << 30, INT32_MAX)),
                    add_constant(random_.integers<int32_t>(entries, -9, -6))};
    shape_ = {shape_[0], rows.output, columns.output, outputs};
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  void add_pool(const CascadeAxis& rows, const CascadeAxis& columns, bool is_average) {
    Layer layer;
    layer.kernel = is_average ? kKernel_avg_pool2d : kKernel_max_pool2d;
    layer.inputs = {before_};
    layer.params_type = format::KernelParams_Pool2dParams;
    const bool is_float = is_average && random_.chance(0.4), counts_padding = random_.chance(0.5);
    const int32_t in_zero = zero_point(), out_zero = zero_point();
    layer.params = [=, lo = low(), hi = high()](flatbuffers::FlatBufferBuilder& b) {
      return format::CreatePool2dParams(b, is_float ? format::Contract_F32E : format::Contract_TFL2,
                                        rows.kernel, columns.kernel, rows.stride, columns.stride, rows.pad,
                                        columns.pad, lo, hi, 0.5f, in_zero, 0.75f, out_zero, counts_padding)
          .Union();
    };
    shape_ = {shape_[0], rows.output, columns.output, shape_[3]};
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  // An activation by a table of 256 bytes.
  void add_table() {
    Layer layer;
    layer.kernel = kKernel_lut8;
    layer.inputs = {before_,
                    add_tensor(is_signed_ ? 0 : 1, 8, {256}, true, random_.full_range<uint8_t>(256))};
    layer.params_type = format::KernelParams_Lut8Params;
    layer.params = [](flatbuffers::FlatBufferBuilder& b) { return format::CreateLut8Params(b).Union(); };
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  // The first layer, which quantises an image of reals with its channels in planes or side by side.
  void add_quantize(bool of_planes) {
    Layer layer;
    layer.kernel = kKernel_quantize;
    const std::vector<int64_t> from = of_planes ? planes() : shape_;
    size_t count = 1;
    for (const int64_t extent : from) count *= static_cast<size_t>(extent);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>((random_.unit() - 0.5) * 300);
    std::vector<uint8_t> bytes(count * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    layer.inputs = {add_tensor(2, 32, from, false, bytes)};
    layer.params_type = format::KernelParams_QuantizeParams;
    layer.params = [zero = zero_point()](flatbuffers::FlatBufferBuilder& b) {
      return format::CreateQuantizeParams(b, format::QuantizeRule_MUL_EVEN, 0.8f, zero).Union();
    };
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  // From planes of bytes. The first layer.
  void add_transpose() {
    Layer layer;
    layer.kernel = kKernel_transpose;
    layer.inputs = {add_activation(planes())};
    layer.params_type = format::KernelParams_TransposeParams;
    layer.params = [](flatbuffers::FlatBufferBuilder& b) {
      const std::vector<uint32_t> permutation = {0, 2, 3, 1};
      return format::CreateTransposeParamsDirect(b, &permutation).Union();
    };
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  // To other rows and columns. The first layer.
  void add_resize(uint32_t rows, uint32_t columns, bool align_corners, bool half_pixel_centers) {
    Layer layer;
    layer.kernel = kKernel_resize_bilinear;
    layer.inputs = {before_};
    layer.params_type = format::KernelParams_ResizeBilinearParams;
    const bool is_float = !is_signed_ && random_.chance(0.5);
    const auto rule = is_float ? format::ResizeRule_TFL_FLOAT : format::ResizeRule_TFL_INTEGER;
    layer.params = [=](flatbuffers::FlatBufferBuilder& b) {
      return format::CreateResizeBilinearParams(b, rule, align_corners, half_pixel_centers).Union();
    };
    shape_ = {shape_[0], rows, columns, shape_[3]};
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  // The index of the largest channel, in 32 or 64 bits. The last layer.
  void add_arg_max(uint8_t bits, bool keeps_axis = false) {
    Layer layer;
    layer.kernel = kKernel_arg_max;
    layer.inputs = {before_};
    layer.params_type = format::KernelParams_ArgMaxParams;
    layer.params = [](flatbuffers::FlatBufferBuilder& b) { return format::CreateArgMaxParams(b, 3).Union(); };
    shape_.pop_back();
    if (keeps_axis) shape_.push_back(1);
    const auto count = static_cast<size_t>(shape_[0] * shape_[1] * shape_[2]);
    layer.output = add_tensor(0, bits, shape_, false, std::vector<uint8_t>(count * bits / 8));
    push(std::move(layer));
  }

  // Transposes what the layer before writes. No cascade can cut that, since it is not in planes.
  void add_transpose_of_rows() {
    shape_ = {shape_[0], shape_[2], shape_[3], shape_[1]};
    add_transpose();
    layers_.back().inputs = {layers_[layers_.size() - 2].output};
  }

  // What no cascade has.
  void add_copy() {
    Layer layer;
    layer.kernel = kKernel_copy;
    layer.inputs = {before_};
    layer.params_type = format::KernelParams_NoParams;
    layer.params = [](flatbuffers::FlatBufferBuilder& b) { return format::CreateNoParams(b).Union(); };
    layer.output = add_activation(shape_);
    push(std::move(layer));
  }

  uint32_t num_layers() const { return static_cast<uint32_t>(layers_.size()); }

  // The bytes that the layers' references give one after another.
  std::vector<uint8_t> expected() {
    build(0);
    for (uint32_t i = 0; i < num_layers(); ++i) {
      const StepView step = view(i);
      const KernelFamily& family = *kCascadeLayerFamilies.find(step.step->kernel());
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
      Error error;
      EXPECT_EQ(family.bind(step, true, args, &error), QPLAN_OK) << error.text();
      const KernelVariant& reference = family.variants[family.num_variants - 1];
      reference.run(args, 0, reference.work_items(args), nullptr);
    }
    return bytes_of(static_cast<uint32_t>(tensors_.size() - 1));
  }

  // The cascade as one step, with a schedule.
  StepView cascade(uint64_t schedule) {
    build(schedule);
    return view(num_layers());
  }
  // The same with the output at the beginning of that input of the step, an activation.
  StepView cascade_over(uint64_t schedule, uint32_t input) {
    const StepView step = cascade(schedule);
    data_.back() = data_[step.step->inputs()->Get(input)];
    return step;
  }
  // The bytes of that input, which such a cascade writes over.
  Buffer<uint8_t>& input(const StepView& step, uint32_t input) {
    return *tensors_[step.step->inputs()->Get(input)].bytes;
  }
  std::vector<uint8_t> output() const { return bytes_of(static_cast<uint32_t>(tensors_.size() - 1)); }
  void forget_output() {
    Buffer<uint8_t>& bytes = *tensors_.back().bytes;
    std::memset(bytes.data(), 0xcd, bytes.size());
  }

 protected:
  void start(std::vector<int64_t> shape) {
    shape_ = std::move(shape);
    before_ = add_activation(shape_);
  }
  explicit CascadeBuilder(uint64_t seed) : random_(seed), is_signed_(random_.chance(0.5)) {}

  Random random_;
  // In scratch memory, on processors of 32 bits: those of all layers, or of one at a time.
  bool keeps_arguments_ = false, binds_in_scratch_ = false;

 private:
  struct Tensor {
    uint8_t code;
    uint8_t bits;
    std::vector<int64_t> shape;
    bool is_constant;
    std::shared_ptr<Buffer<uint8_t>> bytes;
  };
  struct Layer {
    uint16_t kernel;
    std::vector<uint32_t> inputs;
    uint32_t output;
    format::KernelParams params_type;
    std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder&)> params;
  };

  // The layout that vector variants read.
  uint16_t layout_of_taps(const CascadeAxis& rows, const CascadeAxis& columns, int64_t outputs) const {
    Conv2dArgs args;
    args.input_c = static_cast<uint32_t>(shape_[3]);
    args.output_w = columns.output;
    args.output_c = static_cast<uint32_t>(outputs);
    args.kernel_h = rows.kernel;
    args.kernel_w = columns.kernel;
    args.stride_h = rows.stride;
    args.dilation_h = rows.dilation;
    args.dilation_w = columns.dilation;
    args.groups = 1;
    return layout_in_place(args);
  }

  std::vector<int64_t> planes() const { return {shape_[0], shape_[3], shape_[1], shape_[2]}; }

  int32_t low() const { return is_signed_ ? -128 : 0; }
  int32_t high() const { return is_signed_ ? 127 : 255; }
  int32_t zero_point() { return static_cast<int32_t>(random_.integer(low(), high())); }

  uint32_t add_tensor(uint8_t code, uint8_t bits, std::vector<int64_t> shape, bool is_constant,
                      const std::vector<uint8_t>& bytes) {
    tensors_.push_back({code, bits, std::move(shape), is_constant, std::make_shared<Buffer<uint8_t>>(bytes)});
    return static_cast<uint32_t>(tensors_.size() - 1);
  }
  uint32_t add_activation(const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    return add_tensor(is_signed_ ? 0 : 1, 8, shape, false, random_.full_range<uint8_t>(count));
  }
  uint32_t add_constant(const std::vector<int32_t>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return add_tensor(0, 32, {static_cast<int64_t>(values.size())}, true, bytes);
  }

  void push(Layer layer) {
    before_ = layer.output;
    layers_.push_back(std::move(layer));
  }

  flatbuffers::Offset<format::Tensor> tensor_table(const Tensor& tensor, uint32_t bank) {
    const auto shape = builder_.CreateVector(tensor.shape);
    return format::CreateTensor(builder_, tensor.code, tensor.bits, shape, bank, 0, tensor.bytes->size());
  }

  flatbuffers::Offset<format::KernelStep> step_table(const Layer& layer, std::vector<uint32_t> inputs,
                                                     uint32_t output) {
    const auto in = builder_.CreateVector(inputs);
    const auto out = builder_.CreateVector(std::vector<uint32_t>{output});
    const auto params = layer.params(builder_);
    return format::CreateKernelStep(builder_, layer.kernel, in, out, layer.params_type, params);
  }

  // Steps 0 .. num_layers - 1 are the layers, the next one is the cascade.
  void build(uint64_t schedule) {
    builder_.Clear();
    std::vector<flatbuffers::Offset<format::Bank>> banks = {
        format::CreateBank(builder_, format::BankKind_ARENA, 64),
        format::CreateBank(builder_, format::BankKind_CONSTANT, 64)};
    std::vector<flatbuffers::Offset<format::Tensor>> tensors, tiles;
    for (const Tensor& tensor : tensors_) tensors.push_back(tensor_table(tensor, tensor.is_constant ? 1 : 0));
    std::vector<flatbuffers::Offset<format::Step>> steps;
    std::vector<flatbuffers::Offset<format::KernelStep>> layers;
    std::vector<uint32_t> cascade_inputs;
    const auto num_tensors = static_cast<uint32_t>(tensors_.size());
    for (uint32_t i = 0; i < num_layers(); ++i) {
      const Layer& layer = layers_[i];
      steps.push_back(format::CreateStep(builder_, format::StepBody_KernelStep,
                                         step_table(layer, layer.inputs, layer.output).Union()));
      std::vector<uint32_t> inputs = layer.inputs;
      for (uint32_t& input : inputs) {
        if (i > 0 && input == layers_[i - 1].output) {
          input = num_tensors + i - 1;
        } else if (std::ranges::find(cascade_inputs, input) == cascade_inputs.end()) {
          cascade_inputs.push_back(input);
        }
      }
      const bool is_last = i + 1 == num_layers();
      layers.push_back(step_table(layer, inputs, is_last ? layer.output : num_tensors + i));
      if (!is_last) tiles.push_back(tensor_table(tensors_[layer.output], 0));
    }
    const auto params =
        format::CreateCascadeParamsDirect(builder_, &layers, &tiles, keeps_arguments_, binds_in_scratch_);
    const std::vector<uint32_t> output = {layers_.back().output};
    const auto cascade =
        format::CreateKernelStepDirect(builder_, kKernel_chain, &cascade_inputs, &output,
                                       format::KernelParams_CascadeParams, params.Union(), 0, 0, schedule);
    steps.push_back(format::CreateStep(builder_, format::StepBody_KernelStep, cascade.Union()));
    builder_.Finish(format::CreatePlanDirect(builder_, nullptr, &banks, &tensors, &steps));
    data_.clear();
    for (const Tensor& tensor : tensors_) data_.push_back(tensor.bytes->data());
  }

  StepView view(uint32_t step) const {
    const auto* plan = flatbuffers::GetRoot<format::Plan>(builder_.GetBufferPointer());
    return {plan, plan->steps()->Get(step)->body_as_KernelStep(), data_.data()};
  }

  std::vector<uint8_t> bytes_of(uint32_t tensor) const {
    const Buffer<uint8_t>& bytes = *tensors_[tensor].bytes;
    return {bytes.data(), bytes.data() + bytes.size()};
  }

  bool is_signed_;
  std::vector<int64_t> shape_;  // of what the last layer so far gives
  uint32_t before_ = 0;         // and its tensor
  std::vector<Tensor> tensors_;
  std::vector<Layer> layers_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<void*> data_;
};

class RandomCascade : public CascadeBuilder {
 public:
  explicit RandomCascade(uint64_t seed) : CascadeBuilder(seed) {
    keeps_arguments_ = seed % 2 != 0;
    binds_in_scratch_ = seed % 4 == 2;
    // As images have, for each of the kinds of the first layer below; some images are a row, a column or a
    // pixel.
    const bool has_few_channels = seed / 6 % 2 == 1;
    const int64_t height = seed % 7 == 3 ? 1 : random_.integer(1, 24);
    const int64_t width = seed % 5 == 3 ? 1 : random_.integer(1, 24);
    start({random_.integer(1, 2), height, width, random_.integer(1, has_few_channels ? 4 : 80)});
    const bool gives_indices = seed % 5 == 2;
    const int64_t wanted = random_.integer(2, kMaxCascadeLayers);
    if (seed % 3 == 2) {
      seed % 2 == 0 ? add_transpose() : add_quantize(random_.chance(0.7));
    } else if (seed % 6 == 4) {
      add_random_resize();
    }
    while (num_layers() < wanted - (gives_indices ? 1 : 0)) {
      const int64_t kind = random_.integer(0, 5);
      if (kind == 0) add_sum();
      if (kind == 4) add_table();
      if (kind == 5) add_random_pool();
      if (kind > 0 && kind < 4) add_random_convolution(kind == 1);
    }
    if (gives_indices) add_arg_max(random_.chance(0.5) ? 32 : 64, random_.chance(0.5));
  }

 private:
  // Every window of which has something of
  // the input in it.
  CascadeAxis axis(int64_t input) {
    CascadeAxis axis;
    axis.kernel = static_cast<uint32_t>(random_.pick<int64_t>({1, 1, 3, 3, 5, 2}));
    axis.stride = static_cast<uint32_t>(random_.pick<int64_t>({1, 1, 2, 3}));
    axis.dilation = static_cast<uint32_t>(random_.pick<int64_t>({1, 1, 1, 2}));
    axis.pad = static_cast<uint32_t>(random_.integer(0, (axis.kernel - 1) * axis.dilation));
    const int64_t most = (input + axis.pad - 1) / axis.stride + 1;
    axis.output = static_cast<uint32_t>(random_.chance(0.8) ? most : random_.integer(1, most));
    return axis;
  }

  // Twice as large, as large, or as it comes.
  void add_random_resize() {
    const bool align_corners = random_.chance(0.5),
               half_pixel_centers = !align_corners && random_.chance(0.5);
    const auto to = [&](int64_t from) {
      const int64_t times = random_.integer(0, 2);
      if (times == 0) return static_cast<uint32_t>(random_.integer(1, 30));
      return static_cast<uint32_t>(align_corners ? (from - 1) * times + 1 : from * times);
    };
    const uint32_t rows = to(shape()[1]), columns = to(shape()[2]);
    add_resize(rows, columns, align_corners, half_pixel_centers);
  }

  void add_random_pool() {
    CascadeAxis rows = axis(shape()[1]), columns = axis(shape()[2]);
    for (CascadeAxis* of : {&rows, &columns}) {  // without dilation
      if (of->dilation != 1) *of = {1, 1, 1, 0, static_cast<uint32_t>(shape()[of == &rows ? 1 : 2])};
    }
    add_pool(rows, columns, random_.chance(0.5));
  }

  void add_random_convolution(bool is_depthwise) {
    const int64_t outputs = is_depthwise ? shape()[3] : random_.integer(1, 80);
    const bool is_square = random_.chance(0.7);
    const CascadeAxis rows = axis(shape()[1]);
    CascadeAxis columns = axis(shape()[2]);
    if (is_square) {
      const int64_t pad = std::min<int64_t>(rows.pad, shape()[2]);
      columns = {rows.kernel, rows.stride, rows.dilation, rows.pad,
                 static_cast<uint32_t>((shape()[2] + pad - 1) / rows.stride + 1)};
    }
    add_convolution(rows, columns, outputs, is_depthwise);
  }
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_KERNELS_CHAIN_RANDOM_CHAIN_H_
