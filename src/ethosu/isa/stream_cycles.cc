#include "src/ethosu/isa/stream_cycles.h"

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

StreamCycles stream_cycles(const Config& config, const Memories& memories, const Payload& payload) {
  TimeLine compute(config), all(config);
  Registers registers;
  for (uint32_t at = 0; at < payload.stream_words;) {
    const uint8_t* const from = payload.stream + uint64_t{at} * 4;
    const uint32_t count = least(2, payload.stream_words - at);
    const uint32_t words[2] = {load_word(from), count == 2 ? load_word(from + 4) : 0};
    uint32_t used = 0;
    Command command;
    if (decode(words, count, &used, &command)) break;
    at += used;
    if (!command.is_operation()) {
      registers.set(command);
    } else if (command.code == kOpDmaWait) {
      compute.wait_transfers(command.parameter);
      all.wait_transfers(command.parameter);
    } else if (command.code == kOpKernelWait) {
      compute.wait_kernels(command.parameter);
      all.wait_kernels(command.parameter);
    } else if (command.code == kOpDmaStart) {
      Transfer transfer;
      if (read_transfer(config, registers, &transfer)) break;
      const OperationCost cost = operation_cost(config, memories, transfer);
      compute.start_transfer(cost.compute);
      all.start_transfer(cost);
    } else if (command.starts_kernel()) {
      Kernel kernel;
      if (read_kernel(config, registers, command, &kernel)) break;
      const OperationCost cost = operation_cost(config, memories, kernel);
      compute.start_kernel(cost.compute);
      all.start_kernel(cost);
    }
  }
  return {compute.cycles(), all.cycles()};
}

}  // namespace qplan::ethosu
