/*
 * report_rows.h - which rows of a list a report keeps, and their order.
 */
#ifndef TSI_STATS_REPORT_ROWS_H
#define TSI_STATS_REPORT_ROWS_H

#include "stats/report.h"

enum { TSI_ROWS_ALL = -1, TSI_CHOSEN_LABELS = 512 };

/* Keeps the rows of the phases and epochs that hold most bytes, `each` of them, and as many that are oldest, half of
 * these of those that drain; the rest is counted as left out. All: TSI_ROWS_ALL. Epochs of the ring come before others.
 * Then both are by era. */
void tsi_report_choose(TsiReport* r, int each);
/* Brings the rows of the labels whose ended phases hold most, and of those that hold most, to the front, by id: returns
 * how many. The first and the last id are among them. */
uint32_t tsi_report_choose_labels(TsiReport* r);

#endif
