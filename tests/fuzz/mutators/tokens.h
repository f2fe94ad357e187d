// Mutates text token by token: words, numbers, strings and groups in brackets are taken out, repeated, moved
// and replaced, so that most results still get past the lexer.
#ifndef QPLAN_TESTS_FUZZ_MUTATORS_TOKENS_H_
#define QPLAN_TESTS_FUZZ_MUTATORS_TOKENS_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutators/numbers.h"

namespace qplan::fuzz {

class TokenMutator {
 public:
  // words: what the language knows.
  explicit TokenMutator(std::vector<std::string> words) : words_(std::move(words)) {}

  std::string mutate(Random& random, std::string_view text, size_t max_size) const {
    std::vector<std::string> tokens = split(text);
    for (int64_t count = random.chance(0.5) ? 1 : random.integer(2, 5); count > 0; --count) {
      if (tokens.empty()) tokens.push_back(word(random));
      change(random, &tokens);
    }
    return joined(tokens, max_size);
  }

  // LLVMFuzzerCustomMutator of a target that reads text. as_bytes: how often libFuzzer's own mutations are
  // used, which know no tokens.
  size_t mutate_input(uint8_t* data, size_t size, size_t max_size, unsigned int seed, double as_bytes) const {
    Random random(seed);
    if (random.chance(as_bytes)) return LLVMFuzzerMutate(data, size, max_size);
    const std::string text = mutate(random, {reinterpret_cast<const char*>(data), size}, max_size);
    std::memcpy(data, text.data(), text.size());
    return text.size();
  }

  // Lines and groups of `other` in the place of some of `text`.
  std::string cross(Random& random, std::string_view text, std::string_view other, size_t max_size) const {
    std::vector<std::string> tokens = split(text);
    const std::vector<std::string> others = split(other);
    if (tokens.empty() || others.empty()) return std::string(other.substr(0, max_size));
    const Range to = random.chance(0.5) ? line(random, tokens) : group(random, tokens);
    const Range from = random.chance(0.5) ? line(random, others) : group(random, others);
    replace(&tokens, to, {others.begin() + from.first, others.begin() + from.second});
    return joined(tokens, max_size);
  }

  static std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> tokens;
    for (size_t at = 0; at < text.size();) {
      const size_t end = token_end(text, at);
      tokens.emplace_back(text.substr(at, end - at));
      at = end;
    }
    return tokens;
  }

 private:
  using Range = std::pair<std::ptrdiff_t, std::ptrdiff_t>;

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
           c == '%' || c == '@' || c == '$';
  }
  static bool is_number(const std::string& token) {
    return is_digit(token[0]) || (token.size() > 1 && token[0] == '-' && is_digit(token[1]));
  }

  static size_t token_end(std::string_view text, size_t at) {
    const char first = text[at];
    size_t end = at + 1;
    if (first == '\n') return end;
    if (is_space(first)) {
      while (end < text.size() && is_space(text[end]) && text[end] != '\n') ++end;
    } else if (first == '"' || first == '\'') {
      while (end < text.size() && text[end] != first && text[end] != '\n') {
        end += text[end] == '\\' && end + 1 < text.size() ? 2 : 1;
      }
      return std::min(end + 1, text.size());
    } else if (is_word(first) || (first == '-' && end < text.size() && is_digit(text[end]))) {
      const auto continues = [&] {
        const bool exponent =
            (text[end] == '-' || text[end] == '+') && text[end - 1] == 'e' && is_digit(first);
        return is_word(text[end]) || exponent;
      };
      while (end < text.size() && continues()) ++end;
    }
    return end;
  }

  std::string word(Random& random) const { return words_.empty() ? "0" : pick(random, words_); }

  static std::string joined(const std::vector<std::string>& tokens, size_t max_size) {
    std::string text;
    for (const std::string& token : tokens) {
      if (text.size() + token.size() > max_size) break;
      text += token;
    }
    return text;
  }

  static void replace(std::vector<std::string>* tokens, Range range, const std::vector<std::string>& by) {
    tokens->erase(tokens->begin() + range.first, tokens->begin() + range.second);
    tokens->insert(tokens->begin() + range.first, by.begin(), by.end());
  }

  static Range run(Random& random, const std::vector<std::string>& tokens) {
    const size_t begin = index_below(random, tokens.size());
    const size_t length = static_cast<size_t>(random.integer(1, random.chance(0.2) ? 40 : 6));
    return {begin, std::min(begin + length, tokens.size())};
  }
  static Range line(Random& random, const std::vector<std::string>& tokens) {
    auto begin = static_cast<std::ptrdiff_t>(index_below(random, tokens.size()));
    auto end = begin + 1;
    while (begin > 0 && tokens[static_cast<size_t>(begin - 1)] != "\n") --begin;
    while (end < std::ssize(tokens) && tokens[static_cast<size_t>(end - 1)] != "\n") ++end;
    return {begin, end};
  }
  // A pair of brackets with what is between them; a run where there is none.
  static Range group(Random& random, const std::vector<std::string>& tokens) {
    for (int tries = 0; tries < 20; ++tries) {
      const size_t begin = index_below(random, tokens.size());
      if (tokens[begin] != "(" && tokens[begin] != "[" && tokens[begin] != "{") continue;
      int depth = 0;
      for (size_t i = begin; i < tokens.size(); ++i) {
        const std::string& token = tokens[i];
        depth += token == "(" || token == "[" || token == "{" ? 1 : 0;
        depth -= token == ")" || token == "]" || token == "}" ? 1 : 0;
        if (depth == 0) return {begin, i + 1};
      }
    }
    return run(random, tokens);
  }
  // Like run, from a comma to the next.
  static Range element(Random& random, const std::vector<std::string>& tokens) {
    for (int tries = 0; tries < 20; ++tries) {
      const size_t begin = index_below(random, tokens.size());
      if (tokens[begin] != ",") continue;
      int depth = 0;
      for (size_t i = begin + 1; i < tokens.size(); ++i) {
        const std::string& token = tokens[i];
        if (depth == 0 && (token == "," || token == ")" || token == "]" || token == "}")) return {begin, i};
        depth += token == "(" || token == "[" || token == "{" ? 1 : 0;
        depth -= token == ")" || token == "]" || token == "}" ? 1 : 0;
      }
    }
    return run(random, tokens);
  }
  static Range piece(Random& random, const std::vector<std::string>& tokens) {
    switch (random.integer(0, 3)) {
      case 0:
        return run(random, tokens);
      case 1:
        return line(random, tokens);
      case 2:
        return group(random, tokens);
      default:
        return element(random, tokens);
    }
  }

  // The suffix of a number stays: "0.5f", "3i64".
  static std::string changed_number(Random& random, const std::string& token) {
    size_t digits = token[0] == '-' ? 1 : 0;
    const bool real = token.find_first_of(".e") != std::string::npos;
    while (digits < token.size() && (is_digit(token[digits]) || token[digits] == '.')) ++digits;
    const std::string suffix = token.substr(digits);
    if (real || random.chance(0.05)) {
      char text[64];
      std::snprintf(text, sizeof(text), "%.9g", changed_real(random, std::strtod(token.c_str(), nullptr)));
      return text + (suffix.starts_with("e") ? "f" : suffix);
    }
    return std::to_string(changed_integer(random, std::strtoll(token.c_str(), nullptr, 10))) + suffix;
  }

  void change(Random& random, std::vector<std::string>* tokens) const {
    const size_t at = index_below(random, tokens->size());
    std::string& token = (*tokens)[at];
    switch (random.integer(0, 11)) {
      case 0:
        return replace(tokens, piece(random, *tokens), {});
      case 1: {  // repeated somewhere
        const Range from = piece(random, *tokens);
        const std::vector<std::string> copy(tokens->begin() + from.first, tokens->begin() + from.second);
        const auto to = static_cast<std::ptrdiff_t>(random.chance(0.5) ? from.second : at);
        return replace(tokens, {to, to}, copy);
      }
      case 2: {  // in the place of another
        const Range from = piece(random, *tokens);
        const std::vector<std::string> copy(tokens->begin() + from.first, tokens->begin() + from.second);
        return replace(tokens, piece(random, *tokens), copy);
      }
      case 3:
        tokens->insert(tokens->begin() + static_cast<std::ptrdiff_t>(at), word(random));
        return;
      case 4:
        if (token[0] == '"' || token[0] == '\'') mutate_bytes(random, &token, token.size() + 16);
        return;
      default:
        change_token(random, tokens, at);
    }
  }

  void change_token(Random& random, std::vector<std::string>* tokens, size_t at) const {
    for (size_t tries = 0; tries < 30; ++tries, at = index_below(random, tokens->size())) {
      std::string& token = (*tokens)[at];
      if (token.empty() || is_space(token[0])) continue;
      if (is_number(token) && random.chance(0.8)) {
        token = changed_number(random, token);
      } else if (random.chance(0.5)) {
        token = word(random);
      } else {
        const std::string& other = pick(random, *tokens);
        if (!other.empty() && is_word(other[0]) == is_word(token[0])) token = other;
      }
      return;
    }
  }

  std::vector<std::string> words_;
};

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_MUTATORS_TOKENS_H_
