#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "src/base/text.h"
#include "src/packer/text/syntax.h"

namespace qplan::text {
namespace {

struct Suffix {
  std::string_view text;
  ir::DType dtype;
};
// The first of a dtype is the one that is printed. Relay has f, f32, f64, i16, i64 and none; the others are
// ours.
constexpr std::array<Suffix, 13> kSuffixes = {{
    {"f", ir::kFloat32},
    {"f32", ir::kFloat32},
    {"f64", {kDLFloat, 64, 1}},
    {"", ir::kInt32},
    {"i32", ir::kInt32},
    {"i8", ir::kInt8},
    {"u8", ir::kUint8},
    {"i16", ir::kInt16},
    {"u16", {kDLUInt, 16, 1}},
    {"u32", {kDLUInt, 32, 1}},
    {"i64", ir::kInt64},
    {"u64", {kDLUInt, 64, 1}},
    {"", ir::kBool},  // True and False
}};

template <typename T>
std::string to_chars_text(T value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

template <typename T>
T load(const ir::Constant& constant, size_t index) {
  T value;
  std::memcpy(&value, constant.bytes().data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
std::optional<T> read(std::string_view digits) {
  T value{};
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

template <typename T>
std::optional<std::vector<uint8_t>> read_bytes(std::string_view digits) {
  const std::optional<T> value = read<T>(digits);
  if (!value) return std::nullopt;
  std::vector<uint8_t> bytes(sizeof(T));
  std::memcpy(bytes.data(), &*value, sizeof(T));
  return bytes;
}

// Calls f<T>() for the C++ type of an integer or float dtype, or returns nothing.
template <typename Result, typename F>
Result with_type(ir::DType dtype, F f) {
  if (dtype.lanes != 1) return {};
  const uint32_t key = uint32_t{dtype.code} * 256 + dtype.bits;
  switch (key) {
    case kDLInt * 256 + 8:
      return f(int8_t{});
    case kDLInt * 256 + 16:
      return f(int16_t{});
    case kDLInt * 256 + 32:
      return f(int32_t{});
    case kDLInt * 256 + 64:
      return f(int64_t{});
    case kDLUInt * 256 + 8:
      return f(uint8_t{});
    case kDLUInt * 256 + 16:
      return f(uint16_t{});
    case kDLUInt * 256 + 32:
      return f(uint32_t{});
    case kDLUInt * 256 + 64:
      return f(uint64_t{});
    case kDLFloat * 256 + 32:
      return f(float{});
    case kDLFloat * 256 + 64:
      return f(double{});
    default:
      return {};
  }
}

}  // namespace

std::string shortest(float value) { return to_chars_text(value); }
std::string shortest(double value) { return to_chars_text(value); }

std::string float_literal(double value) {
  if (std::isnan(value)) return "nanf";
  const bool fits = std::isinf(value) || std::abs(value) <= std::numeric_limits<float>::max();
  if (fits && static_cast<double>(static_cast<float>(value)) == value) {
    return shortest(static_cast<float>(value)) + "f";
  }
  return shortest(value) + "f64";
}

std::string quote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  const std::string whole(text);  // ends in NUL
  for (size_t at = 0; at < whole.size();) {
    const uint32_t count = printable_bytes(whole.c_str() + at);
    const char c = whole[at];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (count == 0) {
      quoted += "\\x";
      quoted += kHex[byte / 16];
      quoted += kHex[byte % 16];
    } else {
      quoted.append(whole, at, count);
    }
    at += std::max(count, 1u);
  }
  return quoted + '"';
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || !is_letter(name[0])) return false;
  for (const char c : name) {
    if (!is_letter(c) && !is_digit(c) && c != '.') return false;
  }
  return true;
}

bool is_plain_identifier(std::string_view name) {
  return is_plain_name(name) && name.find('.') == std::string_view::npos && !name.starts_with("inf") &&
         !name.starts_with("nan");  // inff is a number
}

std::optional<std::string> element_text(const ir::Constant& constant, size_t index) {
  const ir::DType dtype = constant.type().dtype;
  if (dtype == ir::kBool) {
    const uint8_t value = load<uint8_t>(constant, index);
    if (value > 1) return std::nullopt;
    return value == 1 ? "True" : "False";
  }
  return with_type<std::optional<std::string>>(dtype, [&](auto type) -> std::optional<std::string> {
    const auto value = load<decltype(type)>(constant, index);
    if constexpr (std::is_floating_point_v<decltype(type)>) {
      if (std::isnan(value)) return std::nullopt;
    }
    return to_chars_text(value);
  });
}

std::optional<std::pair<std::string, std::string>> value_range(const ir::Constant& constant) {
  using Range = std::optional<std::pair<std::string, std::string>>;
  const auto count = static_cast<size_t>(constant.type().num_elements());
  return with_type<Range>(constant.type().dtype, [&](auto type) -> Range {
    using T = decltype(type);
    T least = std::numeric_limits<T>::max(), most = std::numeric_limits<T>::lowest();
    if constexpr (std::is_floating_point_v<T>) {
      least = std::numeric_limits<T>::infinity();
      most = -least;
    }
    for (size_t i = 0; i < count; ++i) {
      const T value = load<T>(constant, i);
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (least > most) return std::nullopt;
    return std::pair{to_chars_text(least), to_chars_text(most)};
  });
}

std::string_view scalar_suffix(ir::DType dtype) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.dtype == dtype) return suffix.text;
  }
  return "";
}

std::optional<Number> split_number(std::string_view token) {
  size_t end = 0;
  bool real = false;
  if (end < token.size() && token[end] == '-') ++end;
  if (token.substr(end).starts_with("inf") || token.substr(end).starts_with("nan")) {
    end += 3;
    real = true;
  } else {
    while (end < token.size() && is_digit(token[end])) ++end;
    if (end < token.size() && token[end] == '.') {
      real = true;
      ++end;
      while (end < token.size() && is_digit(token[end])) ++end;
    }
    const size_t sign = end + 1 < token.size() && (token[end + 1] == '-' || token[end + 1] == '+') ? 1 : 0;
    if (end + sign + 1 < token.size() && (token[end] == 'e' || token[end] == 'E') &&
        is_digit(token[end + sign + 1])) {
      real = true;
      end += sign + 1;
      while (end < token.size() && is_digit(token[end])) ++end;
    }
  }
  const std::string_view digits = token.substr(0, end), suffix = token.substr(end);
  if (suffix.empty()) return Number{real ? ir::kFloat32 : ir::kInt32, digits};
  for (const Suffix& known : kSuffixes) {
    if (known.text != suffix) continue;
    if (real && !known.dtype.is_float()) return std::nullopt;
    return Number{known.dtype, digits};
  }
  return std::nullopt;
}

std::optional<std::vector<uint8_t>> element_bytes(ir::DType dtype, std::string_view digits) {
  if (dtype == ir::kBool) {
    if (digits != "True" && digits != "False") return std::nullopt;
    return std::vector<uint8_t>{static_cast<uint8_t>(digits == "True")};
  }
  return with_type<std::optional<std::vector<uint8_t>>>(
      dtype, [&](auto type) { return read_bytes<decltype(type)>(digits); });
}

std::optional<int64_t> parse_int(std::string_view digits) { return read<int64_t>(digits); }

std::optional<double> parse_float(ir::DType dtype, std::string_view digits) {
  if (dtype != ir::kFloat32) return read<double>(digits);
  const std::optional<float> value = read<float>(digits);
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

}  // namespace qplan::text
