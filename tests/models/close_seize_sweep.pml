/*
 * close_seize_sweep.pml - settling slabs, sweeping an incarnation, handing over.
 * Part of close_seize.pml; t is the acting thread, its locals are r a f x ok sk q tk w.
 */

#ifdef S_MORE
#define SECOND(what) what
#else
#define SECOND(what) skip
#endif

inline take_lock(t)
{
	d_step { !lock -> mm_drain(t); lock = 1 }
}

inline give_lock()
{
	lock = 0
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
		a = mem[L_AV(s)]; f = mem[L_FR(s)];
		assert(live[s] == (3 & ~(a | f | BITS(r))));
		n_rel = n_rel + POP2(live[s]);
		live[s] = 0; claim[s] = 0;
		rem[s] = (RSEQ(r) + 1) << 2;
		a = 0; f = 0
	}
	d_step {
		assert(TST(tag[s]) == PURGING);
		mem[L_AV(s)] = 0; mem[L_FR(s)] = 0;
		swept[s] = 0;
		tag[s] = TAG(POOL, RSEQ(r) + 1);
		r = 0
	}
}

/* x: the tag as read. Moves it to PURGING if it is still that. */
inline claim_tag(t, s)
{
	d_step {
		mm_drain(t);
		if
		:: tag[s] == x -> tag[s] = TAG(PURGING, TSEQ(x)); ok = 1
		:: else -> ok = 0
		fi
	}
}

/* Tag x was read as ORPHAN: return the slab if it is complete. */
inline complete(t, s)
{
	d_step { ok = EMPTY(s) }
	if
	:: ok ->
		claim_tag(t, s);
		if
		:: ok -> renew(t, s)
		:: else
		fi
	:: else
	fi;
	d_step { x = 0; ok = 0 }
}

/* An OWNED slab that is the caller's alone leaves its heap, in the mode of the incarnation's state. */
inline settle(t, s)
{
	d_step {
		mm_drain(t);
		assert(TST(tag[s]) == OWNED);
		assert(!inbr[s] && !swept[s]);
		swept[s] = 1 + t;
		x = tag[s];
#ifdef MUTANT_LOOK_BEFORE_TAG
		ok = EMPTY(s)
	}
	d_step {
#endif
		if
		:: inc == RELEASED -> tag[s] = TAG(PURGING, TSEQ(x))
		:: else -> x = TAG(ORPHAN, TSEQ(x)); tag[s] = x
		fi
	}
	if
	:: TST(x) == OWNED -> renew(t, s)
	:: else ->
#ifdef MUTANT_LOOK_BEFORE_TAG
		if
		:: ok -> ok = 0; complete(t, s)
		:: else
		fi
#else
		complete(t, s)
#endif
	fi;
	d_step { x = 0; ok = 0 }
}

/* A trim returns empty slabs only. */
inline settle_if_empty(t, s)
{
	d_step {
		mm_drain(t);
		assert(TST(tag[s]) == OWNED);
		assert(!inbr[s] && !swept[s]);
		x = tag[s]; ok = EMPTY(s);
		if
		:: ok -> swept[s] = 1 + t; tag[s] = TAG(PURGING, TSEQ(x))
		:: else
		fi
	}
	if
	:: ok -> renew(t, s)
	:: else
	fi;
	d_step { x = 0; ok = 0 }
}

inline walk(t, h, s)
{
	if
	:: HEAP(s) == h && TST(tag[s]) == OWNED && sk != s + 1 ->
		if
		:: inc == ACTIVE -> settle_if_empty(t, s)
		:: else -> settle(t, s)
		fi
	:: else
	fi
}

/* ---- one heap; the lock is held ---- */

inline drop(h)
{
	d_step {
		assert(!hskip[h]);
		assert(!(TST(tag[0]) == OWNED && HEAP(0) == h) && !(TST(tag[1]) == OWNED && HEAP(1) == h));
		hw[h] = FREE
	}
}

/* w: the word it has, REVOKED, RETIRE or DETACHED; sk: the slab its owner keeps */
inline seize(t, h)
{
	d_step {
		mm_drain(t);
		assert(hw[h] == w);
		hw[h] = HW(SEIZED, HB(w))
	}
	walk(t, h, 0);
	walk(t, h, 1);
	if
	:: inc == ACTIVE ->
		if
		:: HST(w) == DETACHED || HB(w) == t -> hw[h] = DETACHED
#ifdef MUTANT_TRIM_SEIZES_BUSY
		:: else -> hw[h] = DETACHED
#else
		:: else -> hw[h] = HW(RETIRE, HB(w))
#endif
		fi
	:: else ->
		if
		:: HST(w) == DETACHED || HB(w) == t -> drop(h)
#ifdef MUTANT_FREE_EARLY
		:: else -> hw[h] = FREE
#else
		:: else -> d_step { hskip[h] = sk; hw[h] = HW(DEAD, HB(w)) }
#endif
		fi
	fi
}

/* ---- a sweep: close, release, trim, or a freer that found an empty slab ---- */

/* A compare-exchange loop in the code: an exit may turn LIVE into RETIRE meanwhile. */
inline revoke(t, h)
{
	d_step {
		mm_drain(t);
		if
		:: HST(hw[h]) == LIVE || HST(hw[h]) == RETIRE ->
			hw[h] = HW(REVOKED, HB(hw[h])); revoker[h] = tk; sk = 1
		:: HST(hw[h]) == REVOKED -> sk = 1
		:: else
		fi
	}
}

inline seize_ours(t, h)
{
	d_step { w = hw[h];
#ifdef MUTANT_NO_TICKET
		ok = HST(w) == DETACHED || HST(w) == REVOKED;
#else
		ok = HST(w) == DETACHED || (HST(w) == REVOKED && revoker[h] == tk);
#endif
		sk = 0 }
	if
	:: ok ->
		if
		:: HST(w) == REVOKED && HB(w) != t ->
			/* acquire load of the owner's busy, as far as it names something of this heap */
			d_step { sk = mem[L_BUSY(HB(w))];
				if
				:: sk == 1 || sk == 2 ->
					if
					:: HEAP(sk - 1) == h && TST(tag[sk - 1]) == OWNED
					:: else -> sk = 0
					fi
				:: else
				fi }
		:: else
		fi;
		if
		:: sk == ALL                    /* deferred: the owner sweeps as it leaves */
#ifndef MUTANT_TRIM_SEIZES_BUSY
		:: sk && sk != ALL && inc == ACTIVE
		:: sk != ALL && !(sk && inc == ACTIVE) -> seize(t, h)
#else
		:: sk != ALL -> seize(t, h)
#endif
		fi
	:: else
	fi;
	d_step { sk = 0; w = 0; ok = 0 }
}

inline end_orphan(t, s)
{
	x = tag[s];
	if
	:: TST(x) == ORPHAN ->
		claim_tag(t, s);
		if
		:: ok -> renew(t, s)
		:: else
		fi
	:: else
	fi;
	d_step { x = 0; ok = 0 }
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
		if
		:: inc == RELEASED -> take_lock(t); end_orphan(t, s); give_lock()
		:: else -> complete(t, s)
		fi
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

/* to: the state to reach, 0 for none; trims: whether an ACTIVE incarnation is swept too */
inline sweep(t, to, trims)
{
#ifdef MUTANT_STATE_AFTER_WORDS
	take_lock(t);
#else
	take_lock(t);
	d_step {
		if
		:: inc < (to) -> inc = to
		:: else
		fi
	}
#endif
	if
	:: inc != ACTIVE || (trims) || STATE_LATE ->
		d_step { tickets++; tk = tickets; sk = 0 }
		revoke(t, 0);
		SECOND(revoke(t, 1));
		if
		:: sk ->
			sk = 0;
			give_lock();
#ifndef MUTANT_NO_MEMBARRIER
			mm_barrier_all();
#endif
			take_lock(t)
		:: else
		fi;
		seize_ours(t, 0);
		SECOND(seize_ours(t, 1));
#ifdef MUTANT_STATE_AFTER_WORDS
		d_step {
			if
			:: inc < (to) -> inc = to
			:: else
			fi
		}
#endif
		if
		:: inc == RELEASED -> end_orphan(t, 0); end_orphan(t, 1)
		:: else
		fi
	:: else
	fi;
	give_lock();
	tk = 0;
#ifdef S_PARTIAL
	if
	:: (to) == CLOSED -> give_pages(t, 0); give_pages(t, 1)
	:: else
	fi
#endif
}

/* ---- what an owner does for those who asked, between two of its calls ---- */

inline hand(t, h)
{
	w = hw[h];
	if
	:: w == HW(RETIRE, t) && inc <= ADVANCED -> hw[h] = DETACHED
	:: (w == HW(RETIRE, t) && inc > ADVANCED) || w == HW(REVOKED, t) -> sk = 0; seize(t, h)
	:: else
	fi;
	w = 0
}

inline settle_skipped(t, h)
{
	if
	:: hw[h] == HW(DEAD, t) && hskip[h] ->
		d_step { sk = hskip[h] - 1; hskip[h] = 0 }
		settle(t, sk);
		sk = 0
	:: else
	fi
}

inline handover(t)
{
	take_lock(t);
	settle_skipped(t, 0);
#ifndef MUTANT_HANDOVER_ONE_HEAP
	SECOND(settle_skipped(t, 1));
#endif
#ifndef MUTANT_LETS_GO_OF_ONE
	/* heaps of one thread in one incarnation are let go together */
	d_step {
		if
		:: (hw[0] == HW(RETIRE, t) || hw[0] == HW(REVOKED, t)) && hw[1] == HW(LIVE, t) -> hw[1] = HW(RETIRE, t)
		:: (hw[1] == HW(RETIRE, t) || hw[1] == HW(REVOKED, t)) && hw[0] == HW(LIVE, t) -> hw[0] = HW(RETIRE, t)
		:: else
		fi
	}
#endif
	hand(t, 0);
	SECOND(hand(t, 1));
	give_lock()
}

/* The owner's slow path: takes slab 1 out of the pool, in the bracket that names everything. */
inline more_slab(t)
{
#ifdef MUTANT_RENAME_IN_BRACKET
	/* the fast bracket on slab 0 turns into the slow one without another look at the word */
	enter(t, 0, 1, 1);
	if
	:: in -> STORE_REL(t, L_BUSY(t), ALL)
	:: else
	fi;
#else
	enter(t, 0, ALL, 3);
#endif
	if
	:: in && TST(tag[1]) == POOL ->
		d_step { mm_drain(t); mem[L_AV(1)] = 0; mem[L_FR(1)] = 3; inbr[1] = 1 + t;
			 tag[1] = TAG(OWNED, TSEQ(tag[1])) }
	:: else
	fi;
	leave(t, 0, 3)
}
