// One round of a recurrent layer as float operators compute it: what fold_recurrence joins to whole layers.
// The formulas are those of kernels/recurrent/recurrent.h; a round may write its sums in any order and split
// them from one product, from one for each gate, or from one of data and state side by side.
#ifndef QPLAN_SRC_PACKER_PASSES_RECURRENCE_H_
#define QPLAN_SRC_PACKER_PASSES_RECURRENCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::passes {

// One row for each cell, from first_row on, of the constant weights [units, k] of an nn.dense.
struct WeightPart {
  ir::ValueId weights;
  int64_t first_row = 0, first_column = 0, columns = 0;
  bool operator==(const WeightPart&) const = default;
};

// Elements of a constant, one for each cell from `first` on; of a constant of one element that one.
struct BiasPart {
  ir::ValueId constant;
  int64_t first = 0;
  bool operator==(const BiasPart&) const = default;
};

// What enters a gate: the sum of products and of biases. Data and states are named without the reshapes above
// them, which keep their elements [batch, k].
struct GateSum {
  struct Product {
    WeightPart part;
    ir::ValueId data;
    // Valid: what the gate r of a GRU acts on, of this state. Its data are r times the state, or the state.
    ir::ValueId reset_state;
  };
  std::vector<Product> products;
  std::vector<BiasPart> biases;
};

struct Round {
  bool is_gru = false;
  bool reset_after = false;
  int64_t batch = 0, cells = 0;
  std::vector<GateSum> gates;  // LSTM: i, f, g, o. GRU: z, r, n
  GateSum reset;               // GRU with reset_after: what the gate r multiplies
  ir::ValueId state;           // h after the round, and
  ir::ValueId cell;            // c, of an LSTM
  ir::ValueId old_state;       // before it; of a GRU
  ir::ValueId old_cell;        // of an LSTM
};

// The round whose state the node makes.
std::optional<Round> find_round(const ir::Function& function, const ir::Node& node);

ir::ValueId without_reshapes(const ir::Function& function, ir::ValueId value);

// The weights and biases of a round in the order of the IR's operator, once it is known which value is the
// state: equal for the rounds of one layer.
struct RecurrentLayer {
  bool is_gru = false, reset_after = false;
  int64_t batch = 0, cells = 0;
  std::vector<WeightPart> input, recurrent;   // of each gate
  std::vector<std::vector<BiasPart>> biases;  // of each gate
  std::vector<BiasPart> reset_biases;         // GRU with reset_after
  bool operator==(const RecurrentLayer&) const = default;

  int64_t num_gates() const { return static_cast<int64_t>(input.size()); }
  int64_t channels() const { return input[0].columns; }
};

// What a round reads.
struct RoundInputs {
  RecurrentLayer layer;
  ir::ValueId data;   // x
  ir::ValueId state;  // h before it; invalid: zeros, whose products were folded away
};
// `state` is the h that the round reads; nullopt where its gates do not all read it and one other value.
// Where x is h too, the marks of products tell them apart; gates without one have the same sum either way.
std::optional<RoundInputs> inputs_with_state(const Round& round, ir::ValueId state);
// The same with the first value that can be the round's h. In an LSTM that is the data of the last product of
// each gate.
std::optional<RoundInputs> inputs_alone(const Round& round);
// The round is one of this layer: its h is the value, of those that can be, with which it has these weights.
// An h of zeros has left no products.
std::optional<RoundInputs> inputs_with_layer(const Round& round, const RecurrentLayer& layer);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_RECURRENCE_H_
