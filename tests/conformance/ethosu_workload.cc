// Random convolutions as command streams of Ethos-U, made by the packer's compiler.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>

#include "src/ethosu/compiler/target.h"
#include "src/ethosu/isa/architecture.h"
#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/conformance/check.h"
#include "tests/conformance/workload.h"

namespace qplan::conformance {
namespace {

const ethosu::Config& ethosu_config_of(const qplan_npu_capabilities& capabilities) {
  for (const ethosu::Config& config : ethosu::kConfigs) {
    if (ethosu::config_hash(config) == capabilities.hash) return config;
  }
  throw Skipped(
      "the driver takes Ethos-U's streams, but for a configuration that this program does not know");
}

// One layer: int8, a scale for all channels, a border that is the input's zero point.
class EthosuGenerator {
 public:
  EthosuGenerator(Size size, uint32_t seed) : random_(seed) {
    const bool is_long = size == Size::kLong || size == Size::kEndless;
    const int64_t most = size == Size::kSmall ? 4 : 12, channels = size == Size::kSmall ? 16 : 40;
    kernel_ = is_long ? 3 : between(1, 3);
    stride_ = is_long ? 1 : between(1, 2);
    pad_ = is_long ? 1 : between(0, kernel_ - 1);
    in_h_ = is_long ? 64 : between(kernel_, most);
    in_w_ = is_long ? 64 : between(kernel_, most);
    in_c_ = is_long ? 64 : between(1, channels);
    out_c_ = is_long ? 64 : between(1, channels);
    out_h_ = (in_h_ + 2 * pad_ - kernel_) / stride_ + 1;
    out_w_ = (in_w_ + 2 * pad_ - kernel_) / stride_ + 1;
    for (int64_t i = 0; i < out_c_ * kernel_ * kernel_ * in_c_; ++i)
      weights_.push_back(static_cast<int8_t>(between(-127, 127)));
    for (int64_t i = 0; i < out_c_; ++i) bias_.push_back(static_cast<int32_t>(between(-20000, 20000)));
    for (int64_t i = 0; i < in_h_ * in_w_ * in_c_; ++i) input_.push_back(static_cast<uint8_t>(random_()));
    mantissa_ = static_cast<int32_t>(between(1 << 10, (1 << 11) - 1));
    in_zero_point_ = static_cast<int32_t>(between(-128, 127));
    out_zero_point_ = static_cast<int32_t>(between(-128, 127));
  }

  Workload run(const ethosu::Config& config, bool has_expected) {
    const std::vector<target::Target> targets = pipeline::parse_targets(std::string(config.name) + ", cpu");
    const partition::PartitionResult placed =
        partition::partition(text::parse(module_text(), "layer"), targets, {.cost_gate = false});
    require(placed.regions.size() == 1,
            "the packer places a layer of " + std::string(config.name) + " in no region: " + module_text());
    const target::CompiledRegion code =
        targets[0].compile(placed.module, *placed.module.find(placed.regions[0].function));
    Workload workload;
    workload.text = "conv2d " + std::to_string(in_h_) + "x" + std::to_string(in_w_) + "x" +
                    std::to_string(in_c_) + " -> " + std::to_string(out_h_) + "x" + std::to_string(out_w_) +
                    "x" + std::to_string(out_c_) + ", tfl2";
    workload.format = code.format;
    workload.blob = code.blob;
    for (const target::RegionSlot& from : code.slots) {
      constexpr uint32_t kUses[] = {QPLAN_NPU_USE_INPUT, QPLAN_NPU_USE_OUTPUT, QPLAN_NPU_USE_SCRATCH};
      if (from.use == format::NpuUse_OUTPUT) workload.output = workload.slots.size();
      Slot slot;
      slot.slot = from.slot;
      slot.usage = kUses[from.use];
      slot.bytes = from.arrangement.size;
      if (from.use == format::NpuUse_INPUT) slot.content = input_;
      workload.slots.push_back(std::move(slot));
    }
    workload.unpack = [](const std::vector<uint8_t>& bytes) { return bytes; };
    if (has_expected) workload.expected = expected();
    workload.seal = seal;
    workload.header_bytes = sizeof(ethosu::BlobHeader);
    workload.version_offset = offsetof(ethosu::BlobHeader, major);
    workload.hash_offset = offsetof(ethosu::BlobHeader, config_hash);
    return workload;
  }

 private:
  // Accumulators are multiplied by mantissa_ / 2^(10 + kShift), which texts and float32 have exactly.
  static constexpr int32_t kShift = 9;

  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }

  template <typename T>
  static std::string constant(const std::string& shape, const char* type, const std::vector<T>& values) {
    std::string text = "const(Tensor[(" + shape + "), " + type + "], [";
    for (const T value : values) text += std::to_string(value) + ", ";
    text.resize(text.size() - 2);
    return text + "])";
  }

  std::string module_text() const {
    const std::string k = std::to_string(kernel_), s = std::to_string(stride_), p = std::to_string(pad_);
    const std::string out = std::to_string(out_c_), in = std::to_string(in_c_);
    char scale[32];
    std::snprintf(scale, sizeof(scale), "%.17g", static_cast<double>(mantissa_) / (1 << (10 + kShift)));
    return "def @main(%x: Tensor[(1, " + std::to_string(in_h_) + ", " + std::to_string(in_w_) + ", " + in +
           "), int8]) {\n  %0 = qnn.conv2d(%x, " +
           constant(out + ", " + k + ", " + k + ", " + in, "int8", weights_) + ", " +
           std::to_string(in_zero_point_) + ", 0, 1f, 1f, strides=[" + s + ", " + s + "], padding=[" + p +
           ", " + p + ", " + p + ", " + p +
           "], data_layout=\"NHWC\", kernel_layout=\"OHWI\", name=\"layer\");\n  %1 = nn.bias_add(%0, " +
           constant(out, "int32", bias_) + ", axis=3);\n  %2 = qnn.requantize(%1, " + scale + "f, 0, 1f, " +
           std::to_string(out_zero_point_) + ", out_dtype=\"int8\", axis=3, contract=\"tfl2\");\n  %2\n}\n";
  }

  std::vector<uint8_t> expected() {
    std::vector<uint8_t> bytes(static_cast<size_t>(out_h_ * out_w_ * out_c_));
    int64_t x_shape[] = {1, in_h_, in_w_, in_c_}, y_shape[] = {1, out_h_, out_w_, out_c_};
    int64_t w_shape[] = {out_c_, kernel_, kernel_, in_c_}, b_shape[] = {out_c_};
    const auto tensor = [](void* data, uint8_t bits, int32_t rank, int64_t* shape) {
      DLTensor t = {};
      t.data = data;
      t.device.device_type = kDLCPU;
      t.dtype = {kDLInt, bits, 1};
      t.ndim = rank;
      t.shape = shape;
      return t;
    };
    const DLTensor x = tensor(input_.data(), 8, 4, x_shape), y = tensor(bytes.data(), 8, 4, y_shape),
                   w = tensor(weights_.data(), 8, 4, w_shape), b = tensor(bias_.data(), 32, 1, b_shape);
    // mantissa_ has 11 bits: times 2^20 it is in [2^30, 2^31).
    const int32_t multiplier = mantissa_ << 20, shift = 1 - kShift;
    auto op = sized<qplan_npu_op>();
    op.op = QPLAN_NPU_OP_CONV2D;
    op.contract = QPLAN_NPU_TFL2;
    op.inputs[0] = &x, op.weights = &w, op.bias = &b, op.output = &y;
    op.input_zero_points[0] = in_zero_point_, op.output_zero_point = out_zero_point_;
    op.clamp_min = -128, op.clamp_max = 127;
    op.groups = 1;
    for (uint32_t& stride : op.strides) stride = static_cast<uint32_t>(stride_);
    for (uint32_t& dilation : op.dilations) dilation = 1;
    for (uint32_t& pad : op.pads) pad = static_cast<uint32_t>(pad_);
    op.num_scales = 1;
    op.multipliers = &multiplier, op.shifts = &shift;
    compute_reference(op);
    return bytes;
  }

  static void seal(std::vector<uint8_t>* blob) {
    const uint64_t checksum = ethosu::blob_checksum(blob->data(), blob->size());
    std::memcpy(blob->data() + offsetof(ethosu::BlobHeader, checksum), &checksum, sizeof(checksum));
  }

  std::mt19937 random_;
  int64_t in_h_, in_w_, in_c_, out_h_, out_w_, out_c_, kernel_, stride_, pad_;
  int32_t mantissa_, in_zero_point_, out_zero_point_;
  std::vector<int8_t> weights_;
  std::vector<int32_t> bias_;
  std::vector<uint8_t> input_;
};

// The stream of a layer, whose one kernel runs 100,000 times.
void repeat_kernel(const ethosu::Config& config, Workload* workload) {
  constexpr size_t kTimes = 100'000;
  ethosu::Blob blob;
  require_ok(ethosu::read_blob(workload->blob.data(), workload->blob.size(), config, &blob, nullptr),
             "read_blob of the packer's program");
  ethosu::compiler::BlobParts parts;
  for (uint32_t r = 0; r < blob.header.num_regions; ++r) parts.regions.push_back(blob_region(blob, r));
  for (uint32_t s = 0; s < blob.header.num_slots; ++s) parts.slots.push_back(blob_slot(blob, s));
  const uint8_t* const constants = blob.bytes + parts.regions[0].data_offset;
  parts.constants.assign(constants, constants + parts.regions[0].bytes);
  parts.cycles = blob.header.estimated_cycles * kTimes;
  std::vector<uint32_t> words(blob.payload.stream_words), stream;
  std::memcpy(words.data(), blob.payload.stream, words.size() * sizeof(uint32_t));
  for (uint32_t at = 0; at < words.size();) {
    const uint32_t begin = at;
    ethosu::Command command;
    require(!ethosu::decode(words.data(), static_cast<uint32_t>(words.size()), &at, &command),
            "the packer's stream does not decode");
    const bool is_kernel = command.starts_kernel();
    for (size_t i = 0; i < (is_kernel ? kTimes : 1); ++i)
      stream.insert(stream.end(), words.begin() + begin, words.begin() + at);
  }
  parts.payload = ethosu::compiler::payload_of(config, stream);
  workload->blob = write_blob(config, parts);
  workload->text += ", 100,000 times";
}

}  // namespace

Workload make_ethosu_workload(const qplan_npu_capabilities& capabilities, Size size, uint32_t seed) {
  const ethosu::Config& config = ethosu_config_of(capabilities);
  const bool is_endless = size == Size::kEndless;
  // Arm's driver ends a job with the device's reset; where the device is a simulator in the same thread, as
  // in the sample's fake, nothing does.
  if (is_endless && (capabilities.flags & QPLAN_NPU_CAN_CANCEL) == 0)
    throw Skipped(
        "the driver cannot cancel a job: one that takes minutes might never end on a simulated device");
  Workload workload = EthosuGenerator(size, seed).run(config, !is_endless);
  if (is_endless) repeat_kernel(config, &workload);
  return workload;
}

}  // namespace qplan::conformance
