"""Writes the digits network as ONNX, in the QDQ form: float operators between DequantizeLinear and QuantizeLinear."""
import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper


class _Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def parameters(self, name, scale, zero_point):
        return [self.constant(name + "/scale", scale), self.constant(name + "/zero_point", zero_point)]

    def fake_quantize(self, x, name, quantization):
        parameters = self.parameters(name, np.float32(quantization.scale), np.uint8(quantization.zero_point))
        self.node("QuantizeLinear", [x, *parameters], name + "/q")
        return self.node("DequantizeLinear", [name + "/q", *parameters], name + "/dq")


def write(image, shape, layers, float_weights):
    """The file's bytes. float_weights: weights are floats, which the graph quantises; else int8."""
    graph = _Graph()
    values = {"image": graph.fake_quantize("image", "image", image)}
    scale_of = {"image": image.scale}
    for layer in layers:
        inputs = [values[name] for name in layer.inputs]
        if layer.op in ("conv", "dense"):
            inputs += _weights(graph, layer, scale_of[layer.inputs[0]], float_weights)
        if layer.op == "conv":
            x = graph.node("Conv", inputs, layer.name + "/conv", group=layer.groups, pads=layer.pads,
                           strides=[layer.stride] * 2, kernel_shape=layer.kernel)
        elif layer.op == "dense":
            x = graph.node("Gemm", inputs, layer.name + "/gemm", transB=1)
        elif layer.op == "add":
            x = graph.node("Add", inputs, layer.name + "/add")
        elif layer.op == "pool":
            x = graph.node("AveragePool", inputs, layer.name + "/pool", kernel_shape=layer.kernel, strides=layer.kernel)
        elif layer.op == "flatten":
            x = graph.node("Flatten", inputs, layer.name + "/flatten")
        else:
            x = graph.node("Softmax", inputs, layer.name + "/softmax", axis=1)
        if layer.relu:
            x = graph.node("Relu", [x], layer.name + "/relu")
        values[layer.name] = graph.fake_quantize(x, layer.name, layer.output)
        scale_of[layer.name] = layer.output.scale
    output = graph.node("Identity", [values[layers[-1].name]], layers[-1].name)
    graph_proto = helper.make_graph(
        graph.nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, len(layers[-2].bias)])], graph.constants)
    model = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 13)], producer_name="train_digits of qplan")
    model.ir_version = 8
    checker.check_model(model)
    return model.SerializeToString()


def _weights(graph, layer, input_scale, float_weights):
    """Names of weights and bias, as floats."""
    scales = layer.scales.astype(np.float32)
    along = (-1,) + (1,) * (layer.weights.ndim - 1)
    one = len(scales) == 1
    parameters = graph.parameters(layer.name + "/weights", scales[0] if one else scales,
                                  np.int8(0) if one else np.zeros(len(scales), np.int8))
    axis = {} if one else {"axis": 0}
    if float_weights:
        real = layer.weights.astype(np.float32) * scales.reshape(along)
        weights = graph.node("QuantizeLinear", [graph.constant(layer.name + "/weights", real), *parameters],
                             layer.name + "/weights/q", **axis)
    else:
        weights = graph.constant(layer.name + "/weights", layer.weights)
    weights = graph.node("DequantizeLinear", [weights, *parameters], layer.name + "/weights/dq", **axis)
    bias_scales = np.float32(input_scale) * scales
    if float_weights:
        bias = graph.constant(layer.name + "/bias", (layer.bias * bias_scales.astype(np.float64)).astype(np.float32))
    else:
        parameters = graph.parameters(layer.name + "/bias", bias_scales[0] if one else bias_scales,
                                      np.int32(0) if one else np.zeros(len(scales), np.int32))
        bias = graph.node("DequantizeLinear", [graph.constant(layer.name + "/bias", layer.bias), *parameters],
                          layer.name + "/bias/dq", **axis)
    return [weights, bias]
