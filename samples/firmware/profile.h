/* Cycles of each step of a run: the session's events read the counter of cycles.h when a step begins and when
 * it ends, and a table is printed after the run, since printing takes longer than a step. */
#ifndef SAMPLES_FIRMWARE_PROFILE_H_
#define SAMPLES_FIRMWARE_PROFILE_H_

#include <qplan/qplan.h>
#include <string.h>

#include "cycles.h"
#include "measure.h"

/* What the clock of the board is set to. QEMU's MPS2 boards have 25 MHz. */
#ifndef FIRMWARE_CLOCK_MHZ
#define FIRMWARE_CLOCK_MHZ 25u
#endif
#define PROFILE_STEPS 64u /* of longer functions the first ones */

typedef struct profile_step {
  const char *op, *kernel, *name; /* of the plan and the library, which outlive the session */
  uint64_t macs, begin;
  uint32_t cycles;
} profile_step;

typedef struct profile {
  cycle_counter counter;
  uint32_t num_steps;
  profile_step steps[PROFILE_STEPS];
} profile;

static inline void profile_step_begin(void* user, const qplan_event* event) {
  profile* const self = (profile*)user;
  if (self->num_steps == PROFILE_STEPS) return;
  profile_step* const step = &self->steps[self->num_steps];
  step->op = event->op;
  step->kernel = event->kernel;
  step->name = event->name;
  step->macs = event->macs;
  step->begin = cycles_now(&self->counter); /* at last */
}

static inline void profile_step_end(void* user, const qplan_event* event, qplan_status status) {
  profile* const self = (profile*)user;
  const uint64_t now = cycles_now(&self->counter); /* at first */
  (void)event, (void)status;
  if (self->num_steps == PROFILE_STEPS) return;
  profile_step* const step = &self->steps[self->num_steps++];
  step->cycles = (uint32_t)(now - step->begin);
}

/* The session's clock: times of NPU jobs are measured by it, and programs measure their own by it. */
static inline uint64_t profile_now_ns(void* user) {
  return cycles_now(&((profile*)user)->counter) * 1000u / FIRMWARE_CLOCK_MHZ;
}

static inline void profile_platform(profile* self, qplan_platform* platform) {
  memset(self, 0, sizeof(*self));
  memset(platform, 0, sizeof(*platform));
  platform->struct_size = sizeof(*platform);
  platform->user = self;
  platform->step_begin = profile_step_begin;
  platform->step_end = profile_step_end;
  platform->now_ns = profile_now_ns;
  cycles_start(&self->counter);
}

/* A line for each step: its cycles, its MACs, kernel family, kernel and name; then those of all steps. */
static inline void profile_print(const profile* self) {
  uint32_t sum = 0;
  semihosting_write("cycles by ");
  semihosting_write(self->counter.name);
  semihosting_write(": cycles, MACs, family, kernel, name\n");
  for (uint32_t i = 0; i < self->num_steps; ++i) {
    const profile_step* const step = &self->steps[i];
    sum += step->cycles;
    print_number("step ", step->cycles, " ");
    print_number("", (uint32_t)step->macs, " ");
    semihosting_write(step->op);
    semihosting_write(" ");
    semihosting_write(step->kernel);
    semihosting_write(" ");
    semihosting_write(step->name);
    semihosting_write("\n");
  }
  print("cycles ", sum);
}

#endif /* SAMPLES_FIRMWARE_PROFILE_H_ */
