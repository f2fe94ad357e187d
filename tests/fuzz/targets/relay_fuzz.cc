// Relay text, to the packer; what packs runs, and print(parse(print(m))) is a fixed point. Mutants are made
// of tokens.
#include "src/packer/op/op_def.h"
#include "tests/fuzz/model_oracle.h"
#include "tests/fuzz/mutators/tokens.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 14;

const TokenMutator& mutator() {
  static const TokenMutator kMutator = [] {
    std::vector<std::string> words = {
        "0", "1", "2", "3", "-1", "0f", "0.5f", "1f", "-1f", "inff", "nanf", "1e30f", "0.1f64", "5i64",
        "-128i8", "255u8", "True", "False", "None", "%0", "%1", "%2", "%3", "%x", "%input", "%0.0", "%0.1",
        "@main", "@f", "def", "let", "fn", "free_var", "meta[relay.Constant][0]", "Tensor[(1, 4), int8]",
        "Tensor[(1, 4, 4, 2), int8]", "Tensor[(1, 3, 4, 4), float32]", "Tensor[(2), int32]", "int8", "uint8",
        "int32", "int64", "float32", "float16", "int16", "int4", "bool", "\"int8\"", "\"uint8\"", "\"int32\"",
        "\"float32\"", "\"NCHW\"", "\"NHWC\"", "\"OIHW\"", "\"OHWI\"", "\"HWIO\"", "\"HWOI\"", "\"tfl1\"",
        "\"tfl2\"", "\"f32e\"", "\"pot\"", "\"acc32\"", "\"div_even\"", "\"mul_even\"", "\"product_f32\"",
        "\"UPWARD\"", "\"TONEAREST\"", "\"vta\"", "\"\"", "[]", "()", "[1, 1]", "[0, 0, 0, 0]",
        "[[0, 0], [1, 1]]", "[0, 2, 3, 1]", "(%0, %1)", "const(Tensor[(2), int8], [1, -2])",
        "/* ty=Tensor[(1), int8] */", "/*", "*/", "//", ";", ",", "=", "->", "#[metadata]",
        "name=", "output_names=[\"a\"]", "input_scale_0=0.5f", "input_zero_point_0=3", "output_scale_0=0.5f",
        "output_zero_point_0=3", "input_axis_0=1", "Compiler=\"vta\"", "Primitive=1",
        "Composite=\"qplan.qconv2d\"", "9223372036854775807", "-9223372036854775808", "4294967296",
        // Other spellings that are read.
        "qnn.concatenate", "nn.adaptive_avg_pool2d", "nn.dropout", "copy", "nn.batch_flatten", "qnn.dense"};
    for (const op::OpDef* op : op::all_ops()) {
      words.push_back(op->name + "(");
      for (const op::AttrDef& attr : op->attrs) words.push_back(attr.name + "=");
    }
    return TokenMutator(words);
  }();
  return kMutator;
}

size_t put(const std::string& text, uint8_t* to) {
  std::memcpy(to, text.data(), text.size());
  return text.size();
}
std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  static const int64_t kShape[] = {1, 3, 8, 8};
  static const qplan_named_type kInput = {"input", {kDLFloat, 32, 1}, 4, kShape};
  qplan_pack_options options = pack_options();
  options.synthesize_constants = 1;
  qplan::ImportOptions import;
  import.synthesize_constants = 0;
  // A type for a name that a text lacks is refused.
  if (view(data, size).find("%input") != std::string_view::npos) {
    options.input_types = &kInput;
    options.num_input_types = 1;
    import.input_types.emplace("input", qplan::ir::TensorType{qplan::ir::kFloat32, { 1, 3, 8, 8 }});
  }
  check_model(data, size, "model.relay", options, import);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  return qplan::fuzz::mutator().mutate_input(data, size, max_size, seed, /*as_bytes=*/0.05);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                            size_t size2, uint8_t* out, size_t max_out_size,
                                            unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  return put(mutator().cross(random, view(data1, size1), view(data2, size2), max_out_size), out);
}
