"""The functions of the C API: results and arguments, by the types of _capi.py."""
import ctypes as c

from ._capi import (
    Attr, Buffer, DLDataType, DLTensor, DeviceInfo, Error, Event, FunctionInfo, HoldsFunction, HostDevice,
    KernelSetStorage, MODEL_UNSUPPORTED, Memory, MemoryNeed, NodeInfo, PackOptions, Plan, PlanInfo, Platform, PoolConfig,
    PostValueHandle, PreNodeHandle, PreValueHandle, RegionInfo, ReleaseFunction, SessionConfig, SessionInfo, StepTime,
    TensorInfo, ThreadPool, ValueInfo, WriteFunction,
)

_ERROR = c.POINTER(Error)
_PLAN = c.POINTER(Plan)
_POOL = c.POINTER(ThreadPool)
_SESSION = c.c_void_p
_TENSOR = c.POINTER(DLTensor)
_NEW_PATTERN = [c.POINTER(c.c_void_p), _ERROR]
_PATTERNS = c.POINTER(c.c_void_p)
_TEXTS = c.POINTER(c.c_char_p)
_PRE = c.c_void_p
_POST = c.c_void_p
_PRE_VALUE = c.POINTER(PreValueHandle)
_PRE_NODE = c.POINTER(PreNodeHandle)
_POST_VALUE = c.POINTER(PostValueHandle)

# name -> (result, arguments) of the functions of qplan.h and host.h, which every library has
RUNTIME = {
    "qplan_api_version": (c.c_uint32, []),
    "qplan_status_name": (c.c_char_p, [c.c_int32]),
    "qplan_plan_open": (c.c_int32, [_PLAN, c.c_void_p, c.c_size_t, c.c_uint32, _ERROR]),
    "qplan_plan_io_count": (c.c_uint32, [_PLAN, c.c_char_p, c.c_int]),
    "qplan_plan_io_info": (c.c_int32, [_PLAN, c.c_char_p, c.c_int, c.c_uint32, c.POINTER(TensorInfo)]),
    "qplan_plan_get_info": (c.c_int32, [_PLAN, c.POINTER(PlanInfo)]),
    "qplan_plan_work": (c.c_int32, [_PLAN, c.c_char_p, c.c_void_p, c.POINTER(c.c_uint64), _ERROR]),
    "qplan_kernels_all": (c.c_void_p, []),
    "qplan_kernels_with_custom": (c.c_void_p, [c.POINTER(KernelSetStorage), c.c_void_p, c.c_void_p, c.c_uint32]),
    "qplan_host_custom_operators_load": (
        c.c_int32, [c.c_char_p, c.POINTER(c.c_void_p), c.POINTER(c.c_uint32), _ERROR]),
    "qplan_isa_name": (c.c_char_p, [c.c_uint32]),
    "qplan_isa_from_name": (c.c_int32, [c.c_char_p, c.POINTER(c.c_uint32)]),
    "qplan_isa_available": (c.c_int, [c.c_uint32]),
    "qplan_plan_memory_class": (c.c_uint32, [_PLAN, c.c_uint32]),
    "qplan_session_memory_needs": (
        c.c_int32, [_PLAN, c.POINTER(SessionConfig), c.POINTER(MemoryNeed), c.POINTER(c.c_uint32), _ERROR]),
    "qplan_session_init": (
        c.c_int32,
        [_PLAN, c.POINTER(SessionConfig), c.POINTER(Memory), c.c_uint32, c.POINTER(c.c_void_p), _ERROR],
    ),
    "qplan_session_deinit": (c.c_int32, [_SESSION]),
    "qplan_session_view": (c.c_int32, [_SESSION, c.c_int, c.c_uint32, _TENSOR]),
    "qplan_session_step_info": (c.c_int32, [_SESSION, c.c_uint32, c.POINTER(Event)]),
    "qplan_host_run_batch": (
        c.c_int32,
        [_SESSION, c.c_uint32, _TENSOR, c.c_uint32, _TENSOR, c.c_uint32, c.POINTER(c.c_uint32), _ERROR],
    ),
    "qplan_step_times_create": (c.c_void_p, []),
    "qplan_step_times_attach": (c.c_int32, [c.c_void_p, c.POINTER(Platform)]),
    "qplan_step_times_read": (c.c_int32, [c.c_void_p, c.POINTER(StepTime), c.POINTER(c.c_uint32)]),
    "qplan_step_times_reset": (None, [c.c_void_p]),
    "qplan_step_times_destroy": (None, [c.c_void_p]),
    "qplan_session_write": (c.c_int32, [_SESSION, c.c_uint32, _TENSOR]),
    "qplan_session_read": (c.c_int32, [_SESSION, c.c_uint32, _TENSOR]),
    "qplan_session_invoke": (c.c_int32, [_SESSION]),
    "qplan_session_cancel": (c.c_int32, [_SESSION]),
    "qplan_session_reset_state": (c.c_int32, [_SESSION]),
    "qplan_session_self_check": (c.c_int32, [_SESSION]),
    "qplan_session_get_info": (c.c_int32, [_SESSION, c.POINTER(SessionInfo)]),
    "qplan_session_step_output": (c.c_int32, [_SESSION, c.c_uint32, c.POINTER(TensorInfo), _TENSOR]),
    "qplan_session_bind": (c.c_int32, [_SESSION, c.c_int, c.c_uint32, _TENSOR]),
    "qplan_session_last_error": (None, [_SESSION, _ERROR]),
    "qplan_npu_client_default": (c.c_void_p, []),
    "qplan_session_num_regions": (c.c_uint32, [_SESSION]),
    "qplan_session_region_info": (c.c_int32, [_SESSION, c.c_uint32, c.POINTER(RegionInfo)]),
    "qplan_session_num_devices": (c.c_uint32, [_SESSION]),
    "qplan_session_device_info": (c.c_int32, [_SESSION, c.c_uint32, c.POINTER(DeviceInfo)]),
    "qplan_session_recover_device": (c.c_int32, [_SESSION, c.c_uint32]),
    "qplan_buffer_create": (c.c_int32, [_SESSION, c.c_uint32, _TENSOR, c.c_uint32, c.POINTER(Buffer)]),
    "qplan_buffer_begin_access": (c.c_int32, [c.POINTER(Buffer), c.c_uint32, _TENSOR]),
    "qplan_buffer_end_access": (c.c_int32, [c.POINTER(Buffer)]),
    "qplan_buffer_destroy": (c.c_int32, [c.POINTER(Buffer)]),
    "qplan_host_driver_load": (c.c_int32, [c.c_char_p, c.POINTER(c.c_void_p), c.POINTER(c.c_void_p), _ERROR]),
    "qplan_host_driver_unload": (None, [c.c_void_p]),
    "qplan_host_device_open": (
        c.c_int32,
        [c.c_void_p, c.c_uint32, c.c_char_p, c.POINTER(Platform), c.POINTER(HostDevice), _ERROR],
    ),
    "qplan_host_device_close": (None, [c.POINTER(HostDevice)]),
    "qplan_host_now_ns": (c.c_uint64, [c.c_void_p]),
    "qplan_file_write": (c.c_int32, [c.c_char_p, c.c_void_p, c.c_size_t, _ERROR]),
    "qplan_pool_create_with": (c.c_int32, [c.POINTER(PoolConfig), c.POINTER(_POOL), _ERROR]),
    "qplan_pool_destroy": (None, [_POOL]),
    "qplan_openmp_pool_create": (_POOL, [c.c_uint32]),
    "qplan_openmp_pool_destroy": (None, [_POOL]),
}
# The same for pack.h and npu_sim.h, which libqplan_runtime.so lacks
PACKER = {
    "qplan_npu_sim_driver": (c.c_void_p, [c.c_uint32]),
    "qplan_pack_file": (
        c.c_int32,
        [c.c_char_p, c.POINTER(PackOptions), WriteFunction, c.c_void_p, _ERROR],
    ),
    "qplan_pack_bytes": (
        c.c_int32,
        [c.c_void_p, c.c_size_t, c.c_char_p, c.POINTER(PackOptions), WriteFunction, c.c_void_p, _ERROR],
    ),
    "qplan_import_text": (
        c.c_int32,
        [c.c_char_p, c.POINTER(PackOptions), c.c_int, WriteFunction, c.c_void_p, _ERROR],
    ),
    "qplan_compare_models": (
        c.c_int32,
        [
            c.c_char_p,
            c.c_char_p,
            c.POINTER(PackOptions),
            WriteFunction,
            c.c_void_p,
            c.POINTER(c.c_int),
            _ERROR,
        ],
    ),
    "qplan_explain": (
        c.c_int32,
        [c.c_char_p, c.POINTER(PackOptions), c.c_int, WriteFunction, c.c_void_p, _ERROR],
    ),
    "qplan_inspect_json": (c.c_int32, [c.c_void_p, c.c_size_t, WriteFunction, c.c_void_p, _ERROR]),
    "qplan_disassemble": (c.c_int32, [c.c_void_p, c.c_size_t, WriteFunction, c.c_void_p, _ERROR]),
    "qplan_pattern_value": (c.c_int32, [c.c_uint32, *_NEW_PATTERN]),
    "qplan_pattern_op": (c.c_int32, [_TEXTS, c.c_uint32, _PATTERNS, c.c_uint32, c.c_int, *_NEW_PATTERN]),
    "qplan_pattern_either": (c.c_int32, [c.c_void_p, c.c_void_p, *_NEW_PATTERN]),
    "qplan_pattern_optional": (c.c_int32, [c.c_char_p, c.c_void_p, _PATTERNS, c.c_uint32, *_NEW_PATTERN]),
    "qplan_pattern_dominates": (c.c_int32, [c.c_void_p, _TEXTS, c.c_uint32, c.c_void_p, *_NEW_PATTERN]),
    "qplan_pattern_as": (c.c_int32, [c.c_void_p, c.c_char_p, *_NEW_PATTERN]),
    "qplan_pattern_dtypes": (c.c_int32, [c.c_void_p, c.POINTER(DLDataType), c.c_uint32, *_NEW_PATTERN]),
    "qplan_pattern_shape": (c.c_int32, [c.c_void_p, c.POINTER(c.c_int64), c.c_uint32, *_NEW_PATTERN]),
    "qplan_pattern_rank": (c.c_int32, [c.c_void_p, c.c_uint32, *_NEW_PATTERN]),
    "qplan_pattern_one_use": (c.c_int32, [c.c_void_p, *_NEW_PATTERN]),
    "qplan_pattern_attr": (c.c_int32, [c.c_void_p, c.POINTER(Attr), *_NEW_PATTERN]),
    "qplan_pattern_where": (
        c.c_int32,
        [c.c_void_p, c.c_char_p, HoldsFunction, c.c_void_p, ReleaseFunction, *_NEW_PATTERN],
    ),
    "qplan_pattern_text": (c.c_int32, [c.c_void_p, WriteFunction, c.c_void_p, _ERROR]),
    "qplan_pattern_destroy": (None, [c.c_void_p]),
    "qplan_pre_function_info": (c.c_int32, [_PRE, c.POINTER(FunctionInfo)]),
    "qplan_pre_param": (c.c_int32, [_PRE, c.c_uint32, _PRE_VALUE]),
    "qplan_pre_output": (c.c_int32, [_PRE, c.c_uint32, _PRE_VALUE]),
    "qplan_pre_value_info": (c.c_int32, [_PRE, PreValueHandle, c.POINTER(ValueInfo)]),
    "qplan_pre_producer": (c.c_int32, [_PRE, PreValueHandle, _PRE_NODE]),
    "qplan_pre_node_info": (c.c_int32, [_PRE, PreNodeHandle, c.POINTER(NodeInfo)]),
    "qplan_pre_operand": (c.c_int32, [_PRE, PreNodeHandle, c.c_uint32, _PRE_VALUE]),
    "qplan_pre_result": (c.c_int32, [_PRE, PreNodeHandle, c.c_uint32, _PRE_VALUE]),
    "qplan_pre_attr": (c.c_int32, [_PRE, PreNodeHandle, c.c_char_p, c.POINTER(Attr)]),
    "qplan_pre_attr_at": (c.c_int32, [_PRE, PreNodeHandle, c.c_uint32, c.POINTER(Attr)]),
    "qplan_pre_fail": (c.c_int32, [_PRE, c.c_int32, c.c_char_p]),
    "qplan_pre_error": (c.c_char_p, [_PRE]),
    "qplan_matches_find": (c.c_int32, [c.c_void_p, c.c_char_p, _PRE_VALUE]),
    "qplan_matches_root": (c.c_int32, [c.c_void_p, _PRE_NODE]),
    "qplan_post_value_of": (c.c_int32, [_POST, PreValueHandle, _POST_VALUE]),
    "qplan_post_constant": (c.c_int32, [_POST, _TENSOR, c.c_char_p, _POST_VALUE]),
    "qplan_post_call": (
        c.c_int32,
        [_POST, c.c_char_p, _POST_VALUE, c.c_uint32, c.POINTER(Attr), c.c_uint32, c.c_char_p, _POST_VALUE, c.c_uint32],
    ),
    "qplan_post_value_info": (c.c_int32, [_POST, PostValueHandle, c.POINTER(ValueInfo)]),
    "qplan_post_replace": (c.c_int32, [_POST, PreValueHandle, PostValueHandle]),
    "qplan_post_why": (c.c_int32, [_POST, c.c_char_p]),
}


def _absent(library, name):
    """Stands for a function that the library lacks."""

    def function(*_arguments):
        from ._errors import Error  # which needs the library itself

        raise Error(
            MODEL_UNSUPPORTED,
            f"{library._name} is the runtime alone and lacks {name}: it runs plans, and has no pack, import_text, explain, "
            "passes, Plan.inspect, Plan.disasm, Plan.labels, run(tensors=...) and simulator. Use these with libqplan.so "
            "on a development machine (qplan pack MODEL --target cpu,arch=aarch64 for a board) and open the plan here",
        )

    return function


def declare(library):
    """Gives the functions of a loaded library their prototypes."""
    prototypes = dict(RUNTIME)
    if hasattr(library, "qplan_pack_file"):
        prototypes.update(PACKER)
    else:
        for name in PACKER:
            setattr(library, name, _absent(library, name))
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
