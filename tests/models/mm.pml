/*
 * mm.pml - store buffers for the protocol models.
 *
 * Spin interleaves sequentially consistent steps.  Threads that make plain or
 * release stores get a bounded buffer here; a store becomes visible only when
 * the thread's flusher process takes it out.  What is explored:
 *
 *   TSO (default)  the buffer is a FIFO: only the oldest store leaves.
 *   PSO (-DPSO)    any store may leave whose location has no older store in the
 *                  buffer; a release store leaves only as the oldest one.
 *
 * A load looks into its own buffer first (newest match), then into memory.
 * An atomic read-modify-write, seq_cst store and membarrier empty buffers at
 * once: the first two the caller's, the last everybody's.  Loads are performed
 * in program order; where a model needs an early load it says so itself.
 *
 * The including model defines, before the include:
 *   NTH        threads with a buffer (ids 0 .. NTH-1)
 *   NLOC       memory locations
 *   ON_FLUSH(t,l)   an assertion run when a store of thread t to l leaves
 * and may define BUFD, the depth of a buffer (2 to 4).
 */
#ifndef BUFD
#define BUFD 2
#endif

#if NTH > 0
#define BUFN (NTH * BUFD)
#define NBUF NTH
#else
#define BUFN 1
#define NBUF 1
#endif

byte mem[NLOC];         /* what every thread can see                     */
byte b_loc[BUFN];       /* buffered stores, oldest first: location ...   */
byte b_val[BUFN];       /* ... value ...                                 */
bit  b_rel[BUFN];       /* ... and whether it is a release               */
byte b_n[NBUF];          /* how many                                      */
hidden byte mm_i;       /* scratch, only inside a d_step                 */

/* Take entry i of thread t out into memory and close the gap. */
inline mm_flush(t, i)
{
	ON_FLUSH(t, b_loc[(t) * BUFD + (i)]);
	mem[b_loc[(t) * BUFD + (i)]] = b_val[(t) * BUFD + (i)];
	mm_i = i;
	do
	:: mm_i + 1 < b_n[t] ->
		b_loc[(t) * BUFD + mm_i] = b_loc[(t) * BUFD + mm_i + 1];
		b_val[(t) * BUFD + mm_i] = b_val[(t) * BUFD + mm_i + 1];
		b_rel[(t) * BUFD + mm_i] = b_rel[(t) * BUFD + mm_i + 1];
		mm_i++
	:: else -> break
	od;
	b_n[t] = b_n[t] - 1;
	b_loc[(t) * BUFD + b_n[t]] = 0;
	b_val[(t) * BUFD + b_n[t]] = 0;
	b_rel[(t) * BUFD + b_n[t]] = 0;
	mm_i = 0
}

/* Empty the buffer of t; a no-op for a thread without one.  Inside a d_step. */
inline mm_drain(t)
{
	do
	:: (t) < NTH && b_n[(t) % NBUF] > 0 -> mm_flush((t) % NBUF, 0)
	:: else -> break
	od;
	mm_i = 0
}

inline mm_put(t, l, v, r)
{
	b_loc[(t) * BUFD + b_n[t]] = l;
	b_val[(t) * BUFD + b_n[t]] = v;
	b_rel[(t) * BUFD + b_n[t]] = r;
	b_n[t] = b_n[t] + 1
}

/* Statements for the models; each is one step. */
#define ROOM(t)            (b_n[t] < BUFD)
#define STORE(t, l, v)     d_step { ROOM(t) -> mm_put(t, l, v, 0) }
#define STORE_REL(t, l, v) d_step { ROOM(t) -> mm_put(t, l, v, 1) }

/* Load for use inside a d_step; dst must not be mm_i. */
inline mm_get(t, l, dst)
{
	dst = mem[l];
	mm_i = 0;
	do
	:: (t) < NTH && mm_i < b_n[(t) % NBUF] ->
		if
		:: b_loc[((t) % NBUF) * BUFD + mm_i] == (l) -> dst = b_val[((t) % NBUF) * BUFD + mm_i]
		:: else
		fi;
		mm_i++
	:: else -> break
	od;
	mm_i = 0
}

#define LOAD(t, l, dst)    d_step { mm_get(t, l, dst) }

/* membarrier(PRIVATE_EXPEDITED): a full barrier on every thread. */
inline mm_barrier_all()
{
	d_step {
#if NTH > 0
		mm_drain(0);
#endif
#if NTH > 1
		mm_drain(1);
#endif
#if NTH > 2
		mm_drain(2);
#endif
	}
}

#if NTH > 0
proctype flusher(byte ft)
{
end_flusher:
	do
	:: d_step { b_n[ft] > 0 -> mm_flush(ft, 0) }
#ifdef PSO
	:: d_step { b_n[ft] > 1 && !b_rel[ft * BUFD + 1] &&
		    b_loc[ft * BUFD + 1] != b_loc[ft * BUFD] -> mm_flush(ft, 1) }
#if BUFD > 2
	:: d_step { b_n[ft] > 2 && !b_rel[ft * BUFD + 2] &&
		    b_loc[ft * BUFD + 2] != b_loc[ft * BUFD] &&
		    b_loc[ft * BUFD + 2] != b_loc[ft * BUFD + 1] -> mm_flush(ft, 2) }
#endif
#if BUFD > 3
	:: d_step { b_n[ft] > 3 && !b_rel[ft * BUFD + 3] &&
		    b_loc[ft * BUFD + 3] != b_loc[ft * BUFD] &&
		    b_loc[ft * BUFD + 3] != b_loc[ft * BUFD + 1] &&
		    b_loc[ft * BUFD + 3] != b_loc[ft * BUFD + 2] -> mm_flush(ft, 3) }
#endif
#endif
	od
}
#endif
