// A region as an operator list, or as what the library makes of it.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/external/external.h"
#include "src/packer/target/region.h"

namespace qplan::target::external {

// ---- an operator on uint8 as one on int8, for devices that know int8 alone: every byte has its highest bit
// flipped, so that each stored value is 128 less

namespace {

constexpr int32_t kShift = 128;
constexpr uint8_t kFlip = 0x80;

bool is_uint8(const DLTensor* t) { return t != nullptr && t->dtype.code == kDLUInt && t->dtype.bits == 8; }

ir::ConstantRef flipped(const ir::Constant& from) {
  std::vector<uint8_t> bytes(from.bytes().begin(), from.bytes().end());
  for (uint8_t& byte : bytes) byte ^= kFlip;
  return std::make_shared<const ir::Constant>(ir::TensorType{ir::kInt8, from.type().shape}, std::move(bytes));
}

// Entries stand where the flipped input finds them.
ir::ConstantRef flipped_table(const ir::Constant& from, bool flips_input) {
  const bool flips_entries = from.type().dtype == ir::kUint8;
  std::vector<uint8_t> bytes(from.bytes().size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i ^ (flips_input ? kFlip : 0)] =
        static_cast<uint8_t>(from.bytes()[i] ^ (flips_entries ? kFlip : 0));
  }
  return std::make_shared<const ir::Constant>(ir::TensorType{ir::kInt8, from.type().shape}, std::move(bytes));
}

// Halves are rounded away from zero, and what is above zero is another thing in int8: only averages without
// halves are the same. Those are averages of odd numbers of elements, in windows that are all inside.
bool has_no_halves(const qplan_npu_op& op) {
  for (int i = 0; i < 2; ++i) {
    const int64_t end = (op.output->shape[1 + i] - 1) * int64_t{op.strides[i]} + int64_t{op.window[i]};
    if (op.window[i] % 2 == 0 || op.pads[i] != 0 || end > op.inputs[0]->shape[1 + i]) return false;
  }
  return true;
}

std::string rounding_error(const qplan_npu_op& op) {
  if (!is_uint8(op.output)) return "";
  if (op.op == QPLAN_NPU_OP_RESIZE_BILINEAR)
    return "an interpolation of uint8 rounds otherwise than one of int8, which is all that the device has";
  if (op.op == QPLAN_NPU_OP_AVG_POOL2D && op.contract == QPLAN_NPU_TFL2 && !has_no_halves(op))
    return "an average of uint8 over an even number of elements rounds otherwise than one of int8, which is "
           "all that the device has";
  return "";
}

void shift_values(qplan_npu_op* op) {
  const bool has_zero_points = qplan_npu_op_has_contract(op->op);
  for (uint32_t i = 0; i < 2 && has_zero_points && op->op != QPLAN_NPU_OP_SOFTMAX; ++i) {
    if (is_uint8(op->inputs[i])) op->input_zero_points[i] -= kShift;
  }
  if ((op->flags & QPLAN_NPU_OP_PAD_VALUE) != 0 && is_uint8(op->inputs[0])) op->pad_value -= kShift;
  if (!is_uint8(op->output)) return;
  if (has_zero_points) op->output_zero_point -= kShift;
  op->clamp_min -= kShift;
  op->clamp_max -= kShift;
}

}  // namespace

std::string to_signed(ReadOp* read) {
  qplan_npu_op& op = read->op;
  if (std::string error = rounding_error(op); !error.empty()) return error;
  shift_values(&op);
  if (op.op == QPLAN_NPU_OP_LOOKUP) {
    read->weights = flipped_table(*read->weights, is_uint8(op.inputs[0]));
  } else if (is_uint8(op.weights)) {
    op.weights_zero_point -= kShift;
    read->weights = flipped(*read->weights);
  }
  std::vector<std::pair<const DLTensor*, const ir::Constant*>> constants;
  if (read->weights != nullptr) constants.emplace_back(op.weights, read->weights.get());
  for (uint32_t i = 0; i < read->constants.size(); ++i) {
    ir::ConstantRef& constant = read->constants[i];
    const DLTensor* const tensor = qplan_npu_op_input(&op, i);
    if (constant == nullptr || !is_uint8(tensor)) continue;
    constant = flipped(*constant);
    constants.emplace_back(tensor, constant.get());
  }
  for (DLTensor& tensor : read->tensors) {
    if (is_uint8(&tensor)) tensor.dtype.code = kDLInt;
    for (const auto& [place, constant] : constants) {
      if (place == &tensor) tensor.data = const_cast<uint8_t*>(constant->bytes().data());
    }
  }
  const char* const error = qplan_npu_op_check(&op);
  return error == nullptr ? "" : error;
}

// ---- the region

namespace {

constexpr uint64_t kAlignment = QPLAN_OPLIST_ALIGNMENT;
constexpr DLDataType kInt32 = {kDLInt, 32, 1}, kFloat32 = {kDLFloat, 32, 1};

class RegionCompiler {
 public:
  RegionCompiler(const qplan_npu_target& library, uint64_t config, const std::vector<PatternRow>& rows,
                 const ir::Module& module, const ir::Function& region)
      : library_(library),
        config_(config),
        flips_(flips_uint8(library, config)),
        rows_(rows),
        module_(module),
        region_(region) {}

  CompiledRegion run() {
    qplan_npu_capabilities capabilities = {};
    capabilities.struct_size = sizeof(capabilities);
    if (library_.capabilities(config_, &capabilities) != QPLAN_NPU_OK)
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("target library: target '", library_.name, "' states no capabilities"));
    place_tensors();
    for (uint32_t n = 0; n < region_.nodes().size(); ++n) add_node(n);
    result_.blob = writer_.finish(capabilities.hash);
    if (asks_scratch(library_)) ask_scratch(capabilities.hash);
    if (asks_memory_classes(library_)) ask_memory_classes();
    result_.format = QPLAN_NPU_BLOB_OPLIST;
    if (library_.compile != nullptr) translate();
    result_.program_bytes = result_.blob.size();
    return std::move(result_);
  }

 private:
  // An activation's dtype as the device sees it.
  DLDataType dl(ir::DType dtype) const {
    if (flips_ && dtype == ir::kUint8) dtype = ir::kInt8;
    return {dtype.code, dtype.bits, dtype.lanes};
  }

  // Parameters and results have slots of their own; what lies between shares the scratch slot.
  void place_tensors() {
    for (uint32_t i = 0; i < region_.params().size(); ++i)
      bind(region_.params()[i], QPLAN_NPU_USE_INPUT, format::NpuUse_INPUT, i);
    for (uint32_t i = 0; i < region_.outputs().size(); ++i)
      bind(region_.outputs()[i], QPLAN_NPU_USE_OUTPUT, format::NpuUse_OUTPUT, i);
    place_scratch();
  }

  void bind(ir::ValueId value, uint32_t usage, format::NpuUse use, uint32_t index) {
    const ir::TensorType& type = region_.type(value);
    RegionSlot slot;
    slot.use = use;
    slot.index = index;
    slot.arrangement = ask_layout(library_, config_, type, usage, &slot.alignment);
    slot.slot = writer_.add_slot(usage, slot.arrangement.size);
    const uint32_t tensor = writer_.add_tensor(slot.slot, 0, dl(type.dtype), type.shape);
    if (!tensor_of_.emplace(value.index, tensor).second)
      throw PackError(QPLAN_INTERNAL, cat(region_.name(), ": a value crosses its border twice"));
    result_.slots.push_back(std::move(slot));
  }

  struct Block {
    uint64_t offset, size;
    uint32_t last_use;
  };

  // First fit, in the order of the nodes: blocks that are still to be read are not given away.
  void place_scratch() {
    std::vector<uint32_t> last_use(region_.num_values(), 0);
    for (uint32_t n = 0; n < region_.nodes().size(); ++n) {
      for (const ir::ValueId operand : region_.nodes()[n].operands) last_use[operand.index] = n;
    }
    std::vector<Block> live;
    std::optional<uint32_t> slot;
    for (uint32_t n = 0; n < region_.nodes().size(); ++n) {
      std::erase_if(live, [n](const Block& block) { return block.last_use < n; });
      for (const ir::ValueId value : region_.nodes()[n].results) {
        if (tensor_of_.contains(value.index)) continue;
        const ir::TensorType& type = region_.type(value);
        Block block{0, (static_cast<uint64_t>(type.size_bytes()) + kAlignment - 1) / kAlignment * kAlignment,
                    std::max(n, last_use[value.index])};
        for (const Block& other : live) {  // ascending
          if (block.offset + block.size <= other.offset) break;
          block.offset = std::max(block.offset, other.offset + other.size);
        }
        live.insert(std::ranges::upper_bound(live, block.offset, {}, &Block::offset), block);
        if (!slot) slot = writer_.add_slot(QPLAN_NPU_USE_SCRATCH, 0);
        writer_.grow_slot(*slot, block.offset + block.size);
        tensor_of_[value.index] = writer_.add_tensor(*slot, block.offset, dl(type.dtype), type.shape);
      }
    }
    scratch_ = slot;
    if (slot) bind_scratch(writer_.slot_bytes(*slot));
  }

  void bind_scratch(uint64_t bytes) {
    RegionSlot scratch;
    scratch.slot = *scratch_;
    scratch.use = format::NpuUse_SCRATCH;
    scratch.arrangement.size = bytes;
    scratch.alignment = kAlignment;
    result_.slots.push_back(std::move(scratch));
  }

  // What the library says takes the place of what the list's operators leave to each other.
  void ask_scratch(uint64_t capabilities_hash) {
    uint64_t bytes = 0;
    qplan_npu_reason why = {};
    why.place = QPLAN_OPLIST_NONE;
    if (library_.scratch(config_, result_.blob.data(), result_.blob.size(), &bytes, &why) != QPLAN_NPU_OK)
      refuse_program(why);
    constexpr uint64_t kMost = uint64_t{1} << 40;  // sums of a plan's buffers cannot wrap
    if (bytes > kMost)
      throw PackError(QPLAN_INVALID_ARGUMENT,
                      cat("target library: target '", library_.name, "': asks for ", bytes,
                          " bytes of scratch for region '", region_.name(), "', expected at most ", kMost));
    std::erase_if(result_.slots, [](const RegionSlot& slot) { return slot.use == format::NpuUse_SCRATCH; });
    if (bytes == 0) return;
    if (!scratch_) scratch_ = writer_.add_slot(QPLAN_NPU_USE_SCRATCH, 0);
    writer_.grow_slot(*scratch_, bytes);
    bind_scratch(bytes);
    result_.blob = writer_.finish(capabilities_hash);
  }

  void ask_memory_classes() {
    qplan_npu_memory_classes classes = {};
    classes.struct_size = sizeof(classes);
    qplan_npu_reason why = {};
    why.place = QPLAN_OPLIST_NONE;
    if (library_.memory_classes(config_, result_.blob.data(), result_.blob.size(), &classes, &why) !=
        QPLAN_NPU_OK)
      refuse_program(why);
    const auto checked = [&](const char* what, uint32_t memory_class, uint32_t most) {
      if (memory_class > most)
        throw PackError(
            QPLAN_INVALID_ARGUMENT,
            cat("target library: target '", library_.name, "': asks for memory of class ", memory_class,
                " for the ", what, " of region '", region_.name(), "', expected at most ", most));
      return static_cast<format::MemoryClass>(memory_class);
    };
    result_.memory_class = checked("program", classes.program, format::MemoryClass_MAX);
    for (RegionSlot& slot : result_.slots) {
      slot.memory_class =
          slot.use == format::NpuUse_INPUT    ? checked("inputs", classes.inputs, format::MemoryClass_DRAM)
          : slot.use == format::NpuUse_OUTPUT ? checked("outputs", classes.outputs, format::MemoryClass_DRAM)
                                              : checked("scratch", classes.scratch, format::MemoryClass_DRAM);
    }
  }

  [[noreturn]] void refuse_program(const qplan_npu_reason& why) const {
    const std::string text(why.text, strnlen(why.text, sizeof(why.text)));
    if (why.place < region_.nodes().size()) refuse(why.place, ".compile", text);
    throw PackError(QPLAN_MODEL_UNSUPPORTED, cat(library_.name, ": region '", region_.name(), "': ", text));
  }

  [[noreturn]] void refuse(uint32_t node, const char* id, std::string text) const {
    throw RegionRefused(node, {cat(library_.name, id), std::move(text), ""});
  }

  void add_node(uint32_t n) {
    const ir::Node& node = region_.nodes()[n];
    const ir::Function* composite = node.op == nullptr ? module_.find(node.callee) : nullptr;
    if (composite == nullptr) refuse(n, ".composite", "the operator is in no pattern of the target");
    const ir::AttrValue* name = composite->attrs().find("Composite");
    const auto row =
        std::ranges::find(rows_, name == nullptr ? "" : std::get<std::string>(*name), &PatternRow::name);
    if (row == rows_.end()) refuse(n, ".composite", cat("'", node.callee, "' is no composite of the target"));
    const pattern::Pre pre(*composite);
    const auto matches = pattern::match(row->pattern, pre, pattern::PreValue{composite->outputs()[0]});
    if (!matches) refuse(n, ".composite", cat("'", node.callee, "' is not what its pattern says"));
    const Candidate candidate{pre, *matches};
    ReadOp read;
    if (std::string error = read_op(candidate, flips_, &read); !error.empty())
      refuse(n, ".list", std::move(error));
    record(node, *composite, read);
    UnitCycles unit;
    unit.name = node.name;
    unit.cycles = row->cycles(candidate, costs());
    result_.cycles += unit.cycles;
    result_.units.push_back(std::move(unit));
  }

  DeviceCosts costs() const {
    DeviceCosts result;
    qplan_npu_target_costs given = {};
    given.struct_size = sizeof(given);
    if (library_.costs == nullptr || library_.costs(config_, &given) != QPLAN_NPU_OK) return result;
    if (given.macs_per_cycle != 0) result.macs_per_cycle = given.macs_per_cycle;
    if (given.dma_bytes_per_cycle != 0) result.dma_bytes_per_cycle = given.dma_bytes_per_cycle;
    if (given.dma_latency_cycles != 0) result.dma_latency_cycles = given.dma_latency_cycles;
    return result;
  }

  // The tensor of an activation of the composite: a parameter, for which the call has an operand.
  uint32_t operand(const ir::Node& call, const ir::Function& composite, ir::ValueId value) {
    const auto param = std::ranges::find(composite.params(), value);
    if (param == composite.params().end())
      throw PackError(QPLAN_INTERNAL, cat(composite.name(), ": an operand is no parameter"));
    return tensor_of_.at(call.operands[static_cast<size_t>(param - composite.params().begin())].index);
  }

  template <typename T>
  uint32_t vector(DLDataType dtype, const std::vector<T>& values) {
    if (values.empty()) return QPLAN_OPLIST_NONE;
    const int64_t shape[] = {static_cast<int64_t>(values.size())};
    return writer_.add_constant(dtype, shape,
                                {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
  }
  uint32_t constant(const ir::ConstantRef& value) {
    if (value == nullptr) return QPLAN_OPLIST_NONE;
    const ir::DType dtype = value->type().dtype;
    return writer_.add_constant({dtype.code, dtype.bits, dtype.lanes}, value->type().shape, value->bytes());
  }

  void record(const ir::Node& call, const ir::Function& composite, const ReadOp& read) {
    const qplan_npu_op& from = read.op;
    qplan_oplist_op op = empty_op(from.op, from.contract);
    op.flags = from.flags;
    for (size_t i = 0; i < read.inputs.size(); ++i) {
      (i < 2 ? op.inputs[i] : op.more_inputs[i - 2]) = read.constants[i] != nullptr
                                                           ? constant(read.constants[i])
                                                           : operand(call, composite, read.inputs[i]);
    }
    op.num_inputs = from.num_inputs;
    op.axis = from.axis;
    op.output = tensor_of_.at(call.results[0].index);
    op.weights = constant(read.weights);
    op.bias = constant(read.bias);
    op.multipliers = vector(kInt32, read.multipliers);
    op.shifts = vector(kInt32, read.shifts);
    op.scales = vector(kFloat32, read.scales);
    std::ranges::copy(from.input_zero_points, op.input_zero_points);
    op.output_zero_point = from.output_zero_point;
    op.weights_zero_point = from.weights_zero_point;
    op.pad_value = from.pad_value;
    op.left_shift = from.left_shift;
    op.clamp_min = from.clamp_min;
    op.clamp_max = from.clamp_max;
    op.groups = from.groups;
    std::ranges::copy(from.window, op.window);
    std::ranges::copy(from.strides, op.strides);
    std::ranges::copy(from.dilations, op.dilations);
    std::ranges::copy(from.pads, op.pads);
    op.num_scales = from.num_scales;
    writer_.add_op(op, call.name);
  }

  void translate() {
    std::vector<uint8_t> program;
    const auto write = [](void* user, const void* bytes, uint64_t count) -> qplan_npu_status {
      const auto* from = static_cast<const uint8_t*>(bytes);
      auto* to = static_cast<std::vector<uint8_t>*>(user);
      to->insert(to->end(), from, from + count);
      return QPLAN_NPU_OK;
    };
    qplan_npu_reason why = {};
    why.place = QPLAN_OPLIST_NONE;
    if (library_.compile(config_, result_.blob.data(), result_.blob.size(), write, &program, &why) !=
        QPLAN_NPU_OK) {
      refuse_program(why);
    }
    result_.blob = std::move(program);
    if (library_.blob_format != 0) result_.format = library_.blob_format;
  }

  const qplan_npu_target& library_;
  uint64_t config_;
  bool flips_;
  const std::vector<PatternRow>& rows_;
  const ir::Module& module_;
  const ir::Function& region_;
  OplistWriter writer_;
  std::optional<uint32_t> scratch_;         // the list's slot
  std::map<uint32_t, uint32_t> tensor_of_;  // by value of the region's function
  CompiledRegion result_;
};

}  // namespace

CompiledRegion compile_region(const qplan_npu_target& library, uint64_t config,
                              const std::vector<PatternRow>& rows, const ir::Module& module,
                              const ir::Function& region) {
  return RegionCompiler(library, config, rows, module, region).run();
}

}  // namespace qplan::target::external
