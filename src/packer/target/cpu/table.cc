#include "src/packer/target/cpu/table.h"

#include <iterator>

namespace qplan::target::cpu {
namespace {

std::vector<TableRow> all_rows() {
  std::vector<TableRow> rows;
  for (const auto& group : {layer_rows, binary_rows, image_rows, reduce_rows, softmax_rows, unary_chain_rows,
                            quantize_rows, movement_rows, concat_rows}) {
    std::vector<TableRow> of_group = group();
    rows.insert(rows.end(), std::move_iterator(of_group.begin()), std::move_iterator(of_group.end()));
  }
  return rows;
}

}  // namespace

std::span<const TableRow> lowering_table() {
  static const std::vector<TableRow> table = all_rows();
  return table;
}

}  // namespace qplan::target::cpu
