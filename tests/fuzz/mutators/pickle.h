// Mutates a pickle opcode by opcode, with arguments that fit them.
#ifndef QPLAN_TESTS_FUZZ_MUTATORS_PICKLE_H_
#define QPLAN_TESTS_FUZZ_MUTATORS_PICKLE_H_

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/mutators/numbers.h"

namespace qplan::fuzz {

// A byte that is not an opcode of PyTorch counts as an opcode of a single byte.
inline std::vector<std::string> split_pickle(std::string_view pickle) {
  std::vector<std::string> opcodes;
  const auto number = [&](size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) {
      value = value << 8 | (at + i < pickle.size() ? static_cast<uint8_t>(pickle[at + i]) : 0u);
    }
    return value;
  };
  const auto line_end = [&](size_t at) {
    const size_t end = pickle.find('\n', std::min(at, pickle.size()));
    return end == std::string_view::npos ? pickle.size() : end + 1;
  };
  for (size_t at = 0; at < pickle.size();) {
    size_t end = at + 1;
    switch (static_cast<uint8_t>(pickle[at])) {
      case 'J':
      case 'r':
      case 'j':
        end += 4;
        break;
      case 'K':
      case 'q':
      case 'h':
      case 0x80:
        end += 1;
        break;
      case 'M':
        end += 2;
        break;
      case 'G':
        end += 8;
        break;
      case 0x8a:
        end += 1 + number(at + 1, 1);
        break;
      case 'X':
        end += 4 + number(at + 1, 4);
        break;
      case 'c':
        end = line_end(line_end(end));
        break;
      default:
        break;
    }
    end = std::min(end, pickle.size());
    opcodes.emplace_back(pickle.substr(at, end - at));
    at = end;
  }
  return opcodes;
}

class PickleMutator {
 public:
  PickleMutator(std::vector<std::string> names, std::vector<std::string> texts)
      : names_(std::move(names)), texts_(std::move(texts)) {}

  std::string mutate(Random& random, std::string_view pickle) const {
    std::vector<std::string> opcodes = split_pickle(pickle);
    for (int64_t count = random.chance(0.5) ? 1 : random.integer(2, 5); count > 0; --count) {
      if (opcodes.empty()) opcodes.push_back(opcode(random));
      const size_t at = index_below(random, opcodes.size());
      const auto place = opcodes.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = opcodes.begin() + static_cast<std::ptrdiff_t>(std::min(
                                             at + static_cast<size_t>(random.integer(1, 8)), opcodes.size()));
      switch (random.integer(0, 9)) {
        case 0:
          opcodes.erase(place, random.chance(0.5) ? place + 1 : end);
          break;
        case 1:
          opcodes.insert(place, opcode(random));
          break;
        case 2: {
          const std::vector<std::string> copy(place, end);
          opcodes.insert(opcodes.begin() + static_cast<std::ptrdiff_t>(index_below(random, opcodes.size())),
                         copy.begin(), copy.end());
          break;
        }
        case 3:
          std::swap(opcodes[at], opcodes[index_below(random, opcodes.size())]);
          break;
        case 4:
          opcodes[at] = opcode(random);
          break;
        default:
          change_argument(random, &opcodes);
      }
    }
    std::string result;
    for (const std::string& each : opcodes) result += each;
    return result;
  }

 private:
  static std::string little_endian(uint64_t value, size_t size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
    return bytes;
  }
  static std::string integer(int64_t value) {
    return "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
  }
  static std::string real(double value) {
    std::string bytes = little_endian(std::bit_cast<uint64_t>(value), 8);
    std::reverse(bytes.begin(), bytes.end());
    return "G" + bytes;
  }
  static std::string text(std::string_view value) {
    return "X" + little_endian(value.size(), 4) + std::string(value);
  }

  std::string opcode(Random& random) const {
    static const std::string kPlain = "(]})tNaesuQRb\x81\x85\x86\x87\x88\x89.";
    switch (random.integer(0, 6)) {
      case 0:
        return integer(special_integer(random));
      case 1:
        return real(special_real(random));
      case 2:
        return text(pick(random, texts_));
      case 3:
        return "c" + pick(random, names_);
      case 4:
        return std::string(random.chance(0.5) ? "q" : "h") + static_cast<char>(random.integer(0, 20));
      default:
        return std::string(1, kPlain[index_below(random, kPlain.size())]);
    }
  }

  void change_argument(Random& random, std::vector<std::string>* opcodes) const {
    for (int tries = 0; tries < 30; ++tries) {
      std::string& opcode = (*opcodes)[index_below(random, opcodes->size())];
      if (opcode.size() < 2) continue;
      switch (static_cast<uint8_t>(opcode[0])) {
        case 'J':
        case 'K':
        case 'M':
        case 0x8a:
          opcode = integer(special_integer(random));
          return;
        case 'G':
          opcode = real(special_real(random));
          return;
        case 'X': {
          std::string value = opcode.size() > 5 ? opcode.substr(5) : "";
          if (random.chance(0.7)) {
            value = pick(random, texts_);
          } else {
            mutate_bytes(random, &value, value.size() + 16);
          }
          opcode = text(value);
          return;
        }
        case 'c':
          opcode = "c" + pick(random, names_);
          return;
        default:
          opcode.back() = static_cast<char>(random.integer(0, 255));
          return;
      }
    }
  }

  std::vector<std::string> names_;  // "torch\nFloatStorage\n"
  std::vector<std::string> texts_;
};

}  // namespace qplan::fuzz

#endif  // QPLAN_TESTS_FUZZ_MUTATORS_PICKLE_H_
