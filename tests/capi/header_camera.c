/* Compiled as C99, C11 and C++17 with warnings as errors. */
#include <qplan/camera.h>

int header_camera(const uint8_t* pixels, int8_t* to);
int header_camera(const uint8_t* pixels, int8_t* to) {
  qplan_camera_frame frame = {pixels, QPLAN_CAMERA_RGB565, 320, 240, 0, 40, 0, 240, 240};
  qplan_camera_tensor tensor = {to,        QPLAN_CAMERA_INT8, 96, 96, 1, QPLAN_CAMERA_BILINEAR, 0.5f, -128,
                                {0, 0, 0}, {255, 255, 255}};
  return qplan_camera_to_tensor(&frame, &tensor);
}
