// The block in which a kernel makes its output.
#ifndef QPLAN_SRC_ETHOSU_COMPILER_BLOCK_CHOICE_H_
#define QPLAN_SRC_ETHOSU_COMPILER_BLOCK_CHOICE_H_

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu::compiler {

// Sets block, weight order and an estimate of the bytes of the weights, whose regions are set: of the blocks
// that fit SHRAM the one with the least estimated cycles, of equal ones the one that fetches least. False
// where none fits.
bool choose_block(const Config& config, Kernel* kernel);
// The same of height and width alone: the depth and the weight order are those that the weights are encoded
// for.
bool choose_block_extent(const Config& config, Kernel* kernel);

}  // namespace qplan::ethosu::compiler

#endif  // QPLAN_SRC_ETHOSU_COMPILER_BLOCK_CHOICE_H_
