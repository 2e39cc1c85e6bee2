/*
 * close_seize_sweep.pml - settling slabs, sweeping an incarnation, handing over.
 * Part of close_seize.pml; t is the acting thread, the locals are the proctype's.
 */

inline take_lock(t)
{
	d_step { !lock -> mm_drain(t); lock = 1 }
}

/* ---- one slab ---- */

/* The tag is PURGING and ours. The exchange of the remote word decides racing frees. */
inline renew(t, s)
{
#ifdef MUTANT_RELEASE_PLAIN_RESET
	r = rem[s];
#endif
	d_step {
		mm_drain(t);
#ifndef MUTANT_RELEASE_PLAIN_RESET
		r = rem[s];
#endif
		assert(live[s] == (3 & ~(mem[L_AV(s)] | mem[L_FR(s)] | BITS(r))));
		n_rel = n_rel + POP2(live[s]);
		live[s] = 0; claim[s] = 0;
		rem[s] = (RSEQ(r) + 1) << 2
	}
	d_step {
		assert(TST(tag[s]) == PURGING);
		mem[L_AV(s)] = 0; mem[L_FR(s)] = 0;
		swept[s] = 0;
		tag[s] = TAG(POOL, RSEQ(r) + 1);
		r = 0
	}
}

/* Tag x was read as ORPHAN: its slab goes back if it is complete, or in any case (all). */
inline complete(t, s, all)
{
	d_step { ok = (all) || EMPTY(s) }
	d_step {
		mm_drain(t);
		if
		:: ok && tag[s] == x -> tag[s] = TAG(PURGING, TSEQ(x))
		:: else -> ok = 0
		fi
	}
	if
	:: ok -> renew(t, s)
	:: else
	fi;
	d_step { x = 0; ok = 0 }
}

/*
 * The line names no heap any more, before the heap's word leaves SEIZED or DEAD: once the word is reused, "the
 * line names h, and h is LIVE and mine" has to mean that the slab is in h.
 */
#if defined(MUTANT_HEAP_AT_STAYS) || defined(MUTANT_HEAP_AT_CLEARED_LATE)
#define END_PLAIN_FREES(s) skip         /* late: settle_heap does it at its end */
#else
#define END_PLAIN_FREES(s) mem[L_HEAP(s)] = 0
#endif

/* What becomes of a slab and its heap follows the state read under the lock, not the one that the sweep began with. */
#ifdef MUTANT_BY_OLD_STATE
bit was_active;
#define STATE (was_active -> ACTIVE : inc)
#else
#define STATE inc
#endif

/*
 * An OWNED slab that is the caller's alone. A trim returns it if it is empty, a
 * release in any case; a drain makes it ORPHAN and then looks whether it is empty.
 */
inline settle(t, s)
{
	d_step {
		mm_drain(t);
		assert(TST(tag[s]) == OWNED);
		assert(!inbr[s] && !swept[s]);
		ok = EMPTY(s);
		x = tag[s];
		if
		:: STATE == RELEASED || (STATE == ACTIVE && ok) ->
			swept[s] = 1 + t; tag[s] = TAG(PURGING, TSEQ(x)); ok = 1; used[s] = 0
		:: STATE == ACTIVE && !ok
		:: else ->
			swept[s] = 1 + t; used[s] = 0;
			END_PLAIN_FREES(s);
#ifndef MUTANT_LOOK_BEFORE_TAG
			ok = 0; x = TAG(ORPHAN, TSEQ(x)); tag[s] = x
#endif
		fi
	}
#ifdef MUTANT_LOOK_BEFORE_TAG
	d_step {
		if
		:: swept[s] == 1 + t && TST(tag[s]) == OWNED -> x = TAG(ORPHAN, TSEQ(x)); tag[s] = x
		:: else
		fi
	}
#endif
	if
	:: TST(x) == ORPHAN ->
#ifndef MUTANT_LOOK_BEFORE_TAG
		d_step { ok = EMPTY(s) }
#endif
		d_step {
			if
			:: ok && tag[s] == x -> tag[s] = TAG(PURGING, TSEQ(x))
			:: else -> ok = 0
			fi
		}
	:: TST(x) != ORPHAN && ok -> END_PLAIN_FREES(s)
	:: else
	fi;
	if
	:: ok -> renew(t, s)
	:: else
	fi;
	d_step { x = 0; ok = 0 }
}

/* ---- one heap; the lock is held ---- */

#define HAS_SLAB(h) ((TST(tag[0]) == OWNED && HEAP(0) == (h)) || (TST(tag[1]) == OWNED && HEAP(1) == (h)))

inline drop(h)
{
	d_step {
		assert(!hskip[h] && !HAS_SLAB(h));
		hw[h] = FREE
	}
}

/*
 * PIECES: one slab is as much as a sweep in passing may settle. What is left of the heap stays nobody's, or its
 * owner's to let go of, and waits on the list (`more`).
 */
#ifdef PIECES
#ifdef MUTANT_REST_NOT_LISTED
#define LIST_REST skip
#else
#define LIST_REST more = 1
#endif
#define REST(h) (HST(w) != DEAD && pc && STATE != ACTIVE && HAS_SLAB(h))
#define STOPS   (pc && STATE != ACTIVE)
#define IN_PASSING pc = 1
#define NOBODYS (inc == ADVANCED || (more && inc != ACTIVE))
#else
#define LIST_REST skip
#define REST(h) false
#define STOPS   false
#define IN_PASSING skip
#define NOBODYS (inc == ADVANCED)
#endif

/*
 * w: the word the heap has. REVOKED, RETIRE, DETACHED: it is taken and its slabs
 * but `sk` are settled. DEAD: slab `sk` alone, which its owner (the caller) kept.
 */
inline settle_heap(t, h)
{
	d_step {
		mm_drain(t);
		assert(hw[h] == w);
		if
		:: HST(w) == DEAD -> hskip[h] = 0
		:: else -> hw[h] = HW(SEIZED, HB(w))
		fi;
		i = 0
	}
	do
	:: i < 2 ->
		if
		:: HEAP(i) == h && TST(tag[i]) == OWNED && (HST(w) == DEAD) == (sk == i + 1) ->
			settle(t, i);
			if
			:: STOPS -> i = 2
			:: else -> i++
			fi
		:: else -> i++
		fi
	:: i == 2 -> i = 0; break
	od;
	if
	:: HST(w) == DEAD
	:: REST(h) && (HST(w) == DETACHED || HB(w) == t) -> d_step { hw[h] = DETACHED; LIST_REST }
	:: REST(h) && !(HST(w) == DETACHED || HB(w) == t) -> d_step { hw[h] = HW(RETIRE, HB(w)); LIST_REST }
	:: HST(w) != DEAD && STATE == ACTIVE && (HST(w) == DETACHED || HB(w) == t) -> hw[h] = DETACHED
#ifdef MUTANT_TRIM_SEIZES_BUSY
	:: HST(w) != DEAD && STATE == ACTIVE && !(HST(w) == DETACHED || HB(w) == t) -> hw[h] = DETACHED
#else
	:: HST(w) != DEAD && STATE == ACTIVE && !(HST(w) == DETACHED || HB(w) == t) -> hw[h] = HW(RETIRE, HB(w))
#endif
	:: HST(w) != DEAD && STATE != ACTIVE && !REST(h) && (HST(w) == DETACHED || HB(w) == t) -> drop(h)
#ifdef MUTANT_FREE_EARLY
	:: HST(w) != DEAD && STATE != ACTIVE && !REST(h) && !(HST(w) == DETACHED || HB(w) == t) -> drop(h)
#else
	:: HST(w) != DEAD && STATE != ACTIVE && !REST(h) && !(HST(w) == DETACHED || HB(w) == t) ->
		d_step { hskip[h] = sk; hw[h] = HW(DEAD, HB(w)) }
#endif
	fi
#ifdef MUTANT_HEAP_AT_CLEARED_LATE
	; d_step {
		if :: HEAP(0) == h && TST(tag[0]) != OWNED -> mem[L_HEAP(0)] = 0 :: else fi;
		if :: HEAP(1) == h && TST(tag[1]) != OWNED -> mem[L_HEAP(1)] = 0 :: else fi
	}
#endif
}

/* ---- a sweep: close, release, trim, or a freer that found an empty slab ---- */

/* A compare-exchange loop in the code: an exit may turn LIVE into RETIRE meanwhile. */
inline revoke(t, h)
{
	d_step {
		mm_drain(t);
		if
		:: (HST(hw[h]) == LIVE || HST(hw[h]) == RETIRE) && !AGAIN(h) ->
			hw[h] = HW(REVOKED, HB(hw[h])); revoker[h] = tk; sk = 1
		:: HST(hw[h]) == REVOKED ->
			sk = 1;
			if
#ifdef MUTANT_PIECE_KEEPS_ITS_HEAPS
			:: !revoker[h] -> revoker[h] = tk       /* of a piece that has not come so far */
#else
			:: !revoker[h] || (!pc && (revoker[h] & 1)) -> revoker[h] = tk /* or still may */
#endif
			:: else
			fi
		:: else
		fi
	}
}

/* ok = 1: heap h, its word in w, may be taken but for slab sk */
inline may_seize(t, h)
{
	d_step {
		w = hw[h]; sk = 0;
#ifdef MUTANT_NO_TICKET
		ok = (HST(w) == DETACHED || HST(w) == REVOKED) && !AGAIN(h);
#elif defined(MUTANT_OWN_LEFT_TO_ITS_REVOKER)
		ok = (HST(w) == DETACHED || (HST(w) == REVOKED && revoker[h] == tk)) && !AGAIN(h);
#else
		ok = (HST(w) == DETACHED || (HST(w) == REVOKED && (revoker[h] == tk || HB(w) == t))) && !AGAIN(h);
#endif
		if
		:: ok && HST(w) == REVOKED && HB(w) != t ->
			sk = mem[L_BUSY(HB(w))];        /* acquire */
			if
			:: sk == ALL -> ok = 0          /* deferred: the owner sweeps as it leaves */
			:: sk && sk != ALL && HEAP(sk - 1) == h && TST(tag[sk - 1]) == OWNED ->
#ifndef MUTANT_TRIM_SEIZES_BUSY
				ok = (inc != ACTIVE && !STOPS)
#else
				skip
#endif
			:: else -> sk = 0
			fi
		:: else
		fi;
		/* deferred, for the receipt */
		if
#ifdef MUTANT_SKIPPED_ONCE
		:: ok && sk -> df = df + 1
#endif
#ifndef MUTANT_ANOTHERS_UNTOLD
		:: !ok && HST(w) == REVOKED && !AGAIN(h) -> df = df + SLABS_OF(h)
#endif
		:: else
		fi
	}
}

#ifdef S_PARTIAL
/* Slabs with few live objects are claimed while single pages of them go back. */
inline give_pages(t, s)
{
	d_step { x = tag[s]; ok = (TST(x) == ORPHAN && inc == CLOSED);
		 if
		 :: ok -> tag[s] = TAG(PARTIAL, TSEQ(x))
		 :: else
		 fi }
	if
	:: ok ->
		d_step { x = TAG(ORPHAN, TSEQ(x)); tag[s] = x; ok = 0 }
#ifndef MUTANT_PARTIAL_NO_RELOOK
		/* nobody else could return it meanwhile: was it completed, or released? */
		complete(t, s, inc == RELEASED)
#endif
	:: else
	fi;
	d_step { x = 0; ok = 0 }
}
#endif

#ifdef MUTANT_STATE_AFTER_WORDS
#define STATE_LATE true
#else
#define STATE_LATE false
#endif

inline raise(to)
{
	if
	:: inc < (to) -> inc = to
	:: else
	fi
}

/* to: the state to reach, 0 for none; trims: whether an ACTIVE incarnation is swept too */
inline sweep(t, to, trims)
{
	d_step { !lock -> mm_drain(t); lock = 1;
#ifndef MUTANT_STATE_AFTER_WORDS
		raise(to);
#endif
		if
		:: inc != ACTIVE || (trims) || STATE_LATE -> tickets++; tk = 2 * tickets + (pc -> 1 : 0); sk = 0
		:: else -> tk = 0
		fi
#ifdef MUTANT_BY_OLD_STATE
		; df = (inc == ACTIVE)
#endif
	}
	if
	:: tk ->
		revoke(t, 0);
		SECOND(revoke(t, 1));
		if
		:: sk ->
			d_step { sk = 0; lock = 0 }
#if !defined(MUTANT_NO_MEMBARRIER) && !defined(FENCED)
			mm_barrier_all();
#endif
			take_lock(t)
		:: else
		fi;
#ifdef MUTANT_BY_OLD_STATE
		was_active = df;
#endif
		d_step { h = 0; df = 0 }
		do
		:: h < NH ->
			may_seize(t, h);
			if
#ifdef PIECES
			:: ok && pc == 2 ->             /* a piece was settled: the next one takes it */
				d_step { ok = 0; LIST_REST;
					 if
					 :: HST(w) == REVOKED -> revoker[h] = 0
					 :: else
					 fi }
			:: ok && pc != 2 -> ok = 0; settle_heap(t, h); pc = (STOPS -> 2 : pc)
#else
			:: ok -> ok = 0; settle_heap(t, h)
#endif
			:: else
			fi;
			d_step { sk = 0; w = 0; h++ }
		:: h == NH -> h = 0; break
		od;
#ifdef MUTANT_BY_OLD_STATE
		was_active = 0;
#endif
#ifdef MUTANT_STATE_AFTER_WORDS
		raise(to);
#endif
		/* what an earlier drain left behind ends as well */
		do
		:: h < 2 && inc == RELEASED && !pc ->
			x = tag[h];
			if
			:: TST(x) == ORPHAN -> complete(t, h, true)
			:: else -> x = 0
			fi;
			h++
		:: h == 2 || inc != RELEASED || pc -> h = 0; break
		od
	:: else
	fi;
	skip;
	d_step {
		assert(!(to) || LEFT_OUT(0) + LEFT_OUT(1) <= df + SKIPPED);
		lock = 0; tk = 0; df = 0;
		pc = 0
	}
#ifdef S_PARTIAL
	if
	:: (to) == CLOSED ->
		do
		:: h < 2 -> give_pages(t, h); h++
		:: h == 2 -> h = 0; break
		od
	:: else
	fi;
	skip
#endif
}

/* ---- what an owner does for those who asked, between two of its calls ---- */

/* A bracket that hung on the first heap's word may have named a slab of another. */
#ifdef MUTANT_HANDOVER_ONE_HEAP
#define LOOKS_AT(h) ((h) + 1 == hb)
#else
#define LOOKS_AT(h) true
#endif

inline handover(t)
{
	take_lock(t);
#if NH > 1 && !defined(MUTANT_LETS_GO_OF_ONE)
	/* heaps of one thread in one incarnation are let go together */
	d_step {
		if
		:: (hw[0] == HW(RETIRE, t) || hw[0] == HW(REVOKED, t)) && hw[1] == HW(LIVE, t) -> hw[1] = HW(RETIRE, t)
		:: (hw[1] == HW(RETIRE, t) || hw[1] == HW(REVOKED, t)) && hw[0] == HW(LIVE, t) -> hw[0] = HW(RETIRE, t)
		:: else
		fi
	}
#endif
	h = 0;
	do
	:: h < NH ->
		w = hw[h];
		if
		:: w == HW(RETIRE, t) && (inc <= ADVANCED || AGAIN(h)) -> hw[h] = DETACHED
		:: w == HW(DEAD, t) && hskip[h] && LOOKS_AT(h) -> sk = hskip[h]; settle_heap(t, h)
		:: (w == HW(RETIRE, t) && inc > ADVANCED && !AGAIN(h)) || w == HW(REVOKED, t) -> sk = 0; settle_heap(t, h)
		:: else
		fi;
		d_step { sk = 0; w = 0; h++ }
	:: h == NH -> h = 0; break
	od;
	lock = 0
}
