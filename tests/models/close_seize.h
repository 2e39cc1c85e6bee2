/* close_seize.h - words, states and ghosts of close_seize.pml */

#if defined(S_TWO) || defined(S_PARTIAL)
#ifndef NOPS
#define NOPS  2         /* calls of an owner */
#endif
#ifndef NFREE
#define NFREE 1         /* frees of the remote freer */
#endif
#endif
#ifndef NOPS
#define NOPS  3
#endif
#ifndef NFREE
#define NFREE 2
#endif

#if defined(AND_CLOSE) || defined(AND_RELEASE)
#define ENDS
#endif
#if defined(S_MORE) || defined(BESIDE)
#define TWO_HEAPS
#endif
#if defined(S_TWO) || defined(S_PARTIAL) || defined(AND_FREER) || defined(ENDS)
#define NPROC 4
#elif defined(S_MORE) && !defined(MORE_TRIM)
#define NPROC 2
#else
#define NPROC 3
#endif

/* tag: state | seq<<3 */
#define POOL     0
#define OWNED    1
#define ORPHAN   2
#define PURGING  3
#define PARTIAL  4
#define TST(x)   ((x) & 7)
#define TSEQ(x)  ((x) >> 3)
#define TAG(st, q) ((st) | ((q) << 3))

/* remote word: bits | seq<<2 */
#define BITS(r)  ((r) & 3)
#define RSEQ(r)  ((r) >> 2)
#define EMPTY(s) ((mem[L_AV(s)] | mem[L_FR(s)] | BITS(rem[s])) == 3)
#define POP2(x)  (((x) & 1) + (((x) >> 1) & 1))

/* heap word */
#define FREE     0
#define LIVE     1
#define RETIRE   2
#define REVOKED  3
#define SEIZED   4
#define DEAD     5
#define DETACHED 6
#define HW(st, b) ((st) | (((b) + 1) << 3))
#define HST(w)   ((w) & 7)
#define HB(w)    (((w) >> 3) - 1)

/* incarnation */
#define ACTIVE   0
#define ADVANCED 1
#define CLOSED   2
#define RELEASED 3

#define ALL      3      /* busy: every heap of this incarnation; a slab is named by its number + 1 */
/* Without membarrier the owner's stores to busy are seq_cst exchanges. */
#ifdef FENCED
#define EXCHANGED(t) mm_drain(t)
#else
#define EXCHANGED(t) skip
#endif
#define NOBUF    9      /* a thread without a store buffer */

/* The heap that slab s is in. */
#ifdef TWO_HEAPS
#define NH       2
#define HEAP(s)  (s)
#define SECOND(what) what
#else
#define NH       1
#define HEAP(s)  0
#define SECOND(what) skip
#endif

byte hw[2];
byte hskip[2];          /* slab + 1 left to the owner; under the lock, read by the owner in handover */
byte revoker[2];        /* ticket; under the lock */
byte tickets;
#ifdef REBORN
bit  again;             /* heap 0 lives again, in an incarnation that nobody ends */
#define AGAIN(h) (again && (h) == 0)
#else
#define AGAIN(h) false
#endif
bit  lock;              /* the incarnation's */
byte tag[2];
byte rem[2];
byte inc;

/* ghosts */
byte live[2];           /* slots in users' hands                */
byte claim[2];          /* of these, being freed                */
byte swept[2];          /* 1 + thread of the sweeper            */
byte inbr[2];           /* 1 + owner whose bracket covers it    */
bit  closed_ret;        /* a close of this incarnation returned */
byte n_alloc, n_freed, n_rel;
bit  used[2];           /* has handed out objects since it was OWNED */
byte late;              /* slabs whose last object a freer ended after the advance */
byte done;
#ifdef PIECES
bit  more;              /* the incarnation is on the list of those that wait for a sweep */
bit  sweeps;            /* somebody has taken it off and is at it */
#define WAITS (more || sweeps)
#else
#define WAITS false
#endif

#define IS_LIVE(t, h)     (hw[h] == HW(LIVE, t))
#define BINDING_IS(h, t)  (hw[h] == HW(LIVE, t) || hw[h] == HW(RETIRE, t) || hw[h] == HW(REVOKED, t))
/* A slab with objects that no receipt has yet; those that sweeps have left to their owners (TsiInc.skipped). */
#define LEFT_OUT(s)       (TST(tag[s]) == OWNED && used[s] && !AGAIN(HEAP(s)))
#if defined(MUTANT_SKIPPED_UNTOLD) || defined(MUTANT_SKIPPED_ONCE)
#define SKIPPED           0
#else
#define SKIPPED           ((hskip[0] && HST(hw[0]) == DEAD) + (hskip[1] && HST(hw[1]) == DEAD))
#endif
#define SLABS_OF(h)       ((TST(tag[0]) == OWNED && HEAP(0) == (h)) + (TST(tag[1]) == OWNED && HEAP(1) == (h)))
/* The owner's private view: slab s is in one of its heaps; in its room (the first heap is its). */
#define OWN(t, s)         (TST(tag[s]) == OWNED && BINDING_IS(HEAP(s), t))
#define IN_ROOM(t, s)     (OWN(t, s) && BINDING_IS(0, t))

/* A user hands a live object to a free; its address was published after the store to avail. */
#define CLAIM(i, m) d_step { (live[i] & ~claim[i] & ~mem[L_AV(i)] & m) -> s = i; b = m; \
			     claim[i] = claim[i] | m; q = TSEQ(tag[i]); early = mem[L_FR(i)] }
/* A thread's own objects need not have been published. */
#define CLAIM_BY(t, i, m) d_step { (OWN(t, i) || !(mem[L_AV(i)] & m)) && (live[i] & ~claim[i] & m) -> s = i; b = m; \
			     op = OP_FREE; claim[i] = claim[i] | m; q = TSEQ(tag[i]); early = mem[L_FR(i)] }

/* What an owner looks at before it touches words of slab s; h is the heap's number + 1, 0 for none. */
#ifdef MUTANT_STATE_CHECK_ONLY
/* the slab's tag, which the closer writes only when it sweeps */
#define MAY(t, h, s) ((h) && TST(tag[s]) == OWNED)
#else
#define MAY(t, h, s) ((h) && IS_LIVE(t, (h) - 1))
#endif
/*
 * When it hands over as it leaves: h was not LIVE for it at the first check (in: it was) or at the last.  A
 * refused entry hands over only what is the thread's.
 */
#define WANTED(t, h, in) ((h) && !IS_LIVE(t, (h) - 1) && ((in) || HB(hw[(h) - 1]) == (t)))
#if defined(MUTANT_OWNER_SKIPS_EXIT_CHECK)
#define LEAVES(t, h, in) (WANTED(t, h, in) && !(in))
#elif defined(MUTANT_REFUSED_ENTRY_NO_HANDOVER)
#define LEAVES(t, h, in) (WANTED(t, h, in) && (in))
#else
#define LEAVES(t, h, in) WANTED(t, h, in)
#endif
