/* Runs a plan with NPU regions; input and output are in memory that the device and the program both reach.
 * C99.
 *
 * usage: qplan_npu_buffers PLAN INPUT_FILE OUTPUT_FILE [DEVICE_OPTIONS]
 * The driver is the simulator's, linked into the program: firmware passes its own in the same way. */
#include <qplan/host.h>
#include <qplan/npu_sim.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* what, const qplan_error* error) {
  fprintf(stderr, "qplan_npu_buffers: %s: %s\n", what, error->text[0] != 0 ? error->text : "failed");
  return 1;
}

static int fail_session(const char* what, qplan_session* session) {
  qplan_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  qplan_session_last_error(session, &error);
  return fail(what, &error);
}

/* Input or output 0 of the session becomes a buffer of the device. After a failure there is no buffer. */
static int make_buffer(qplan_session* session, const qplan_plan* plan, int direction, qplan_buffer* buffer,
                       qplan_tensor_info* info) {
  DLTensor tensor;
  DLTensor view;
  memset(info, 0, sizeof *info);
  info->struct_size = sizeof *info;
  if (qplan_plan_io_info(plan, NULL, direction, 0, info) < 0) return 1;
  memset(&tensor, 0, sizeof tensor); /* shape and dtype say what is needed; there is no data yet */
  tensor.ndim = info->ndim;
  tensor.dtype = info->dtype;
  tensor.shape = (int64_t*)info->shape; /* only read */
  if (qplan_buffer_create(session, 0, &tensor, 0, buffer) < 0) return fail_session("buffer", session);
  /* The view's address stays the same as long as the buffer lives: bind once, run as often as you like. */
  const char* failed = NULL;
  if (qplan_buffer_begin_access(buffer, QPLAN_BUFFER_READ, &view) < 0) {
    failed = "access";
  } else {
    if (qplan_session_bind(session, direction, 0, &view) < 0) failed = "bind";
    qplan_buffer_end_access(buffer);
  }
  if (failed == NULL) return 0;
  fail_session(failed, session);
  qplan_buffer_destroy(buffer); /* a session must not go while it has buffers */
  return 1;
}

/* Between begin and end the CPU has the buffer: what it wrote reaches the device, what the device wrote the
 * CPU. */
static int transfer_file(qplan_buffer* buffer, const qplan_tensor_info* info, const char* path,
                         int is_write) {
  DLTensor view;
  FILE* file = fopen(path, is_write ? "wb" : "rb");
  if (file == NULL ||
      qplan_buffer_begin_access(buffer, is_write ? QPLAN_BUFFER_READ : QPLAN_BUFFER_WRITE, &view) < 0) {
    fprintf(stderr, "qplan_npu_buffers: cannot open '%s'\n", path);
    if (file != NULL) fclose(file);
    return 1;
  }
  const size_t size = (size_t)info->size_bytes;
  const size_t done = is_write ? fwrite(view.data, 1, size, file) : fread(view.data, 1, size, file);
  qplan_buffer_end_access(buffer);
  if (fclose(file) != 0 || done != size) {
    fprintf(stderr, "qplan_npu_buffers: '%s': %lu of %lu bytes\n", path, (unsigned long)done,
            (unsigned long)size);
    return 1;
  }
  return 0;
}

static void print_placement(const qplan_session* session) {
  for (uint32_t i = 0; i < qplan_session_num_regions(session); ++i) {
    qplan_region_info region;
    memset(&region, 0, sizeof region);
    region.struct_size = sizeof region;
    if (qplan_session_region_info(session, i, &region) < 0) continue;
    printf("region '%s': %llu runs on '%s', %llu on the cpu, %llu copies of %llu bytes%s%s\n", region.name,
           (unsigned long long)region.device_runs, region.target, (unsigned long long)region.cpu_runs,
           (unsigned long long)region.copies, (unsigned long long)region.copy_bytes,
           region.text[0] != 0 ? ": " : "", region.text);
  }
}

static int run(const qplan_plan* plan, const qplan_host_device* device, const qplan_platform* platform,
               char** paths) {
  qplan_error error;
  qplan_npu_device_config device_config;
  qplan_session_config config;
  qplan_host_session* host;
  qplan_buffer input;
  qplan_buffer output;
  qplan_tensor_info input_info;
  qplan_tensor_info output_info;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  memset(&device_config, 0, sizeof device_config);
  device_config.struct_size = sizeof device_config;
  device_config.target = "vta"; /* as in --target "vta, cpu" of the packer */
  device_config.driver = device->driver;
  device_config.device = device->device;
  device_config.status = device->status;
  memset(&config, 0, sizeof config);
  config.struct_size = sizeof config;
  config.kernels = qplan_kernels_all();
  config.platform = platform; /* its clock makes timeouts of jobs work */
  config.npu = qplan_npu_client_default();
  config.devices = &device_config;
  config.num_devices = 1;
  if (qplan_host_session_create(plan, &config, &host, &error) < 0) return fail("session", &error);
  qplan_session* session = qplan_host_session_get(host);

  int result = make_buffer(session, plan, QPLAN_INPUT, &input, &input_info);
  if (result == 0) {
    result = make_buffer(session, plan, QPLAN_OUTPUT, &output, &output_info);
    if (result == 0) {
      result = transfer_file(&input, &input_info, paths[0], 0);
      if (result == 0 && qplan_session_invoke(session) < 0) result = fail_session("invoke", session);
      if (result == 0) result = transfer_file(&output, &output_info, paths[1], 1);
      if (result == 0) print_placement(session);
      /* Buffers go before their session, and not while they are bound. */
      qplan_session_bind(session, QPLAN_OUTPUT, 0, NULL);
      qplan_buffer_destroy(&output);
    }
    qplan_session_bind(session, QPLAN_INPUT, 0, NULL);
    qplan_buffer_destroy(&input);
  }
  qplan_host_session_destroy(host);
  return result;
}

int main(int argc, char** argv) {
  qplan_error error;
  qplan_file file;
  qplan_plan plan;
  qplan_platform platform;
  qplan_host_device device;
  if (argc != 4 && argc != 5) {
    fprintf(stderr, "usage: qplan_npu_buffers PLAN INPUT_FILE OUTPUT_FILE [DEVICE_OPTIONS]\n");
    return 2;
  }
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  memset(&platform, 0, sizeof platform);
  platform.struct_size = sizeof platform;
  platform.now_ns = qplan_host_now_ns;
  memset(&device, 0, sizeof device);
  device.struct_size = sizeof device;
  if (qplan_file_map(argv[1], &file, &error) < 0) return fail("plan", &error);
  int result = 1;
  if (qplan_plan_open(&plan, file.bytes, file.size, QPLAN_PLAN_DIGEST, &error) < 0) {
    fail(argv[1], &error);
  } else if (qplan_host_device_open(qplan_npu_sim_driver(QPLAN_NPU_ABI), 0, argc == 5 ? argv[4] : NULL,
                                    &platform, &device, &error) < 0) {
    fail("device", &error);
  } else {
    result = run(&plan, &device, &platform, argv + 2);
    qplan_host_device_close(&device);
  }
  qplan_file_unmap(&file);
  return result;
}
