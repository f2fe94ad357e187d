/* npu_sim.h -- the simulators of VTA and of Arm's Ethos-U, one driver of npu_driver.h's ABI. Hosts only. C99
 * and C++17. What follows is about VTA; docs/ethosu.md describes Ethos-U, of which a device has all options
 * but sram, multiply, explore and trace, and whose jobs are recorded in a form of their own.
 *
 * It executes blobs of format QPLAN_NPU_BLOB_VTA bit for bit as the public specification says, on memories of
 * exact size that are poisoned before each job, and looks at more than hardware does: reads of what nothing
 * has written, accesses that no token orders, interleavings of the three modules. docs/npu.md describes it.
 *
 * Options of `open`, separated by commas; the defaults in parentheses:
 *   device=vta|ethos-u55-128 what it is: VTA, or a configuration of Ethos-U (vta)
 *   sram=default|quarter     memory sizes (default)
 *   multiply=0|1             has MUL and shifts to the left (1)
 *   seed=N                   of the interleaving (1)
 *   explore=N                run N interleavings, demand equal bytes (1)
 *   hazards=fail|report      unordered accesses end the job, or are only counted (fail)
 *   coherent=0|1             0: the CPU's cache is separate, a flush or invalidate that is missing shows (1)
 *   queue=N                  jobs in flight (8)
 *   memory=BYTES             of device memory (268435456)
 *   work=N                   of a replayed job: micro-ops executed plus elements moved, at most; of one of
 *                            Ethos-U: cycles plus elements that kernels read (1073741824)
 *   record=DIR               every job as a directory that other simulators can replay
 *   record_all=0|1           of a recorded job: checks of what it leaves in scratch, too (0)
 *   trace=FILE               every instruction on the simulated clock, for Perfetto; written by close.
 *                            When it cannot be written, close logs the reason and returns
 *                            QPLAN_NPU_E_ARGUMENT; the device is closed
 *   faults=SCRIPT            what goes wrong and when: rules `at=PLACE kind=KIND`, separated by semicolons
 *   fault_seed=N             with fault_percent=P each job fails with probability P percent, in a way and
 *                            at an instruction that N determines
 *
 * Places and kinds of faults; jobs, calls and instructions count from 0:
 *   at=JOB:INSTRUCTION       hang | bus_error | illegal_instruction | bit_flip (found by parity) |
 *                            device_lost
 *   at=JOB:*                 lost_interrupt | late_interrupt ms=N | silent_bit_flip (in an output; nobody
 *                            finds it)
 *   at=open:0                absent
 *   at=alloc:CALL            allocation_failure
 *   at=load:CALL             truncated_blob | skewed_blob | damaged_blob */
#ifndef QPLAN_NPU_SIM_H_
#define QPLAN_NPU_SIM_H_

#include <qplan/npu_driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The driver; NULL where the major of abi is another. It has two devices, and each may be opened any number
 * of times. */
QPLAN_API const qplan_npu_driver* qplan_npu_sim_driver(uint32_t abi);

/* qplan_npu_report.vendor of the simulator. */
enum {
  QPLAN_NPU_SIM_HAZARDS = 0,       /* accesses that no token orders */
  QPLAN_NPU_SIM_INTERLEAVINGS = 1, /* that ran through */
  QPLAN_NPU_SIM_BUSY_LOAD = 2,     /* cycles */
  QPLAN_NPU_SIM_BUSY_COMPUTE = 3,
  QPLAN_NPU_SIM_BUSY_STORE = 4,
  QPLAN_NPU_SIM_STALL_LOAD = 5,    /* cycles that compute waited for load */
  QPLAN_NPU_SIM_STALL_STORE = 6,   /* cycles that compute waited for store */
  QPLAN_NPU_SIM_ALU_OPERATIONS = 7 /* micro-ops executed by ALU instructions */
};

/* Where a byte differs in a replayed job whose memory is regions, fault_address has its region from this bit
 * on and the offset into the region below. */
#define QPLAN_NPU_SIM_REGION_BIT 40

/* Runs the job that record= left in directory and compares each `check` of it. report (may be NULL) says what
 * differs, and every other reason in a line of text. options: seed, explore, hazards, sram, multiply, memory
 * and work as above. The directory may come from anybody: only regular files inside it are read, no link is
 * followed, nothing is waited for; memory=, work= and the sizes of files bound what a job takes.
 * QPLAN_NPU_OK; QPLAN_NPU_E_ARGUMENT where files are missing, malformed or too large; QPLAN_NPU_E_MEMORY;
 * QPLAN_NPU_E_ILLEGAL where work= is exceeded, and what a job can end with; QPLAN_NPU_E_BUS where bytes
 * differ. */
QPLAN_API qplan_npu_status qplan_npu_sim_replay(const char* directory, const char* options,
                                                qplan_npu_report* report);

/* ---- records of any driver's jobs ---- */
/* Makes a driver that passes all calls on to *driver, of which *device is an open device, and writes each job
 * that ends well as directory/job-NNNN, under the first number that is free. Puts it into *driver, and its
 * handle into *device: they go to one session, and its close closes the device itself. A job of Ethos-U gets
 * the form that qplan_npu_sim_replay runs; others get that of qplan_npu_replay (docs/npu.md). What cannot be
 * written is logged as an error of platform, which outlives the device and may be NULL; the job goes on.
 * flags: QPLAN_NPU_RECORD_ALL. QPLAN_NPU_OK, QPLAN_NPU_E_ARGUMENT or QPLAN_NPU_E_MEMORY. */
enum { QPLAN_NPU_RECORD_ALL = 1u }; /* checks of what a job leaves in scratch, too: it is 0xa5 before */
QPLAN_API qplan_npu_status qplan_npu_record(const qplan_npu_driver** driver, qplan_npu_device* device,
                                            const qplan_platform* platform, const char* directory,
                                            uint32_t flags);

/* Runs such a job on an open device of a driver that takes its program, in buffers of its own, and compares
 * each check. Directory, report and status as of qplan_npu_sim_replay; also what the driver's functions
 * return. After timeout_ms the job is cancelled, and then its device reset: QPLAN_NPU_E_TIMEOUT. */
QPLAN_API qplan_npu_status qplan_npu_replay(const qplan_npu_driver* driver, qplan_npu_device device,
                                            const char* directory, uint32_t timeout_ms,
                                            qplan_npu_report* report);

/* The listing of a blob, line by line: regions, then instructions under the names of the nodes they compute.
 * options: sram and multiply as above. */
QPLAN_API qplan_npu_status qplan_npu_sim_disassemble(const void* blob, uint64_t bytes, const char* options,
                                                     void (*line)(void* user, const char* text), void* user,
                                                     qplan_npu_reason* why);

#ifdef __cplusplus
}
#endif
#endif /* QPLAN_NPU_SIM_H_ */
