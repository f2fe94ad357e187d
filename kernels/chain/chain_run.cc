// The loop over blocks of rows: from the output back, which rows each stage has to make; then forth, stage by
// stage, each by the variant that its own family chooses.
#include "kernels/chain/chain.h"
#include "src/base/checked.h"

namespace qplan {
namespace {

constexpr size_t kAlignment = 64;

template <typename Integer>
Integer round_up_64(Integer bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Stage {
  StepView view;
  const KernelFamily* family;
  uint32_t moving;       // input
  size_t input_row;      // bytes of a row of that input
  uint64_t input_h;      // its rows
  size_t output_row;     // bytes
  uint64_t tile_offset;  // of its output in scratch; the last stage has none
  uint32_t tile_rows;    // that the tile holds; of the last stage, those of a block
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
};

struct Stages {
  uint32_t count;
  uint32_t block_rows;  // of output
  uint64_t tile_bytes;  // of all tiles
  Stage stage[kMaxChainStages];

  Stages(const ChainArgs& args, uint32_t isa)
      : count(args.num_stages),
        block_rows(chain_block_rows(args.output_h, args.output_w, args.wanted_rows, isa)),
        tile_bytes(0) {
    for (uint32_t i = 0; i < count; ++i) bind(args, i);
    uint32_t rows = block_rows;
    for (uint32_t i = count; i-- > 0;) {
      Stage& at = stage[i];
      at.tile_rows = rows;
      rows = chain_input_rows(at.view.input(at.moving), *at.family, at.args, rows);
    }
    for (uint32_t i = 0; i + 1 < count; ++i) {
      stage[i].tile_offset = tile_bytes;
      tile_bytes += round_up_64(uint64_t{stage[i].tile_rows} * stage[i].output_row);
    }
  }

 private:
  void bind(const ChainArgs& args, uint32_t i) {
    Stage& at = stage[i];
    at.view = chain_stage(args.step, i);
    at.family = args.families->find(at.view.step->kernel());
    at.moving = chain_moving_input(at.view, *at.family);
    const StepTensor input = at.view.input(at.moving), output = at.view.output(0);
    at.input_h = static_cast<uint64_t>(input.extents[1]);
    at.input_row = static_cast<size_t>(input.size_bytes / args.batch / at.input_h);
    at.output_row =
        static_cast<size_t>(output.size_bytes / args.batch) / static_cast<size_t>(output.extents[1]);
    Error unused;
    // Checked at init.
    (void)at.family->bind(at.view, false, at.args, &unused);
  }
};

const KernelVariant* variant_for(const Stage& stage, const void* args, uint32_t isa, size_t scratch) {
  return choose_variant(*stage.family, args, isa, scratch, stage.view.step->schedule());
}

// What a stage takes for the most rows that it makes at once: no family takes more for fewer.
size_t stage_scratch(const Stage& stage, uint32_t isa) {
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  __builtin_memcpy(args, stage.args, sizeof(args));
  const Rows rows = {0, stage.tile_rows};
  stage.family->row_cut->cut(stage.view, stage.moving, 0, rows, nullptr, nullptr, args);
  return round_up_64(variant_for(stage, args, isa, SIZE_MAX)->scratch_bytes(args));
}

size_t most_stage_scratch(const Stages& stages, uint32_t isa) {
  size_t most = 0;
  for (uint32_t i = 0; i < stages.count; ++i) {
    const size_t bytes = stage_scratch(stages.stage[i], isa);
    if (bytes > most) most = bytes;
  }
  return most;
}

class Run {
 public:
  Run(const ChainArgs& args, uint32_t isa, void* scratch)
      : args_(args),
        isa_(isa),
        stages_(args, isa),
        tiles_(static_cast<uint8_t*>(scratch)),
        scratch_(tiles_ + stages_.tile_bytes),
        scratch_bytes_(most_stage_scratch(stages_, isa)) {}

  void units(uint32_t begin, uint32_t end) {
    const uint32_t blocks = (args_.output_h + stages_.block_rows - 1) / stages_.block_rows;
    for (uint32_t unit = begin; unit < end; ++unit) {
      const uint32_t image = unit / blocks, first = unit % blocks * stages_.block_rows;
      if (unit == begin || first == 0) forget();
      const uint32_t rest = args_.output_h - first;
      block(image, {first, first + (rest < stages_.block_rows ? rest : stages_.block_rows)});
    }
  }

 private:
  void forget() {
    for (Rows& held : held_) held = {0, 0};
  }

  void block(uint32_t image, Rows output) {
    Rows make[kMaxChainStages];
    uint32_t first = stages_.count - 1;
    make[first] = output;
    while (first > 0) {
      make[first - 1] = advance(first, make[first]);
      if (make[first - 1].begin == make[first - 1].end) break;
      --first;
    }
    for (uint32_t i = first; i < stages_.count; ++i) run(i, image, make[i]);
  }

  // Moves the tile before a stage on to the rows that the stage reads; returns those that are still to make.
  Rows advance(uint32_t stage, Rows output) {
    const Stage& reader = stages_.stage[stage];
    const Stage& writer = stages_.stage[stage - 1];
    const Rows need = reader.family->row_cut->reads(reader.args, output);
    Rows& held = held_[stage - 1];
    Rows make = need;
    if (need.begin < held.end) {
      uint8_t* tile = tiles_ + writer.tile_offset;
      const size_t kept = (held.end - need.begin) * writer.output_row;
      if (need.begin > held.begin) {
        __builtin_memmove(tile, tile + (need.begin - held.begin) * writer.output_row, kept);
      }
      make.begin = held.end;
    }
    held = need;
    return make;
  }

  void run(uint32_t index, uint32_t image, Rows output) {
    const Stage& stage = stages_.stage[index];
    const RowCut& row_cut = *stage.family->row_cut;
    const Rows need = row_cut.reads(stage.args, output);
    const uint8_t* rows;
    if (index == 0) {
      rows = static_cast<const uint8_t*>(stage.view.input_data(stage.moving)) +
             (image * stage.input_h + need.begin) * stage.input_row;
    } else {
      rows = tiles_ + stages_.stage[index - 1].tile_offset +
             (need.begin - held_[index - 1].begin) * stage.input_row;
    }
    uint8_t* to;
    if (index + 1 == stages_.count) {
      to = static_cast<uint8_t*>(stage.view.output_data(0)) +
           (size_t{image} * args_.output_h + output.begin) * stage.output_row;
    } else {
      to = tiles_ + stage.tile_offset + (output.begin - held_[index].begin) * stage.output_row;
    }
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    __builtin_memcpy(args, stage.args, sizeof(args));
    row_cut.cut(stage.view, stage.moving, image, output, rows, to, args);
    const KernelVariant* variant = variant_for(stage, args, isa_, scratch_bytes_);
    variant->run(args, 0, variant->units(args), scratch_);
  }

  const ChainArgs& args_;
  const uint32_t isa_;
  const Stages stages_;
  uint8_t* const tiles_;
  uint8_t* const scratch_;
  const size_t scratch_bytes_;
  Rows held_[kMaxChainStages] = {};  // by each tile, of the image at hand
};

}  // namespace

uint32_t chain_block_rows(uint32_t output_h, uint32_t output_w, uint32_t wanted_rows, uint32_t isa) {
  uint32_t rows = wanted_rows;
  if (rows == 0) rows = isa == QPLAN_ISA_REFERENCE ? 1 : ((kChainBlockPixels - 1) / output_w + 4) / 4 * 4;
  return rows < output_h ? rows : output_h;
}

uint32_t chain_input_rows(const StepTensor& input, const KernelFamily& family, const void* args,
                          uint32_t rows) {
  const uint64_t span = family.row_cut->span(args, rows);
  const auto input_h = static_cast<uint64_t>(input.extents[1]);
  return static_cast<uint32_t>(span < input_h ? span : input_h);
}

uint64_t chain_tile_bytes(const ChainArgs& args, uint32_t isa) { return Stages(args, isa).tile_bytes; }

size_t chain_scratch_bytes(const ChainArgs& args, uint32_t isa) {
  const Stages stages(args, isa);
  const uint64_t bytes = stages.tile_bytes + most_stage_scratch(stages, isa);
  // More than there are addresses is more than any plan provides.
  return bytes > SIZE_MAX - kAlignment ? SIZE_MAX / kAlignment * kAlignment : static_cast<size_t>(bytes);
}

uint64_t chain_work(const ChainArgs& args) {
  const Stages stages(args, QPLAN_ISA_REFERENCE);
  uint64_t work = 0;
  uint32_t rows = 1;  // of a stage's output, for one row of the chain's
  for (uint32_t i = stages.count; i-- > 0;) {
    const Stage& at = stages.stage[i];
    work = saturating_sum(work, at.family->work(at.args));
    rows = chain_input_rows(at.view.input(at.moving), *at.family, at.args, rows);
    if (i == 0) break;  // what the first stage reads does not move
    // Blocks of several rows keep no more rows each, and there are fewer of them.
    work = saturating_sum(work, saturating_product(args.batch, args.output_h, rows, at.input_row));
  }
  return work;
}

uint32_t chain_units(const ChainArgs& args, uint32_t isa) {
  const uint32_t rows = chain_block_rows(args.output_h, args.output_w, args.wanted_rows, isa);
  return args.batch * ((args.output_h + rows - 1) / rows);
}

void chain_run(const ChainArgs& args, uint32_t isa, uint32_t begin, uint32_t end, void* scratch) {
  Run(args, isa, scratch).units(begin, end);
}

}  // namespace qplan
