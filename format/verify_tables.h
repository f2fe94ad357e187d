// Verification of a flatbuffer's structure by lists of what the fields of each table are: what FlatBuffers'
// verifier does by generated code for each table, in a tenth of the bytes. tests/format compares the lists
// with the schemas, and the verdicts with those of FlatBuffers' verifier.
#ifndef QPLAN_FORMAT_VERIFY_TABLES_H_
#define QPLAN_FORMAT_VERIFY_TABLES_H_

#include <stdint.h>

#include "format/plan_generated.h"

namespace qplan::format {

// Tables of plan.fbs and names.fbs that fields refer to, those of a union in the union's order; the other
// kernels' parameters follow the first ones.
enum TableKind : uint8_t {
  kPlanTable,          // A
  kNamesTable,         // B
  kTargetTable,        // C
  kBankTable,          // D
  kTensorTable,        // E
  kQuantizationTable,  // F
  kStepTable,          // G
  kFunctionTable,      // H
  kStateTable,         // I
  kSelfCheckTable,     // J
  kNpuBindTable,       // K
  kCustomOptionTable,  // L
  kConstantCopyTable,  // M
  kKernelStepTable,    // N
  kNpuStepTable,       // O
  kConv2dParamsTable,  // P
  kFullyConnectedParamsTable,
  kPool2dParamsTable,
  kAddParamsTable,  // S
  kNumTableKinds = kConv2dParamsTable + KernelParams_MAX,
};

// The fields of a table in the order of the schema, one or two letters each:
//
//   1 2 4 8   a scalar of so many bytes
//   a b d h   a vector of scalars of 1, 2, 4 or 8 bytes
//   s S       a string, a vector of strings
//   tX vX     a table, a vector of tables; X: 'A' + TableKind
//   uX        a union: X is its first member's; the field before it is its type, which counts from 1
const char* fields_of(TableKind table);

// Nesting of the schemas is Plan > Step > KernelStep > CascadeParams > KernelStep > params; more is not a
// plan.
inline constexpr uint32_t kMaxTableDepth = 8;

// The root of a flatbuffer, or null where it is damaged: each table, vector and string that it leads to is
// within the bytes and aligned, as far as FlatBuffers' verifier sees to that, and they are not nested deeper
// than schemas are. bytes: at a multiple of 8.
const void* verified_root(const uint8_t* bytes, uint64_t size, TableKind root);

}  // namespace qplan::format

#endif  // QPLAN_FORMAT_VERIFY_TABLES_H_
