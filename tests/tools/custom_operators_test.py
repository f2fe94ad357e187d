"""Custom operators as a user meets them: TFLite and ONNX files with such operators are packed and run, with the sample's
library, which is compiled, and with those that come with qplan. Expected values come from NumPy, written here."""

import json
import os
import shutil
import struct
import subprocess
import unittest

import support
from support import numpy as np

if np is not None:
    from onnx_file import Model as OnnxModel

FLATC = os.environ.get("QPLAN_FLATC") or shutil.which("flatc")
SCHEMA = support.REPOSITORY / "src/packer/import/tflite/tflite_subset.fbs"
SAMPLE = support.REPOSITORY / "samples" / "custom_operators"
INCLUDES = [part for part in os.environ.get("QPLAN_TEST_INCLUDES", "/usr/include").split(":") if part]


def flexbuffer_map(options):
    """Numbers and texts by name, in flexbuffers' format with widths of 8 bytes."""
    names = sorted(options)
    data = bytearray()

    def add(piece):
        data.extend(b"\0" * (-len(data) % 8))
        at = len(data)
        data.extend(piece)
        return at

    keys = {name: add(name.encode() + b"\0") for name in names}
    texts = {}
    for name in names:
        if isinstance(options[name], str):
            text = options[name].encode()
            texts[name] = add(struct.pack("<Q", len(text)) + text + b"\0") + 8
    vectors = {}
    for name in names:
        if isinstance(options[name], list):
            values = options[name]
            vectors[name] = add(struct.pack(f"<Q{len(values)}d", len(values), *values)) + 8
    vector = add(struct.pack("<Q", len(names))) + 8
    for name in names:
        data.extend(struct.pack("<Q", len(data) - keys[name]))
    at = len(data)
    data.extend(struct.pack("<QQQ", at - vector, 8, len(names)))
    types = bytearray()
    at = len(data)
    for name in names:
        value = options[name]
        if isinstance(value, str):
            data.extend(struct.pack("<Q", len(data) - texts[name]))
            types.append(5 << 2 | 3)
        elif isinstance(value, list):
            data.extend(struct.pack("<Q", len(data) - vectors[name]))
            types.append(13 << 2 | 3)
        elif isinstance(value, bool):
            data.extend(struct.pack("<Q", value))
            types.append(26 << 2 | 3)
        elif isinstance(value, int):
            data.extend(struct.pack("<q", value))
            types.append(1 << 2 | 3)
        else:
            data.extend(struct.pack("<d", value))
            types.append(3 << 2 | 3)
    data.extend(types)
    data.extend(b"\0" * (-len(data) % 8))
    data.extend(struct.pack("<Q", len(data) - at) + bytes([9 << 2 | 3, 8]))
    return bytes(data)


def tensor(name, shape, kind="FLOAT32", scale=None, zero_point=0, data=None):
    result = {"name": name, "type": kind, "shape": shape}
    if scale is not None:
        result["quantization"] = {"scale": [scale], "zero_point": [zero_point]}
    return result, data


def write_model(path, tensors, inputs, outputs, operators):
    """operators: (name, inputs, outputs, bytes of options)."""
    buffers = [{}]
    listed = []
    for entry, data in tensors:
        if data is not None:
            entry = dict(entry, buffer=len(buffers))
            buffers.append({"data": list(data)})
        listed.append(entry)
    model = {
        "version": 3,
        "operator_codes": [{"deprecated_builtin_code": 32, "builtin_code": "CUSTOM", "custom_code": name}
                           for name, _, _, _ in operators],
        "subgraphs": [{"tensors": listed, "inputs": inputs, "outputs": outputs,
                       "operators": [{"opcode_index": i, "inputs": read, "outputs": written,
                                      "custom_options": list(options)}
                                     for i, (_, read, written, options) in enumerate(operators)]}],
        "buffers": buffers,
    }
    source = path.with_suffix(".json")
    source.write_text(json.dumps(model), encoding="utf-8")
    schema = path.parent / "schema.fbs"
    schema.write_text(SCHEMA.read_text(encoding="utf-8") + '\nfile_identifier "TFL3";\n', encoding="utf-8")
    subprocess.run([FLATC, "-b", "-o", str(path.parent), str(schema), str(source)], check=True)
    for made in path.parent.glob(path.stem + ".*"):
        if made.suffix not in (".json", ".tflite"):
            made.rename(path)
    return path


def dequantised(array, scale, zero_point):
    return (np.float32(scale) * (array.astype(np.float32) - np.float32(zero_point))).astype(np.float32)


def decoded(boxes, anchors, scales):
    """Corners of boxes from encodings, as the operator's public description has them: in double, then float32."""
    boxes, anchors = boxes.astype(np.float64), anchors.astype(np.float64)
    y = (boxes[:, 0] / scales[0] * anchors[:, 2] + anchors[:, 0]).astype(np.float32)
    x = (boxes[:, 1] / scales[1] * anchors[:, 3] + anchors[:, 1]).astype(np.float32)
    h = (0.5 * np.exp(boxes[:, 2] / scales[2]) * anchors[:, 2]).astype(np.float32)
    w = (0.5 * np.exp(boxes[:, 3] / scales[3]) * anchors[:, 3]).astype(np.float32)
    return np.stack([y - h, x - w, y + h, x + w], axis=1)


def iou(a, b):
    def area(box):
        return max(float(box[2] - box[0]), 0) * max(float(box[3] - box[1]), 0)

    top, left = np.maximum(a[:2], b[:2])
    bottom, right = np.minimum(a[2:], b[2:])
    common = max(float(bottom - top), 0) * max(float(right - left), 0)
    return common / (area(a) + area(b) - common) if area(a) > 0 and area(b) > 0 else 0


def survivors(corners, scores, score_threshold, iou_threshold, limit):
    kept = []
    for box in np.argsort(-scores, kind="stable"):
        if scores[box] < score_threshold or len(kept) == limit:
            continue
        if all(iou(corners[box], corners[other]) <= iou_threshold for other in kept):
            kept.append(int(box))
    return kept


def detections(corners, scores, options):
    """Rows (box, class, score), and where each of them stands."""
    threshold, overlap, most = (options["nms_score_threshold"], options["nms_iou_threshold"],
                                options["max_detections"])
    classes = options["max_classes_per_detection"]
    if options.get("use_regular_nms"):
        found = []
        for k in range(scores.shape[1]):
            # Later classes come first among equal scores, as in TensorFlow Lite 2.9.
            found += [(float(scores[b, k]), k, -i, b, k) for i, b in
                      enumerate(survivors(corners, scores[:, k], threshold, overlap, options["detections_per_class"]))]
        found = sorted(found, reverse=True)[:most]
        return [(b, k, scores[b, k], i) for i, (_, _, _, b, k) in enumerate(found)], len(found)
    boxes = survivors(corners, scores.max(axis=1), threshold, overlap, most)
    rows = []
    for i, b in enumerate(boxes):
        best = np.argsort(-scores[b], kind="stable")[:classes]
        rows += [(b, int(k), scores[b, k], i * classes + j) for j, k in enumerate(best)]
    return rows, len(boxes)


BODY = ((0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15), (0, 6), (6, 8), (8, 10),
        (6, 12), (12, 14), (14, 16))


def poses_of(heat, shorts, mids, options):
    """Poses as PosenetDecoderOp's public description has them, in float64: [(keypoints, scores, score)], best first."""
    height, width, _ = heat.shape
    last = np.array([height - 1, width - 1])
    stride, radius = options["stride"], options["nms_radius"] / options["stride"]
    shorts, mids = shorts / stride, mids / stride

    def at(field, place, channel):
        place = np.clip(place, 0, last)
        (y0, x0), (y1, x1) = np.floor(place).astype(int), np.ceil(place).astype(int)
        v, u = place - np.floor(place)
        return ((1 - v) * ((1 - u) * field[y0, x0, channel] + u * field[y0, x1, channel]) +
                v * ((1 - u) * field[y1, x0, channel] + u * field[y1, x1, channel]))

    def step(field, place, y, x):
        return np.clip(place + [at(field, place, y), at(field, place, x)], 0, last)

    directed = [(a, b) for a, b in BODY] + [(b, a) for a, b in BODY]
    padded = np.pad(heat, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    most = np.max([padded[i:i + height, j:j + width] for i in range(3) for j in range(3)], axis=0)
    least = -np.log(1 / (options["score_threshold"] + 1e-6) - 1)
    roots = [(heat[y, x, k], y, x, k) for y, x, k in np.argwhere((heat >= most) & (heat >= least))]
    poses = []
    for _, y, x, k in sorted(roots, key=lambda root: -root[0]):
        place = np.clip(np.array([y, x]) + [shorts[y, x, k], shorts[y, x, k + 17]], 0, last)
        if len(poses) == options["max_detections"]:
            break
        if any(np.sum((place - pose[0][k])**2) <= radius**2 for pose in poses):
            continue
        places, scores, waiting = np.zeros((17, 2)), np.zeros(17), [(at(heat, place, k), k, place)]
        done = set()
        while waiting:
            best = max(range(len(waiting)), key=lambda i: waiting[i][0])
            score, now, place = waiting.pop(best)
            if now in done:
                continue
            done.add(now)
            places[now], scores[now] = place, score
            for e, (a, b) in enumerate(directed):
                if a == now and b not in done:
                    channel = e if e <= 16 else e + 16
                    there = step(mids, place, channel, channel + 16)
                    for _ in range(5):
                        there = step(shorts, there, b, b + 17)
                    waiting.append((at(heat, there, b), b, there))
        scores = 1 / (1 + np.exp(-scores))
        if scores.mean() >= options["score_threshold"]:
            poses.append((places, scores))
    poses.sort(key=lambda pose: -pose[1].mean())
    found = []
    for i, (places, scores) in enumerate(poses):
        covered = np.zeros(17, bool)
        for other, _ in poses[:i]:
            covered |= np.sum((places - other)**2, axis=1) <= radius**2
        score = scores[~covered].sum() / 17
        found.append((places * stride, scores, score))
    found.sort(key=lambda pose: -pose[2])
    return [pose for pose in found if pose[2] >= options["score_threshold"]]


@support.needs_numpy
@unittest.skipUnless(FLATC, "flatc is not installed")
class CustomOperators(support.CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.operators = cls.compile_shared("libcustom_operators.so", sorted(SAMPLE.glob("*.c")))

    @classmethod
    def compile_shared(cls, name, sources):
        compiler = os.environ.get("CC") or shutil.which("cc")
        includes = [f"-I{path}" for path in [support.REPOSITORY / "include", *INCLUDES]]
        subprocess.run([compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fPIC", "-shared",
                        *includes, *map(str, sources), "-lm", "-o", str(cls._class_folder / name)], check=True)
        return cls._class_folder / name

    def fails(self, *arguments):
        """The error of the command."""
        result = support.run(*arguments)
        self.assertNotIn(result.returncode, (0, -6, -11), arguments)
        return result.stderr

    def twice(self, options=b"", shape=(1, 6), kind="FLOAT32"):
        return write_model(self.folder / "twice.tflite",
                           [tensor("x", list(shape), kind), tensor("y", list(shape), kind)], [0], [1],
                           [("Twice", [0], [1], options)])

    def pack_and_run(self, model, inputs, *library):
        plan = self.folder / "custom.qplan"
        self.succeed("pack", model, "-o", plan, *library)
        files = []
        for i, array in enumerate(inputs):
            files.append(self.folder / f"in{i}.bin")
            files[-1].write_bytes(array.tobytes())
        self.succeed("run", plan, *library, "--input", *files, "--output-dir", self.folder)
        return plan

    def test_an_operator_computes_from_a_tflite_file_to_output_bytes(self):
        x = np.array([[-1.5, 0, 2, 3.25, 1e30, -7]], np.float32)
        plan = self.pack_and_run(self.twice(), [x], "--custom-operators", self.operators)
        y = np.frombuffer((self.folder / "output0.bin").read_bytes(), np.float32)
        self.assertEqual(y.tobytes(), (2 * x).tobytes())
        self.succeed("check", plan, "--custom-operators", self.operators)
        self.succeed("bench", plan, "--custom-operators", self.operators, "--runs", "3")

    def test_eval_packs_models_with_the_operators(self):
        folder = self.folder / "scores"
        folder.mkdir()
        (folder / "a.bin").write_bytes(np.array([0, 0, 3, 0, 0, 0], np.float32).tobytes())
        labels = self.file("labels.csv", b"a.bin,2\n")
        text = self.succeed("eval", self.twice(), "--against", self.twice(), "--images", folder, "--labels", labels,
                            "--custom-operators", self.operators)
        self.assertIn("top-1  100.00 %", text)

    def test_an_operator_of_an_onnx_model_is_found_with_or_without_its_domain(self):
        x = np.array([[1, -2, 3]], np.float32)
        for name in ("com.example.Twice", "Twice"):
            model = OnnxModel()
            model.input("x", "float32", [1, 3])
            twice = model.node(name, "x", factor=-1.5, label="a", list=[1, 2])
            model.output(model.node("Relu", twice), "float32", [1, 3])
            path = self.folder / "twice.onnx"
            path.write_bytes(model.bytes())
            self.assertIn(f"does not import: {name} (", self.fails("pack", path, "-o", self.folder / "no.qplan"))
            self.pack_and_run(path, [x], "--custom-operators", self.operators)
            found = np.frombuffer((self.folder / "output0.bin").read_bytes(), np.float32)
            self.assertEqual(found.tolist(), [0, 3, 0], name)

    def test_what_an_onnx_model_cannot_say_of_an_operator_is_refused(self):
        for name, dtype, shape, reason in (
                ("RunningSum", "float32", [1, 3], "outputs that the operator does not infer"),
                ("Twice", "float32", [1] * 7, "an input that is Tensor[(1, 1, 1, 1, 1, 1, 1), float32]"),
                ("Twice", "bool", [3], "an input that is Tensor[(3), bool]"),
                ("Twice", "int32", [3], "input and output must be float32")):
            model = OnnxModel()
            model.input("x", dtype, shape)
            model.output(model.node(name, "x"), dtype, shape)
            path = self.folder / "refused.onnx"
            path.write_bytes(model.bytes())
            self.assertIn(reason, self.fails("pack", path, "-o", self.folder / "no.qplan",
                                             "--custom-operators", self.operators))

    def test_an_option_of_the_model_reaches_the_operator(self):
        x = np.arange(6, dtype=np.float32).reshape(1, 6)
        self.pack_and_run(self.twice(flexbuffer_map({"factor": -0.5, "label": "a", "list": [1.0, 2.0]})), [x],
                          "--custom-operators", self.operators)
        y = np.frombuffer((self.folder / "output0.bin").read_bytes(), np.float32)
        self.assertEqual(y.tobytes(), (np.float32(-0.5) * x).tobytes())

    def test_a_state_goes_from_run_to_run_and_begins_as_zeros(self):
        model = write_model(self.folder / "sum.tflite", [tensor("x", [1, 3]), tensor("y", [1, 3])], [0], [1],
                            [("RunningSum", [0], [1], b"")])
        plan = self.folder / "sum.qplan"
        self.succeed("pack", model, "-o", plan, "--custom-operators", self.operators)
        runs = np.array([[1, 2, 3], [0.5, -2, 10], [4, 4, 4]], np.float32)
        files = [self.file(f"x{i}.bin", run.tobytes()) for i, run in enumerate(runs)]
        self.succeed("run", plan, "--custom-operators", self.operators, "--output-dir", self.folder,
                     *[part for path in files for part in ("--input", path)])
        for i, expected in enumerate(np.cumsum(runs, axis=0, dtype=np.float32)):
            found = np.frombuffer((self.folder / f"run{i}_output0.bin").read_bytes(), np.float32)
            np.testing.assert_array_equal(found, expected, f"run {i}")

    def test_without_the_library_the_error_says_what_to_do(self):
        error = self.fails("pack", self.twice(), "-o", self.folder / "no.qplan")
        self.assertIn("custom operator 'Twice'", error)
        self.assertIn("--custom-operators", error)

    def test_a_plan_without_its_operator_names_it(self):
        plan = self.folder / "custom.qplan"
        self.succeed("pack", self.twice(), "-o", plan, "--custom-operators", self.operators)
        error = self.fails("check", plan)
        self.assertIn("operator 'Twice' is not in the kernel set", error)
        self.assertIn("--custom-operators", error)

    def test_what_an_operator_refuses_is_an_error_with_its_reason(self):
        error = self.fails("pack", self.twice(kind="INT8"), "-o", self.folder / "no.qplan",
                               "--custom-operators", self.operators)
        self.assertIn("input and output must be float32", error)

    def test_a_library_that_is_none_is_refused(self):
        error = self.fails("pack", self.twice(), "-o", self.folder / "no.qplan", "--custom-operators",
                           self.folder / "none.so")
        self.assertIn("cannot be loaded", error)

    def test_a_program_in_c_cannot_contain_it(self):
        plan = self.folder / "custom.qplan"
        self.succeed("pack", self.twice(), "-o", plan, "--custom-operators", self.operators)
        error = self.fails("emit-c", plan, "-o", self.folder / "c")
        self.assertIn("is the custom operator 'Twice'", error)

    def test_a_plan_shows_the_operator_and_its_options(self):
        plan = self.folder / "custom.qplan"
        self.succeed("pack", self.twice(flexbuffer_map({"factor": 2.5})), "-o", plan, "--custom-operators", self.operators)
        listing = self.succeed("disasm", plan)
        self.assertIn("Twice", listing)
        self.assertIn("factor=2.5", listing)
        self.succeed("inspect", plan)
        self.succeed("explain", plan, "--custom-operators", self.operators)

    def test_the_relay_text_of_an_operator_reads_back(self):
        model = self.twice(flexbuffer_map({"factor": 3.5, "label": 'a "b"'}))
        plan, text, again = (self.folder / name for name in ("a.qplan", "a.relay", "b.qplan"))
        self.succeed("pack", model, "-o", plan, "--custom-operators", self.operators, "--strip-names")
        text.write_text(self.succeed("import", model, "--print", "--custom-operators", self.operators), encoding="utf-8")
        self.succeed("pack", text, "-o", again, "--strip-names")
        self.assertEqual(plan.read_bytes(), again.read_bytes())

    def detect(self, options, seed, num_boxes=60, num_classes=5, background=1, library=()):
        """The model on quantised encodings and scores, with constant anchors, against NumPy."""
        random = np.random.default_rng(seed)
        boxes = random.integers(0, 256, (1, num_boxes, 4), dtype=np.uint8)
        scores = random.integers(0, 256, (1, num_boxes, num_classes + background), dtype=np.uint8)
        anchors = np.concatenate([random.uniform(0.2, 0.8, (num_boxes, 2)), random.uniform(0.1, 0.4, (num_boxes, 2))],
                                 axis=1).astype(np.float32)
        anchor_codes = np.round(anchors / np.float32(1 / 255)).astype(np.uint8)
        options = dict({"num_classes": num_classes, "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5,
                        "max_classes_per_detection": 1, "detections_per_class": 20, "max_detections": 10,
                        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}, **options)
        model = write_model(
            self.folder / "detect.tflite",
            [tensor("boxes", [1, num_boxes, 4], "UINT8", 0.06, 128),
             tensor("scores", [1, num_boxes, num_classes + background], "UINT8", 1 / 256, 0),
             tensor("anchors", [num_boxes, 4], "UINT8", 1 / 255, 0, anchor_codes.tobytes()),
             *[tensor(name, []) for name in ("a", "b", "c", "d")]], [0, 1], [3, 4, 5, 6],
            [("TFLite_Detection_PostProcess", [0, 1, 2], [3, 4, 5, 6], flexbuffer_map(options))])
        self.pack_and_run(model, [boxes, scores], *library)
        found = [np.frombuffer((self.folder / f"output{i}.bin").read_bytes(), np.float32) for i in range(4)]
        real = decoded(dequantised(boxes[0], 0.06, 128), dequantised(anchor_codes, 1 / 255, 0),
                       [options[name] for name in ("y_scale", "x_scale", "h_scale", "w_scale")])
        reals = dequantised(scores[0, :, background:], 1 / 256, 0)
        rows, count = detections(real, reals, options)
        total = options["max_detections"] * options["max_classes_per_detection"]
        expected = [np.zeros((total, 4), np.float32), np.zeros(total, np.float32), np.zeros(total, np.float32)]
        for box, k, score, row in rows:
            expected[0][row], expected[1][row], expected[2][row] = real[box], k, score
        self.assertGreater(count, 3, f"seed {seed}")
        self.assertEqual(found[3].tolist(), [count], f"seed {seed}")
        np.testing.assert_array_equal(found[1], expected[1], f"seed {seed}")
        np.testing.assert_array_equal(found[2], expected[2], f"seed {seed}")
        np.testing.assert_allclose(found[0].reshape(-1, 4), expected[0], rtol=1e-6, atol=1e-6, err_msg=f"seed {seed}")

    def test_detections_by_the_fast_suppression_are_those_of_numpy(self):
        for seed in range(3):
            self.detect({}, seed)

    def test_operators_of_a_library_come_before_those_of_qplan(self):
        other = self.folder / "other.c"
        other.write_text("""#include <qplan/custom_operator.h>
static qplan_status prepare(const qplan_custom_operator* self, const qplan_custom_call* call,
                            qplan_custom_needs* needs) {
  (void)self;
  (void)call;
  return qplan_custom_refuse(needs, "this one takes nothing");
}
static void run(const qplan_custom_operator* self, const qplan_custom_call* call) {
  (void)self;
  (void)call;
}
static const qplan_custom_operator other = {sizeof(qplan_custom_operator), 0, "TFLite_Detection_PostProcess",
                                            NULL, NULL, prepare, run};
QPLAN_API const qplan_custom_operator* const* qplan_custom_operators(uint32_t* count);
const qplan_custom_operator* const* qplan_custom_operators(uint32_t* count) {
  static const qplan_custom_operator* const operators[] = {&other};
  *count = 1;
  return operators;
}
""", encoding="utf-8")
        library = "--custom-operators", self.compile_shared("libother.so", [other])
        self.detect({}, 1, library=("--custom-operators", self.operators))  # which has no such operator
        error = self.fails("pack", self.folder / "detect.tflite", "-o", self.folder / "no.qplan", *library)
        self.assertIn("outputs without shapes, which the operator does not infer", error)
        self.assertIn("this one takes nothing", self.fails("check", self.folder / "custom.qplan", *library))

    def test_firmware_compiles_those_of_qplan_with_the_public_header_alone(self):
        sources = sorted((support.REPOSITORY / "src" / "host" / "operators").glob("*.c"))
        self.assertEqual(len(sources), 2)
        self.compile_shared("libown.so", sources)

    def test_each_box_gives_as_many_classes_as_the_model_asks_for(self):
        self.detect({"max_classes_per_detection": 3}, 11)
        self.detect({"max_classes_per_detection": 7, "nms_score_threshold": 0.0}, 12)

    def test_detections_by_the_regular_suppression_are_those_of_numpy(self):
        for seed in range(20, 23):
            self.detect({"use_regular_nms": True}, seed)
        self.detect({"use_regular_nms": True, "detections_per_class": 2, "max_detections": 40}, 24, background=0)

    def decode_poses(self, seed, kind):
        """Heatmaps with some bodies in them, and offsets that are noise; quantised or not, against NumPy."""
        random = np.random.default_rng(seed)
        height, width = 9, 11
        heat = random.normal(-4, 1, (height, width, 17))
        for _ in range(4):
            y, x = random.integers(1, height - 1), random.integers(1, width - 1)
            heat[y - 1:y + 2, x - 1:x + 2] += random.uniform(4, 7, (1, 1, 17))
        # Offsets that change little from cell to cell: where they do not, float32 and float64 walk apart.
        fields = [heat, random.normal(0, 2, (height, width, 34)), random.normal(0, 12, (height, width, 64))]
        options = {"max_detections": 6, "score_threshold": 0.2, "stride": 16, "nms_radius": 20.0}
        tensors, arrays, reals = [], [], []
        for name, field, scale in zip(("heat", "shorts", "mids"), fields, (0.06, 0.1, 0.5)):
            if kind == "UINT8":
                codes = np.clip(np.rint(field / scale) + 128, 0, 255).astype(np.uint8)
                reals.append(dequantised(codes, scale, 128).astype(np.float64))
                tensors.append(tensor(name, [1, *field.shape], kind, scale, 128))
            else:
                codes = field.astype(np.float32)
                reals.append(codes.astype(np.float64))
                tensors.append(tensor(name, [1, *field.shape]))
            arrays.append(codes)
        model = write_model(self.folder / "poses.tflite", [*tensors, *[tensor(name, []) for name in "abcd"]],
                            [0, 1, 2], [3, 4, 5, 6],
                            [("PosenetDecoderOp", [0, 1, 2], [3, 4, 5, 6], flexbuffer_map(options))])
        self.pack_and_run(model, arrays)
        found = [np.frombuffer((self.folder / f"output{i}.bin").read_bytes(), np.float32) for i in range(4)]
        expected = poses_of(*reals, options)
        self.assertEqual(found[3].tolist(), [len(expected)], f"seed {seed}")
        for i, (places, scores, score) in enumerate(expected):
            np.testing.assert_allclose(found[0].reshape(-1, 17, 2)[i], places, atol=2e-2, err_msg=f"seed {seed}")
            np.testing.assert_allclose(found[1].reshape(-1, 17)[i], scores, atol=1e-4, err_msg=f"seed {seed}")
            self.assertAlmostEqual(float(found[2][i]), score, 4, f"seed {seed}")
        self.assertEqual(float(np.abs(found[2][len(expected):]).sum()), 0)
        return len(expected)

    def test_poses_are_those_of_numpy(self):
        count = sum(self.decode_poses(seed, "FLOAT32") for seed in range(4)) + self.decode_poses(4, "UINT8")
        self.assertGreater(count, 8)

    def test_a_detector_refuses_options_that_make_no_sense(self):
        for options, reason in (({"nms_iou_threshold": 0.0}, "nms_iou_threshold"), ({"max_detections": 0},
                                "max_detections"), ({"num_classes": 9}, "num_classes")):
            with self.assertRaises(AssertionError) as refusal:
                self.detect(options, 1)
            self.assertIn(reason, str(refusal.exception))


if __name__ == "__main__":
    unittest.main()
