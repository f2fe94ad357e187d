// nn.pad of zero points before a requantisation moves after it, where the convolution that follows can take
// it over: the input's zero point is the output's zero point in every contract, since both stand for 0.
#include "src/packer/passes/passes.h"
#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace {

std::optional<pattern::PostValue> pad_afterwards(const pattern::RewriteContext& c, std::string* why) {
  const int32_t zero_point = zero_point_of(c.pre(), c.matches["input_zero_point"]);
  if (scalar_value(*c.constant("pad_value")) != static_cast<double>(zero_point)) {
    *why = "the pad value is not the zero point " + std::to_string(zero_point);
    return std::nullopt;
  }
  std::vector<pattern::PostValue> operands = c.r.operands(c.root);
  operands[0] = c["data"];
  const pattern::PostValue requantized =
      c.post().call("qnn.requantize", operands, c.root.attrs(), c.root.name());
  const pattern::PreNode pad = c.node("pad");
  *why = "padded with the output's zero point afterwards";
  return c.post().call("nn.pad", {requantized, c.post().scalar(zero_point_of(c.pre(), c.root.operand(4)))},
                       pad.attrs(), pad.name());
}

}  // namespace

std::span<const pattern::Rewrite> move_pad_rewrites() {
  using pattern::any;
  using pattern::op;
  static const std::vector<pattern::Rewrite> rows = {
      {.name = "move_pad_behind_requantize",
       .pattern = op("qnn.requantize", {op("nn.pad", {any().dtypes({ir::kInt8, ir::kUint8}).as("data"),
                                                      pattern::constant().as("pad_value")})
                                            .attr("pad_mode", std::string("constant"))
                                            .as("pad")
                                            .one_use(),
                                        scalar_constant(), scalar_constant().as("input_zero_point"),
                                        scalar_constant(), scalar_constant()}),
       .build = pad_afterwards}};
  return rows;
}

std::unique_ptr<ir::Function> run_move_pad(const ir::Module&, const ir::Function& pre, PassContext& context) {
  return run_rewrites(move_pad_rewrites(), pre, context);
}

}  // namespace qplan::passes
