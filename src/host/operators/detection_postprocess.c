/* TFLite_Detection_PostProcess: boxes of an SSD detector from encodings relative to anchors, and the best of
 * them without those that overlap better ones (non-maximum suppression, NMS).
 *
 * Inputs: box encodings [1, n, k >= 4] (y, x, h, w), class scores [1, n, classes, with the background first
 * if there is one more than num_classes], anchors [n, 4] (y, x, h, w); float32 or 8 bits. Outputs, float32:
 * boxes [1, m, 4] (ymin, xmin, ymax, xmax), classes [1, m], scores [1, m], number of detections [1]; m is
 * max_detections * max_classes_per_detection. What no detection fills is 0. Options: max_detections,
 * max_classes_per_detection, detections_per_class (100), use_regular_nms (0), nms_score_threshold,
 * nms_iou_threshold, num_classes, y_scale, x_scale, h_scale, w_scale.
 *
 * Equal scores: the box, or the class of a box, with the lower index comes first; with regular NMS, of two
 * classes the one with the higher index, as in TFLite 2.9, which puts a class into the list before its
 * equals. (Of equal classes of one box TFLite takes those that the sort of its library leaves first.) A box
 * whose edges are not in order, or are no numbers, overlaps nothing (TFLite ends the run with an error there;
 * run() cannot fail). */
#include <math.h>

#include "qplan/custom_operator.h"

enum { BOXES, SCORES, ANCHORS };
enum { OUT_BOXES, OUT_CLASSES, OUT_SCORES, OUT_COUNT };

typedef struct Box {
  float ymin, xmin, ymax, xmax;
} Box;

typedef struct Settings {
  uint32_t num_boxes, box_values, num_classes, num_columns, max_detections, max_classes, per_class, regular;
  float score_threshold, iou_threshold, scales[4]; /* y, x, h, w */
} Settings;

static int is_values(const qplan_custom_tensor* t) {
  if (t->dtype.lanes != 1) return 0;
  if (t->dtype.code == kDLFloat) return t->dtype.bits == 32;
  return t->dtype.bits == 8 && t->scale > 0;
}

static float value_at(const qplan_custom_tensor* t, uint64_t i) {
  if (t->dtype.code == kDLFloat) return ((const float*)t->data)[i];
  return t->scale * (float)((t->dtype.code == kDLUInt ? (int32_t)((const uint8_t*)t->data)[i]
                                                      : (int32_t)((const int8_t*)t->data)[i]) -
                            t->zero_point);
}

static uint32_t whole(const qplan_custom_call* call, const char* option, double fallback, uint32_t limit) {
  const double value = qplan_custom_number(call, option, fallback);
  return value >= 0 && value <= limit ? (uint32_t)value : limit + 1;
}

/* Reads and checks everything but the outputs. */
static const char* read_settings(const qplan_custom_call* call, Settings* s) {
  static const char* const names[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
  const qplan_custom_tensor* in = call->inputs;
  int i;
  if (call->num_inputs != 3 || call->num_outputs != 4) return "expected 3 inputs and 4 outputs";
  for (i = 0; i < 3; i++) {
    if (!is_values(&in[i])) return "inputs must be float32, or 8 bits with a scale";
  }
  if (in[BOXES].ndim != 3 || in[BOXES].shape[0] != 1 || in[BOXES].shape[2] < 4)
    return "box encodings must be [1, boxes, 4 or more]";
  if (in[SCORES].ndim != 3 || in[SCORES].shape[0] != 1 || in[SCORES].shape[1] != in[BOXES].shape[1])
    return "scores must be [1, boxes, classes]";
  if (in[ANCHORS].ndim != 2 || in[ANCHORS].shape[0] != in[BOXES].shape[1] || in[ANCHORS].shape[1] != 4)
    return "anchors must be [boxes, 4]";
  if (in[BOXES].shape[1] > 1 << 20) return "more than 2^20 boxes";
  s->num_boxes = (uint32_t)in[BOXES].shape[1];
  s->box_values = (uint32_t)in[BOXES].shape[2];
  s->num_columns = (uint32_t)in[SCORES].shape[2];
  s->num_classes = whole(call, "num_classes", -1, s->num_columns);
  if (s->num_classes < 1 || s->num_classes > s->num_columns || s->num_columns - s->num_classes > 1)
    return "option 'num_classes' must be the number of scores of a box, or one less";
  s->max_detections = whole(call, "max_detections", -1, 4096);
  s->max_classes = whole(call, "max_classes_per_detection", 1, 4096);
  s->per_class = whole(call, "detections_per_class", 100, 1 << 20);
  s->regular = qplan_custom_number(call, "use_regular_nms", 0) != 0;
  if (s->max_detections < 1 || s->max_detections > 4096) return "option 'max_detections' must be 1 to 4096";
  if (s->max_classes < 1 || s->max_classes > 4096)
    return "option 'max_classes_per_detection' must be 1 to 4096";
  if (s->per_class < 1 || s->per_class > 1 << 20) return "option 'detections_per_class' must be 1 to 2^20";
  s->score_threshold = (float)qplan_custom_number(call, "nms_score_threshold", 0);
  s->iou_threshold = (float)qplan_custom_number(call, "nms_iou_threshold", -1);
  if (!(s->iou_threshold > 0 && s->iou_threshold <= 1)) return "option 'nms_iou_threshold' must be in (0, 1]";
  for (i = 0; i < 4; i++) {
    s->scales[i] = (float)qplan_custom_number(call, names[i], 0);
    if (!(s->scales[i] > 0)) return "options 'y_scale', 'x_scale', 'h_scale' and 'w_scale' must be above 0";
  }
  return NULL;
}

static int64_t rows(const Settings* s) { return (int64_t)s->max_detections * (int64_t)s->max_classes; }

static qplan_status infer(const qplan_custom_operator* self, const qplan_custom_call* call,
                          qplan_custom_type* outputs, qplan_custom_needs* needs) {
  static const int32_t ranks[] = {3, 2, 2, 1};
  const DLDataType float32 = {kDLFloat, 32, 1};
  Settings s;
  const char* error = read_settings(call, &s);
  int i;
  (void)self;
  if (error != NULL) return qplan_custom_refuse(needs, error);
  for (i = 0; i < 4; i++) {
    outputs[i].dtype = float32;
    outputs[i].ndim = ranks[i];
    outputs[i].shape[0] = 1;
    outputs[i].shape[1] = rows(&s);
    outputs[i].shape[2] = 4;
  }
  return QPLAN_OK;
}

/* Scratch: decoded boxes, one score for each box, the order of boxes, whether a box is still one, the
 * detections so far (a box and a class each) with one class's beside them, and the classes of a box in order.
 */
static uint64_t selected_room(const Settings* s) {
  const uint32_t of_class = s->per_class < s->num_boxes ? s->per_class : s->num_boxes;
  return s->regular ? (uint64_t)s->max_detections + of_class : s->max_detections;
}

static qplan_status prepare(const qplan_custom_operator* self, const qplan_custom_call* call,
                            qplan_custom_needs* needs) {
  static const uint64_t values[] = {4, 1, 1, 0};
  Settings s;
  const char* error = read_settings(call, &s);
  uint64_t n, passes;
  int i;
  (void)self;
  if (error != NULL) return qplan_custom_refuse(needs, error);
  for (i = 0; i < 4; i++) {
    const uint64_t count = i == OUT_COUNT ? 1 : values[i] * (uint64_t)rows(&s);
    if (call->outputs[i].dtype.code != kDLFloat || call->outputs[i].dtype.bits != 32 ||
        call->outputs[i].size_bytes != count * sizeof(float))
      return qplan_custom_refuse(needs, "the outputs must be float32 [1, m, 4], [1, m], [1, m] and [1]");
  }
  n = s.num_boxes;
  passes = s.regular ? s.num_classes : 1;
  needs->scratch_bytes = n * (sizeof(Box) + 4 + 4 + 4) + selected_room(&s) * 16 + (uint64_t)s.num_classes * 4;
  needs->work = n * s.num_columns + n * 32 + passes * n * n;
  return QPLAN_OK;
}

static Box decode(const qplan_custom_call* call, const Settings* s, uint32_t i) {
  const qplan_custom_tensor *boxes = &call->inputs[BOXES], *anchors = &call->inputs[ANCHORS];
  const uint64_t b = (uint64_t)i * s->box_values, a = (uint64_t)i * 4;
  const double anchor_h = value_at(anchors, a + 2), anchor_w = value_at(anchors, a + 3);
  const float y = (float)((double)value_at(boxes, b) / s->scales[0] * anchor_h + value_at(anchors, a));
  const float x =
      (float)((double)value_at(boxes, b + 1) / s->scales[1] * anchor_w + value_at(anchors, a + 1));
  const float h = (float)(0.5 * exp((double)value_at(boxes, b + 2) / s->scales[2]) * anchor_h);
  const float w = (float)(0.5 * exp((double)value_at(boxes, b + 3) / s->scales[3]) * anchor_w);
  const Box box = {y - h, x - w, y + h, x + w};
  return box;
}

static float overlap(const Box* a, const Box* b) {
  const float area_a = (a->ymax - a->ymin) * (a->xmax - a->xmin);
  const float area_b = (b->ymax - b->ymin) * (b->xmax - b->xmin);
  const float height = fminf(a->ymax, b->ymax) - fmaxf(a->ymin, b->ymin);
  const float width = fminf(a->xmax, b->xmax) - fmaxf(a->xmin, b->xmin);
  const float common = fmaxf(height, 0) * fmaxf(width, 0);
  if (!(area_a > 0) || !(area_b > 0) || a->ymin > a->ymax || b->ymin > b->ymax) return 0;
  return common / (area_a + area_b - common);
}

/* Puts [0, n) in the order of falling values, equal ones as they were: a heap, whose parents come later in
 * that order. */
static int comes_after(const float* values, uint32_t a, uint32_t b) {
  return values[a] < values[b] || (values[a] == values[b] && a > b);
}
static void sift(const float* values, uint32_t* heap, uint32_t root, uint32_t n) {
  const uint32_t moved = heap[root];
  while (root < n / 2) {
    uint32_t child = 2 * root + 1;
    if (child + 1 < n && comes_after(values, heap[child + 1], heap[child])) child++;
    if (!comes_after(values, heap[child], moved)) break;
    heap[root] = heap[child];
    root = child;
  }
  heap[root] = moved;
}
static void sort(const float* values, uint32_t* order, uint32_t n) {
  uint32_t i;
  for (i = n / 2; i-- > 0;) sift(values, order, i, n);
  for (i = n; i-- > 1;) {
    const uint32_t last = order[0];
    order[0] = order[i];
    order[i] = last;
    sift(values, order, 0, i);
  }
}

/* The boxes that stay, best first, at most limit; `order` is used. */
static uint32_t suppress(const Settings* s, const Box* boxes, const float* scores, uint32_t* order,
                         uint32_t* is_gone, uint32_t limit, uint32_t* selected) {
  uint32_t kept = 0, count = 0, i, j;
  for (i = 0; i < s->num_boxes; i++) {
    if (scores[i] >= s->score_threshold) order[kept++] = i;
  }
  sort(scores, order, kept);
  for (i = 0; i < kept; i++) is_gone[i] = 0;
  for (i = 0; i < kept && count < limit; i++) {
    if (is_gone[i]) continue;
    selected[count++] = order[i];
    for (j = i + 1; j < kept; j++) {
      if (!is_gone[j] && overlap(&boxes[order[i]], &boxes[order[j]]) > s->iou_threshold) is_gone[j] = 1;
    }
  }
  return count;
}

static void put(const qplan_custom_call* call, uint32_t row, const Box* box, uint32_t klass, float score) {
  ((Box*)call->outputs[OUT_BOXES].data)[row] = *box;
  ((float*)call->outputs[OUT_CLASSES].data)[row] = (float)klass;
  ((float*)call->outputs[OUT_SCORES].data)[row] = score;
}

static float score_of(const qplan_custom_call* call, const Settings* s, uint32_t box, uint32_t klass) {
  return value_at(&call->inputs[SCORES],
                  (uint64_t)box * s->num_columns + klass + (s->num_columns - s->num_classes));
}

typedef struct Scratch {
  Box* boxes;
  float* scores;
  uint32_t *order, *is_gone, *selected, *detections, *next, *classes;
  float* values;
} Scratch;

static Scratch place(const qplan_custom_call* call, const Settings* s) {
  const uint64_t n = s->num_boxes, room = selected_room(s);
  Scratch at;
  at.boxes = (Box*)call->scratch;
  at.scores = (float*)(at.boxes + n);
  at.order = (uint32_t*)(at.scores + n);
  at.is_gone = at.order + n;
  at.selected = at.is_gone + n;
  at.detections = at.selected + room;
  at.values = (float*)(at.detections + room);
  at.next = (uint32_t*)(at.values + room);
  at.classes = at.next + room;
  return at;
}

/* NMS once, over the best score of each box; each box that stays gives its best classes. */
static uint32_t detect_fast(const qplan_custom_call* call, const Settings* s, const Scratch* at) {
  const uint32_t num_given = s->max_classes < s->num_classes ? s->max_classes : s->num_classes;
  uint32_t count, i, k, j;
  for (i = 0; i < s->num_boxes; i++) {
    at->scores[i] = score_of(call, s, i, 0);
    for (k = 1; k < s->num_classes; k++) {
      const float score = score_of(call, s, i, k);
      if (score > at->scores[i]) at->scores[i] = score;
    }
  }
  count = suppress(s, at->boxes, at->scores, at->order, at->is_gone, s->max_detections, at->selected);
  for (i = 0; i < count; i++) {
    const uint32_t box = at->selected[i];
    for (k = 0; k < s->num_classes; k++) at->classes[k] = k;
    for (k = 0; k < num_given; k++) { /* the best classes, one after the other */
      uint32_t best = k, moved;
      for (j = k + 1; j < s->num_classes; j++) {
        const float a = score_of(call, s, box, at->classes[j]), b = score_of(call, s, box, at->classes[best]);
        if (a > b || (a == b && at->classes[j] < at->classes[best])) best = j;
      }
      moved = at->classes[best];
      at->classes[best] = at->classes[k];
      at->classes[k] = moved;
      put(call, s->max_classes * i + k, &at->boxes[box], moved, score_of(call, s, box, moved));
    }
  }
  return count;
}

/* NMS of each class by itself; the best of all classes stay. */
static uint32_t detect_regular(const qplan_custom_call* call, const Settings* s, const Scratch* at) {
  uint32_t count = 0, k, i;
  for (k = 0; k < s->num_classes; k++) {
    uint32_t of_class, total;
    for (i = 0; i < s->num_boxes; i++) at->scores[i] = score_of(call, s, i, k);
    of_class = suppress(s, at->boxes, at->scores, at->order, at->is_gone, s->per_class, at->selected);
    total = count + of_class;
    for (i = count; i-- > 0;) at->detections[of_class + i] = at->detections[i];
    for (i = 0; i < of_class; i++) at->detections[i] = at->selected[i] * s->num_classes + k;
    for (i = 0; i < total; i++) {
      const uint32_t d = at->detections[i];
      at->values[i] = score_of(call, s, d / s->num_classes, d % s->num_classes);
      at->next[i] = i;
    }
    sort(at->values, at->next, total);
    count = total < s->max_detections ? total : s->max_detections;
    for (i = 0; i < count; i++) at->selected[i] = at->detections[at->next[i]];
    for (i = 0; i < count; i++) at->detections[i] = at->selected[i];
  }
  for (i = 0; i < count; i++) {
    const uint32_t box = at->detections[i] / s->num_classes, klass = at->detections[i] % s->num_classes;
    put(call, i, &at->boxes[box], klass, score_of(call, s, box, klass));
  }
  return count;
}

static void run(const qplan_custom_operator* self, const qplan_custom_call* call) {
  static const Box empty = {0, 0, 0, 0};
  Settings s;
  Scratch at;
  uint32_t i, count;
  (void)self;
  if (read_settings(call, &s) != NULL) return; /* prepare() has accepted it */
  at = place(call, &s);
  for (i = 0; i < s.num_boxes; i++) at.boxes[i] = decode(call, &s, i);
  for (i = 0; i < (uint32_t)rows(&s); i++) put(call, i, &empty, 0, 0);
  count = s.regular ? detect_regular(call, &s, &at) : detect_fast(call, &s, &at);
  ((float*)call->outputs[OUT_COUNT].data)[0] = (float)count;
}

extern const qplan_custom_operator qplan_host_detection_postprocess;
const qplan_custom_operator qplan_host_detection_postprocess = {
    sizeof(qplan_custom_operator), 0, "TFLite_Detection_PostProcess", NULL, infer, prepare, run};
