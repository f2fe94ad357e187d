"""Writes a quantised network (quantize.py) as a .tflite file."""
import flatbuffers
import numpy as np

from tflite_schema import FILE_IDENTIFIER, tflite

# op -> (builtin operator, version that introduced int8)
OPERATORS = {
    "conv": ("CONV_2D", 3),
    "depthwise": ("DEPTHWISE_CONV_2D", 3),
    "add": ("ADD", 2),
    "average_pool": ("AVERAGE_POOL_2D", 2),
    "reshape": ("RESHAPE", 1),
    "fully_connected": ("FULLY_CONNECTED", 4),
    "softmax": ("SOFTMAX", 2),
}
DTYPES = {"int8": tflite.TensorType.INT8, "int32": tflite.TensorType.INT32}


class _AlignedBuffer:
    """A Buffer whose bytes begin at a multiple of 16, as the format asks; generated code would not align them."""

    def __init__(self, data):
        self.data = data

    def Pack(self, builder):
        builder.StartVector(1, len(self.data), 16)
        begin = builder.Head() - len(self.data)
        builder.head = begin
        builder.Bytes[begin:begin + len(self.data)] = self.data
        data = builder.EndVector()
        builder.StartObject(3)
        if self.data:
            builder.PrependUOffsetTRelativeSlot(0, data, 0)
        return builder.EndObject()


def write(network, description):
    """Returns the file's bytes."""
    index = {name: i for i, name in enumerate(network.tensors)}
    model, graph = tflite.ModelT(), tflite.SubGraphT()
    model.buffers = [_AlignedBuffer(b"")]  # the format's buffer 0: no data
    graph.tensors = [_tensor(tensor, model.buffers) for tensor in network.tensors.values()]
    model.operatorCodes, codes = [], {}
    graph.operators = []
    for operator in network.operators:
        if operator.op not in codes:
            codes[operator.op] = len(codes)
            model.operatorCodes.append(_operator_code(*OPERATORS[operator.op]))
        record = tflite.OperatorT()
        record.opcodeIndex = codes[operator.op]
        record.inputs = [index[name] for name in operator.inputs]
        record.outputs = [index[operator.output]]
        record.builtinOptions = _options(operator, network.tensors)
        kind = type(record.builtinOptions).__name__[:-1]
        record.builtinOptionsType = getattr(tflite.BuiltinOptions, kind)
        graph.operators.append(record)
    graph.inputs, graph.outputs, graph.name = [index[network.input]], [index[network.output]], "main"
    model.version, model.subgraphs, model.description = 3, [graph], description
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), file_identifier=FILE_IDENTIFIER)
    return bytes(builder.Output())


def _tensor(tensor, buffers):
    record = tflite.TensorT()
    record.name, record.shape, record.type = tensor.name, list(tensor.shape), DTYPES[tensor.dtype]
    if tensor.data is not None:
        record.buffer = len(buffers)
        little_endian = tensor.data.astype(tensor.data.dtype.newbyteorder("<"))
        buffers.append(_AlignedBuffer(little_endian.tobytes()))
    if tensor.scales is not None:
        quantization = tflite.QuantizationParametersT()
        quantization.scale = [float(scale) for scale in tensor.scales]
        quantization.zeroPoint = [tensor.zero_point] * len(tensor.scales)
        quantization.quantizedDimension = tensor.axis
        record.quantization = quantization
    return record


def _operator_code(name, version):
    code = tflite.OperatorCodeT()
    code.builtinCode = getattr(tflite.BuiltinOperator, name)
    code.deprecatedBuiltinCode = code.builtinCode  # all of ours are below 127
    code.version = version
    return code


def _options(operator, tensors):
    given = operator.options
    activation = getattr(tflite.ActivationFunctionType, "RELU" if given["relu"] else "NONE")
    if operator.op == "conv":
        options = tflite.Conv2DOptionsT()
    elif operator.op == "depthwise":
        options = tflite.DepthwiseConv2DOptionsT()
        options.depthMultiplier = tensors[operator.output].shape[-1] // tensors[operator.inputs[0]].shape[-1]
    elif operator.op == "average_pool":
        options = tflite.Pool2DOptionsT()
        options.filterHeight = options.filterWidth = given["kernel"]
    elif operator.op == "reshape":
        options = tflite.ReshapeOptionsT()
        options.newShape = list(tensors[operator.output].shape)
        return options
    elif operator.op == "softmax":
        options = tflite.SoftmaxOptionsT()
        options.beta = 1.0
        return options
    else:
        options = {"add": tflite.AddOptionsT, "fully_connected": tflite.FullyConnectedOptionsT}[operator.op]()
        options.fusedActivationFunction = activation
        return options
    options.padding = tflite.Padding.VALID if operator.op == "average_pool" else tflite.Padding.SAME
    options.strideH = options.strideW = given["stride"]
    options.fusedActivationFunction = activation
    return options
