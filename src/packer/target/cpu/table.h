// What the CPU target can lower. Each group of operators has its rows, and everything that they name, in
// lower_<group>.cc.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_

#include <span>
#include <vector>

#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

struct TableRow {
  const char* name;
  // The nodes that the row would take when its pattern begins at the node; empty when it does not.
  Chain (*match)(const Lowering& lowering, uint32_t node);
  std::vector<Constraint> constraints;
  // Adds steps that define the results of the chain's last node. All constraints
  // hold; PackError (QPLAN_MODEL_UNSUPPORTED) only for tensors that no plan can hold.
  void (*lower)(Lowering& lowering, const Chain& chain);

  // All reasons against what the row matched; empty: it can be lowered.
  std::vector<Reason> check(const Matched& matched) const {
    return reasons_against<Matched>(constraints, matched);
  }
};

std::vector<TableRow> layer_rows();        // qnn.conv2d, qnn.dense with what follows them
std::vector<TableRow> binary_rows();       // operators with two operands, with the clip that follows
std::vector<TableRow> image_rows();        // pools, image.resize2d
std::vector<TableRow> reduce_rows();       // qnn.mean, argmax
std::vector<TableRow> softmax_rows();      // qnn.softmax
std::vector<TableRow> unary_chain_rows();  // any sequence of functions of one 8-bit value, as one table
std::vector<TableRow> quantize_rows();     // conversions between float32, int32 and 8 bits
std::vector<TableRow> movement_rows();     // nn.pad, transpose, reshape
std::vector<TableRow> concat_rows();       // concatenate, split

// All of them. The first row that matches wins: composites come before their parts.
std::span<const TableRow> lowering_table();

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
