#include "src/packer/import/pytorch/exported_json.h"

#include <algorithm>
#include <limits>

#include "src/packer/import/messages.h"
#include "src/packer/import/pytorch/limits.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

using importer::in_quotes;
using importer::invalid;
using importer::Unsupported;

// PyTorch 2.6 writes infinities and NaN as Python does, which is no JSON; later versions write strings.
std::string with_quoted_numbers(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      quoted += text[i++];  // what is escaped ends nothing
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
    std::string_view found;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_string && found.empty() && text.substr(i).starts_with(word)) found = word;
    }
    quoted += found.empty() ? std::string(1, text[i]) : cat('"', found, '"');
    i += found.empty() ? 0 : found.size() - 1;
  }
  return quoted;
}

[[noreturn]] void wrong_kind(const char* name, const char* expected) {
  invalid("member " + in_quotes(name) + " of the program is not " + expected);
}

}  // namespace

ir::Json parse_entry(std::span<const uint8_t> bytes, const std::string& entry) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() > kMaxJsonBytes)
    invalid(cat(in_quotes(entry), " has ", text.size(), " bytes, at most ", kMaxJsonBytes, " are read"));
  // Each value but the first comes after one of these; some are in strings.
  const auto values = std::ranges::count_if(text, [](char c) { return c == ',' || c == '[' || c == '{'; });
  if (static_cast<size_t>(values) > kMaxJsonValues)
    invalid(cat(in_quotes(entry), " has ", values, " commas and brackets, at most ", kMaxJsonValues,
                " are read: it is no network"));
  std::string reason;
  const bool is_python =
      text.find("Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos;
  ir::Json json =
      ir::parse_sorted_json(is_python ? with_quoted_numbers(text) : text, kMaxJsonMembers, &reason);
  if (json.is_discarded()) invalid(in_quotes(entry) + " " + reason);
  return json;
}

const ir::Json& member(const ir::Json& object, const char* name) {
  if (!object.is_object()) invalid("the program has something else than an object with " + in_quotes(name));
  const auto it = object.find(name);
  if (it == object.end()) invalid("the program lacks member " + in_quotes(name));
  return *it;
}

const ir::Json& object_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_object()) wrong_kind(name, "an object");
  return value;
}

const ir::Json& list_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_array()) wrong_kind(name, "a list");
  return value;
}

std::string text_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_string()) wrong_kind(name, "a string");
  return as_text(value);
}

int64_t integer_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_number_integer()) wrong_kind(name, "an integer");
  return as_integer(value);
}

bool boolean_member(const ir::Json& object, const char* name) {
  const ir::Json& value = member(object, name);
  if (!value.is_boolean()) wrong_kind(name, "a boolean");
  return value.get<bool>();
}

UnionMember union_member(const ir::Json& object) {
  if (!object.is_object() || object.size() != 1)
    invalid("the program has a union that is not an object of one member");
  return {object.begin().key(), object.begin().value()};
}

int64_t as_integer(const ir::Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      invalid(cat(number, " does not fit an integer"));
    return static_cast<int64_t>(number);
  }
  if (!value.is_number_integer()) invalid("the program has something else than an integer");
  return value.get<int64_t>();
}

std::string as_text(const ir::Json& value) {
  if (!value.is_string()) invalid("the program has something else than a string");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > kMaxNameBytes) invalid(cat("a name of the program has ", text.size(), " bytes"));
  return text;
}

double as_double(const ir::Json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  invalid("the program has something else than a number");
}

ScalarType exported_scalar_type(int64_t number) {
  constexpr ScalarType kNone = static_cast<ScalarType>(UINT8_MAX);
  constexpr ScalarType kTypes[] = {kNone,
                                   ScalarType::kUint8,
                                   ScalarType::kInt8,
                                   ScalarType::kInt16,
                                   ScalarType::kInt32,
                                   ScalarType::kInt64,
                                   ScalarType::kFloat16,
                                   ScalarType::kFloat32,
                                   ScalarType::kFloat64,
                                   kNone,
                                   kNone,
                                   kNone,
                                   ScalarType::kBool};
  constexpr int64_t kBfloat16 = 13;
  if (number >= 0 && number < std::ssize(kTypes) && kTypes[number] != kNone) return kTypes[number];
  if (number == kBfloat16) throw Unsupported{"bfloat16 elements"};
  throw Unsupported{cat("elements of scalar type ", number)};
}

}  // namespace qplan::pt
