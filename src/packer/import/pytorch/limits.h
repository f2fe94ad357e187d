// Limits of a PyTorch archive. Archives are untrusted: a small file can describe any amount of work, so that
// each kind of work is counted against one of these, and contents against zip_archive.h's.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_LIMITS_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_LIMITS_H_

#include <cstddef>

namespace qplan::pt {

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

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_LIMITS_H_
