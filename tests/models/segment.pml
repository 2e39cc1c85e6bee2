/*
 * segment.pml - publications in two buffers under one sequence (src/stats/segment.c).
 *
 * A writer with a store buffer publishes NPUB times; publication n puts n into both words of its buffer. It may stand
 * still for ever anywhere. A reader without a lock reads as src/api/segment_read.c does; another looks in one step,
 * as at a process that is stopped.
 *
 * Checked
 *   what is accepted is one whole publication; once one is complete, a reader who is not disturbed accepts one, however far
 *   the writer is with the next.
 */
#define NTH 1
#define BUFD 3
#define NLOC 5
#define L_SEQ 0
#define L_WORD(buffer, n) (1 + 2 * (buffer) + (n))
#define ON_FLUSH(t, l) skip
#ifndef NPUB
#define NPUB 5
#endif

#include "mm.pml"

#ifdef MUTANT_ONE_BUFFER
#define BUFFER(n) 0
#else
#define BUFFER(n) ((n) % 2)
#endif
#ifdef MUTANT_LATE_BOUND
#define LAST_OF(n) (2 * (n) + 3)
#else
#define LAST_OF(n) (2 * (n) + 2)
#endif

inline put_word(l, v)
{
#ifdef MUTANT_WORDS_RELAXED
	STORE(0, l, v)
#else
	STORE_REL(0, l, v)
#endif
}

proctype writer()
{
	byte n = 1;
	do
	:: n <= NPUB ->
#ifndef MUTANT_NOT_ANNOUNCED
		STORE_REL(0, L_SEQ, 2 * n - 1);
#endif
		put_word(L_WORD(BUFFER(n), 0), n);
		put_word(L_WORD(BUFFER(n), 1), n);
#ifdef MUTANT_COMPLETE_RELAXED
		STORE(0, L_SEQ, 2 * n);
#else
		STORE_REL(0, L_SEQ, 2 * n);
#endif
		n++
	:: n <= NPUB -> break /* stands still */
	:: else -> break
	od
}

/* Acquire loads happen in program order. */
proctype reader()
{
	byte n, a, b, after;
	n = mem[L_SEQ] / 2;
	if
	:: n > 0 ->
		a = mem[L_WORD(BUFFER(n), 0)];
		b = mem[L_WORD(BUFFER(n), 1)];
		after = mem[L_SEQ];
#ifdef MUTANT_NO_SECOND_LOOK
		after = 0;
#endif
#ifdef MUTANT_NUMBER_INSTEAD
		/* the buffer's first word says that it is n, and what follows is torn */
		after = (a == n -> 0 : LAST_OF(n) + 1);
#endif
		assert(after > LAST_OF(n) || (a == n && b == n))
	:: else
	fi
}

proctype undisturbed()
{
	byte n;
	d_step {
		n = mem[L_SEQ] / 2;
		assert(n == 0 || (mem[L_WORD(BUFFER(n), 0)] == n && mem[L_WORD(BUFFER(n), 1)] == n));
		n = 0
	}
}

init
{
	atomic { run writer(); run flusher(0); run reader(); run undisturbed() }
}
