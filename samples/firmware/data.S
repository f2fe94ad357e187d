/* The plan, one input and the expected output, as const arrays in flash. A plan must lie at a multiple of 64: tests move it
 * away from there by FIRMWARE_PLAN_OFFSET. */
  .macro file name, path, offset=0
  .section .plan.\name, "a"
  .balign 64
  .skip \offset
  .global \name
  .global \name\()_end
\name:
  .incbin "\path"
\name\()_end:
  .endm

#ifndef FIRMWARE_WITHOUT_PLAN
  file plan_bytes, FIRMWARE_PLAN, FIRMWARE_PLAN_OFFSET
#endif
  file input_bytes, FIRMWARE_INPUT
  file expected_bytes, FIRMWARE_EXPECTED
#ifdef FIRMWARE_SECOND_INPUT
  file second_input_bytes, FIRMWARE_SECOND_INPUT
  file second_expected_bytes, FIRMWARE_SECOND_EXPECTED
#endif
