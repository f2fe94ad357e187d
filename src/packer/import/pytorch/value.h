// The values of pickles and code of an archive. Values live in one table and name each other by index: a
// pickle may hold cycles, and nothing that reads it follows references without counting.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_VALUE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_VALUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::pt {

// Index into a ValueTable.
struct Ref {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  bool operator==(const Ref&) const = default;
};

// The element types of storages (c10::ScalarType has the numbers, which code and quantize_per_tensor use).
enum class ScalarType : uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,
  kFloat32 = 6,
  kFloat64 = 7,
  kBool = 11,
  kQint8 = 12,
  kQuint8 = 13,
  kQint32 = 14,
};

struct None {};
struct Name {  // what GLOBAL names: a class, a storage type, one of the known functions; never looked up
               // anywhere
  std::string text;
};
struct Tuple {
  std::vector<Ref> items;
};
struct List {
  std::vector<Ref> items;
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> entries;
};
struct Object {
  std::string class_name;  // "__torch__.Net"
  Ref state;               // what BUILD gave it, not yet looked at
  bool initialised = false;
  std::map<std::string, Ref, std::less<>> attributes;
  std::string path;  // where the model has it: "features.0"
};
struct Storage {
  ScalarType type;
  std::string key;    // entry of the archive
  int64_t count = 0;  // elements
};
// A view of a storage. Its sizes, strides and quantiser are as the pickle says; archive.h checks them.
struct Tensor {
  Ref storage;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  Ref quantizer;  // a Tuple, or not valid
};
// One scale for the whole tensor, as the quantised operators of PyTorch have it.
struct QuantParams {
  float scale;
  int32_t zero_point;
  bool operator==(const QuantParams&) const = default;
};
// Integers, their scale, float32 [1], and zero point, int32 [1], which the model computes, too.
struct Dequantised {
  ir::ValueId integers, scale, zero_point;
};
// A value that the model computes: its counterpart in the IR, its quantisation where it is quantised, and
// what it was dequantised from where the model computes scale and zero point.
struct Flow {
  ir::ValueId value;
  std::optional<QuantParams> quantization = std::nullopt;
  std::optional<Dequantised> source = std::nullopt;
};
// The result of an operator that is not imported.
struct Unknown {};

using Value = std::variant<None, bool, int64_t, double, std::string, Name, Tuple, List, Dict, Object, Storage,
                           Tensor, Flow, Unknown>;

// "an integer", "a list", ...
const char* kind_name(const Value& value);

class ValueTable {
 public:
  // PackError when the table is full (limits.h). References to values stay good only until the next add.
  Ref add(Value value);
  Value& at(Ref ref) { return values_.at(ref.index); }
  const Value& at(Ref ref) const { return values_.at(ref.index); }
  template <typename T>
  T* get(Ref ref) {
    return ref.valid() ? std::get_if<T>(&values_.at(ref.index)) : nullptr;
  }
  template <typename T>
  const T* get(Ref ref) const {
    return ref.valid() ? std::get_if<T>(&values_.at(ref.index)) : nullptr;
  }

 private:
  std::vector<Value> values_;
  size_t text_bytes_ = 0;
};

// The items of a tuple or list; null for everything else.
const std::vector<Ref>* items_of(const ValueTable& values, Ref ref);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_VALUE_H_
