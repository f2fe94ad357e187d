/* Copies the input that data.S puts into the image to a session's tensor, and compares an output with the
 * expected one. A file whose size differs from the tensor's is refused: a longer input would overwrite what
 * lies after the tensor, and a shorter expected output would leave part of the output unchecked. C99. */
#ifndef SAMPLES_FIRMWARE_IMAGE_FILES_H_
#define SAMPLES_FIRMWARE_IMAGE_FILES_H_

#include <qplan/qplan.h>
#include <string.h>

#include "measure.h"

extern const uint8_t input_bytes[], input_bytes_end[];
extern const uint8_t expected_bytes[], expected_bytes_end[];

/* 1 where the file has as many bytes as the tensor; otherwise says so and gives 0. */
static int file_fits(const char* what, uint32_t file_bytes, const DLTensor* tensor) {
  uint32_t bits = tensor->dtype.bits * (uint32_t)tensor->dtype.lanes;
  for (int32_t d = 0; d < tensor->ndim; ++d) bits *= (uint32_t)tensor->shape[d];
  if ((bits + 7) / 8 == file_bytes) return 1;
  semihosting_write("firmware: ");
  semihosting_write(what);
  print_number(" has ", file_bytes, " bytes, ");
  print_number("the model's has ", (bits + 7) / 8, "\n");
  return 0;
}

/* Copies the input file into the tensor; 0 where its size is another. */
static int read_input(const DLTensor* input) {
  const uint32_t size = (uint32_t)(input_bytes_end - input_bytes);
  if (!file_fits("the input file", size, input)) return 0;
  memcpy((uint8_t*)input->data + input->byte_offset, input_bytes, size);
  return 1;
}

/* Prints and stores how many bytes of the output are not the expected ones; 0 where the expected file has
 * another size. */
static int compare_output(const DLTensor* output, uint32_t* different) {
  const uint32_t size = (uint32_t)(expected_bytes_end - expected_bytes);
  const uint8_t* bytes = (const uint8_t*)output->data + output->byte_offset;
  if (!file_fits("the expected file", size, output)) return 0;
  *different = 0;
  for (uint32_t i = 0; i < size; ++i) *different += bytes[i] != expected_bytes[i];
  print("output_bytes ", size);
  print("different ", *different);
  return 1;
}

#endif /* SAMPLES_FIRMWARE_IMAGE_FILES_H_ */
