/* A plugin of QEMU's TCG that counts what a guest executes between two addresses: instructions, loads,
 * stores, and the instructions of each basic block, from which benchmarks/firmware.py makes tables by step
 * and by function.
 *
 *   qemu-system-arm ... -plugin ./insn_count.so,begin=0x1234,end=0x5678,marks=0x9abc:0xdef0,out=counts.txt
 *
 * Counting begins when the instruction at `begin` is reached and ends when that at `end` is, once. Each of
 * `marks`, which are beginnings of functions, ends one segment and begins the next. The file has the lines
 *
 *   segment <address of the mark> <instructions> <loads> <stores>
 *   block <address> <instructions> <instructions of the block, once>
 *   total <instructions> <loads> <stores>
 *
 * Declared here is what is used of QEMU's plugin interface, version 1 (QEMU 6.0 to 8.1), as its documentation
 * ("QEMU TCG Plugins") has it: distributions install the emulator without the header. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
typedef struct plugin_info plugin_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum plugin_op { PLUGIN_ADD_U64 };
enum plugin_mem { PLUGIN_MEM_LOADS_AND_STORES = 3 };
enum plugin_registers { PLUGIN_NO_REGISTERS };
typedef void (*translate_callback)(plugin_id id, struct qemu_plugin_tb* block);
typedef void (*execute_callback)(unsigned int processor, void* user);
typedef void (*access_callback)(unsigned int processor, uint32_t access, uint64_t address, void* user);
typedef void (*exit_callback)(plugin_id id, void* user);

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, translate_callback callback);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb* block, execute_callback callback,
                                                 enum plugin_registers flags, void* user);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, enum plugin_op op,
                                                     void* counter, uint64_t increment);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn* instruction, access_callback callback,
                                             enum plugin_registers flags, enum plugin_mem which, void* user);
extern bool qemu_plugin_mem_is_store(uint32_t access);
extern void qemu_plugin_register_atexit_cb(plugin_id id, exit_callback callback, void* user);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb* block);
extern struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

/* Everything since the emulator began; what is reported are differences. */
struct counts {
  uint64_t instructions, loads, stores;
};
static struct counts now, at_begin, at_end;

/* By address of a block, of code in the same 16 MiB of memory as `begin`, from a multiple of 16 MiB on. An
 * instruction has at least two bytes. */
#define NUM_BLOCKS ((size_t)8 << 20)
static uint64_t *blocks, *blocks_at_begin;
static uint16_t* block_lengths;

#define MAX_MARKS 64
#define MAX_SEGMENTS 65536
static uint64_t begin_address, end_address, marks[MAX_MARKS];
static size_t num_marks, num_segments;
static struct {
  uint64_t mark;
  struct counts at;
} segments[MAX_SEGMENTS];
static enum { WAITING, COUNTING, DONE } state = WAITING;
static char out_path[4096] = "counts.txt";

static void at_address(unsigned int processor, void* user) {
  const uint64_t address = (uint64_t)(uintptr_t)user;
  (void)processor;
  if (state == WAITING && address == begin_address) {
    state = COUNTING;
    at_begin = now;
    memcpy(blocks_at_begin, blocks, NUM_BLOCKS * sizeof(*blocks));
  } else if (state == COUNTING && address == end_address) {
    state = DONE;
    at_end = now;
    for (size_t i = 0; i < NUM_BLOCKS; ++i) blocks_at_begin[i] = blocks[i] - blocks_at_begin[i];
  }
  if (state == COUNTING && num_segments < MAX_SEGMENTS) {
    segments[num_segments].mark = address;
    segments[num_segments++].at = now;
  }
}

/* Not by counters in line: QEMU 7 counts loads with the stores there. */
static void at_access(unsigned int processor, uint32_t access, uint64_t address, void* user) {
  (void)processor, (void)address, (void)user;
  if (qemu_plugin_mem_is_store(access)) {
    ++now.stores;
  } else {
    ++now.loads;
  }
}

static bool is_mark(uint64_t address) {
  for (size_t i = 0; i < num_marks; ++i) {
    if (marks[i] == address) return true;
  }
  return address == begin_address || address == end_address;
}

/* A call leads to the beginning of a block, so that marks need no look at single instructions. */
static void translate(plugin_id id, struct qemu_plugin_tb* block) {
  const uint64_t address = qemu_plugin_tb_vaddr(block);
  const size_t count = qemu_plugin_tb_n_insns(block);
  (void)id;
  if (is_mark(address)) {
    qemu_plugin_register_vcpu_tb_exec_cb(block, at_address, PLUGIN_NO_REGISTERS, (void*)(uintptr_t)address);
  }
  qemu_plugin_register_vcpu_tb_exec_inline(block, PLUGIN_ADD_U64, &now.instructions, count);
  qemu_plugin_register_vcpu_tb_exec_inline(block, PLUGIN_ADD_U64, &blocks[address / 2 % NUM_BLOCKS], count);
  block_lengths[address / 2 % NUM_BLOCKS] = (uint16_t)count;
  for (size_t i = 0; i < count; ++i) {
    struct qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(block, i);
    qemu_plugin_register_vcpu_mem_cb(instruction, at_access, PLUGIN_NO_REGISTERS, PLUGIN_MEM_LOADS_AND_STORES,
                                     NULL);
  }
}

static void print_difference(FILE* file, struct counts from, struct counts to) {
  fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", to.instructions - from.instructions,
          to.loads - from.loads, to.stores - from.stores);
}

static void report(plugin_id id, void* user) {
  (void)id, (void)user;
  FILE* file = fopen(out_path, "w");
  if (file == NULL) return;
  if (state == DONE) {
    for (size_t i = 0; i < num_segments; ++i) {
      fprintf(file, "segment %" PRIx64 " ", segments[i].mark);
      print_difference(file, segments[i].at, i + 1 < num_segments ? segments[i + 1].at : at_end);
    }
    const uint64_t first = begin_address / (2 * NUM_BLOCKS) * (2 * NUM_BLOCKS);
    for (size_t i = 0; i < NUM_BLOCKS; ++i) {
      if (blocks_at_begin[i] != 0) {
        fprintf(file, "block %" PRIx64 " %" PRIu64 " %u\n", first + 2 * i, blocks_at_begin[i],
                (unsigned)block_lengths[i]);
      }
    }
    fputs("total ", file);
    print_difference(file, at_begin, at_end);
  }
  fclose(file);
}

static bool read_option(const char* option) {
  const char* value = strchr(option, '=');
  if (value == NULL) return false;
  const size_t length = (size_t)(value++ - option);
  if (strncmp(option, "begin", length) == 0) {
    begin_address = strtoull(value, NULL, 0);
  } else if (strncmp(option, "end", length) == 0) {
    end_address = strtoull(value, NULL, 0);
  } else if (strncmp(option, "out", length) == 0) {
    snprintf(out_path, sizeof(out_path), "%s", value);
  } else if (strncmp(option, "marks", length) == 0) {
    while (*value != '\0' && num_marks < MAX_MARKS) {
      char* rest;
      marks[num_marks++] = strtoull(value, &rest, 0);
      value = *rest == ':' ? rest + 1 : rest;
    }
  } else {
    return false;
  }
  return true;
}

EXPORT int qemu_plugin_install(plugin_id id, const plugin_info* info, int argc, char** argv) {
  (void)info;
  for (int i = 0; i < argc; ++i) {
    if (!read_option(argv[i])) {
      fprintf(stderr, "insn_count: option '%s' is not known; known: begin, end, marks, out\n", argv[i]);
      return -1;
    }
  }
  blocks = calloc(NUM_BLOCKS, sizeof(*blocks));
  blocks_at_begin = calloc(NUM_BLOCKS, sizeof(*blocks));
  block_lengths = calloc(NUM_BLOCKS, sizeof(*block_lengths));
  if (blocks == NULL || blocks_at_begin == NULL || block_lengths == NULL) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  qemu_plugin_register_atexit_cb(id, report, NULL);
  return 0;
}
