/*
 * park_token.pml - full lines, the token and the inboxes.
 *
 * One slab that is one line of two or three slots (but S_LINES): slots 0 and 1 in remote word 0 (with
 * the token), slot 2 in remote word 1.  The inbox is a stack linked
 * through the line; a stack of one line is a byte, and the link tells only
 * "claimed or not", which is what the protocol relies on.
 *
 * Rules modelled
 *   - ARMED (owner's flag) is set while the token is not with the owner; the
 *     token itself is in the word, with a freer, or stands for an inbox entry.
 *   - The owner's first free in a parked line files it; freers count what they see of both sides. A line that
 *     has any free slot is not parked, but waits in the room.
 *   - The link is claimed by compare-exchange from 0; who finds it taken puts the
 *     token back and looks at the link again; a popper zeroes the link first.
 *   - A freer that sees the link taken, after its bit, leaves the token where it is.
 *   - An inbox entry is a hint: the owner that pops it compares ARMED with the
 *     word, a stranger puts the token back and routes it as a freer would.
 *   - After putting the token back because nobody was there, the freer leaves
 *     only if a walk over the heap's lines is still to come.
 *
 * Scenarios
 *   S_COUNT   one owner, threshold 2, frees on both sides and in both words
 *   S_EXIT    owner A exits (detach, then inbox closed and emptied), B adopts
 *   S_REBORN  A exits, its binding serves a new thread that adopts the heap
 *   S_REUSE   the slab is released while the line may sit in sleeping A's inbox,
 *             and B takes it for another incarnation; A may exit after that
 *   S_LINES   as S_EXIT, with a slab of two lines of one slot that are parked and armed
 *   S_TRIM    a trim revokes A's heap: A revives it, or it is seized, detached
 *             and adopted by A or B
 *
 * Checked: the line is in at most one inbox and once in a room; when everybody
 * is through and has emptied its inbox, a line with `threshold` free
 * slots is in the room of its owner; no slot has two owners.
 */
#ifdef S_LINES
#define NL    2
#define EACH_LINE ln = 0; do :: ln < NL ->
#define NEXT_LINE ; ln++ :: ln == NL -> ln = 0; break od; skip
#define LINE_LOCALS ln, first, others
#else
#define NL    1
#define EACH_LINE
#define NEXT_LINE
#define LINE_LOCALS ln
#endif
#define BUFD  1
#define NLOC  NL
#define L_FR(l) (l)
#define ON_FLUSH(t, l) skip

/* Lifecycles need only "some slot came back"; the count across words and sides has a scenario of its own. */
#ifdef S_COUNT
#define NTH      1
#define T        2
#define SLOTS    7      /* 0 and 1 in word 0, 2 in word 1 */
#else
#define NTH      0
#define T        1
#ifdef S_LINES
#define SLOTS    1
#else
#define SLOTS    5      /* 0 in word 0, 2 in word 1 */
#endif
#endif
#ifndef NOPS            /* what A and B do besides parking, adopting and leaving */
#define NOPS     1
#endif
#if defined(S_REUSE) || defined(S_TRIM) || defined(S_LINES)
#define NOPS_A   (NOPS - 1)
#else
#define NOPS_A   NOPS
#endif

#ifndef F1
#ifdef S_COUNT
#define F1 2
#else
#define F1 1
#endif
#endif
#ifndef F2
#ifdef S_COUNT
#define F2 2
#else
#define F2 1
#endif
#endif
#ifndef NTRIM
#define NTRIM 1
#endif

#define PARKED   1
#define ARMED    4

#define OWNED    0
#define POOL     1

/* heap word: state | binding<<3 */
#define LIVE     1
#define REVOKED  3
#define SEIZED   4
#define DETACHED 6
#define DEAD     7
#define HW(st, b) ((st) | (((b) + 1) << 3))
#define HST(w)    ((w) & 7)
#define HB(w)     (((w) >> 3) - 1)

#define EMPTY    0
#define LINE     1
#define SHUT     2

#define TOK      4
#define NOBUF    9

#if defined(S_REUSE) || defined(S_TRIM)
#define NPROC 5
#elif defined(S_COUNT)
#define NPROC 3
#else
#define NPROC 4
#endif
#ifdef S_COUNT
#define OWNERS  1
#define ALL_OUT (b_n[0] == 0)
#else
#define OWNERS  2
#define ALL_OUT true
#endif

byte rem0[NL];             /* bits 0-1, token 4, seq<<3 */
byte rem1[NL];             /* bit 0, seq<<1             */
byte seq;               /* the tag: seq ...          */
byte tagst;             /* ... and state; heap index is seq & 1 */
byte hw[2];
byte wh[NL];              /* owner's flags of the line */
bit  in_room[NL];          /* in the owner's room, or current there */
bit  linked;            /* the line's link != 0      */
byte inbox[2];
bit  inb[2];            /* ghost: inside a bracket   */

byte live[NL];             /* slots in users' hands     */
byte claim[NL];
byte done;
bit  waking;

#include "mm.pml"

#if NTH
#define PUT(t, l, v) STORE(t, l, v)
#else
#define PUT(t, l, v) mem[l] = v         /* no count is taken from both sides at once: nothing to see in a buffer */
#endif

#define POP3(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))
#define BITS(a, b) (((a) & 3) | (((b) & 1) << 2))

/* Free slots as thread th sees them: remote words, then freed. */
inline free_bits(th)
{
#ifdef S_COUNT
	cnt = rem0[ln] & 3;
	cnt = cnt | ((rem1[ln] & 1) << 2);
	d_step { mm_get(th, L_FR(ln), fr); cnt = POP3(cnt | fr); fr = 0 }
#else
	d_step { cnt = BITS(rem0[ln], rem1[ln]) | mem[L_FR(ln)]; cnt = POP3(cnt) }
#endif
}

/* ok = 1: the caller has taken the token out of the word */
#ifdef S_LINES
/* one step, to keep the search small: the count in steps is what S_COUNT is for */
inline token_take(th, sq)
{
	d_step {
		if
		:: (rem0[ln] >> 3) == (sq) && (rem0[ln] & TOK) && POP3(BITS(rem0[ln], rem1[ln]) | mem[L_FR(ln)]) >= T ->
			rem0[ln] = rem0[ln] & ~TOK; ok = 1
		:: else -> ok = 0
		fi
	}
}
#else
inline token_take(th, sq)
{
	ok = 0;
	do
	:: d_step { w = rem0[ln] }
	   if
	   :: (w >> 3) != (sq) || !(w & TOK) -> break
	   :: else ->
		free_bits(th);
		if
		:: cnt < T -> break
		:: else ->
			d_step {
				mm_drain(th);
				if
				:: rem0[ln] == w -> rem0[ln] = w & ~TOK; ok = 1
				:: else
				fi
			}
			if
			:: ok -> break
			:: else
			fi
		fi
	   fi
	od;
	skip;
	d_step { w = 0; cnt = 0 }
}
#endif

/* ok = 0: the slab has left that incarnation */
inline token_put(th, sq)
{
	d_step {
		mm_drain(th);
		if
		:: (rem0[ln] >> 3) == (sq) -> rem0[ln] = rem0[ln] | TOK; ok = 1
		:: else -> ok = 0
		fi
	}
}

#define PUSHED      1
#define PUSH_SHUT   2
#define PUSH_LINKED 3
#define PUSH_NOBODY 4   /* no link was claimed */

/* to binding hb */
inline inbox_push(th)
{
	d_step {
		mm_drain(th);
		if
		:: linked -> res = PUSH_LINKED
		:: else -> linked = 1; res = 0
		fi
	}
#ifdef MUTANT_LINK_UNCLAIMED
	res = 0;
#endif
	if
	:: res == 0 ->
		if
#ifdef MUTANT_PUSH_TO_DEAD_INBOX
		:: false
#else
		:: inbox[hb] == SHUT -> linked = 0; res = PUSH_SHUT
#endif
		:: d_step { inbox[hb] != SHUT ->
			assert(inbox[0] != LINE && inbox[1] != LINE);   /* never linked twice */
			inbox[hb] = LINE; res = PUSHED }
#ifdef MUTANT_PUSH_TO_DEAD_INBOX
		:: d_step { inbox[hb] == SHUT -> res = PUSHED }     /* nobody will ever pop it */
#endif
		fi
	:: else
	fi
}

/*
 * Who claimed the link and found the inbox shut has others rely on it meanwhile, for their lines of the slab: it
 * looks at all of them.  When a walk is still to come, that finds them.
 */
#if NL > 1 && !defined(MUTANT_SHUT_LOOKS_AT_ONE_LINE)
#define LEFT_OTHERS -> others = 1
#else
#define LEFT_OTHERS
#endif

/* Delivers the token of line ln if there is something to tell. */
inline deliver(th, sq)
{
	do
	:: true ->
		token_take(th, sq);
		if
		:: !ok -> break
		:: else -> ok = 0
		fi;
		d_step { ok = (seq == (sq) && tagst == OWNED) }
		if
		:: !ok -> break
		:: else -> ok = 0
		fi;
		d_step { hx = hw[(sq) & 1] }
		if
		:: HST(hx) == LIVE || HST(hx) == REVOKED ->
			hb = HB(hx); inbox_push(th)
		:: else -> res = PUSH_NOBODY
		fi;
		if
		:: res == PUSHED -> break
		:: else
		fi;
#ifdef MUTANT_LINKED_DROPS_TOKEN
		if
		:: res == PUSH_LINKED -> break
		:: else
		fi;
#endif
#ifdef MUTANT_CLOSED_DROPS_TOKEN
		if
		:: res == PUSH_SHUT || res == PUSH_NOBODY -> break
		:: else
		fi;
#endif
		token_put(th, sq);
		if
#ifndef MUTANT_SHUT_FORGETS_WHO_COMES
		/* freers of the incarnation that came relied on our claim */
		:: !ok && res == PUSH_SHUT && seq != (sq) -> sq = seq
		:: !ok && (res != PUSH_SHUT || seq == (sq)) -> break
#else
		:: !ok -> break
#endif
		:: ok ->
		ok = 0;
		if
		:: res == PUSH_LINKED ->
			if
#ifdef MUTANT_NO_SECOND_LOOK_AT_LINK
			:: true -> break
#endif
			:: linked -> break
			:: !linked
			fi
		:: else ->
			/* was it adopted before the token was back? */
#ifdef MUTANT_NO_SECOND_LOOK_AT_OWNER
			break
#endif
#ifdef MUTANT_SECOND_LOOK_COMPARES_WORD
			if
			:: hw[(sq) & 1] == hx -> break
			:: else
			fi
#else
			d_step { hx = hw[(sq) & 1] }
			if
			:: (HST(hx) == LIVE || HST(hx) == REVOKED) && inbox[HB(hx)] != SHUT LEFT_OTHERS
			:: else -> break
			fi
#endif
		fi
		fi
	od;
	skip;
	d_step { hx = 0; hb = 0; res = 0; ok = 0 }
}

/* A freer, or a popper that is a stranger. */
#if NL > 1
inline notify(th, sq)
{
	first = ln;
	do
	:: true ->
		deliver(th, sq);
		if
		:: others -> others = 0; ln = 1 - ln
		:: else -> break
		fi
	od;
	ln = first; first = 0
}
#else
#define notify(th, sq) deliver(th, sq)
#endif

/* ---- remote free ---- */

proctype freer(byte n)
{
	byte b, q, w, cnt, fr, ok, hx, hb, res, LINE_LOCALS;
	do
	:: n > 0 ->
		if
		:: d_step { tagst == OWNED && (live[ln] & ~claim[ln] & 1) -> b = 1; claim[ln] = claim[ln] | 1; q = seq }
#if NL > 1
		:: d_step { tagst == OWNED && (live[1] & ~claim[1] & 1) -> ln = 1; b = 1; claim[1] = claim[1] | 1; q = seq }
#endif
		:: d_step { tagst == OWNED && (live[ln] & ~claim[ln] & 2) -> b = 2; claim[ln] = claim[ln] | 2; q = seq }
		:: d_step { tagst == OWNED && (live[ln] & ~claim[ln] & 4) -> b = 4; claim[ln] = claim[ln] | 4; q = seq }
		:: break
		fi;
		n--;
#ifdef MUTANT_LOOKS_AT_LINK_FIRST
		res = linked;
#endif
#ifdef MUTANT_LOOKS_AT_HEAP_FIRST
		hx = HST(hw[q & 1]);
#endif
		d_step {
			if
			:: b < 4 && (rem0[ln] >> 3) == q -> rem0[ln] = rem0[ln] | b; ok = 1
			:: b == 4 && (rem1[ln] >> 1) == q -> rem1[ln] = rem1[ln] | 1; ok = 1
			:: else -> ok = 0
			fi;
			if
			:: ok -> assert(live[ln] & b); live[ln] = live[ln] & ~b; claim[ln] = claim[ln] & ~b
			:: else
			fi;
			b = 0
		}
		if
#ifdef MUTANT_LOOKS_AT_LINK_FIRST
		:: ok && res -> skip
		:: ok && !res -> notify(NOBUF, q)
#else
		:: ok && linked -> skip         /* whoever has claimed the link looks at all lines when it is free again */
		:: ok && !linked ->
			/* nobody's: whoever takes the heap looks at all its lines */
#ifndef MUTANT_LOOKS_AT_HEAP_FIRST
			hx = HST(hw[q & 1]);
#endif
			if
			:: hx == DETACHED
			:: else -> hx = 0; notify(NOBUF, q)
			fi
#endif
		:: else
		fi;
		d_step { q = 0; ln = 0; res = 0; ok = 0; hx = 0 }
	:: n == 0 -> break
	od;
	done++
}

/* ---- owner ---- */

inline enter(me, h)
{
	d_step { in = (hw[h] == HW(LIVE, me)); inb[me] = in }
}
/* a revoked heap in an ACTIVE incarnation: its owner takes it back as it leaves */
inline leave(me, h)
{
	d_step { inb[me] = 0;
		if
		:: hw[h] == HW(REVOKED, me) -> mm_drain(me); hw[h] = HW(LIVE, me)
		:: else
		fi }
}

/* in = 1 and the line is used up: park it, or keep it in the room if slots came back */
inline park(me, sq)
{
	free_bits(me);
	if
	:: cnt == 0 && !(wh[ln] & ARMED) ->
#ifdef MUTANT_PARK_NOT_ARMED
		skip
#else
		token_put(me, sq);
		wh[ln] = wh[ln] | ARMED;
#ifndef MUTANT_ARM_NO_RECOUNT
		free_bits(me)
#else
		skip
#endif
#endif
	:: else
	fi;
	if
	:: cnt > 0 -> room_push()
	:: else -> wh[ln] = wh[ln] | PARKED
	fi;
	ok = 0;
	cnt = 0
}

#if NL > 1
#define NOT_IN_ROOM in_room[0] = 0; in_room[1] = 0
#else
#define NOT_IN_ROOM in_room[0] = 0
#endif

inline room_push()
{
	d_step { assert(!in_room[ln]); in_room[ln] = 1; wh[ln] = wh[ln] & ~PARKED }
}

/* The line was popped from inbox[me]; sq, h as the tag says. */
inline take_in(me)
{
#ifndef MUTANT_UNLINK_AFTER_LOOK
	linked = 0;
#endif
	d_step { q = seq; h = seq & 1; ok = (tagst == OWNED) }
	if
	:: ok ->
		ok = 0;
		enter(me, h);
		if
		:: !in ->
#ifdef MUTANT_UNLINK_AFTER_LOOK
			linked = 0;
#endif
			EACH_LINE
#ifndef MUTANT_STRANGER_KEEPS_TOKEN
			token_put(me, q); ok = 0;
#endif
			notify(me, q)
			NEXT_LINE
		:: in && seq == q ->
			EACH_LINE
#ifdef MUTANT_OWNER_IGNORES_ARMED_WORD
			skip;
#else
			token_take(me, q);
#endif
			d_step { w = rem0[ln]; ok = 0 }
			if
			:: (wh[ln] & ARMED) && !(w & TOK) ->
				wh[ln] = wh[ln] & ~ARMED;
				if
				:: wh[ln] & PARKED ->
#ifdef MUTANT_TAKES_IN_WHAT_IS_FULL
					free_bits(me);
					assert(cnt > 0);
					room_push()
#else
					/* the owner may have filed it, used it up and parked it again since the push */
					park(me, q)
#endif
				:: else
				fi
			:: else
			fi;
			w = 0;
			cnt = 0
			NEXT_LINE;
			leave(me, h)
		:: in && seq != q -> leave(me, h)
		fi
	:: else
	fi;
#ifdef MUTANT_UNLINK_AFTER_LOOK
	linked = 0;
#endif
	d_step { q = 0; h = 0; in = 0; ok = 0 }
}

inline drain_inbox(me, to)
{
	d_step { mm_drain(me); res = inbox[me]; inbox[me] = to }
	if
	:: res == LINE -> res = 0; take_in(me)
	:: else -> res = 0
	fi
}

inline adopt(me)
{
	d_step {
		mm_drain(me);
		if
		:: hw[0] == DETACHED -> hw[0] = HW(LIVE, me); inb[me] = 1; ok = 1
		:: else -> ok = 0
		fi
	}
	if
	:: ok ->
		/* the walk: cached rooms are rebuilt from the words */
		ok = 0; q = seq;
		EACH_LINE
		wh[ln] = wh[ln] & ~PARKED;
		free_bits(me);
		if
		:: cnt > 0 -> room_push()
#ifdef MUTANT_ADOPTER_PARKS_UNARMED
		:: else -> wh[ln] = wh[ln] | PARKED
#else
		:: else -> park(me, q)
#endif
		fi;
		cnt = 0
		NEXT_LINE;
		q = 0;
		leave(me, 0)
	:: else
	fi
}

inline work(me, h0)
{
	do
	:: n > 0 ->
#if NL > 1
		if
		:: ln = 0
		:: ln = 1
		fi;
#endif
		if
		/* uses up the line in the room, then parks it */
		:: in_room[ln] && hw[h0] == HW(LIVE, me) ->
			n--;
			enter(me, h0);
			if
			:: in && in_room[ln] ->
				in_room[ln] = 0;
				/* refill: remote -> freed -> avail -> users, in one step here */
				d_step { mm_drain(me);
					w = BITS(rem0[ln], rem1[ln]) | mem[L_FR(ln)];
					assert(!(w & live[ln]));
					rem0[ln] = rem0[ln] & ~3; rem1[ln] = rem1[ln] & ~1; mem[L_FR(ln)] = 0;
					live[ln] = live[ln] | w; w = 0 }
				q = seq;
				park(me, q);
				q = 0;
				leave(me, h0)
			:: else
			fi;
			if :: in && inb[me] -> leave(me, h0) :: else fi
		/* frees one locally */
		:: d_step { hw[h0] == HW(LIVE, me) && (live[ln] & ~claim[ln]) && seq == h0 ->
			    n--;
			    hb = live[ln] & ~claim[ln]; hb = hb & ~(hb - 1); claim[ln] = claim[ln] | hb }
			enter(me, h0);
			if
			:: in ->
				d_step { mm_get(me, L_FR(ln), fr); fr = fr | hb }
				PUT(me, L_FR(ln), fr);
				d_step { live[ln] = live[ln] & ~hb; claim[ln] = claim[ln] & ~hb; hb = 0; fr = 0 }
				if
#ifndef MUTANT_OWN_FREE_LEAVES_IT_PARKED
				:: (wh[ln] & PARKED) -> room_push()
#endif
				:: else
				fi;
				leave(me, h0)
			:: else -> d_step { if :: seq == h0 -> claim[ln] = claim[ln] & ~hb :: else fi; hb = 0 }
			fi
		:: inbox[me] == LINE -> n--; drain_inbox(me, EMPTY)
		:: break
		fi;
		d_step { in = 0; ln = 0 }
	:: n == 0 -> break
	od;
	ln = 0
}

/* Everybody else is through; whoever slept wakes up and empties its inbox. */
inline wake_up(me)
{
	(done >= NPROC);
	do
	:: d_step { inbox[me] == LINE && !waking -> waking = 1 }
		drain_inbox(me, EMPTY); waking = 0
	:: inbox[0] != LINE && inbox[1] != LINE && !waking -> break
	od;
	done = done + 10
}

proctype ownerA()
{
	byte q, w, cnt, fr, ok, hx, hb, res, in, h, n, LINE_LOCALS;
#ifndef S_LINES
	/* the current line is used up: all its slots are out; the owner finds that out, or leaves before */
	if
	:: true ->
		enter(0, 0);
		if
		:: in -> in_room[ln] = 0; park(0, 0); leave(0, 0)
		:: else
		fi;
		in = 0
	:: true
	fi;
#endif
	n = NOPS_A;
	work(0, 0);
#if defined(S_EXIT) || defined(S_REBORN) || defined(S_LINES)
	if
	:: true ->
		/* detach: the store is seq_cst; the room is thrown away */
		d_step { mm_drain(0); NOT_IN_ROOM; hw[0] = DETACHED }
		drain_inbox(0, SHUT);
#ifdef S_REBORN
		if
		:: true -> inbox[0] = EMPTY; adopt(0); n = 1; work(0, 0)
		:: true
		fi
#endif
	:: true
	fi;
#endif
#ifdef S_TRIM
	if
	:: hw[0] == DETACHED -> adopt(0)
	:: true
	fi;
#endif
#ifdef S_REUSE
	if
	:: hw[0] == DEAD -> drain_inbox(0, SHUT)
	:: true
	fi;
#endif
	done++;
	wake_up(0)
}

proctype ownerB()
{
	byte q, w, cnt, fr, ok, hx, hb, res, in, h, n, LINE_LOCALS;
#ifdef S_REUSE
	/* the slab comes from the pool with a later seq; its users take everything */
	if
	:: tagst == POOL ->
		d_step { mem[L_FR(ln)] = 0; wh[ln] = 0; in_room[ln] = 0;
			 hw[1] = HW(LIVE, 1); inb[1] = 1; tagst = OWNED; live[ln] = SLOTS }
		q = seq; park(1, q); q = 0;
		leave(1, 1);
		n = NOPS;
		work(1, 1)
	:: true
	fi;
#elif !defined(S_REBORN)
	if
	:: hw[0] == DETACHED -> adopt(1); n = NOPS; work(1, 0)
	:: true
	fi;
#endif
	done++;
	wake_up(1)
}

#ifdef S_REUSE
/* A releaser: deferred while A is in its bracket. */
proctype releaser()
{
	if
	:: d_step { !inb[0] && hw[0] == HW(LIVE, 0) ->
		    mm_drain(0); hw[0] = DEAD; NOT_IN_ROOM }
		/* claim, then the exchanges that decide racing frees; live ones end */
		d_step { tagst = POOL + 1; seq = seq + 1 }
		d_step { rem0[0] = seq << 3; live[0] = live[0] & 4; claim[0] = claim[0] & 4 }
		d_step { rem1[0] = seq << 1; live[0] = 0; claim[0] = 0 }
		tagst = POOL
	:: true
	fi;
	done++
}
#endif

#ifdef S_TRIM
proctype trimmer()
{
	byte n = NTRIM;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { hw[0] == HW(LIVE, 0) -> hw[0] = HW(REVOKED, 0) }
			/* membarrier; then seize if the owner is not in, else it revives */
			if
			:: d_step { hw[0] == HW(REVOKED, 0) && !inb[0] -> mm_drain(0); hw[0] = SEIZED; NOT_IN_ROOM }
				hw[0] = DETACHED
			:: d_step { hw[0] == HW(REVOKED, 0) && !inb[0] -> mm_drain(0); hw[0] = HW(LIVE, 0) }
			:: hw[0] != HW(REVOKED, 0)
			fi
		:: break
		fi
	:: n == 0 -> break
	od;
	done++
}
#endif


#define FORGOTTEN(l) (tagst == OWNED && HST(hw[seq & 1]) == LIVE && \
		      (mem[L_FR(l)] || POP3(BITS(rem0[l], rem1[l])) >= T) && !in_room[l])

init
{
	atomic {
		hw[0] = HW(LIVE, 0);
		live[0] = SLOTS; in_room[0] = 1;
#if NL > 1
		live[1] = SLOTS;
		in_room[0] = 0; wh[0] = PARKED | ARMED; wh[1] = PARKED | ARMED; rem0[0] = TOK; rem0[1] = TOK;
#endif
#if NTH
		run flusher(0);
#endif
		run ownerA();
#ifndef S_COUNT
		run ownerB();
#endif
		run freer(F1); run freer(F2);
#ifdef S_REUSE
		run releaser();
#endif
#ifdef S_TRIM
		run trimmer();
#endif
	}
	d_step {
		done == NPROC + 10 * OWNERS && ALL_OUT ->
		/* the last owner's room has the lines of which enough is free */
		assert(!FORGOTTEN(0));
#if NL > 1
		assert(!FORGOTTEN(1))
#endif
	}
}
