/* Runs a plan once, with the runtime's C API alone: no host adapters, no hidden allocation. C99.
 *
 * usage: qplan_c_api PLAN INPUT_FILE... [-o OUTPUT_FILE]
 * One raw little-endian file per input of the model. Prints the best value of each output; -o writes the
 * first output. */
#include <math.h>
#include <qplan/qplan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BANKS 8u

/* malloc with an alignment, in C99: the block to free goes to *block. */
static void* allocate(size_t size, size_t alignment, void** block) {
  *block = malloc(size + alignment);
  if (*block == NULL) return NULL;
  const uintptr_t address = (uintptr_t)*block;
  return (void*)(address + (alignment - address % alignment) % alignment);
}

/* The whole file at a 64-byte boundary, as plans want it. */
static void* read_file(const char* path, size_t* size, void** block) {
  FILE* file = fopen(path, "rb");
  long end;
  void* bytes = NULL;
  *block = NULL;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    *size = (size_t)end;
    bytes = allocate(*size, 64, block);
    if (bytes != NULL && fread(bytes, 1, *size, file) != *size) bytes = NULL;
  }
  fclose(file);
  return bytes;
}

static int fail(const char* what, const qplan_error* error) {
  fprintf(stderr, "qplan_c_api: %s: %s (%s)\n", what, error->text, qplan_status_name(error->status));
  return 1;
}

/* The i-th element as a real number; NaN for dtypes that this sample does not know. A program for one model
 * would know its dtype. */
static double real_value(const qplan_tensor_info* info, const void* bytes, uint64_t i) {
  double value = NAN;
  if (info->dtype.code == kDLFloat && info->dtype.bits == 32) return ((const float*)bytes)[i];
  if (info->dtype.code == kDLInt && info->dtype.bits == 8) value = ((const int8_t*)bytes)[i];
  if ((info->dtype.code == kDLUInt || info->dtype.code == 6 /* bool, in newer DLPack */) &&
      info->dtype.bits == 8)
    value = ((const uint8_t*)bytes)[i];
  if (info->dtype.code == kDLInt && info->dtype.bits == 16) value = ((const int16_t*)bytes)[i];
  if (info->dtype.code == kDLInt && info->dtype.bits == 32) value = ((const int32_t*)bytes)[i];
  if (info->dtype.code == kDLInt && info->dtype.bits == 64) value = (double)((const int64_t*)bytes)[i];
  return info->num_scales == 1 ? (double)info->scales[0] * (value - info->zero_points[0]) : value;
}

static int print_output(qplan_session* session, const qplan_plan* plan, uint32_t index,
                        const char* output_path) {
  qplan_tensor_info info;
  DLTensor view;
  uint64_t count = 1;
  uint64_t best = 0;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  if (qplan_plan_io_info(plan, NULL, QPLAN_OUTPUT, index, &info) < 0) return 1;
  /* A view is the session's own memory: nothing is copied. qplan_session_read would copy. */
  if (qplan_session_view(session, QPLAN_OUTPUT, index, &view) < 0) return 1;
  const char* bytes = (const char*)view.data + view.byte_offset;
  for (int32_t axis = 0; axis < info.ndim; ++axis) count *= (uint64_t)info.shape[axis];
  for (uint64_t i = 1; i < count; ++i) {
    if (real_value(&info, bytes, i) > real_value(&info, bytes, best)) best = i;
  }
  printf("output %u '%s': the largest of %llu values is value %llu: %g\n", (unsigned)index, info.name,
         (unsigned long long)count, (unsigned long long)best, real_value(&info, bytes, best));
  if (index == 0 && output_path != NULL) {
    FILE* file = fopen(output_path, "wb");
    const int written = file != NULL && fwrite(bytes, 1, (size_t)info.size_bytes, file) == info.size_bytes;
    if (file == NULL || fclose(file) != 0 || !written) {
      fprintf(stderr, "qplan_c_api: cannot write '%s'\n", output_path);
      return 1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  qplan_error error;
  const char* output_path = NULL;
  if (argc >= 4 && strcmp(argv[argc - 2], "-o") == 0) {
    output_path = argv[argc - 1];
    argc -= 2;
  }
  if (argc < 2) {
    fprintf(stderr, "usage: qplan_c_api PLAN INPUT_FILE... [-o OUTPUT_FILE]\n");
    return 2;
  }
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;

  /* The plan: bytes that we own, verified once, used in place. */
  size_t plan_size = 0;
  void* plan_block;
  void* plan_bytes = read_file(argv[1], &plan_size, &plan_block);
  if (plan_bytes == NULL) {
    fprintf(stderr, "qplan_c_api: cannot read '%s'\n", argv[1]);
    return 1;
  }
  qplan_plan plan;
  if (qplan_plan_open(&plan, plan_bytes, plan_size, QPLAN_PLAN_DIGEST, &error) < 0)
    return fail(argv[1], &error);
  const uint32_t num_inputs = qplan_plan_io_count(&plan, NULL, QPLAN_INPUT);
  const uint32_t num_outputs = qplan_plan_io_count(&plan, NULL, QPLAN_OUTPUT);
  if ((uint32_t)(argc - 2) != num_inputs) {
    fprintf(stderr, "qplan_c_api: '%s' has %u inputs, found %d input files\n", argv[1], (unsigned)num_inputs,
            argc - 2);
    return 2;
  }

  /* The memory: the plan says how much, we give it. Firmware would use a static array. */
  qplan_session_config config;
  memset(&config, 0, sizeof config);
  config.struct_size = sizeof config;
  config.kernels = qplan_kernels_all();
  qplan_memory_need needs[MAX_BANKS];
  qplan_memory memories[MAX_BANKS];
  void* blocks[MAX_BANKS];
  uint32_t num_banks = MAX_BANKS;
  if (qplan_session_memory_needs(&plan, &config, needs, &num_banks, &error) < 0)
    return fail("memory", &error);
  for (uint32_t i = 0; i < num_banks; ++i) {
    memories[i].size = (size_t)needs[i].size;
    memories[i].base = allocate(memories[i].size, needs[i].alignment, &blocks[i]);
    if (memories[i].base == NULL) {
      fprintf(stderr, "qplan_c_api: out of memory\n");
      return 1;
    }
    printf("memory bank %u: %llu bytes\n", (unsigned)i, (unsigned long long)needs[i].size);
  }

  qplan_session* session;
  if (qplan_session_init(&plan, &config, memories, num_banks, &session, &error) < 0)
    return fail("init", &error);

  for (uint32_t i = 0; i < num_inputs; ++i) {
    qplan_tensor_info info;
    DLTensor tensor;
    size_t size = 0;
    void* block;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    qplan_plan_io_info(&plan, NULL, QPLAN_INPUT, i, &info);
    void* bytes = read_file(argv[2 + i], &size, &block);
    if (bytes == NULL || size != info.size_bytes) {
      fprintf(stderr, "qplan_c_api: input '%s' cannot be read or has not %llu bytes\n", argv[2 + i],
              (unsigned long long)info.size_bytes);
      return 1;
    }
    memset(&tensor, 0, sizeof tensor); /* strides NULL: packed, row-major */
    tensor.data = bytes;
    tensor.device.device_type = kDLCPU;
    tensor.ndim = info.ndim;
    tensor.dtype = info.dtype;
    tensor.shape = (int64_t*)info.shape; /* only read */
    const qplan_status status = qplan_session_write(session, i, &tensor);
    free(block);
    if (status < 0) {
      qplan_session_last_error(session, &error);
      return fail("write", &error);
    }
  }

  if (qplan_session_invoke(session) < 0) {
    qplan_session_last_error(session, &error);
    return fail("invoke", &error);
  }
  for (uint32_t i = 0; i < num_outputs; ++i) {
    if (print_output(session, &plan, i, output_path) != 0) return 1;
  }

  qplan_session_deinit(session); /* the memories are ours again */
  for (uint32_t i = 0; i < num_banks; ++i) free(blocks[i]);
  free(plan_block);
  return 0;
}
