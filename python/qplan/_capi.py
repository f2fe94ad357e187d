"""The constants and structs of include/qplan/*.h as ctypes sees them. _prototypes.py has the functions."""

import ctypes as c

API_VERSION = 1

# qplan_status
OK = 0
INVALID_ARGUMENT = -1
INVALID_STATE = -2
SHAPE_MISMATCH = -3
DTYPE_MISMATCH = -4
NOT_FOUND = -7
WORK_LIMIT = -8
PLAN_CORRUPT = -16
DEVICE_ERROR = -32
CANCELLED = -34
MODEL_UNSUPPORTED = -49
FILE_ERROR = -50
OUT_OF_MEMORY = -51

INPUT = 0
OUTPUT = 1
PLAN_DIGEST = 1

ISA_AUTO = 0
MAX_ISA = 255  # every QPLAN_ISA_* is smaller

NPU_ABI = 0x00010002
NPU_POLICIES = {"fallback": 0, "retry": 1, "fail": 2}  # QPLAN_NPU_FALLBACK, ...
NPU_VERIFY = 1
NPU_OFF = 2
DEVICE_STATES = ("present", "degraded", "quarantined", "absent")
BUFFER_READ = 1
BUFFER_WRITE = 2

LOG_WARNING = 2
LOG_INFO = 3
LOG_DEBUG = 4

VALUE_ANY = 0
VALUE_PARAM = 1
VALUE_CONSTANT = 2

ATTR_BOOL = 0
ATTR_INT = 1
ATTR_FLOAT = 2
ATTR_STRING = 3
ATTR_INTS = 4
ATTR_INT_LISTS = 5

# DLDataTypeCode, DLDeviceType
DL_INT = 0
DL_UINT = 1
DL_FLOAT = 2
DL_BOOL = 6
DL_CPU = 1


class DLDevice(c.Structure):
    _fields_ = [("device_type", c.c_int32), ("device_id", c.c_int32)]


class DLDataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device", DLDevice),
        ("ndim", c.c_int32),
        ("dtype", DLDataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class Sized(c.Structure):
    """A struct that starts with struct_size, which is filled in."""

    def __init__(self, **fields):
        super().__init__(struct_size=c.sizeof(self), **fields)


class Error(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("status", c.c_int32),
        ("step", c.c_int32),
        ("tensor", c.c_int32),
        ("text", c.c_char * 240),
    ]


class Plan(c.Structure):
    _fields_ = [("opaque", c.c_uint64 * 8)]


class PlanInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("is_for_other_arch", c.c_uint32),
        ("target_options", c.c_char_p),
        ("runtime_arch", c.c_char_p),
        ("version_major", c.c_uint32),
        ("version_minor", c.c_uint32),
    ]


class TensorInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("ndim", c.c_int32),
        ("name", c.c_char_p),
        ("shape", c.POINTER(c.c_int64)),
        ("dtype", DLDataType),
        ("alignment", c.c_uint32),
        ("size_bytes", c.c_uint64),
        ("scales", c.POINTER(c.c_float)),
        ("zero_points", c.POINTER(c.c_int32)),
        ("num_scales", c.c_uint32),
        ("quant_axis", c.c_int32),
    ]


class ThreadPool(c.Structure):
    """Made and used by the library only."""


class PoolConfig(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("num_threads", c.c_uint32),
        ("processors", c.POINTER(c.c_uint32)),
        ("num_processors", c.c_uint32),
        ("speeds", c.c_uint32),
    ]


class Platform(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("log_level", c.c_uint32),
        ("user", c.c_void_p),
        ("log", c.c_void_p),
        ("step_begin", c.c_void_p),
        ("step_end", c.c_void_p),
        ("now_ns", c.c_void_p),
        ("thread_pool", c.POINTER(ThreadPool)),
        ("yield", c.c_void_p),
        ("yield_work", c.c_uint32),
    ]


class SessionConfig(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("isa_limit", c.c_uint32),
        ("function", c.c_char_p),
        ("kernels", c.c_void_p),
        ("platform", c.POINTER(Platform)),
        ("npu", c.c_void_p),
        ("devices", c.c_void_p),  # NpuDeviceConfig[]
        ("num_devices", c.c_uint32),
        ("on_npu_failure", c.c_uint32),
        ("npu_flags", c.c_uint32),
        ("npu_timeout_us", c.c_uint32),
        ("max_work", c.c_uint64),
    ]


class HostDevice(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("status", c.c_int32),
        ("driver", c.c_void_p),
        ("device", c.c_uint64),
        ("hooks", c.c_void_p),
        ("opaque", c.c_void_p),
    ]


class NpuDeviceConfig(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("reserved", c.c_uint32),
        ("target", c.c_char_p),
        ("driver", c.c_void_p),
        ("device", c.c_uint64),
        ("status", c.c_int32),
        ("max_failures", c.c_uint32),
    ]


class Memory(c.Structure):
    _fields_ = [("base", c.c_void_p), ("size", c.c_size_t)]


class MemoryNeed(c.Structure):
    _fields_ = [("bank", c.c_uint32), ("alignment", c.c_uint32), ("size", c.c_uint64)]


class Event(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("step", c.c_uint32),
        ("op", c.c_char_p),
        ("kernel", c.c_char_p),
        ("name", c.c_char_p),
        ("macs", c.c_uint64),
        ("bytes", c.c_uint64),
        ("work", c.c_uint64),
    ]


class StepTime(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("step", c.c_uint32),
        ("runs", c.c_uint64),
        ("least_ns", c.c_uint64),
        ("total_ns", c.c_uint64),
        ("last_ns", c.c_uint64),
    ]


class RegionInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("step", c.c_uint32),
        ("name", c.c_char_p),
        ("target", c.c_char_p),
        ("on_device", c.c_uint32),
        ("status", c.c_int32),
        ("num_operators", c.c_uint32),
        ("has_alternative", c.c_uint32),
        ("macs", c.c_uint64),
        ("device_runs", c.c_uint64),
        ("cpu_runs", c.c_uint64),
        ("failures", c.c_uint64),
        ("mismatches", c.c_uint64),
        ("copies", c.c_uint64),
        ("copy_bytes", c.c_uint64),
        ("last_cycles", c.c_uint64),
        ("text", c.c_char * 160),
    ]


class DeviceInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("state", c.c_uint32),
        ("target", c.c_char_p),
        ("driver", c.c_char_p),
        ("last_status", c.c_int32),
        ("num_regions", c.c_uint32),
        ("jobs", c.c_uint64),
        ("failed_jobs", c.c_uint64),
        ("timeouts", c.c_uint64),
        ("retries", c.c_uint64),
        ("fallbacks", c.c_uint64),
        ("resets", c.c_uint64),
        ("cycles", c.c_uint64),
        ("program_bytes", c.c_uint64),
        ("text", c.c_char * 160),
        ("misplaced_bytes", c.c_uint64),
    ]


class Buffer(c.Structure):
    _fields_ = [("opaque", c.c_uint64 * 16)]


class SessionInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("num_steps", c.c_uint32),
        ("num_threads", c.c_uint32),
        ("isa", c.c_uint32),
        ("isa_name", c.c_char_p),
        ("macs", c.c_uint64),
        ("memory_bytes", c.c_uint64),
        ("work", c.c_uint64),
    ]


# The bytes are not NUL-terminated, so their address is taken, not a c_char_p.
WriteFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_size_t)
LogFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_char_p)
ProgressFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_uint32, c.c_uint32)
SummaryFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
CancelledFunction = c.CFUNCTYPE(c.c_int32, c.c_void_p)


class NamedTensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("tensor", c.POINTER(DLTensor))]


class NamedType(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", DLDataType),
        ("ndim", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
    ]


# Patterns, rewrites and passes of the caller. Handles of values and nodes are structs of their own in C; each is one
# number here and gets its own class.
class PreValueHandle(c.Structure):
    _fields_ = [("index", c.c_uint32)]


class PreNodeHandle(c.Structure):
    _fields_ = [("index", c.c_uint32)]


class PostValueHandle(c.Structure):
    _fields_ = [("index", c.c_uint32)]


class Attr(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("kind", c.c_uint32),
        ("count", c.c_uint32),
        ("integer", c.c_int64),
        ("number", c.c_double),
        ("text", c.c_char_p),
        ("ints", c.POINTER(c.c_int64)),
        ("list_sizes", c.POINTER(c.c_uint32)),
    ]


class FunctionInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("num_params", c.c_uint32),
        ("num_outputs", c.c_uint32),
        ("num_nodes", c.c_uint32),
        ("name", c.c_char_p),
    ]


class ValueInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("kind", c.c_uint32),
        ("dtype", DLDataType),
        ("ndim", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
        ("name", c.c_char_p),
        ("data", c.c_void_p),
        ("size_bytes", c.c_uint64),
        ("num_uses", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class NodeInfo(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("num_operands", c.c_uint32),
        ("num_results", c.c_uint32),
        ("num_attrs", c.c_uint32),
        ("op", c.c_char_p),
        ("callee", c.c_char_p),
        ("name", c.c_char_p),
    ]


HoldsFunction = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, PreValueHandle)
ReleaseFunction = c.CFUNCTYPE(None, c.c_void_p)
BuildFunction = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p, c.POINTER(PostValueHandle))
RunFunction = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_void_p)


class UserRewrite(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("benefit", c.c_int32),
        ("name", c.c_char_p),
        ("pattern", c.c_void_p),
        ("user", c.c_void_p),
        ("build", BuildFunction),
    ]


class UserPass(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("num_rewrites", c.c_uint32),
        ("name", c.c_char_p),
        ("after", c.c_char_p),
        ("rewrites", c.POINTER(c.POINTER(UserRewrite))),
        ("user", c.c_void_p),
        ("run", RunFunction),
    ]


class PackOptions(Sized):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("strip_names", c.c_uint32),
        ("target", c.c_char_p),
        ("dump_after", c.c_char_p),
        ("planner_budget", c.c_uint32),
        ("log_level", c.c_uint32),
        ("user", c.c_void_p),
        ("log", LogFunction),
        ("dump", WriteFunction),
        ("error_text", WriteFunction),
        ("progress", ProgressFunction),
        ("contract", c.c_char_p),
        ("io", c.c_char_p),
        ("io_layout", c.c_char_p),
        ("keep_float", c.c_uint32),
        ("num_skip", c.c_uint32),
        ("skip", c.POINTER(c.c_char_p)),
        ("bindings", c.POINTER(NamedTensor)),
        ("num_bindings", c.c_uint32),
        ("num_input_types", c.c_uint32),
        ("input_types", c.POINTER(NamedType)),
        ("synthesize_constants", c.c_uint32),
        ("canonical_body", c.c_uint32),
        ("synthesize_seed", c.c_uint64),
        ("why_not", c.c_char_p),
        ("passes", c.POINTER(c.POINTER(UserPass))),
        ("num_passes", c.c_uint32),
        ("placement", c.c_uint32),
        ("pins", c.POINTER(c.c_char_p)),
        ("num_pins", c.c_uint32),
        ("no_cost_gate", c.c_uint32),
        ("no_fallback", c.c_uint32),
        ("reserved", c.c_uint32),
        ("target_file", c.c_char_p),
        ("target_libs", c.POINTER(c.c_char_p)),
        ("num_target_libs", c.c_uint32),
        ("reserved2", c.c_uint32),
        ("summary", SummaryFunction),
        ("tuning_file", c.c_char_p),
        ("tuning_threads", c.c_uint32),
        ("fuse", c.c_uint32),
        ("cancelled", CancelledFunction),
        ("prefer", c.c_uint32),
        ("num_custom_operators", c.c_uint32),
        ("custom_operators", c.c_void_p),
        ("max_ram", c.c_uint64),
        ("self_checks", c.c_uint32),
        ("reserved3", c.c_uint32),
        ("begin_at", c.POINTER(c.c_char_p)),
        ("end_at", c.POINTER(c.c_char_p)),
        ("num_begin_at", c.c_uint32),
        ("num_end_at", c.c_uint32),
    ]


class KernelSetStorage(c.Structure):
    _fields_ = [("opaque", c.c_uint64 * 4)]


class Pieces:
    """Collects what the library hands to a qplan_write_fn."""

    def __init__(self):
        self._pieces = []
        self.function = WriteFunction(self._append)  # kept alive here: C holds no reference

    def _append(self, _user, address, size):
        self._pieces.append(c.string_at(address, size))

    def bytes(self):
        return b"".join(self._pieces)

    def text(self):
        return self.bytes().decode("utf-8", "replace")
