#include <cstring>
#include <optional>
#include <string_view>

#include "tools/error.h"
#include "tools/input.h"
#include "tools/tensor.h"

namespace qplan::tools {
namespace {

// Reads the header's text, a Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  void read() {
    expect('{');
    while (!accept('}')) {
      const std::string key = read_string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') fail("holds a structured dtype, expected a plain one");
        descr = read_string();
      } else if (key == "fortran_order") {
        fortran_order = read_bool();
      } else if (key == "shape") {
        shape = read_shape();
      } else {
        fail("its header has an unknown key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !fortran_order || !shape) fail("its header lacks 'descr', 'fortran_order' or 'shape'");
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Failure("input '" + path_ + "': " + reason);
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }
  [[noreturn]] void malformed() const {
    fail("its .npy header is malformed at character " + std::to_string(at_));
  }

  std::string read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool read_bool() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    }
    malformed();
  }
  int64_t read_extent() {
    constexpr int64_t kMax = int64_t{1} << 40;  // far past any tensor; keeps the product of extents in range
    if (peek() < '0' || peek() > '9') malformed();
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + (text_[at_] - '0');
      if (value > kMax) malformed();
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2's long
    return value;
  }
  std::vector<int64_t> read_shape() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(read_extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

DLDataType parse_descr(const DictReader& header) {
  const std::string& descr = *header.descr;  // byte order, kind, bytes: "<i4"
  const auto unknown = [&]() {
    header.fail("has dtype '" + descr + "', expected booleans, or integers or floats of 1, 2, 4 or 8 bytes");
  };
  if (descr.size() != 3 || std::strchr("<>|=", descr[0]) == nullptr) unknown();
  const int bytes = descr[2] - '0';
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) unknown();
  constexpr uint8_t kDLBoolCode = 6;  // older dlpack.h lack its name
  if (descr[1] == 'b' && bytes == 1) return DLDataType{kDLBoolCode, 8, 1};
  uint8_t code = kDLInt;
  switch (descr[1]) {
    case 'i':
      code = kDLInt;
      break;
    case 'u':
      code = kDLUInt;
      break;
    case 'f':
      code = kDLFloat;
      break;
    default:
      unknown();
  }
  if (descr[0] == '>' && bytes > 1) {
    header.fail("is big-endian ('" + descr +
                "'), expected little-endian; save array.astype(array.dtype.newbyteorder('<'))");
  }
  return DLDataType{code, static_cast<uint8_t>(bytes * 8), 1};
}

}  // namespace

NpyHeader parse_npy(const std::vector<uint8_t>& file, const std::string& path) {
  const auto fail = [&](const std::string& reason) { throw Failure("input '" + path + "': " + reason); };
  constexpr size_t kMagicBytes = 8;  // "\x93NUMPY", major, minor
  if (file.size() < kMagicBytes + 2 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0) {
    fail("is not a .npy file");
  }
  const uint8_t major = file[6];
  if (major < 1 || major > 3) fail("has .npy version " + std::to_string(major) + ", expected 1, 2 or 3");
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t text_begin = kMagicBytes + length_bytes;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes && kMagicBytes + i < file.size(); ++i) {
    length |= static_cast<size_t>(file[kMagicBytes + i]) << (8 * i);
  }
  if (file.size() < text_begin || file.size() - text_begin < length) fail("is cut off in its .npy header");

  DictReader header({reinterpret_cast<const char*>(file.data()) + text_begin, length}, path);
  header.read();
  NpyHeader result;
  result.dtype = parse_descr(header);
  result.shape = *header.shape;
  result.data_offset = text_begin + length;
  if (*header.fortran_order && result.shape.size() > 1) {
    fail("is in Fortran order, expected C order; save numpy.ascontiguousarray(array)");
  }
  const uint64_t found = file.size() - result.data_offset;
  uint64_t expected = result.dtype.bits / 8;
  for (const int64_t extent : result.shape) {
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(extent), &expected))
      fail("has an impossible shape");
  }
  if (found != expected) {
    fail("holds " + std::to_string(found) + " bytes after its header, its shape " +
         shape_text(result.shape.data(), static_cast<int32_t>(result.shape.size())) + " of " +
         dtype_name(result.dtype) + " needs " + std::to_string(expected));
  }
  return result;
}

}  // namespace qplan::tools
