/*
 * report_take.h - making a report.
 *
 * tsi_report_take walks the slabs once and fills every table from that walk, so the rows of a report agree with each
 * other as far as threads stand still.
 */
#ifndef TSI_STATS_REPORT_TAKE_H
#define TSI_STATS_REPORT_TAKE_H

#include "stats/report.h"

/* Everything, with all rows. False with errno ENOMEM. O(slabs + incarnations). */
bool tsi_report_take(TsiArena* a, TsiReport* out);
/* The same, with the rows of tsi_report_choose. */
bool tsi_report_take_rows(TsiArena* a, int each, TsiReport* out);
/* Figures without a look at phases that have ended and settled; the rest as it was kept, and `kept` must stay while the
 * report is used. O(labels + incarnation records + slabs of heaps). */
bool tsi_report_figures(TsiArena* a, TsiKept* kept, TsiReport* out);

#endif
