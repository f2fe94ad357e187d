#include "src/ethosu/compiler/target.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "src/ethosu/compiler/region.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::ethosu::compiler {
namespace {

// The first one that takes a node wins.
constexpr Row kRows[] = {
    {"qplan.qconv2d", "", conv2d_constraints, read_layer_unit},
    {"qplan.qdepthwise", "", depthwise_constraints, read_layer_unit},
    {"qplan.qdense", "", dense_constraints, read_layer_unit},
    {"qplan.qconv2d_transpose", "over the input with zeros between its elements",
     conv2d_transpose_constraints, read_layer_unit},
    {"qplan.qadd", "", add_constraints, read_add_unit},
    {"qplan.qmax_pool2d", "", max_pool2d_constraints, read_max_pool_unit},
    {"qplan.qavg_pool2d", "", avg_pool2d_constraints, read_average_pool_unit},
    {"qplan.qmean", "", mean_constraints, read_mean_unit},
    {"qplan.qclip", "as an average of one cell", clip_constraints, read_clip_unit},
    {"qplan.qreshape", "", reshape_constraints, read_reshape_unit},
    {"qplan.qresize_nearest2x", "", resize_nearest_constraints, read_resize_nearest_unit},
    {"qnn.subtract", "Difference of two activations", subtract_constraints, read_add_unit},
    {"qnn.mul", "Product of two activations", mul_constraints, read_mul_unit},
    {"maximum", "Larger one of two activations", extremum_constraints, read_extremum_unit},
    {"minimum", "Smaller one of two activations", extremum_constraints, read_extremum_unit},
    {"qnn.requantize", "Rescaled activation, as an average of one cell", requantize_constraints,
     read_requantize_unit},
    {"qnn.lookup", "Function of one 8-bit value, by a table in SHRAM", lookup_constraints, read_lookup_unit},
    {"concatenate", "Inputs written where they are in the output", concatenate_constraints,
     read_concatenate_unit},
    {"split", "Outputs read where they are in the input", split_constraints, read_split_unit},
    {"strided_slice", "Output read where it is in the input", slice_constraints, read_slice_unit},
    {"take", "Rows, columns or channels by position, copied where a step leads from one to the next",
     take_constraints, read_take_unit},
    {"nn.pad", "Padding that no convolution takes: the input is copied, the border is its value",
     pad_constraints, read_pad_unit},
    {"transpose", "Copied with other strides", transpose_constraints, read_transpose_unit},
    {"qnn.softmax", "In fixed point, as 35 kernels or more", softmax_constraints, read_softmax_unit},
};

pattern::Pattern pattern_of(const Row& row) {
  for (const target::Composite& composite : target::composites()) {
    if (composite.name == row.name) return composite.make();
  }
  const pattern::Pattern node = pattern::op(row.name);
  if (row.name == "qnn.mul") return node.as("product");
  if (row.name == "qnn.softmax") return node.as("softmax");
  if (row.name == "qnn.subtract") return node.as("sum");
  if (row.name == "qnn.requantize") return node.as("requantize");
  return node;
}

std::string summary_of(const Row& row) {
  for (const target::Composite& composite : target::composites()) {
    if (composite.name == row.name) return target::summary(composite, row.note);
  }
  return std::string(row.note);
}

// The cycles of a unit alone, which reads its inputs from memory and writes its outputs there.
uint64_t unit_cycles(const Config& config, UnitReader read, const Candidate& candidate) {
  try {
    const Unit unit = read(candidate);
    if (!unit.emit || unit.parts != Unit::Parts::kNone) return 0;
    const ir::Function& function = candidate.function();
    std::vector<FeatureMap> inputs, outputs, scratch;
    const auto map_of = [](const ir::TensorType& type) {
      FeatureMap map = map_of_type(type);
      map.region = Placement::kScratch;
      return map;
    };
    for (const ir::ValueId value : unit.inputs) inputs.push_back(map_of(function.type(value)));
    for (const ir::ValueId value : candidate.root().results) outputs.push_back(map_of(function.type(value)));
    for (const ir::TensorType& type : unit.scratch) scratch.push_back(map_of(type));
    ConstantData constants;
    StreamWriter stream(config);
    const auto add_copy = [&](FeatureMap* outer, bool is_input) {
      const FeatureMap outside = *outer;
      outer->is_signed = true;
      add_kernel({config, inputs, outputs, constants, stream, true}, unit.name,
                 is_input ? sign_copy_kernel(outside, *outer) : sign_copy_kernel(*outer, outside));
    };
    if (unit.reads_as_int8) add_copy(&inputs[0], true);
    if (unit.writes_as_int8) add_copy(&outputs[0], false);
    unit.emit({config, inputs, outputs, constants, stream, true, 0, scratch});
    return stream.cycles();
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return 0;
  }
}

constexpr uint64_t kMaxSram = uint64_t{1} << 30;

// "384K", "2M", "65536"
uint64_t read_sram(std::string_view name, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const uint64_t factor = unit.empty() ? 1 : unit == "K" ? 1024 : unit == "M" ? 1 << 20 : 0;
  if (error != std::errc() || factor == 0 || value == 0 || value > kMaxSram / factor)
    target::fail_target(
        cat("sram '", text, "' of '", name, "' is not a number of bytes, expected one like 384K or 2M"));
  return value * factor;
}

template <uint32_t kIndex>
target::Target make(const target::TargetOptions& options, const std::optional<target::MemorySizes>&) {
  const Config& config = kConfigs[kIndex];
  uint64_t sram = 0;
  std::string sram_text = "none";
  for (const auto& [key, value] : options) {
    if (key != "sram")
      target::fail_target(
          cat("option '", key, "' of '", config.name, "' is not known; known: clock, priority, sram"));
    sram = read_sram(config.name, value);
    sram_text = value;
  }
  target::Target target;
  target.name = config.name;
  target.options = cat("sram=", sram_text);
  target.costs.clock_khz = config.clock_khz;
  target.costs.dma_bytes_per_cycle = config.bytes_per_cycle;
  target.costs.macs_per_cycle = config.macs;
  target.table = pattern_table(config);
  target.compile = [&config, sram](const ir::Module& module, const ir::Function& region) {
    return compile_region(config, sram, module, region);
  };
  target.no_row_text = "has no exact sequence on this target";
  target.no_row_hint = target::kNothingToChange;
  return target;
}

std::string page() {
  const std::vector<target::PatternRow> table = pattern_table(kConfigs[0]);
  return cat(
      "## ethos-u55-32, ethos-u55-64, ethos-u55-128, ethos-u55-256, ethos-u65-256, ethos-u65-512\n"
      "Arm's Ethos-U55 and U65 ([ethosu.md](ethosu.md)). Options: `sram=` (bytes of fast memory for "
      "activations and copies of weights, "
      "like `384K`), `priority=`, `clock=`. All configurations take the same operators. Operators that no "
      "pattern "
      "mentions are refused as `<target>.op.<operator>`.\n\n",
      target::rows_text(table, "", table));
}
std::string no_page() { return ""; }

}  // namespace

std::span<const Row> rows() { return kRows; }

std::vector<target::PatternRow> pattern_table(const Config& config) {
  std::vector<target::PatternRow> table;
  for (const Row& row : kRows) {
    table.push_back({std::string(row.name), summary_of(row), pattern_of(row), row.constraints(),
                     [&config, read = row.read](const Candidate& candidate, const target::DeviceCosts&) {
                       return unit_cycles(config, read, candidate);
                     }});
  }
  table.push_back(program_row(config));  // has no unit
  return table;
}

std::span<const target::TargetKind> target_kinds() {
  static const target::TargetKind kinds[] = {
      {kConfigs[0].name, {}, make<0>, page},    {kConfigs[1].name, {}, make<1>, no_page},
      {kConfigs[2].name, {}, make<2>, no_page}, {kConfigs[3].name, {}, make<3>, no_page},
      {kConfigs[4].name, {}, make<4>, no_page}, {kConfigs[5].name, {}, make<5>, no_page}};
  return kinds;
}

}  // namespace qplan::ethosu::compiler
