// A .pt or .pt2 archive, to the packer; what packs runs. Mutants are sound zips, of which one entry is
// changed as what it is: pickles by opcodes, code and programs by tokens, storages by bytes, and a zip in the
// zip like the whole.
#include "src/packer/error.h"
#include "src/packer/import/zip_archive.h"
#include "tests/fuzz/model_oracle.h"
#include "tests/fuzz/mutators/pickle.h"
#include "tests/fuzz/mutators/tokens.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;

struct Entry {
  std::string name, contents;
};

bool read(const uint8_t* data, size_t size, std::vector<Entry>* entries) {
  try {
    importer::ZipArchive zip({data, size});
    const auto add = [&](const std::string& name) {
      const auto contents = zip.read(name);
      entries->push_back({name, {contents.begin(), contents.end()}});
    };
    // PyTorch's order: the first entry names the folder.
    add(zip.first_name());
    for (const std::string& name : zip.names_under("")) {
      if (name != zip.first_name()) add(name);
    }
    return true;
  } catch (const PackError&) {
    return false;
  }
}

size_t write(const std::vector<Entry>& entries, uint8_t* to, size_t max_size) {
  pytorch_test::ZipBuilder builder;
  for (const Entry& entry : entries) builder.add(entry.name, pytorch_test::to_bytes(entry.contents));
  const Bytes zip = builder.build();
  if (zip.size() > max_size) return 0;
  std::memcpy(to, zip.data(), zip.size());
  return zip.size();
}

const TokenMutator& code_mutator() {
  static const TokenMutator kMutator = [] {
    std::vector<std::string> words = {"self",
                                      "x",
                                      "None",
                                      "True",
                                      "False",
                                      "return",
                                      "if",
                                      "else",
                                      "def",
                                      "class",
                                      "for",
                                      "in",
                                      "import",
                                      "inf",
                                      "nan",
                                      "-1",
                                      "0",
                                      "1",
                                      "2",
                                      "0.5",
                                      "1e99",
                                      "[]",
                                      "()",
                                      "[1, 1]",
                                      "(x, x)",
                                      ":",
                                      "=",
                                      ",",
                                      ".",
                                      "\n",
                                      "    ",
                                      "-",
                                      "torch.size",
                                      "torch.eq",
                                      "torch.len",
                                      "annotate",
                                      "uninitialized",
                                      "unchecked_cast",
                                      "getattr",
                                      "Tensor",
                                      "List[int]",
                                      "CONSTANTS.c0",
                                      "CONSTANTS.c1",
                                      "CONSTANTS.c2",
                                      "int",
                                      "float",
                                      "ops.prim.NumToTensor",
                                      "torch.format",
                                      "_0",
                                      "_1",
                                      "9223372036854775807",
                                      "\"a\"",
                                      "(self).forward(x, )",
                                      "13",
                                      "14",
                                      "12"};
#define QPLAN_PYTORCH_OP(name, function, arguments) words.push_back(code_name(name));
    const auto code_name = [](std::string_view name) {
      const size_t colon = name.find("::");
      const std::string op(name.substr(colon + 2));
      return name.starts_with("aten") ? "torch." + op
                                      : "ops." + std::string(name.substr(0, colon)) + "." + op;
    };
#include "src/packer/import/pytorch/ops.def"
#undef QPLAN_PYTORCH_OP
    return TokenMutator(words);
  }();
  return kMutator;
}

// Programs of torch.export: the kinds of arguments, and the operators with an overload.
const TokenMutator& program_mutator() {
  static const TokenMutator kMutator = [] {
    std::vector<std::string> words = {"{",
                                      "}",
                                      "[",
                                      "]",
                                      ",",
                                      ":",
                                      "null",
                                      "true",
                                      "false",
                                      "-1",
                                      "0",
                                      "1",
                                      "2",
                                      "7",
                                      "127",
                                      "-128",
                                      "0.5",
                                      "1e99",
                                      "9223372036854775807",
                                      "\"x\"",
                                      "\"q\"",
                                      "\"s0\"",
                                      "\"p_w\"",
                                      "\"as_none\"",
                                      "\"as_tensor\"",
                                      "\"as_tensors\"",
                                      "\"as_int\"",
                                      "\"as_ints\"",
                                      "\"as_float\"",
                                      "\"as_string\"",
                                      "\"as_sym_int\"",
                                      "\"as_sym_ints\"",
                                      "\"as_name\"",
                                      "\"as_expr\"",
                                      "\"as_bool\"",
                                      "\"as_scalar_type\"",
                                      "\"as_optional_tensor\"",
                                      "\"as_graph\"",
                                      "\"Infinity\"",
                                      "\"self\"",
                                      "\"other\"",
                                      "\"dim\"",
                                      "\"torch.ops.higher_order.cond\"",
                                      "\"torch.ops.higher_order.wrap_with_set_grad_enabled\"",
                                      "\"_operator.mul\""};
#define QPLAN_PYTORCH_OP(name, function, arguments) words.push_back(target(name));
    const auto target = [](std::string_view name) {
      const size_t colon = name.find("::");
      return "\"torch.ops." + std::string(name.substr(0, colon)) + "." + std::string(name.substr(colon + 2)) +
             ".default\"";
    };
#include "src/packer/import/pytorch/ops.def"
#undef QPLAN_PYTORCH_OP
    return TokenMutator(words);
  }();
  return kMutator;
}

const PickleMutator& pickle_mutator() {
  static const PickleMutator kMutator({"torch\nFloatStorage\n",
                                       "torch\nQInt8Storage\n",
                                       "torch\nQUInt8Storage\n",
                                       "torch\nDoubleStorage\n",
                                       "torch\nLongStorage\n",
                                       "torch\nShortStorage\n",
                                       "torch\nBoolStorage\n",
                                       "torch\nHalfStorage\n",
                                       "torch\nQInt32Storage\n",
                                       "torch\nper_tensor_affine\n",
                                       "torch\nper_channel_affine\n",
                                       "torch._utils\n_rebuild_tensor_v2\n",
                                       "torch._utils\n_rebuild_qtensor\n",
                                       "torch._utils\n_rebuild_parameter\n",
                                       "torch._utils\n_rebuild_parameter_with_state\n",
                                       "torch.jit._pickle\nbuild_tensorlist\n",
                                       "torch.jit._pickle\nbuild_intlist\n",
                                       "torch.jit._pickle\nrestore_type_tag\n",
                                       "collections\nOrderedDict\n",
                                       "__torch__\nNet\n",
                                       "__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n",
                                       "__torch__.torch.classes.quantized\nLinearPackedParamsBase\n"},
                                      {"storage", "cpu", "0", "1", "2", "3", "4", "5", "training", "weight",
                                       "bias", "scale", "zero_point", "_packed_params", "", "List[int]"});
  return kMutator;
}

void change_one(Random& random, std::vector<Entry>* entries, size_t max_size);

void change(Random& random, Entry* entry, size_t max_size) {
  std::vector<Entry> inner;
  const auto* bytes = reinterpret_cast<const uint8_t*>(entry->contents.data());
  if (entry->name.ends_with(".pt") && random.chance(0.9) && read(bytes, entry->contents.size(), &inner)) {
    change_one(random, &inner, max_size);
    Bytes changed(max_size);
    changed.resize(write(inner, changed.data(), changed.size()));
    if (!changed.empty()) entry->contents.assign(changed.begin(), changed.end());
    return;
  }
  if (random.chance(0.05)) {
    mutate_bytes(random, &entry->name, entry->name.size() + 8);
  } else if (entry->name.ends_with(".pkl")) {
    entry->contents = pickle_mutator().mutate(random, entry->contents);
  } else if (entry->name.ends_with(".py")) {
    entry->contents = code_mutator().mutate(random, entry->contents, max_size);
  } else if (entry->name.ends_with(".json")) {
    entry->contents = program_mutator().mutate(random, entry->contents, max_size);
  } else {
    mutate_bytes(random, &entry->contents, entry->contents.size() + 8);
  }
}

void change_one(Random& random, std::vector<Entry>* entries, size_t max_size) {
  const size_t at = index_below(random, entries->size());
  if (random.chance(0.03)) {
    entries->erase(entries->begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  // Code, programs and pickles have more to say than storages.
  const size_t other = index_below(random, entries->size());
  const std::string& name = (*entries)[other].name;
  const bool text = name.ends_with(".py") || name.ends_with(".pkl") || name.ends_with(".json");
  change(random, &(*entries)[text ? other : at], max_size);
}

}  // namespace
}  // namespace qplan::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace qplan::fuzz;
  if (size > kMostBytes) return -1;
  static const int64_t kShape[] = {1, 2, 4, 4};
  static const qplan_named_type kInput = {"x", {kDLFloat, 32, 1}, 4, kShape};
  static const qplan::ImportOptions kImport = [] {
    qplan::ImportOptions import;
    import.input_types.emplace("x", qplan::ir::TensorType{qplan::ir::kFloat32, { 1, 2, 4, 4 }});
    return import;
  }();
  qplan_pack_options options = pack_options();
  options.input_types = &kInput;
  options.num_input_types = 1;
  check_model(data, size, "model.pt", options, kImport);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace qplan::fuzz;
  Random random(seed);
  std::vector<Entry> entries;
  // One in ten damages the zip itself.
  if (random.chance(0.1) || !read(data, size, &entries)) return LLVMFuzzerMutate(data, size, max_size);
  for (int64_t count = random.chance(0.7) ? 1 : 2; count > 0 && !entries.empty(); --count) {
    change_one(random, &entries, max_size);
  }
  const size_t changed = write(entries, data, max_size);
  return changed != 0 ? changed : LLVMFuzzerMutate(data, size, max_size);
}
