// The contract between the pipeline and its passes. A pass reads one function and, where it has something to
// change, builds the new one; it keeps no state and never changes what it reads. passes.def lists all in
// canonical order.
#ifndef QPLAN_SRC_PACKER_PASSES_PASS_H_
#define QPLAN_SRC_PACKER_PASSES_PASS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/module.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {

// Evaluates a node whose operands are all constants, on the reference kernels: one constant per result.
// nullopt: the node has no kernel, it stays as it is.
using Evaluate = std::function<std::optional<std::vector<ir::ConstantRef>>(
    const ir::Node& node, std::span<const ir::ConstantRef> operands)>;

// Which zero point the target's convolution and fully connected kernels want of their input. The rest goes
// into the bias (fold_zero_point).
enum class ActivationZeroPoint : uint8_t {
  kDtypeMinimum,  // x86: the kernels multiply uint8 by int8; int8 - (-128) and uint8 - 0 are the same uint8
  kZero,          // signed by signed
  kDtypeMiddle,   // int8 * int8 alone: int8 - 0 and uint8 - 128 are the same int8
  kKeep,          // the kernels subtract it themselves
};

// What fold_constants may still spend, over all rounds: a small file could pad or broadcast a constant to any
// size, and pool it with any window.
struct FoldBudget {
  int64_t bytes = int64_t{256} << 20;  // of the constants it makes
  int64_t work = int64_t{1} << 32;     // bytes read and written, and elements that windows cover
};

struct PassContext {
  Evaluate evaluate;  // may be empty: only operators with a host-only evaluation are folded
  ActivationZeroPoint activation_zero_point = ActivationZeroPoint::kDtypeMinimum;
  FoldBudget fold_budget;
  bool keep_float = false;  // no lowering rewrites: those that give a float pattern a numeric contract
  // Whatever float operators are left stay: no rewrite waits any more for the dtype of what is beside them.
  bool floats_stay = false;
  // The user chose the contract of all operators, and the source meant others. So an operator that rounds
  // int8 and uint8 differently rounds as the canonical dtype does (unify_signedness).
  bool contract_is_chosen = false;
  // The last changes: contracts, layouts and the border are as they stay, and so are the bits of every layer.
  bool channels_may_go = false;
  // What the number of channels is a multiple of, where some go: vectors compute as many anyway, and devices
  // may run no others (target.h).
  size_t channel_multiple = 8;
  // Names of passes and of rewrites that are left out. The pipeline leaves out passes; a pass asks for its
  // rewrites.
  std::set<std::string, std::less<>> skip;
  LogFunction log;         // may be empty
  uint64_t num_fired = 0;  // rewrites since the context was made

  bool skipped(std::string_view name) const { return skip.contains(name); }
  // A rewrite happened: counted, and logged at debug level as "<pass>: '<node>': <what>".
  void fired(std::string_view pass, std::string_view node, std::string_view what);
};

struct Pass {
  const char* name;
  // The new function, which takes the old one's place in the module; null: nothing to change. The result type
  // of every output is the old one's. The pipeline verifies the function afterwards.
  std::unique_ptr<ir::Function> (*run)(const ir::Module& module, const ir::Function& pre,
                                       PassContext& context);
  // What the pass is made of, for --skip and near-miss reports; null where it is not made of rewrites.
  std::span<const pattern::Rewrite> (*rewrites)() = nullptr;
};

// passes.def: running them in this order until none changes anything gives the canonical form.
std::span<const Pass> all_passes();
// Null when unknown.
const Pass* find_pass(std::string_view name);

// Passes of the caller, and where they stand among the built-in ones.
struct UserPass {
  std::string name;
  std::string after;                       // the pass that it follows; empty: before all
  std::vector<pattern::Rewrite> rewrites;  // run until none fires, or
  // what Pass::run is; counts what it does with PassContext::fired.
  std::function<std::unique_ptr<ir::Function>(const ir::Function& pre, PassContext& context)> run;
};

// One place in the pipeline: either a built-in pass or one of the caller.
struct Stage {
  const Pass* built_in = nullptr;
  const UserPass* user = nullptr;

  std::string_view name() const { return user != nullptr ? std::string_view(user->name) : built_in->name; }
  std::span<const pattern::Rewrite> rewrites() const;
  std::unique_ptr<ir::Function> run(const ir::Module& module, const ir::Function& pre,
                                    PassContext& context) const;
};

// All passes in order; those of the caller come after the pass that they follow, in their own order.
// PackError (QPLAN_INVALID_ARGUMENT) for a name that is taken or missing, and for an unknown predecessor.
// user must outlive the stages.
std::vector<Stage> all_stages(std::span<const UserPass> user);

// The passes of passes.def as functions, for the table and for tests.

#define PASS(name)                                                                            \
  std::unique_ptr<ir::Function> run_##name(const ir::Module& module, const ir::Function& pre, \
                                           PassContext& context);
#define REWRITE_PASS(name) \
  PASS(name)               \
  std::span<const pattern::Rewrite> name##_rewrites();
#include "src/packer/passes/passes.def"
#undef REWRITE_PASS
#undef PASS

// The rows of qdq_to_integer, by what they treat. All are tried at the qnn.quantize that says in which
// numbers, and by which contract, the result is meant; rows that move a qnn.dequantize are tried at the
// operator that it is moved after.
std::vector<pattern::Rewrite> movement_rewrites();  // reshape, transpose, pad, max pool, concatenate, clip
std::vector<pattern::Rewrite> layer_rewrites();     // convolutions and fully connected layers
std::vector<pattern::Rewrite>
elementwise_rewrites();  // add, subtract, multiply; pools, means, softmax, sigmoid

// Why float operators are left: for the error of a target that has no kernel for them.

// Float operators that the passes left in a function which they do not change any more, with the near misses
// of the rewrites that could have taken them: those that are tried at the qnn.quantize after them. One line a
// place, of the first few places; empty when only moved floats, qnn.quantize and qnn.dequantize are left.
std::string explain_float_leftovers(const ir::Function& function, const PassContext& context);

// The reasons why rewrites of qdq_to_integer whose pattern matches do not fire, of the first few: as long as
// floats may become integers, since the patterns look for the integers under constants.
std::vector<std::string> explain_refusals(const ir::Function& function, const PassContext& context);

// Whether the function computes in float and nothing of it is quantised.
bool is_float_network(const ir::Function& function);

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_PASS_H_
