#include <algorithm>
#include <charconv>
#include <cstring>

#include "src/packer/error.h"
#include "src/packer/ir/json.h"
#include "src/packer/ir/types.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string base64_encode(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = uint32_t{bytes[i]} << 16;
    if (n > 1) group |= uint32_t{bytes[i + 1]} << 8;
    if (n > 2) group |= bytes[i + 2];
    text += kDigits[group >> 18];
    text += kDigits[group >> 12 & 63];
    text += n > 1 ? kDigits[group >> 6 & 63] : '=';
    text += n > 2 ? kDigits[group & 63] : '=';
  }
  return text;
}

std::optional<std::vector<uint8_t>> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const int value = j < digits ? value_of(text[i + j]) : 0;
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    bytes.push_back(static_cast<uint8_t>(group >> 16));
    if (digits > 2) bytes.push_back(static_cast<uint8_t>(group >> 8));
    if (digits > 3) bytes.push_back(static_cast<uint8_t>(group));
  }
  return bytes;
}

namespace {

using ir::Json;

// A saved NDArray, little-endian: u64 magic, u64 reserved, i32 device type, i32 device id, i32 rank, dtype
// (u8 code, u8 bits, u16 lanes), i64 extents, i64 size of the data in bytes, data.
constexpr uint64_t kArrayMagic = 0xDD5E40F096B4A13F;
constexpr int32_t kCpu = 1;

[[noreturn]] void fail(const std::string& text) { throw PackError(QPLAN_MODEL_INVALID, "metadata: " + text); }

template <typename T>
void put(std::vector<uint8_t>* bytes, T value) {
  const size_t at = bytes->size();
  bytes->resize(at + sizeof(T));
  std::memcpy(bytes->data() + at, &value, sizeof(T));
}

std::vector<uint8_t> save_array(const ir::Constant& constant) {
  const ir::TensorType& type = constant.type();
  std::vector<uint8_t> bytes;
  bytes.reserve(40 + 8 * type.shape.size() + constant.bytes().size());
  put(&bytes, kArrayMagic);
  put(&bytes, uint64_t{0});
  put(&bytes, kCpu);
  put(&bytes, int32_t{0});
  put(&bytes, static_cast<int32_t>(type.shape.size()));
  put(&bytes, type.dtype.code);
  put(&bytes, type.dtype.bits);
  put(&bytes, type.dtype.lanes);
  for (const int64_t extent : type.shape) put(&bytes, extent);
  put(&bytes, static_cast<int64_t>(constant.bytes().size()));
  bytes.insert(bytes.end(), constant.bytes().begin(), constant.bytes().end());
  return bytes;
}

class ArrayReader {
 public:
  ArrayReader(const std::vector<uint8_t>& bytes, std::string place)
      : bytes_(bytes), place_(std::move(place)) {}

  ir::ConstantRef read() {
    if (take<uint64_t>() != kArrayMagic) fail(place_ + " does not begin with the magic number of an NDArray");
    take<uint64_t>();  // reserved
    take<int32_t>();   // device type and id: where it once was
    take<int32_t>();
    const auto rank = take<int32_t>();
    if (rank < 0 || rank > static_cast<int32_t>(ir::kMaxRank)) {
      fail(place_ + " has rank " + std::to_string(rank) + ", expected 0 to " + std::to_string(ir::kMaxRank));
    }
    ir::TensorType type;
    type.dtype.code = take<uint8_t>();
    type.dtype.bits = take<uint8_t>();
    type.dtype.lanes = take<uint16_t>();
    if (!ir::dtype_from_string(ir::to_string(type.dtype))) {
      fail(place_ + " has an unknown dtype " + ir::to_string(type.dtype));
    }
    for (int32_t i = 0; i < rank; ++i) type.shape.push_back(take<int64_t>());
    const std::string error = ir::type_error(type);
    if (!error.empty()) fail(place_ + ": " + error);
    const auto size = take<int64_t>();
    const size_t left = bytes_.size() - at_;
    if (size != type.size_bytes() || size != static_cast<int64_t>(left)) {
      fail(place_ + " says that it has " + std::to_string(size) + " bytes of data, and has " +
           std::to_string(left) + "; expected " + std::to_string(type.size_bytes()) + " for " +
           ir::to_string(type));
    }
    std::vector<uint8_t> data(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), bytes_.end());
    return std::make_shared<const ir::Constant>(std::move(type), std::move(data));
  }

 private:
  template <typename T>
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) fail(place_ + " is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  const std::vector<uint8_t>& bytes_;
  std::string place_;
  size_t at_ = 0;
};

const Json& member(const Json& object, const char* key) {
  if (object.is_object()) {
    const auto it = object.find(key);
    if (it != object.end()) return *it;
  }
  fail("'" + std::string(key) + "' is missing");
}

const Json& element(const Json& array, const Json& index, const char* what) {
  if (!array.is_array()) fail("'" + std::string(what) + "' is not an array");
  if (!index.is_number_unsigned() || index.get<uint64_t>() >= array.size()) {
    fail("an index into '" + std::string(what) + "' is not a number below " + std::to_string(array.size()));
  }
  return array[index.get<size_t>()];
}

// The node of `nodes` that holds the constants' indices; null without constants.
const Json* constant_array(const Json& nodes, const Json& root) {
  const Json& keys = member(root, "keys");
  const Json& data = member(root, "data");
  if (!keys.is_array() || !data.is_array() || keys.size() != data.size()) {
    fail("'keys' and 'data' of the root are not arrays of one length");
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == "relay.Constant") return &element(nodes, data[i], "nodes");
  }
  return nullptr;
}

ir::ConstantRef read_constant(const Json& node, const Json& arrays, size_t k) {
  const std::string place = "meta[relay.Constant][" + std::to_string(k) + "]";
  if (member(node, "type_key") != "relay.Constant") fail(place + " is not of type 'relay.Constant'");
  const Json& data = member(member(node, "attrs"), "data");  // a number, written as a string
  uint64_t index = 0;
  const std::string* digits = data.get_ptr<const std::string*>();
  if (digits == nullptr) fail(place + " has no index of its data");
  const char* end = digits->data() + digits->size();
  const auto result = std::from_chars(digits->data(), end, index);
  if (result.ec != std::errc() || result.ptr != end) fail(place + " has no index of its data");
  const Json& array = element(arrays, Json(index), "b64ndarrays");
  const std::string* text = array.get_ptr<const std::string*>();
  const auto bytes = text != nullptr ? base64_decode(*text) : std::nullopt;
  if (!bytes) fail(place + " is not base64");
  return ArrayReader(*bytes, place).read();
}

}  // namespace

std::string write_metadata(const std::vector<ir::ConstantRef>& constants) {
  // Node 0 is null, 1 the map, 2 the array, then one node a constant.
  Json indices = Json::array(), arrays = Json::array();
  Json nodes = {{{"type_key", ""}}, {{"type_key", "Map"}, {"keys", {"relay.Constant"}}, {"data", {2}}}};
  for (size_t k = 0; k < constants.size(); ++k) indices.push_back(k + 3);
  nodes.push_back({{"type_key", "Array"}, {"data", std::move(indices)}});
  for (size_t k = 0; k < constants.size(); ++k) {
    nodes.push_back({{"type_key", "relay.Constant"},
                     {"attrs", {{"_checked_type_", "0"}, {"data", std::to_string(k)}, {"span", "0"}}}});
    arrays.push_back(base64_encode(save_array(*constants[k])));
  }
  const Json document = {{"root", 1},
                         {"nodes", std::move(nodes)},
                         {"b64ndarrays", std::move(arrays)},
                         {"attrs", {{"tvm_version", "0.8.0"}}}};
  return ir::json_text(document, 1) + "\n";
}

std::vector<ir::ConstantRef> read_metadata(std::string_view json) {
  std::string reason;
  const Json document = ir::parse_json(json, &reason);
  if (document.is_discarded()) fail("the text after '#[metadata]' " + reason);
  const Json& nodes = member(document, "nodes");
  const Json* array = constant_array(nodes, element(nodes, member(document, "root"), "nodes"));
  std::vector<ir::ConstantRef> constants;
  if (array == nullptr) return constants;
  const Json& indices = member(*array, "data");
  if (!indices.is_array()) fail("the array of constants is not an array");
  const Json& arrays = member(document, "b64ndarrays");
  for (const Json& index : indices) {
    constants.push_back(read_constant(element(nodes, index, "nodes"), arrays, constants.size()));
  }
  return constants;
}

}  // namespace qplan::text
