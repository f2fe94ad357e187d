// How early a kernel may start while blocks of the kernel before it are unwritten.
#ifndef QPLAN_SRC_ETHOSU_ISA_BLOCKDEP_H_
#define QPLAN_SRC_ETHOSU_ISA_BLOCKDEP_H_

#include <stdint.h>

#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

constexpr uint32_t kMaxBlockdep = 3;

// A BLOCKDEP that bounds of bytes prove safe for `kernel` right after `previous`: its job j, which may start
// while the last BLOCKDEP - j blocks of `previous` are unwritten, reads none of what those write. Jobs before
// j are no later blocks, so that what blocks 0 to j read is compared. 0, where nothing is proved: a kernel
// that writes what `previous` reads or writes, maps of several tiles, tables.
uint32_t safe_blockdep(const Kernel& previous, const Kernel& kernel);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_BLOCKDEP_H_
