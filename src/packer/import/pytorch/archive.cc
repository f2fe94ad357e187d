#include "src/packer/import/pytorch/archive.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/script.h"
#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;

[[noreturn]] void refuse_other_kind(const importer::ZipArchive& zip, const std::string& prefix) {
  if (zip.has(prefix + "data.pkl")) {
    throw PackError(
        QPLAN_MODEL_UNSUPPORTED,
        "the file holds pickled Python objects (torch.save), not TorchScript; save the model with m = "
        "torch.jit.freeze(torch.jit.script(m.eval())), m.save('model.pt'), or export it: "
        "torch.export.save(torch.export.export(m.eval(), inputs), 'model.pt2')");
  }
  invalid("the zip has no constants.pkl: it is no TorchScript archive");
}

Ref read_pickle_entry(importer::ZipArchive& zip, const std::string& entry, const std::string& storage_prefix,
                      ValueTable& values) {
  const std::span<const uint8_t> bytes = zip.read(entry);
  try {
    return read_pickle(bytes, storage_prefix, values);
  } catch (const PackError& error) {
    throw PackError(error.status(), in_quotes(entry) + ", " + error.what());
  }
}

size_t text_bytes(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  if (const auto* name = std::get_if<Name>(&value)) return name->text.size();
  if (const auto* object = std::get_if<Object>(&value)) return object->class_name.size();
  if (const auto* storage = std::get_if<Storage>(&value)) return storage->key.size();
  return 0;
}

}  // namespace

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

Ref ValueTable::add(Value value) {
  if (values_.size() >= kMaxValues) {
    invalid(cat("the archive makes more than ", kMaxValues, " values: it is no network"));
  }
  text_bytes_ += text_bytes(value);
  if (text_bytes_ > kMaxTextBytes) {
    invalid(cat("the archive's names and strings take more than ", kMaxTextBytes >> 20, " MiB"));
  }
  values_.push_back(std::move(value));
  return {static_cast<uint32_t>(values_.size() - 1)};
}

const std::vector<Ref>* items_of(const ValueTable& values, Ref ref) {
  if (const auto* tuple = values.get<Tuple>(ref)) return &tuple->items;
  if (const auto* list = values.get<List>(ref)) return &list->items;
  return nullptr;
}

std::string prefix_of(const importer::ZipArchive& zip) {
  const size_t slash = zip.first_name().find('/');
  return slash == std::string::npos ? "" : zip.first_name().substr(0, slash + 1);
}

void expect_little_endian(importer::ZipArchive& zip, const std::string& prefix) {
  if (!zip.has(prefix + "byteorder")) return;
  const std::span<const uint8_t> bytes = zip.read(prefix + "byteorder");
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order == "little") return;
  throw PackError(QPLAN_MODEL_UNSUPPORTED,
                  cat("the archive's numbers have byte order ", in_quotes(order),
                      ", expected 'little'; save the model on a little-endian machine"));
}

Archive::Archive(importer::ZipArchive zip)
    : zip_(std::move(zip)), prefix_(prefix_of(zip_)), tensors_(zip_, values_) {
  if (!zip_.has(prefix_ + "constants.pkl") || !zip_.has(prefix_ + "data.pkl"))
    refuse_other_kind(zip_, prefix_);
  expect_little_endian(zip_, prefix_);
  module_ = read_pickle_entry(zip_, prefix_ + "data.pkl", prefix_ + "data/", values_);
  const Object* object = values_.get<Object>(module_);
  if (object == nullptr)
    invalid("data.pkl holds " + std::string(kind_name(values_.at(module_))) + ", expected a module");
  const Dict* members = values_.get<Dict>(object->state);
  frozen_ =
      members != nullptr && std::ranges::all_of(members->entries, [&](const auto& entry) {
        return values_.get<Object>(entry.second) == nullptr && values_.get<Tensor>(entry.second) == nullptr;
      });
  const Ref constants = read_pickle_entry(zip_, prefix_ + "constants.pkl", prefix_ + "constants/", values_);
  const Tuple* tuple = values_.get<Tuple>(constants);
  if (tuple == nullptr) invalid("constants.pkl holds " + std::string(kind_name(values_.at(constants))));
  constants_ = tuple->items;
}

Ref Archive::constant(std::string_view name) const {
  size_t index = 0;
  const auto result = name.starts_with('c')
                          ? std::from_chars(name.data() + 1, name.data() + name.size(), index)
                          : std::from_chars_result{name.data(), std::errc::invalid_argument};
  if (result.ec != std::errc() || result.ptr != name.data() + name.size() || index >= constants_.size()) {
    invalid("the code uses CONSTANTS." + std::string(name) + ", but there are " +
            std::to_string(constants_.size()) + " constants");
  }
  return constants_[index];
}

// "__torch__.a.b.Name" is in code/__torch__/a/b.py.
ScriptFile* Archive::find_file(std::string_view qualified_name) {
  const size_t dot = qualified_name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  std::string path = prefix_ + "code/" + std::string(qualified_name.substr(0, dot));
  std::replace(path.begin() + static_cast<std::ptrdiff_t>(prefix_.size()), path.end(), '.', '/');
  path += ".py";
  if (const auto it = files_.find(path); it != files_.end()) return it->second.get();
  if (!zip_.has(path)) return nullptr;
  const std::span<const uint8_t> text = zip_.read(path);
  try {
    auto file = std::make_unique<ScriptFile>(
        std::string_view(reinterpret_cast<const char*>(text.data()), text.size()), kMaxTokens - num_tokens_);
    num_tokens_ += file->num_tokens();
    return files_.emplace(path, std::move(file)).first->second.get();
  } catch (const PackError& error) {
    throw PackError(error.status(), in_quotes(path) + ", " + error.what());
  }
}

const FunctionBody* Archive::find_function(std::string_view qualified_name) {
  ScriptFile* file = find_file(qualified_name);
  return file == nullptr ? nullptr : file->find("", qualified_name.substr(qualified_name.rfind('.') + 1));
}

const FunctionBody* Archive::find_method(std::string_view class_name, std::string_view method) {
  ScriptFile* file = find_file(class_name);
  return file == nullptr ? nullptr : file->find(class_name.substr(class_name.rfind('.') + 1), method);
}

const std::vector<std::string>* Archive::find_fields(std::string_view class_name) {
  ScriptFile* file = find_file(class_name);
  return file == nullptr ? nullptr : file->find_fields(class_name.substr(class_name.rfind('.') + 1));
}

// The tensors of an archive.
namespace {

using importer::to_text;
using importer::Unsupported;

struct TypeRow {
  ScalarType type;
  const char* name;
  uint8_t code, bits;
};
constexpr TypeRow kTypes[] = {
    {ScalarType::kUint8, "uint8", kDLUInt, 8},       {ScalarType::kInt8, "int8", kDLInt, 8},
    {ScalarType::kInt16, "int16", kDLInt, 16},       {ScalarType::kInt32, "int32", kDLInt, 32},
    {ScalarType::kInt64, "int64", kDLInt, 64},       {ScalarType::kFloat16, "float16", kDLFloat, 16},
    {ScalarType::kFloat32, "float32", kDLFloat, 32}, {ScalarType::kFloat64, "float64", kDLFloat, 64},
    {ScalarType::kBool, "bool", kDLUInt, 1},         {ScalarType::kQint8, "qint8", kDLInt, 8},
    {ScalarType::kQuint8, "quint8", kDLUInt, 8},     {ScalarType::kQint32, "qint32", kDLInt, 32},
};

const TypeRow& row_of(ScalarType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  invalid(cat("scalar type ", static_cast<int>(type), " is unknown"));
}

size_t width_of(ScalarType type) { return row_of(type).bits <= 8 ? 1u : row_of(type).bits / 8u; }

template <typename T>
std::vector<double> as_doubles(const std::vector<uint8_t>& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

float checked_scale(double scale) {
  const auto narrow = static_cast<float>(scale);
  if (!std::isfinite(narrow) || narrow <= 0) {
    invalid("a quantised tensor has scale " + to_text(narrow) + ", expected a positive finite number");
  }
  return narrow;
}

int32_t checked_zero_point(double zero_point, ir::DType dtype) {
  if (zero_point >= static_cast<double>(dtype.min()) && zero_point <= static_cast<double>(dtype.max())) {
    return static_cast<int32_t>(zero_point);
  }
  invalid(cat("a quantised tensor has a zero point outside of ", dtype));
}

}  // namespace

std::string to_string(ScalarType type) { return row_of(type).name; }

ir::DType dtype_of(ScalarType type) {
  const TypeRow& row = row_of(type);
  return ir::DType{row.code, row.bits, 1};
}

ScalarType TensorReader::type(const Tensor& tensor) const {
  return values_.get<Storage>(tensor.storage)->type;
}

std::vector<uint8_t> TensorReader::gather(const Tensor& tensor) {
  const Storage& storage = *values_.get<Storage>(tensor.storage);
  const size_t width = width_of(storage.type);
  const ir::TensorType type{dtype_of(storage.type), tensor.sizes};
  if (const std::string error = ir::type_error(type); !error.empty()) invalid("a tensor: " + error);
  if (tensor.strides.size() != tensor.sizes.size()) {
    invalid(cat("a tensor has ", tensor.sizes.size(), " sizes and ", tensor.strides.size(), " strides"));
  }
  const std::span<const uint8_t> data = storages_(storage.key);
  if (storage.count < 0 || static_cast<uint64_t>(storage.count) != data.size() / width ||
      data.size() % width != 0) {
    invalid(cat("storage ", importer::in_quotes(storage.key), " has ", data.size(), " bytes, expected ",
                storage.count, " elements of ", width));
  }
  int64_t last = tensor.offset;
  bool fits = tensor.offset >= 0;
  for (size_t i = 0; fits && i < tensor.sizes.size(); ++i) {
    int64_t span = 0;
    fits = tensor.strides[i] >= 0 && checked_mul(tensor.sizes[i] - 1, tensor.strides[i], &span) &&
           checked_add(last, span, &last);
  }
  if (!fits || last >= storage.count) {
    invalid(cat("a tensor of shape ", to_text(tensor.sizes), ", strides ", to_text(tensor.strides),
                " and offset ", tensor.offset, " leaves its storage of ", storage.count, " elements"));
  }
  // Strides of 0 repeat elements: a small file could ask for any number of them.
  const auto size = static_cast<uint64_t>(type.size_bytes());
  if (size > importer::content_budget(file_bytes_) - charged_) {
    invalid(cat("the tensors take more than ", importer::kContentBytesPerFileByte, " times the file's size"));
  }
  charged_ += size;

  std::vector<int64_t> strides =
      tensor.strides;  // of axes with one index they mean nothing and may be anything
  for (size_t i = 0; i < strides.size(); ++i) strides[i] = tensor.sizes[i] == 1 ? 0 : strides[i];
  std::vector<uint8_t> bytes(size);
  std::vector<int64_t> index(tensor.sizes.size());
  int64_t from = tensor.offset;
  for (uint64_t to = 0; to < size; to += width) {
    std::memcpy(&bytes[to], &data[static_cast<size_t>(from) * width], width);
    for (size_t axis = index.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < tensor.sizes[axis]) break;
      from -= strides[axis] * tensor.sizes[axis];
      index[axis] = 0;
    }
  }
  return bytes;
}

ir::ConstantRef TensorReader::read(const Tensor& tensor) {
  std::vector<uint8_t> bytes = gather(tensor);
  return std::make_shared<const ir::Constant>(ir::TensorType{dtype_of(type(tensor)), tensor.sizes},
                                              std::move(bytes));
}

std::vector<double> TensorReader::read_numbers(const Tensor& tensor, const std::string& what) {
  switch (type(tensor)) {
    case ScalarType::kUint8:
      return as_doubles<uint8_t>(gather(tensor));
    case ScalarType::kInt8:
      return as_doubles<int8_t>(gather(tensor));
    case ScalarType::kInt16:
      return as_doubles<int16_t>(gather(tensor));
    case ScalarType::kInt32:
      return as_doubles<int32_t>(gather(tensor));
    case ScalarType::kInt64:
      return as_doubles<int64_t>(gather(tensor));
    case ScalarType::kFloat32:
      return as_doubles<float>(gather(tensor));
    case ScalarType::kFloat64:
      return as_doubles<double>(gather(tensor));
    default:
      throw Unsupported{what + " of type " + to_string(type(tensor))};
  }
}

// ("torch.per_tensor_affine", scale, zero point), or ("torch.per_channel_affine", scales, zero points, axis).
TensorScales TensorReader::read_scales(const Tensor& tensor) {
  const auto* quantizer = values_.get<Tuple>(tensor.quantizer);
  if (quantizer == nullptr) throw Unsupported{to_string(type(tensor)) + " tensors without quantisation"};
  const ir::DType dtype = dtype_of(type(tensor));
  const std::vector<Ref>& items = quantizer->items;
  const Name* kind = items.empty() ? nullptr : values_.get<Name>(items[0]);
  if (kind == nullptr) invalid("a quantiser has no kind");
  TensorScales result;
  if (kind->text == "torch.per_tensor_affine" && items.size() == 3) {
    const auto* scale = values_.get<double>(items[1]);
    const auto* zero_point = values_.get<int64_t>(items[2]);
    if (scale == nullptr || zero_point == nullptr) invalid("a quantiser's scale or zero point is no number");
    result.scales = {checked_scale(*scale)};
    result.zero_points = {checked_zero_point(static_cast<double>(*zero_point), dtype)};
    return result;
  }
  if (kind->text == "torch.per_channel_affine_float_qparams") throw Unsupported{"zero points in float32"};
  if (kind->text != "torch.per_channel_affine" || items.size() != 4) {
    invalid("quantiser " + importer::in_quotes(kind->text) + " with " + std::to_string(items.size()) +
            " parts");
  }
  const auto* scales = values_.get<Tensor>(items[1]);
  const auto* zero_points = values_.get<Tensor>(items[2]);
  const auto* axis = values_.get<int64_t>(items[3]);
  if (scales == nullptr || zero_points == nullptr || axis == nullptr) {
    invalid("a quantiser's scales, zero points or axis are wrong");
  }
  if (*axis < 0 || static_cast<size_t>(*axis) >= tensor.sizes.size()) {
    invalid(cat("a quantiser's axis ", *axis, " is not an axis of a tensor of rank ", tensor.sizes.size()));
  }
  for (const double scale : read_numbers(*scales, "scales")) result.scales.push_back(checked_scale(scale));
  for (const double zero_point : read_numbers(*zero_points, "zero points")) {
    result.zero_points.push_back(checked_zero_point(zero_point, dtype));
  }
  const auto extent = static_cast<size_t>(tensor.sizes[static_cast<size_t>(*axis)]);
  if (result.scales.size() != extent || result.zero_points.size() != extent) {
    invalid(cat("a quantiser has ", result.scales.size(), " scales and ", result.zero_points.size(),
                " zero points, expected ", extent));
  }
  result.axis = *axis;
  return result;
}

}  // namespace qplan::pt
