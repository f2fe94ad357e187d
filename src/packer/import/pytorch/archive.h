// What the archives of TorchScript (script.h) and exported programs (exported_program.h) have in common:
// values, pickles and tensors, and the limits of what they may ask for. The files are untrusted.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/module.h"

namespace qplan::pt {

// The values of pickles and code of an archive. Values live in one table and name each other by index: a
// pickle may hold cycles, and nothing that reads it follows references without counting.

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
  std::vector<std::string> fields = {};  // of a NamedTuple, the name of each item
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
  double wide_scale = 0;  // the scale as the file has it, where float32 does not hold it

  double exact_scale() const { return wide_scale != 0 ? wide_scale : static_cast<double>(scale); }
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
  // PackError when the table is full. References to values stay good only until the next add.
  Ref add(Value value);
  size_t size() const { return values_.size(); }
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

// Limits of a PyTorch archive. Archives are untrusted: a small file can describe any amount of work, so that
// each kind of work is counted against one of these, and contents against zip_archive.h's.

// Values that the pickles and the code make: a network of 1,000 layers has some 50,000.
inline constexpr size_t kMaxValues = 1'000'000;
// Bytes of names and strings of these values, which may be one string that is remembered and used again.
inline constexpr size_t kMaxTextBytes = size_t{64} << 20;
// Bytes of one name. A pickle may use what it remembers any number of times: what a use copies is short.
inline constexpr size_t kMaxNameBytes = 1024;
// Opcodes of one pickle: a value takes two or three.
inline constexpr size_t kMaxOpcodes = 8'000'000;
// Tokens of the code that is read: the same network has some 200,000.
inline constexpr size_t kMaxTokens = 2'000'000;
// Marks of a pickle that wait for their end.
inline constexpr size_t kMaxMarks = 1000;
// Statements and operators that are read while forward is followed through the modules.
inline constexpr size_t kMaxSteps = 1'000'000;
// The JSON of an exported program: a network of 1,000 layers has some 4 MB, most of it stack traces, and some
// 100,000 values.
inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;
inline constexpr size_t kMaxJsonValues = 4'000'000;
// Members of one object of it: a graph names the tensors of all its nodes in one.
inline constexpr size_t kMaxJsonMembers = 200'000;
// Graphs in graphs that are followed.
inline constexpr size_t kMaxGraphDepth = 16;
// Nesting of brackets in one expression, and of expressions and calls while they are followed.
inline constexpr size_t kMaxExpressionDepth = 200;
inline constexpr size_t kMaxCallDepth = 1000;

// Contents of the tensors of an archive.
std::string to_string(ScalarType type);  // "qint8"
// The dtype of the elements.
ir::DType dtype_of(ScalarType type);

// The scales of a quantised tensor: one, or one per index of `axis`.
struct TensorScales {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  std::optional<int64_t> axis;
};

class TensorReader {
 public:
  // The bytes of the storage with this key.
  using Storages = std::function<std::span<const uint8_t>(const std::string& key)>;

  // file_bytes: size of the archive, by which the contents of the tensors are limited.
  TensorReader(Storages storages, uint64_t file_bytes, const ValueTable& values)
      : storages_(std::move(storages)), file_bytes_(file_bytes), values_(values) {}
  TensorReader(importer::ZipArchive& archive, const ValueTable& values)
      : TensorReader([&archive](const std::string& key) { return archive.read(key); }, archive.size_bytes(),
                     values) {}

  ScalarType type(const Tensor& tensor) const;
  // Row-major, packed, whatever the strides. PackError where sizes, strides and offset do not fit the storage
  // or one another, and where the constants of the archive take more than a file of this size may hold.
  ir::ConstantRef read(const Tensor& tensor);
  // Elements as double; the type must be a floating-point or integer one. what: "the bias".
  std::vector<double> read_numbers(const Tensor& tensor, const std::string& what);
  // Reads the scales of a quantised tensor: positive finite float32 numbers, one or as many as the axis has
  // indices.
  TensorScales read_scales(const Tensor& tensor);

 private:
  std::vector<uint8_t> gather(const Tensor& tensor);

  Storages storages_;
  uint64_t file_bytes_;
  const ValueTable& values_;
  uint64_t charged_ = 0;
};

// All entries of a zip of PyTorch are in one folder, named after the file that was written: "net/", or "".
std::string prefix_of(const importer::ZipArchive& zip);

// PackError (QPLAN_MODEL_UNSUPPORTED) where entry "byteorder" says that the tensors are not little-endian.
// Archives of older versions of PyTorch, which are little-endian, have no such entry.
void expect_little_endian(importer::ZipArchive& zip, const std::string& prefix);

// The value that a pickle makes, in the table (pickle.cc). storage_prefix: before the key of a storage in the
// archive's names, "net/constants/". PackError (QPLAN_MODEL_INVALID) with the byte at which something is
// wrong.
Ref read_pickle(std::span<const uint8_t> bytes, const std::string& storage_prefix, ValueTable& values);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_ARCHIVE_H_
