// Stands for FlatBuffers' assert in the runtime: it guards against misuse of its API, never against bytes
// (the verifier does that), and its default would pull __assert_fail into libqplan.a.
#ifndef QPLAN_FORMAT_FLATBUFFERS_ASSERT_H_
#define QPLAN_FORMAT_FLATBUFFERS_ASSERT_H_
#define QPLAN_FLATBUFFERS_ASSERT(condition) ((void)0)
#endif  // QPLAN_FORMAT_FLATBUFFERS_ASSERT_H_
