// The parts of the text below expressions: tokens, numbers, strings, names, types, attributes, Relay's own
// spellings, and the constants of its metadata.
#ifndef QPLAN_SRC_PACKER_TEXT_SYNTAX_H_
#define QPLAN_SRC_PACKER_TEXT_SYNTAX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/op_def.h"

namespace qplan::text {

// Tokens of Relay text, one at a time: the text is not copied, and nothing depends on its length but the
// position.

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum class TokenKind {
  kEnd,
  kPunctuation,  // one character, or ->
  kIdentifier,   // qnn.conv2d, def, True
  kNumber,       // with sign and suffix
  kString,       // "text"
  kLocal,        // %x, %0, %0.1, %"any text"
  kGlobal,       // @main, @"any text"
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0;       // offset in the text
  std::string_view text;  // as written
  std::string value;      // strings and names: without quotes, % and @
  bool quoted = false;
  std::string_view type_comment;  // "ty=..." of the last such comment between the token before and this one

  bool is(std::string_view punctuation) const {
    return kind == TokenKind::kPunctuation && text == punctuation;
  }
  bool is_word(std::string_view word) const { return kind == TokenKind::kIdentifier && text == word; }
};

class Lexer {
 public:
  // name: of the file, for messages.
  Lexer(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  // Skips white space and comments (/* */ nests, // ends with the line). kEnd at the end, again and again.
  Token next();
  std::string_view name() const { return name_; }
  size_t position() const { return position_; }
  void set_position(size_t position) { position_ = position; }
  std::string_view rest() const { return text_.substr(position_); }

  // "net.relay:3:17: " + text + ": `the line`", one line of bounded length.
  std::string locate(size_t offset, const std::string& text) const;
  [[noreturn]] void fail(size_t offset, const std::string& text) const;  // PackError, QPLAN_MODEL_INVALID

 private:
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  bool at_end() const { return position_ >= text_.size(); }
  void skip_blank();
  void skip_comment();
  std::string read_string();
  void read_name(Token* token);
  void skip_number();

  std::string_view text_;
  std::string_view name_;
  size_t position_ = 0;
  std::string_view type_comment_;
};

// A lexer with its current token, and what parsing does with it all the time: accept, expect, refuse with a
// place.
class TokenStream {
 public:
  TokenStream(std::string_view text, std::string_view name) : lexer_(text, name) { advance(); }
  std::string_view name() const { return lexer_.name(); }

  const Token& token() const { return token_; }
  bool is(std::string_view punctuation) const { return token_.is(punctuation); }
  bool is_word(std::string_view word) const { return token_.is_word(word); }
  bool at_end() const { return token_.kind == TokenKind::kEnd; }

  void advance() { token_ = lexer_.next(); }
  void rewind();
  // Whether the token after the current one is this punctuation.
  bool next_is(std::string_view punctuation);
  // An attribute's name: an identifier or string followed by '='.
  bool at_attr();

  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  Token take() { return take(token_.kind, ""); }
  Token take(TokenKind kind, const char* what);
  // The text after the current token, which then ends the stream.
  std::string_view take_rest();

  [[noreturn]] void fail(const std::string& text) const { lexer_.fail(token_.begin, text); }
  [[noreturn]] void fail_at(const Token& token, const std::string& text) const {
    lexer_.fail(token.begin, text);
  }
  [[noreturn]] void unexpected(const std::string& expected) const;
  [[noreturn]] void fail_at(size_t place, const std::string& text) const { lexer_.fail(place, text); }
  std::string locate(size_t place, const std::string& text) const { return lexer_.locate(place, text); }

 private:
  Lexer lexer_;
  Token token_;
};

// How numbers, strings and names are written and read. Locale-independent, exact in both directions.

// The shortest decimal that reads back to the same float32 or float64, without suffix: "0.0186579", "1e-05",
// "inf".
std::string shortest(float value);
std::string shortest(double value);
// An attribute's number: suffix f where float32 holds it exactly, else f64.
std::string float_literal(double value);
std::string quote(std::string_view text);         // with \" \\ \n \t \xHH
bool is_plain_name(std::string_view name);        // may follow % and @ without quotes
bool is_plain_identifier(std::string_view name);  // an attribute's name

// An element of a constant without suffix, or nothing where the text could not give back its bits: float16,
// NaN, dtypes below 8 bits, a bool that is neither 0 nor 1.
std::optional<std::string> element_text(const ir::Constant& constant, size_t index);
// Smallest and largest element as text, NaN left out; nothing where elements cannot be written, or for bool.
std::optional<std::pair<std::string, std::string>> value_range(const ir::Constant& constant);
// "f", "", "i8", ...: the suffix of a scalar of the dtype.
std::string_view scalar_suffix(ir::DType dtype);

struct Number {
  ir::DType dtype;
  std::string_view digits;  // with sign, without suffix
};
// A number token taken apart; nothing where the suffix is unknown. Without suffix: int32, or float32 where
// the digits have a point or an exponent.
std::optional<Number> split_number(std::string_view token);
// The value in the dtype's bytes (bool takes True and False, floats inf and nan); nothing where it does not
// fit.
std::optional<std::vector<uint8_t>> element_bytes(ir::DType dtype, std::string_view digits);
std::optional<int64_t> parse_int(std::string_view digits);
// Rounded to the dtype first, float32 or float64.
std::optional<double> parse_float(ir::DType dtype, std::string_view digits);

// The parts of the text without names: types and attribute values.

// One type, or several in parentheses.
struct ResultType {
  std::vector<ir::TensorType> types;
  bool tuple = false;
};

ir::TensorType parse_tensor_type(TokenStream* tokens);  // Tensor[(1, 3), int8], or int8 for a scalar
ResultType parse_result_type(TokenStream* tokens);

int64_t parse_integer(TokenStream* tokens);
std::vector<std::string> parse_strings(TokenStream* tokens);  // ["a", "b"]

struct AttrName {
  std::string text;
  bool quoted = false;
};
AttrName parse_attr_name(TokenStream* tokens);  // with the '=' after it
// Nothing for None, which means that the attribute is not there.
std::optional<ir::AttrValue> parse_attr_value(TokenStream* tokens);
// The value as the operator's attribute of that name wants it, where Relay writes it in another way: 1 for 1f
// or True, 2 for [2], [2] for 2, [] for a list of lists. Everything else is left to the operator's checks.
ir::AttrValue coerce_attr(const op::OpDef& op, const std::string& name, ir::AttrValue value);

// Relay's calls that say the same as the IR's in another way, as the operators' OpDefs know them: attributes
// without meaning here, rounding as a string, extents taken from the operand.

// The name of the operator with this name among its OpDef::relay_names; else the name.
std::string_view ir_operator(std::string_view relay_name);
// Whether Relay's operator gives back its (only) operand: copy, nn.dropout, ...
bool is_identity(std::string_view relay_name);

// What becomes of an attribute as Relay writes it: OpDef::relay_attrs.
using op::RelayAttr;
RelayAttr read_relay_attr(std::string_view relay_name, const std::string& attr, const ir::AttrValue& value);

// Why the attributes of these names are too few for Relay's operator: RelayAttrDef::is_required. "" where
// they are not.
std::string missing_relay_attr(std::string_view relay_name, const std::vector<std::string>& given);

// The IR's call from Relay's, whose operands are values of the function: OpDef::complete.
void complete_relay_call(ir::Function* function, ir::Node* node);

// Base64 with padding (RFC 4648, section 4).
std::string base64_encode(std::span<const uint8_t> bytes);
// Nothing where a character or the length is wrong.
std::optional<std::vector<uint8_t>> base64_decode(std::string_view text);

// The constants of meta[relay.Constant][k]: TVM's JSON of a map from type key to array of nodes, with its
// NDArrays base64-encoded next to it.

// The JSON, without the line "#[metadata]".
std::string write_metadata(const std::vector<ir::ConstantRef>& constants);
// PackError without a place.
std::vector<ir::ConstantRef> read_metadata(std::string_view json);

}  // namespace qplan::text

#endif  // QPLAN_SRC_PACKER_TEXT_SYNTAX_H_
