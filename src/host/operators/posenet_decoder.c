/* PosenetDecoderOp: poses of people from heatmaps of their keypoints (PoseNet).
 *
 * Inputs: heatmaps [1, h, w, 17] (log odds), short offsets [1, h, w, 34] (from a place to the keypoint near
 * it), mid offsets [1, h, w, 64] (from a keypoint to its neighbours in the body); uint8 or float32. Outputs,
 * float32: keypoints [1, m, 17, 2] (y, x in pixels), their scores [1, m, 17], scores of the poses [1, m],
 * number of poses [1]; m is max_detections. What no pose fills is 0. Options: max_detections,
 * score_threshold, stride (pixels of a cell), nms_radius (pixels).
 *
 * A pose grows from the best keypoint that is left: the neighbour with the highest score comes next. Equal
 * scores: the first in the order of rows, columns and keypoints, or the one that was found first, comes
 * first. A fourth input (long offsets, for masks) is refused. */
#include <math.h>

#include "qplan/custom_operator.h"

enum { HEATMAPS, SHORTS, MIDS };
enum { OUT_KEYPOINTS, OUT_KEYPOINT_SCORES, OUT_SCORES, OUT_COUNT };
enum { NUM_KEYPOINTS = 17, NUM_EDGES = 16, REFINEMENTS = 5 };

/* The body as a tree: keypoints at both ends of each edge, from the nose outwards. */
static const uint8_t edges[NUM_EDGES][2] = {{0, 1},  {1, 3},  {0, 2},   {2, 4},   {0, 5}, {5, 7},
                                            {7, 9},  {5, 11}, {11, 13}, {13, 15}, {0, 6}, {6, 8},
                                            {8, 10}, {6, 12}, {12, 14}, {14, 16}};

typedef struct Place {
  float y, x;
} Place;

typedef struct Candidate {
  Place place;
  float score;
  uint32_t keypoint;
  uint32_t order; /* in which it was found */
} Candidate;

typedef struct Pose {
  Place places[NUM_KEYPOINTS];
  float scores[NUM_KEYPOINTS];
  float score, first_score;
} Pose;

typedef struct Settings {
  uint32_t height, width, max_detections;
  float threshold, least_logit, stride, radius;
} Settings;

static int is_values(const qplan_custom_tensor* t) {
  if (t->dtype.lanes != 1) return 0;
  if (t->dtype.code == kDLFloat) return t->dtype.bits == 32;
  return t->dtype.code == kDLUInt && t->dtype.bits == 8 && t->scale > 0;
}

/* Reads and checks everything but the outputs. */
static const char* read_settings(const qplan_custom_call* call, Settings* s) {
  static const int64_t channels[] = {NUM_KEYPOINTS, 2 * NUM_KEYPOINTS, 4 * NUM_EDGES};
  const double detections = qplan_custom_number(call, "max_detections", 0);
  const double stride = qplan_custom_number(call, "stride", 0);
  const double radius = qplan_custom_number(call, "nms_radius", -1);
  const double threshold = qplan_custom_number(call, "score_threshold", -1);
  int i;
  if (call->num_inputs != 3 || call->num_outputs != 4) return "expected 3 inputs and 4 outputs";
  for (i = 0; i < 3; i++) {
    const qplan_custom_tensor* in = &call->inputs[i];
    if (!is_values(in)) return "inputs must be float32, or uint8 with a scale";
    if (in->ndim != 4 || in->shape[0] != 1 || in->shape[3] != channels[i] ||
        in->shape[1] != call->inputs[0].shape[1] || in->shape[2] != call->inputs[0].shape[2])
      return "inputs must be [1, h, w, 17], [1, h, w, 34] and [1, h, w, 64]";
  }
  if (call->inputs[0].shape[1] > 1024 || call->inputs[0].shape[2] > 1024)
    return "more than 1024 rows or columns";
  if (!(detections >= 1 && detections <= 1024)) return "option 'max_detections' must be 1 to 1024";
  if (!(stride >= 1 && stride <= 1024)) return "option 'stride' must be 1 to 1024";
  if (!(radius >= 0 && radius <= 65536)) return "option 'nms_radius' must be 0 to 65536";
  if (!(threshold > 0 && threshold < 1)) return "option 'score_threshold' must be between 0 and 1";
  s->height = (uint32_t)call->inputs[0].shape[1];
  s->width = (uint32_t)call->inputs[0].shape[2];
  s->max_detections = (uint32_t)detections;
  s->threshold = (float)threshold;
  s->least_logit = (float)-log(1.0 / (s->threshold + 1e-6) - 1.0);
  s->stride = (float)stride;
  s->radius = (float)radius / s->stride;
  return NULL;
}

static qplan_status infer(const qplan_custom_operator* self, const qplan_custom_call* call,
                          qplan_custom_type* outputs, qplan_custom_needs* needs) {
  static const int32_t ranks[] = {4, 3, 2, 1};
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
    outputs[i].shape[1] = s.max_detections;
    outputs[i].shape[2] = NUM_KEYPOINTS;
    outputs[i].shape[3] = 2;
  }
  return QPLAN_OK;
}

static uint64_t num_cells(const Settings* s) { return (uint64_t)s->height * s->width * NUM_KEYPOINTS; }

/* Scratch: the poses, the order of poses, the candidates. */
static qplan_status prepare(const qplan_custom_operator* self, const qplan_custom_call* call,
                            qplan_custom_needs* needs) {
  static const uint64_t values[] = {2 * NUM_KEYPOINTS, NUM_KEYPOINTS, 1, 0};
  Settings s;
  const char* error = read_settings(call, &s);
  uint64_t m;
  int i;
  (void)self;
  if (error != NULL) return qplan_custom_refuse(needs, error);
  m = s.max_detections;
  for (i = 0; i < 4; i++) {
    const uint64_t count = i == OUT_COUNT ? 1 : values[i] * m;
    if (call->outputs[i].dtype.code != kDLFloat || call->outputs[i].dtype.bits != 32 ||
        call->outputs[i].size_bytes != count * sizeof(float))
      return qplan_custom_refuse(needs,
                                 "the outputs must be float32 [1, m, 17, 2], [1, m, 17], [1, m] and [1]");
  }
  needs->scratch_bytes = m * (sizeof(Pose) + sizeof(uint32_t)) + num_cells(&s) * sizeof(Candidate);
  /* Each candidate is compared with all poses and may grow into one, of 32 walks; poses with one another. */
  needs->work = num_cells(&s) * (32 + m + 2 * NUM_EDGES * (REFINEMENTS + 2) * 16) + m * m * NUM_KEYPOINTS;
  return QPLAN_OK;
}

/* Element i, in cells where it is an offset. */
static float value_at(const qplan_custom_tensor* t, uint64_t i, float factor) {
  if (t->dtype.code == kDLFloat) return ((const float*)t->data)[i] * factor;
  return ((float)((const uint8_t*)t->data)[i] - (float)t->zero_point) * (t->scale * factor);
}

/* 0 where v is no number. */
static float held(float v, float most) { return v > 0 ? (v < most ? v : most) : 0; }

static float sample(const Settings* s, const qplan_custom_tensor* t, Place at, uint32_t channel,
                    float factor) {
  const uint32_t channels = (uint32_t)t->shape[3];
  const float y = held(at.y, (float)s->height - 1), x = held(at.x, (float)s->width - 1);
  const uint32_t y0 = (uint32_t)floorf(y), y1 = (uint32_t)ceilf(y);
  const uint32_t x0 = (uint32_t)floorf(x), x1 = (uint32_t)ceilf(x);
  const float v = at.y - (float)y0, u = at.x - (float)x0;
  const float top = (1 - u) * value_at(t, ((uint64_t)y0 * s->width + x0) * channels + channel, factor) +
                    u * value_at(t, ((uint64_t)y0 * s->width + x1) * channels + channel, factor);
  const float bottom = (1 - u) * value_at(t, ((uint64_t)y1 * s->width + x0) * channels + channel, factor) +
                       u * value_at(t, ((uint64_t)y1 * s->width + x1) * channels + channel, factor);
  return (1 - v) * top + v * bottom;
}

static Place moved(const Settings* s, const qplan_custom_tensor* t, Place at, uint32_t of_y, uint32_t of_x) {
  const float factor = 1.0f / s->stride;
  const float dy = sample(s, t, at, of_y, factor), dx = sample(s, t, at, of_x, factor);
  const Place place = {held(at.y + dy, (float)s->height - 1), held(at.x + dx, (float)s->width - 1)};
  return place;
}

static float distance(Place a, Place b) { return (b.y - a.y) * (b.y - a.y) + (b.x - a.x) * (b.x - a.x); }

static float probability(float logit) { return 1.0f / (1.0f + expf(-logit)); }

/* From the root on: of all neighbours of keypoints that have a place, the one with the highest score gets
 * its. */
static void grow(const qplan_custom_call* call, const Settings* s, const Candidate* root, Pose* pose) {
  Candidate waiting[2 * NUM_EDGES + 1];
  uint32_t count = 1, done = 0, i, k;
  waiting[0] = *root;
  waiting[0].score = sample(s, &call->inputs[HEATMAPS], root->place, root->keypoint, 1);
  while (count > 0) {
    uint32_t best = 0;
    Candidate now;
    for (i = 1; i < count; i++) {
      if (waiting[i].score > waiting[best].score) best = i;
    }
    now = waiting[best];
    for (i = best; i + 1 < count; i++) waiting[i] = waiting[i + 1];
    count--;
    if ((done >> now.keypoint & 1) != 0) continue;
    done |= 1u << now.keypoint;
    pose->places[now.keypoint] = now.place;
    pose->scores[now.keypoint] = now.score;
    for (i = 0; i < 2 * NUM_EDGES; i++) {
      const int backwards = i >= NUM_EDGES;
      const uint32_t from = edges[i % NUM_EDGES][backwards], to = edges[i % NUM_EDGES][!backwards];
      /* Offsets are y and x of all edges, then y and x of all edges backwards. The first edge backwards is
       * read from where it would be without the gap, as the operator always did. */
      const uint32_t channel = i > NUM_EDGES ? i + NUM_EDGES : i;
      Candidate next;
      if (from != now.keypoint || (done >> to & 1) != 0) continue;
      next.keypoint = to;
      next.place = moved(s, &call->inputs[MIDS], now.place, channel, channel + NUM_EDGES);
      for (k = 0; k < REFINEMENTS; k++)
        next.place = moved(s, &call->inputs[SHORTS], next.place, to, to + NUM_KEYPOINTS);
      next.score = sample(s, &call->inputs[HEATMAPS], next.place, to, 1);
      waiting[count++] = next;
    }
  }
}

/* Keypoints that no neighbour of the same kind exceeds, in the order of rows. */
static uint32_t find_candidates(const qplan_custom_call* call, const Settings* s, Candidate* found) {
  const qplan_custom_tensor* heat = &call->inputs[HEATMAPS];
  const float factor = 1.0f / s->stride;
  uint32_t count = 0, y, x, k, i, j;
  for (y = 0; y < s->height; y++) {
    for (x = 0; x < s->width; x++) {
      for (k = 0; k < NUM_KEYPOINTS; k++) {
        const uint64_t cell = (uint64_t)y * s->width + x;
        const float score = value_at(heat, cell * NUM_KEYPOINTS + k, 1);
        int is_most = score >= s->least_logit;
        for (i = y > 0 ? y - 1 : 0; is_most && i <= y + 1 && i < s->height; i++) {
          for (j = x > 0 ? x - 1 : 0; j <= x + 1 && j < s->width; j++) {
            if (value_at(heat, ((uint64_t)i * s->width + j) * NUM_KEYPOINTS + k, 1) > score) is_most = 0;
          }
        }
        if (!is_most) continue;
        found[count].score = score;
        found[count].keypoint = k;
        found[count].order = count;
        found[count].place.y =
            held((float)y + value_at(&call->inputs[SHORTS], cell * 34 + k, factor), (float)s->height - 1);
        found[count++].place.x =
            held((float)x + value_at(&call->inputs[SHORTS], cell * 34 + 17 + k, factor), (float)s->width - 1);
      }
    }
  }
  return count;
}

/* A heap whose root is the candidate with the highest score. */
static int comes_after(const Candidate* a, const Candidate* b) {
  return a->score < b->score || (a->score == b->score && a->order > b->order);
}
static void sift(Candidate* heap, uint32_t root, uint32_t count) {
  const Candidate moved_down = heap[root];
  while (root < count / 2) {
    uint32_t child = 2 * root + 1;
    if (child + 1 < count && comes_after(&heap[child], &heap[child + 1])) child++;
    if (!comes_after(&moved_down, &heap[child])) break;
    heap[root] = heap[child];
    root = child;
  }
  heap[root] = moved_down;
}

static int is_near_a_pose(const Settings* s, const Candidate* root, const Pose* poses, uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; i++) {
    if (distance(root->place, poses[i].places[root->keypoint]) <= s->radius * s->radius) return 1;
  }
  return 0;
}

/* Sums scores from the highest on, so that the sum is the same whatever their order. */
static float mean_of(const float* scores, uint32_t left_out) {
  uint32_t used = 0, i, k;
  float sum = 0;
  for (i = 0; i < NUM_KEYPOINTS; i++) {
    uint32_t best = NUM_KEYPOINTS;
    for (k = 0; k < NUM_KEYPOINTS; k++) {
      if ((used >> k & 1) == 0 && (best == NUM_KEYPOINTS || scores[k] > scores[best])) best = k;
    }
    used |= 1u << best;
    if ((left_out >> best & 1) == 0) sum += scores[best];
  }
  return sum / NUM_KEYPOINTS;
}

static uint32_t find_poses(const qplan_custom_call* call, const Settings* s, Pose* poses,
                           Candidate* candidates) {
  uint32_t left = find_candidates(call, s, candidates), count = 0, i, k;
  for (i = left / 2; i-- > 0;) sift(candidates, i, left);
  while (left > 0 && count < s->max_detections) {
    const Candidate root = candidates[0];
    Pose* pose = &poses[count];
    candidates[0] = candidates[--left];
    sift(candidates, 0, left);
    if (is_near_a_pose(s, &root, poses, count)) continue;
    grow(call, s, &root, pose);
    for (k = 0; k < NUM_KEYPOINTS; k++) pose->scores[k] = probability(pose->scores[k]);
    pose->first_score = mean_of(pose->scores, 0);
    if (pose->first_score >= s->threshold) count++;
  }
  return count;
}

/* Positions of poses in the order of falling scores, the first score or the last one. */
static void order_by(const Pose* poses, uint32_t count, int by_first, uint32_t* order) {
  uint32_t i, j;
  for (i = 0; i < count; i++) {
    const float score = by_first ? poses[i].first_score : poses[i].score;
    for (j = i; j > 0; j--) {
      const Pose* before = &poses[order[j - 1]];
      if ((by_first ? before->first_score : before->score) >= score) break;
      order[j] = order[j - 1];
    }
    order[j] = i;
  }
}

static void run(const qplan_custom_operator* self, const qplan_custom_call* call) {
  float* const keypoints = (float*)call->outputs[OUT_KEYPOINTS].data;
  float* const scores = (float*)call->outputs[OUT_KEYPOINT_SCORES].data;
  float* const pose_scores = (float*)call->outputs[OUT_SCORES].data;
  Settings s;
  Pose* poses;
  Candidate* candidates;
  uint32_t *order, count, kept = 0, i, j, k;
  (void)self;
  if (read_settings(call, &s) != NULL) return; /* prepare() has accepted it */
  poses = (Pose*)call->scratch;
  candidates = (Candidate*)(poses + s.max_detections);
  order = (uint32_t*)(candidates + num_cells(&s));
  count = find_poses(call, &s, poses, candidates);
  order_by(poses, count, 1, order);
  for (i = 0; i < count; i++) {
    Pose* pose = &poses[order[i]];
    uint32_t covered = 0; /* keypoints that better poses have at the same place */
    for (j = 0; j < i; j++) {
      for (k = 0; k < NUM_KEYPOINTS; k++) {
        if (distance(pose->places[k], poses[order[j]].places[k]) <= s.radius * s.radius) covered |= 1u << k;
      }
    }
    pose->score = mean_of(pose->scores, covered);
  }
  order_by(poses, count, 0, order);
  for (i = 0; i < s.max_detections; i++) {
    const Pose* pose = i < count ? &poses[order[i]] : NULL;
    const int is_shown = pose != NULL && kept == i && pose->score >= s.threshold;
    kept += is_shown ? 1 : 0;
    for (k = 0; k < NUM_KEYPOINTS; k++) {
      keypoints[(i * NUM_KEYPOINTS + k) * 2] = is_shown ? pose->places[k].y * s.stride : 0;
      keypoints[(i * NUM_KEYPOINTS + k) * 2 + 1] = is_shown ? pose->places[k].x * s.stride : 0;
      scores[i * NUM_KEYPOINTS + k] = is_shown ? pose->scores[k] : 0;
    }
    pose_scores[i] = is_shown ? pose->score : 0;
  }
  ((float*)call->outputs[OUT_COUNT].data)[0] = (float)kept;
}

extern const qplan_custom_operator qplan_host_posenet_decoder;
const qplan_custom_operator qplan_host_posenet_decoder = {
    sizeof(qplan_custom_operator), 0, "PosenetDecoderOp", NULL, infer, prepare, run};
