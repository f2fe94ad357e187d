/* firmware.h -- what C written by `qplan emit-c` needs of the library. C99 and C++17; it includes no other
 * header of qplan or of DLPack. Programs call the functions that the written files define, not these. */
#ifndef QPLAN_FIRMWARE_H_
#define QPLAN_FIRMWARE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- attributes, by compiler: each may be defined before this header is included ---- */
/* Where an array begins: at a multiple of `bytes`. Stands before the declaration. */
#if !defined(QPLAN_ALIGNED)
#if defined(__ICCARM__)
#define QPLAN_PRAGMA(text) _Pragma(#text)
#define QPLAN_ALIGNED(bytes) QPLAN_PRAGMA(data_alignment = bytes)
#elif defined(__GNUC__) || defined(__clang__) || defined(__ARMCC_VERSION)
#define QPLAN_ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#error "qplan: define QPLAN_ALIGNED(bytes) for this compiler"
#endif
#endif
/* Sections of constants and of the model's memory: QPLAN_FLASH and QPLAN_RAM, nothing unless they are
 * defined, for example as __attribute__((section(".dtcm"))). */
#if !defined(QPLAN_FLASH)
#define QPLAN_FLASH
#endif
#if !defined(QPLAN_RAM)
#define QPLAN_RAM
#endif
/* A condition that the compiler checks. name: unique in the file. */
#define QPLAN_STATIC_ASSERT(name, condition) typedef char name[(condition) ? 1 : -1]

/* ---- a plan as an array ---- */
/* A kernel family and the variants of it that a program links. Names: qplan_family_<family>, with all
 * variants of the build, _reference with the reference alone, _optimized without it, _form with what int8
 * layers with float epilogues take alone. */
typedef struct qplan_kernel_family qplan_kernel_family;

typedef struct qplan_firmware_model {
  const void* plan; /* 64-byte aligned */
  size_t plan_bytes;
  const qplan_kernel_family* const*
      families; /* by the number of the family; NULL: the plan does not use it */
  uint32_t num_families;
} qplan_firmware_model;

/* Opens the plan and makes a session in the memory, of a size that the plan states (`qplan inspect`), 64-byte
 * aligned. 0, or a negative QPLAN_* of qplan.h. The digest is not looked at, and steps of devices are
 * refused. */
int32_t qplan_firmware_init(const qplan_firmware_model* model, void* memory, size_t size);
/* One of several memories of a model. */
typedef struct qplan_firmware_memory {
  void* base;
  size_t size; /* bytes */
} qplan_firmware_memory;
/* The same of a plan for several memory areas: one memory for each, in the plan's order, as
 * qplan_session_init takes them. The first has the session. */
int32_t qplan_firmware_init_in_areas(const qplan_firmware_model* model, const qplan_firmware_memory* memories,
                                     uint32_t num_memories);
/* The same of a plan that has constants copied into its memories, where init succeeds: one memory or more. */
int32_t qplan_firmware_init_with_copies(const qplan_firmware_model* model,
                                        const qplan_firmware_memory* memories, uint32_t num_memories);
/* The same in two memories: what the model keeps from run to run, its states included, and an arena that
 * other models may use before and after its runs, not during them. Inputs and outputs are in the arena. Both
 * 64-byte aligned, of sizes that `qplan link` prints. */
int32_t qplan_firmware_init_in_arena(const qplan_firmware_model* model, void* memory, size_t size,
                                     void* arena, size_t arena_size);
/* memory: where init succeeded. */
int32_t qplan_firmware_run(void* memory);
/* The same, and calls yield(user) after each piece of a step's work, of about `work` elementary operations
 * (docs/work.md), above 0. yield must not call functions on the same memory. */
int32_t qplan_firmware_run_yielding(void* memory, uint32_t work, void (*yield)(void* user), void* user);
/* What the model keeps from run to run becomes what it is after init. */
void qplan_firmware_reset_state(void* memory);
/* The bytes of an input or output; NULL beyond the last one. */
void* qplan_firmware_tensor(void* memory, int is_output, uint32_t index);

/* ---- direct calls of kernels (--aot) ---- */
/* Defined by libraries whose kernels read the arguments that this version of `qplan emit-c` writes: another
 * library does not link. */
extern const uint32_t qplan_firmware_kernels_3;

/* ---- inputs and outputs as floats, with the scale and the zero point that the model's header states ---- */
/* value / scale, rounded half away from zero, plus the zero point, clamped to [low, high]; the zero point for
 * what is not a number. scale: above 0. For ranges of 8 and 16 bits: quotients from 65536 on are `high`. */
static inline int32_t qplan_quantize_value(float value, float scale, int32_t zero_point, int32_t low,
                                           int32_t high) {
  const float at = value / scale;
  int32_t whole;
  float rest;
  if (at != at) return zero_point;
  if (at >= 65536.0f) return high;
  if (at <= -65536.0f) return low;
  whole = (int32_t)at;
  rest = at - (float)whole;
  whole += zero_point + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
  return whole < low ? low : whole > high ? high : whole;
}
/* `count` values to int8 or uint8. */
static inline void qplan_quantize_f32(const float* from, size_t count, float scale, int32_t zero_point,
                                      int8_t* to) {
  size_t i;
  for (i = 0; i < count; ++i) to[i] = (int8_t)qplan_quantize_value(from[i], scale, zero_point, -128, 127);
}
static inline void qplan_quantize_f32_u8(const float* from, size_t count, float scale, int32_t zero_point,
                                         uint8_t* to) {
  size_t i;
  for (i = 0; i < count; ++i) to[i] = (uint8_t)qplan_quantize_value(from[i], scale, zero_point, 0, 255);
}
/* (value - zero point) * scale */
static inline void qplan_dequantize_f32(const int8_t* from, size_t count, float scale, int32_t zero_point,
                                        float* to) {
  size_t i;
  for (i = 0; i < count; ++i) to[i] = (float)(from[i] - zero_point) * scale;
}
static inline void qplan_dequantize_f32_u8(const uint8_t* from, size_t count, float scale, int32_t zero_point,
                                           float* to) {
  size_t i;
  for (i = 0; i < count; ++i) to[i] = (float)(from[i] - zero_point) * scale;
}

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_FIRMWARE_H_ */
