// Writes first seeds of the runtime's targets: plans of one step each, of every kernel family and of a
// region, VTA blobs, operator lists, a recorded job. usage: fuzz_seeds DIRECTORY      (tests/fuzz/corpus)
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "qplan/npu_oplist.h"
#include "qplan/npu_sim.h"
#include "tests/conformance/workload.h"
#include "tests/fuzz/all_kernels_plan.h"
#include "tests/fuzz/plan_mutator.h"
#include "tests/vta/sim/product_blob.h"

namespace qplan::conformance {
// Workloads may be of VTA's format, or of a target's own. Here they are lists alone, without a compiler.
Workload make_vta_workload(const qplan_npu_capabilities&, Size, uint32_t) { return {}; }
bool has_compiler(const Source&) { return false; }
std::string scratch_of(const Source&, const Workload&, uint64_t*) { return {}; }
void ask_arrangements(const Source&, Workload*) {}
std::string compile_native(const Source&, const Workload&, Workload*) { return {}; }
void become_native(Workload, Workload*) {}
}  // namespace qplan::conformance
namespace qplan::target::external {
bool asks_scratch(const qplan_npu_target&) { return false; }
}  // namespace qplan::target::external

namespace qplan::testing {
namespace {

using Bytes = std::vector<uint8_t>;

std::filesystem::path root;

void write(const std::string& target, const std::string& name, const Bytes& bytes) {
  std::filesystem::create_directories(root / target);
  std::ofstream file(root / target / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Step `index` alone: its tensors, at places of their own, and the bytes of its constants.
Bytes single_step(const Bytes& whole, size_t index) {
  PlanObjects from;
  if (!from.read(whole)) return {};
  PlanObjects to;
  to.header = from.header;
  to.plan.targets = std::move(from.plan.targets);
  to.plan.steps.push_back(std::move(from.plan.steps[index]));
  objects::KernelStepT& step = *to.plan.steps[0]->body.AsKernelStep();
  const auto num_tensors = static_cast<uint32_t>(from.plan.tensors.size());

  std::vector<uint32_t> used = step.inputs;
  used.insert(used.end(), step.outputs.begin(), step.outputs.end());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const auto number = [&](uint32_t t) {
    if (t >= num_tensors) return static_cast<uint32_t>(t - num_tensors + used.size());  // a tile of a cascade
    return static_cast<uint32_t>(std::lower_bound(used.begin(), used.end(), t) - used.begin());
  };

  to.plan.functions.push_back(std::make_unique<objects::FunctionT>());
  objects::FunctionT& function = *to.plan.functions[0];
  function.name = "main";
  function.num_steps = 1;
  function.scratch_per_worker = 1 << 14;
  for (int bank = 0; bank < 2; ++bank) {
    to.plan.banks.push_back(std::make_unique<objects::BankT>());
    to.plan.banks[static_cast<size_t>(bank)]->alignment = 64;
  }
  to.plan.banks[0]->kind = objects::BankKind_ARENA;
  to.plan.banks[1]->kind = objects::BankKind_CONSTANT;
  to.segments.resize(2);
  for (const uint32_t t : used) {
    objects::TensorT& tensor = *from.plan.tensors[t];
    const Bytes& segment = from.segments[tensor.bank];
    tensor.first_use = tensor.last_use = 0;
    if (from.plan.banks[tensor.bank]->kind == objects::BankKind_CONSTANT) {
      Bytes& constants = to.segments[1];
      constants.resize((constants.size() + 63) / 64 * 64);
      const auto first = segment.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
      tensor.bank = 1;
      tensor.offset = constants.size();
      constants.insert(constants.end(), first, first + static_cast<std::ptrdiff_t>(tensor.size));
    } else {
      uint64_t& size = to.plan.banks[0]->size;
      tensor.bank = 0;
      tensor.offset = (size + 63) / 64 * 64;
      size = tensor.offset + tensor.size;
      const bool is_output = std::find(step.outputs.begin(), step.outputs.end(), t) != step.outputs.end();
      (is_output ? function.outputs : function.inputs).push_back(number(t));
    }
    to.plan.tensors.push_back(std::move(from.plan.tensors[t]));
  }
  if (to.segments[1].empty()) {
    to.plan.banks.pop_back();
    to.segments.pop_back();
  }
  for (uint32_t& t : step.inputs) t = number(t);
  for (uint32_t& t : step.outputs) t = number(t);
  if (objects::CascadeParamsT* cascade = step.params.AsCascadeParams()) {
    for (const auto& layer : cascade->layers) {
      for (uint32_t& t : layer->inputs) t = number(t);
      for (uint32_t& t : layer->outputs) t = number(t);
    }
  }
  return to.write();
}

uint16_t copy_kernel() {
  uint16_t copy = 0;
#define QPLAN_KERNEL(id, name, descriptor, params, args_bytes) \
  if (std::string(#name) == "copy") copy = id;
#include "format/kernels.def"
#undef QPLAN_KERNEL
  return copy;
}

// b = W a on the device, else a copy. block: of the 16 elements, where the tensors are copied; 0: none.
Bytes region_plan(bool in_place, uint32_t block) {
  PlanSpec spec;
  const uint32_t a = spec.add_tensor({16}, "a"), b = spec.add_tensor({16}, "b");
  const uint32_t target = spec.add_device("vta", 256);
  spec.add_region(target, QPLAN_NPU_BLOB_VTA, vta::testing::product_blob(), {a}, {b}, 1, "product");
  std::vector<BindSpec>& binds = spec.steps.back().npu->binds;
  binds = {{vta::testing::kProductInput, format::NpuUse_INPUT, 0, 0, 16, {}, 0, 1, 0, 0},
           {vta::testing::kProductOutput, format::NpuUse_OUTPUT, 0, 256, 16, {}, 0, 1, 0, 0}};
  const uint32_t bank = spec.bank_of(target);
  spec.banks[bank].size = 272;
  if (in_place) {
    spec.tensors[a].bank = spec.tensors[b].bank = bank;
    spec.tensors[a].offset = 0;
    spec.tensors[b].offset = 256;
  } else {
    binds[0].strides = binds[1].strides = std::vector<uint64_t>{1};
    binds[0].block = binds[1].block = block;
    binds[0].block_stride = binds[1].block_stride = block;
  }
  spec.add_step(copy_kernel(), {a}, {b}, copy_params(0));
  for (TensorSpec& tensor : spec.tensors) tensor.last_use = 1;
  spec.add_main({a}, {b}, 64);
  const AlignedBytes bytes = build_plan(spec);
  return Bytes(bytes.data(), bytes.data() + bytes.size());
}

// to = W from on the device, which has copies of both at these offsets of its bank; a copy in its place.
void add_product(PlanSpec* spec, uint32_t target, uint32_t from, uint32_t to, uint64_t in, uint64_t out) {
  spec->add_region(target, QPLAN_NPU_BLOB_VTA, vta::testing::product_blob(), {from}, {to}, 1, "product");
  const std::vector<uint64_t> strides = {1};
  spec->steps.back().npu->binds = {
      {vta::testing::kProductInput, format::NpuUse_INPUT, 0, in, 16, strides, 0, 1, 0, 0},
      {vta::testing::kProductOutput, format::NpuUse_OUTPUT, 0, out, 16, strides, 0, 1, 0, 0}};
  spec->add_step(copy_kernel(), {from}, {to}, copy_params(0));
}

// Plans that init refuses: unless b is in a buffer of the device, its copy is over other bytes of the bank.
// c = t is read after that, which lies there; or the tensor m that is kept there.
Bytes overwriting_plan(bool over_kept) {
  PlanSpec spec;
  const uint32_t a = spec.add_tensor({16}, "a"), x = spec.add_tensor({16}, "x"),
                 b = spec.add_tensor({16}, "b"), t = spec.add_tensor({16}, "t"),
                 c = spec.add_tensor({16}, "c");
  const uint32_t target = spec.add_device("vta", 256);
  const auto add = [&](uint32_t from, uint32_t to, uint64_t in, uint64_t out) {
    add_product(&spec, target, from, to, in, out);
  };
  if (over_kept) {
    add(x, t, 0, 256);
    spec.steps.front().npu->binds[1].kept = 2;  // alone
  } else {
    spec.tensors[t].bank = spec.bank_of(target);
    spec.tensors[t].offset = 256;
    spec.add_step(copy_kernel(), {x}, {t}, copy_params(0));
  }
  add(a, b, 0, 256);
  if (over_kept) {
    add(t, c, 256, 512);
    spec.steps[4].npu->binds[0].kept = 4;  // steps
  } else {
    spec.add_step(copy_kernel(), {t}, {c}, copy_params(0));
  }
  spec.banks[spec.bank_of(target)].size = 528;
  for (TensorSpec& tensor : spec.tensors) tensor.last_use = over_kept ? 5 : 3;
  spec.add_main({a, x}, {b, c}, 64);
  const AlignedBytes bytes = build_plan(spec);
  return Bytes(bytes.data(), bytes.data() + bytes.size());
}

// m = W a, b = W m on the device, which keeps m between its regions; else copies. m may be an output, too.
Bytes kept_plan(bool is_output) {
  PlanSpec spec;
  const uint32_t a = spec.add_tensor({16}, "a"), m = spec.add_tensor({16}, "m"),
                 b = spec.add_tensor({16}, "b");
  const uint32_t target = spec.add_device("vta", 256);
  const auto add = [&](uint32_t from, uint32_t to, uint64_t in, uint64_t out) {
    add_product(&spec, target, from, to, in, out);
  };
  add(a, m, 0, 256);
  add(m, b, 256, 512);
  spec.steps[0].npu->binds[1].kept = is_output ? 1 : 2;
  spec.steps[2].npu->binds[0].kept = 2;  // steps
  spec.banks[spec.bank_of(target)].size = 528;
  for (TensorSpec& tensor : spec.tensors) tensor.last_use = 3;
  spec.add_main({a}, is_output ? std::vector<uint32_t>{b, m} : std::vector<uint32_t>{b}, 64);
  const AlignedBytes bytes = build_plan(spec);
  return Bytes(bytes.data(), bytes.data() + bytes.size());
}

void write_plans() {
  const Bytes whole = AllKernelsPlan::make();
  PlanObjects objects;
  if (!objects.read(whole)) return;
  for (size_t i = 0; i < objects.plan.steps.size(); ++i) {
    Bytes seed = single_step(whole, i);
    const Bytes tail = {static_cast<uint8_t>(i),
                        0xe4,
                        0xb1,
                        0x39,
                        0x6c,
                        0,
                        static_cast<uint8_t>(i * 13),
                        static_cast<uint8_t>(16 + i % 7 * 5)};
    seed.insert(seed.end(), tail.begin(), tail.end());
    const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
    write("plan", "step_" + number, seed);
    seed.resize(seed.size() - tail.size());
    for (const char c : std::string("[{}]")) seed.push_back(static_cast<uint8_t>(c));
    seed.push_back(0);
    if (i % 3 == 0) write("tuning", "step_" + number, seed);
  }
  for (const bool in_place : {true, false}) {
    Bytes seed = region_plan(in_place, 0);
    seed.insert(seed.end(), {1, 0, 0, 0, 0, static_cast<uint8_t>(in_place ? 0 : 4), 3, 0});
    write("plan", in_place ? "region_in_place" : "region_copied", seed);
  }
  Bytes blocks = region_plan(false, 5);
  blocks.insert(blocks.end(), {1, 0, 0, 0, 0, 4, 3, 0});
  write("plan", "region_blocks", blocks);
  for (const bool is_output : {false, true}) {
    Bytes kept = kept_plan(is_output);
    kept.insert(kept.end(), {1, 0, 0, 0, 0, 4, 3, 0});
    write("plan", is_output ? "region_kept_output" : "region_kept", kept);
  }
  for (const bool over_kept : {false, true}) {
    Bytes overwriting = overwriting_plan(over_kept);
    overwriting.insert(overwriting.end(), {1, 0, 0, 0, 0, 4, 3, 0});
    write("plan", over_kept ? "region_over_kept" : "region_over_tensor", overwriting);
  }
}

void write_blobs() {
  using namespace vta;
  using namespace vta::testing;
  write("vta", "product", product_blob());
  // An ALU instruction of each kind between the product and the store, and loads with padding.
  BlobBuilder builder;
  const uint32_t uops = builder.region(
      RegionKind::kConstants, uops_raw(kDefaultConfig, {Uop{0, 0, 0}, Uop{1, 0, 0}, Uop{0, 1, 0}}), "uops");
  const uint32_t x = builder.region(RegionKind::kInput, 256, "x");
  const uint32_t y = builder.region(RegionKind::kOutput, 64, "y");
  builder.add(load(Memory::kUop, 0, 0, 3), uops);
  Instruction acc = load(Memory::kAcc, 0, 0, 2);
  acc.y_pad_0 = acc.x_pad_1 = 1;
  builder.add(acc, x);
  builder.add(alu_imm(AluOp::kMin, 0, 2, 100))
      .add(alu_imm(AluOp::kMax, 0, 2, -100))
      .add(alu(AluOp::kAdd, 1, 3));
  builder.add(alu_imm(AluOp::kShr, 0, 2, 3)).add(tokens("push.next", alu_imm(AluOp::kMul, 0, 1, 5)));
  builder.add(tokens("pop.prev push.prev", store(0, 0, 2)), y);
  builder.label("sum").add(tokens("pop.next", finish()));
  write("vta", "alu", builder.build());
}

void write_job() {
  using namespace vta;
  using namespace vta::testing;
  // The product of product_blob.h at fixed addresses: micro-ops, weights, input and output, each on a page of
  // its own.
  std::vector<Instruction> stream = {load(Memory::kUop, 0, 0x1000 / kUopBytes, 1),
                                     load(Memory::kInp, 0, 0x3000 / kInpBytes, 1),
                                     tokens("push.next", load(Memory::kWgt, 0, 0x2000 / kWgtBytes, 1)),
                                     gemm(0, 1, true),
                                     tokens("pop.prev push.next", gemm(0, 1)),
                                     tokens("pop.prev push.prev", store(0, 0x4000 / kOutBytes, 1)),
                                     tokens("pop.next", finish())};
  std::string job =
      "target vta\nbase 0x1000\nsize 0x4000\nload 0x1000 u\nload 0x2000 w\nload 0x3000 x\nrun i\ncheck "
      "0x4000 0x10 y\n";
  Bytes x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 9);
  const std::vector<std::pair<std::string, Bytes>> files = {{"u", Bytes(4, 0)},
                                                            {"w", product_weights()},
                                                            {"x", x},
                                                            {"i", bytes_of(kDefaultConfig, stream)},
                                                            {"y", product_of(x)}};
  Bytes seed(job.begin(), job.end());
  for (const auto& [name, bytes] : files) {
    const std::string mark = "--- " + name + "\n";
    seed.insert(seed.end(), mark.begin(), mark.end());
    seed.insert(seed.end(), bytes.begin(), bytes.end());
    seed.push_back('\n');
  }
  write("replay", "product", seed);
}

void write_lists() {
  qplan_npu_capabilities capabilities{};
  capabilities.struct_size = sizeof(capabilities);
  capabilities.blob_formats[0] = QPLAN_NPU_BLOB_OPLIST;
  capabilities.contracts = capabilities.contracts_per_channel =
      QPLAN_NPU_TFL2 | QPLAN_NPU_TFL1 | QPLAN_NPU_F32E;
  capabilities.input_zero_point = capabilities.output_zero_point = capabilities.pad_value = 1;
  capabilities.max_buffer_bytes = 1 << 20;
  capabilities.max_binds = 64;
  // Two of each kind: `ask` takes no other.
  for (uint32_t seed = 1; seed <= 2 * QPLAN_NPU_OP_LAST; ++seed) {
    const uint32_t kind = 1 + seed % QPLAN_NPU_OP_LAST;
    const conformance::Workload workload = conformance::make_oplist_workload(
        {.capabilities = capabilities,
         .ask = [kind](const qplan_npu_op& op) { return std::string(op.op == kind ? "" : "another kind"); }},
        conformance::Size::kSmall, seed);
    if (workload.blob.size() < 4096) write("oplist", "list_" + std::to_string(seed), workload.blob);
  }
}

}  // namespace
}  // namespace qplan::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  using namespace qplan::testing;
  root = argv[1];
  write_plans();
  write_blobs();
  write_job();
  write_lists();
  return 0;
}
