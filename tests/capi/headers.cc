// The public headers as C++17.
#include <qplan/pass.hpp>

#include "tests/capi/header_camera.c"
#include "tests/capi/header_custom_operator.c"
#include "tests/capi/header_host.c"
#include "tests/capi/header_npu_driver.c"
#include "tests/capi/header_npu_target.c"
#include "tests/capi/header_pack.c"
#include "tests/capi/header_qplan.c"
#include "tests/capi/header_signature.c"
