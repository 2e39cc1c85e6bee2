/*
 * words.h - the lines of words.def for C: TSI_DOCTOR_ROWS, tsi_rate_RETRY_GOOD, tsi_say_head, tsi_advice_cold,
 * TSI_HEALTH_GOOD, TSI_VERDICT_LOCKS. The compiler checks a sentence's arguments.
 */
#ifndef TSI_STATS_WORDS_H
#define TSI_STATS_WORDS_H

#define LIMIT(NAME, value, about) TSI_DOCTOR_##NAME = (value),
enum {
#include "stats/words.def"
};

#define RATE(NAME, value, about) static const double tsi_rate_##NAME = (value);
#include "stats/words.def"

#define SAY(name, format) static const char tsi_say_##name[] = format;
#define ADVICE(name, words) static const char tsi_advice_##name[] = words;
#include "stats/words.def"

typedef enum TsiHealth {
#define HEALTH(NAME, word) TSI_HEALTH_##NAME,
#include "stats/words.def"
} TsiHealth;

typedef enum TsiVerdict {
#define VERDICT(NAME, words) TSI_VERDICT_##NAME,
#include "stats/words.def"
} TsiVerdict;

#endif
