/* What main.c needs of the board. */
#ifndef QPLAN_SAMPLES_ETHOSU_DRIVER_BOARD_H_
#define QPLAN_SAMPLES_ETHOSU_DRIVER_BOARD_H_

/* Makes the NPU ready for Arm's driver: its ethosu_init, and the interrupt that calls ethosu_irq_handler.
 * 0, or another number when there is no NPU. */
int board_npu_init(void);
/* After the runs: prints what the board knows about them. */
void board_npu_report(void);

#endif /* QPLAN_SAMPLES_ETHOSU_DRIVER_BOARD_H_ */
