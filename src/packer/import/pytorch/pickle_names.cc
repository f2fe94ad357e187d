#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;

struct StorageName {
  std::string_view name;
  ScalarType type;
};
constexpr StorageName kStorages[] = {
    {"torch.ByteStorage", ScalarType::kUint8},    {"torch.CharStorage", ScalarType::kInt8},
    {"torch.ShortStorage", ScalarType::kInt16},   {"torch.IntStorage", ScalarType::kInt32},
    {"torch.LongStorage", ScalarType::kInt64},    {"torch.HalfStorage", ScalarType::kFloat16},
    {"torch.FloatStorage", ScalarType::kFloat32}, {"torch.DoubleStorage", ScalarType::kFloat64},
    {"torch.BoolStorage", ScalarType::kBool},     {"torch.QInt8Storage", ScalarType::kQint8},
    {"torch.QUInt8Storage", ScalarType::kQuint8}, {"torch.QInt32Storage", ScalarType::kQint32},
};

// Values that stand for themselves.
constexpr std::string_view kPlainNames[] = {"torch.per_tensor_affine", "torch.per_channel_affine"};

class Arguments {
 public:
  Arguments(const std::vector<Ref>& refs, const ValueTable& values) : refs_(refs), values_(values) {}

  void expect(size_t least, size_t most) const {
    if (refs_.size() >= least && refs_.size() <= most) return;
    invalid(cat("there are ", refs_.size(), " arguments, expected ", least, most > least ? " or more" : ""));
  }
  int64_t integer(size_t i, const char* what) const { return number(refs_[i], what); }
  std::vector<int64_t> integers(size_t i, const char* what) const {
    const auto* tuple = values_.get<Tuple>(refs_[i]);
    if (tuple == nullptr) invalid(cat(what, " are ", kind_name(values_.at(refs_[i])), ", expected a tuple"));
    if (tuple->items.size() > ir::kMaxRank) {
      invalid(cat("there are ", tuple->items.size(), " ", what, ", at most ", ir::kMaxRank, " are possible"));
    }
    std::vector<int64_t> numbers;
    for (const Ref item : tuple->items) numbers.push_back(number(item, what));
    return numbers;
  }

 private:
  int64_t number(Ref ref, const char* what) const {
    if (const auto* value = values_.get<int64_t>(ref)) return *value;
    invalid(cat("the ", what, " is ", kind_name(values_.at(ref)), ", expected an integer"));
  }

  const std::vector<Ref>& refs_;
  const ValueTable& values_;
};

// (storage, offset, sizes, strides, [quantiser,] requires_grad, backward_hooks, ...)
Ref rebuild_tensor(const std::vector<Ref>& refs, bool quantized, ValueTable& values) {
  const Arguments arguments(refs, values);
  arguments.expect(quantized ? 5 : 4, quantized ? 8 : 7);
  if (values.get<Storage>(refs[0]) == nullptr) {
    invalid(cat("the storage is ", kind_name(values.at(refs[0]))));
  }
  Tensor tensor{.storage = refs[0],
                .offset = arguments.integer(1, "offset"),
                .sizes = arguments.integers(2, "sizes"),
                .strides = arguments.integers(3, "strides"),
                .quantizer = {}};
  if (quantized) {
    if (values.get<Tuple>(refs[4]) == nullptr) invalid("the quantiser is no tuple");
    tensor.quantizer = refs[4];
  }
  return values.add(std::move(tensor));
}

Ref same_list(const std::vector<Ref>& refs, ValueTable& values) {
  Arguments(refs, values).expect(1, 1);
  if (values.get<List>(refs[0]) == nullptr) invalid("the argument is no list");
  return refs[0];
}

struct Builder {
  std::string_view name;
  Ref (*build)(const std::vector<Ref>& refs, ValueTable& values);
};
constexpr Builder kBuilders[] = {
    {"torch._utils._rebuild_tensor_v2",
     [](const std::vector<Ref>& refs, ValueTable& values) { return rebuild_tensor(refs, false, values); }},
    {"torch._utils._rebuild_qtensor",
     [](const std::vector<Ref>& refs, ValueTable& values) { return rebuild_tensor(refs, true, values); }},
    {"torch._utils._rebuild_parameter",
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(1, 3);
       return refs[0];
     }},
    {"torch._utils._rebuild_parameter_with_state",
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(4, 4);
       return refs[0];
     }},
    {"collections.OrderedDict",
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(0, 0);
       return values.add(Dict{});
     }},
    {"torch.jit._pickle.build_tensorlist", same_list},
    {"torch.jit._pickle.build_intlist", same_list},
    {"torch.jit._pickle.build_doublelist", same_list},
    {"torch.jit._pickle.build_boollist", same_list},
    {"torch.jit._pickle.restore_type_tag",  // (value, "List[int]")
     [](const std::vector<Ref>& refs, ValueTable& values) {
       Arguments(refs, values).expect(2, 2);
       return refs[0];
     }},
};

}  // namespace

bool is_class_name(std::string_view name) { return name.starts_with("__torch__."); }

std::optional<ScalarType> storage_type(std::string_view name) {
  for (const StorageName& known : kStorages) {
    if (known.name == name) return known.type;
  }
  return std::nullopt;
}

bool is_known_name(std::string_view name) {
  if (is_class_name(name) || storage_type(name)) return true;
  for (const std::string_view known : kPlainNames) {
    if (known == name) return true;
  }
  for (const Builder& known : kBuilders) {
    if (known.name == name) return true;
  }
  return false;
}

Ref build(std::string_view name, const std::vector<Ref>& arguments, ValueTable& values) {
  for (const Builder& known : kBuilders) {
    if (known.name != name) continue;
    try {
      return known.build(arguments, values);
    } catch (const PackError& error) {
      throw PackError(error.status(), in_quotes(name) + ": " + error.what());
    }
  }
  invalid(in_quotes(name) + " is not a function");
}

const char* kind_name(const Value& value) {
  static constexpr const char* kNames[] = {"None",
                                           "a boolean",
                                           "an integer",
                                           "a number",
                                           "a string",
                                           "a name",
                                           "a tuple",
                                           "a list",
                                           "a dict",
                                           "an object",
                                           "a storage",
                                           "a tensor",
                                           "a computed tensor",
                                           "an unknown value"};
  static_assert(std::size(kNames) == std::variant_size_v<Value>);
  return kNames[value.index()];
}

namespace {

size_t text_bytes(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  if (const auto* name = std::get_if<Name>(&value)) return name->text.size();
  if (const auto* object = std::get_if<Object>(&value)) return object->class_name.size();
  if (const auto* storage = std::get_if<Storage>(&value)) return storage->key.size();
  return 0;
}

}  // namespace

Ref ValueTable::add(Value value) {
  if (values_.size() >= kMaxValues) {
    importer::invalid(cat("the archive makes more than ", kMaxValues, " values: it is no network"));
  }
  text_bytes_ += text_bytes(value);
  if (text_bytes_ > kMaxTextBytes) {
    importer::invalid(cat("the archive's names and strings take more than ", kMaxTextBytes >> 20, " MiB"));
  }
  values_.push_back(std::move(value));
  return {static_cast<uint32_t>(values_.size() - 1)};
}

const std::vector<Ref>* items_of(const ValueTable& values, Ref ref) {
  if (const auto* tuple = values.get<Tuple>(ref)) return &tuple->items;
  if (const auto* list = values.get<List>(ref)) return &list->items;
  return nullptr;
}

}  // namespace qplan::pt
