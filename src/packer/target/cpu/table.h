// The CPU's table of lowerings, and the conditions that several of its rows share.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

// Conditions that several lowerings have. A lowering runs only where all of its row's conditions hold, so
// that it reads what it needs without checking again.
inline constexpr const char* kMakeConstant = "run the model through a constant folder or bind it with --bind";
inline constexpr const char* kChooseScales =
    "quantise the model with other scales; where they are not constants, run it through a constant folder or "
    "bind "
    "them with --bind";

// What `read` refuses, "" where it refuses nothing: for conditions on values that reading checks.
template <typename Read>
std::string refusal_of(const Read& read) {
  try {
    read();
  } catch (const PackError& error) {
    if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
    return error.what();
  }
  return "";
}

// The node sequence's first node, or the first one with this operator; null where no node has it.
const ir::Node* node_of(const Matched& match, std::string_view op = {});

// The prefixes below are those of ids: "cpu.conv2d.".

// The attribute `contract` of the node names one of these.
Constraint contract_among(const std::string& prefix, std::initializer_list<format::Contract> computed,
                          std::string_view op = {});
// The dtype of the first node's operand, or of its result, is int8 or uint8.
Constraint operand_is_8_bit(const std::string& prefix, size_t operand);
// It is int8, uint8 or int16; the result is that of the last node.
Constraint operand_is_quantized(const std::string& prefix, size_t operand);
Constraint result_is_quantized(const std::string& prefix);
// Both operands and the result have one dtype, int8, uint8 or int16.
Constraint one_quantized_dtype(const std::string& prefix);
// int16 is computed under `tfl2` alone.
Constraint int16_contract(const std::string& prefix, std::string_view op = {});
// The attribute `layout` is NHWC.
Constraint nhwc(const std::string& prefix);
// `read` reads the scales and zero points and computes with them; it refuses what it cannot.
Constraint scales_are_constants(const std::string& prefix, void (*read)(const Matched& match));

// What the CPU target can lower. Each group of operators has its rows, and everything that they name, in
// lower_<group>.cc.

struct TableRow {
  const char* name;
  // The nodes that the row would take when its pattern begins at the node; empty when it does not.
  NodeSequence (*match)(const Lowering& lowering, uint32_t node);
  std::vector<Constraint> constraints;
  // Adds steps that define the results of the node sequence's last node. All constraints
  // hold; PackError (QPLAN_MODEL_UNSUPPORTED) only for tensors that no plan can hold.
  void (*lower)(Lowering& lowering, const NodeSequence& sequence);

  // All reasons against what the row matched; empty: it can be lowered.
  std::vector<Reason> check(const Matched& matched) const {
    return reasons_against<Matched>(constraints, matched);
  }
};

std::vector<TableRow> float_rows();        // operators on float32
std::vector<TableRow> resize_rows();       // image.resize2d on float32
std::vector<TableRow> layer_rows();        // qnn.conv2d, qnn.dense with what follows them
std::vector<TableRow> binary_rows();       // operators with two operands, with the clip that follows
std::vector<TableRow> image_rows();        // pools, image.resize2d
std::vector<TableRow> reduce_rows();       // qnn.mean, argmax
std::vector<TableRow> softmax_rows();      // qnn.softmax
std::vector<TableRow> unary_chain_rows();  // any sequence of functions of one 8-bit value, as one table
std::vector<TableRow> quantize_rows();     // conversions between float32, int32 and 8 bits
std::vector<TableRow> movement_rows();     // nn.pad, transpose, reshape
std::vector<TableRow> concat_rows();       // concatenate, split
std::vector<TableRow> number_rows();       // int32, casts, indices that the network computes
std::vector<TableRow> recurrent_rows();    // layers with a state
std::vector<TableRow> gather_rows();       // any sequence of strided_slice and take

// All of them. The first row that matches wins: composites come before their parts.
std::span<const TableRow> lowering_table();

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_TABLE_H_
