/*
 * region.pml - a region: its word, its map, `late`, its generations and its slab's tag (region.h, bump.c, settle.c).
 * One region with room for two objects of a granule each; two generations instead of 63.
 *
 * Word     gen, entered, objects. A free by another thread enters by compare-exchange, reads the tag again, checks the
 *          byte, marks it by compare-exchange, and leaves by compare-exchange under the generation that it entered,
 *          counting the object. Who ends a life exchanges the word for the next generation and adds those that had
 *          entered to `late`; they take themselves off. After the last generation the word says 0, which nobody
 *          enters: the map is cleared and generation 1 opened while `late` is 0. A slab that is taken before rests
 *          (rest.h), and whoever takes slabs or trims looks at it again.
 * Handle   names the slab's gen_base, which is raised before the word of a region with handles is exchanged.
 *
 * The owner's words and bytes pass through a store buffer (mm.pml).  Its bracket is abstracted as in line_words.pml:
 * whoever ends the slab waits until the owner is outside of a call and empties its buffer.
 *
 * Scenarios (exactly one)
 *   S_LIVES     nobody ends the slab; the owner uses the region again when it is empty
 *   S_RELEASE   the slab is released and taken again, up to NREL times
 *   S_DRAIN     the slab becomes ORPHAN while frees are under way; the owner may take it again once it is back
 * and, beside one of them,
 *   MISUSE      pointers that were freed, or are being freed, are freed once more, by the owner, too
 *   STALE       an address of an earlier incarnation is freed, whether it has been handed out again or not
 *   HANDLES     the owner issues handles; others free by them, early, late and twice, and with OWNER_TOO the owner does
 *   ASKED       HANDLES: another thread asks for a handle, and is slow
 *   RECLASS     S_RELEASE: between two lives the chunk may serve another class (tsi_regions_prepare)
 *   GONE        S_RELEASE: between two lives the pages of the region's record, map and tag may go back (chunk_pages.c)
 *   PAGES       S_DRAIN: the drain claims the orphan for a while to give pages back (partial.c)
 *   RELEASED    S_DRAIN: the orphan may be released afterwards
 *   BASE_FIRST  a free by handle looks at gen_base before the byte (either will do)
 *
 * Checked
 *   a free that returns true is counted, and the other way round; an object is freed once, but for an owner and another
 *   thread that do so at the same time; a second free is refused, also when the first is long past; a first free is
 *   accepted unless the slab was released before it was counted (or others misuse the region); of frees by one handle one
 *   returns true, whoever calls them; a free that began in one
 *   incarnation frees nothing of another, and a handle nothing of another life; a byte is marked only in the life that
 *   was entered; a life that ends without a release has no live object, and each end accounts for every object;
 *   `entered` and `late` do not underflow and are 0 at rest; an ORPHAN without a live object has been returned, once;
 *   when all are through the slab is in use or can be taken again: no life that ended beside a freer has cost it.
 *
 * Not covered: sizes and gaps, more than two objects, the granules of the word, a fork child.
 */
#define NTH  1
#define NLOC 6
#define L_BASE 0        /* never buffered */
#define L_BYTE 1        /* and 2 */
#define L_ISS  3
#define L_FR   4
#define L_WORD 5
#define ON_FLUSH(t, l) \
	if \
	:: (l) == L_BYTE || (l) == L_BYTE + 1 -> wrote[((l) - L_BYTE) & 1] = life \
	:: else \
	fi

#ifndef NOPS
#define NOPS 4          /* calls of the owner */
#endif
#ifndef NREM
#define NREM 1          /* calls of each other thread */
#endif
#ifndef NREL
#define NREL 1
#endif

#define GEN_LAST 2
#define WORD(g)   ((g) << 6)
#define W_GEN(w)  ((w) >> 6)
#define W_IN(w)   (((w) >> 4) & 3)
#define W_OBJ(w)  ((w) & 15)
#define ENTERED   16
#define OBJECT    1
#define MARK_OWN   4
#define MARK_OTHER 8

#define POOL    0
#define OWNED   1
#define ORPHAN  2
#define PURGING 3
#define PARTIAL 4
#define RESTING 5       /* mem/rest.h */
#define OUT     6       /* nobody looks at it any more */
#ifdef MUTANT_RESTS_FOR_GOOD
#define WAKES 0
#else
#define WAKES (late == 0)
#endif
#define HANDLED 8
#define TST(x)  ((x) & 7)
#define TSEQ(x) ((x) >> 4)
#define TAG(st, q) ((st) | ((q) << 4))
#define HOLDS(x) (TST(x) == OWNED || TST(x) == ORPHAN || TST(x) == PARTIAL)

byte tag = TAG(OWNED, 1);
byte late;
byte seq_floor, gen_floor;      /* of the chunk */
byte rgen = 1, lim = 2;         /* of the owner, or who has the slab to himself */
bit  plain = 1;                 /* heap_at: the owner frees by plain stores */
bit  inbr;                      /* the owner is inside a call */

/* ghosts */
byte life = 1, seq_of = 1;      /* the life of the word's generation; the incarnation of the last one that was opened */
byte wrote[2];                  /* the life in which a byte got its generation */
byte st[2];                     /* object of this life: 0 none, 1 live, 2 freed */
bit  claimed[2];                /* of the live ones: being freed by who may */
bit  hit[2];                    /* marked by others in this life */
byte by[2];                     /* freed by: 1 its owner, 2 another */
byte h_base[2], h_life[2];      /* the last handle issued */
bit  mess;                      /* somebody has misused the region */
byte was, was_issued, was_freed; /* of the life that was ended last: live, issued, freed by the owner */
byte sleepers;                  /* that are to take themselves off `late` */

#include "mm.pml"

#define FIRST(i)     (st[i] == 1 && !claimed[i])
#define UNNAMED(l)   (b_loc[0] != (l) && b_loc[1] != (l))
/* Another thread was told the address, or that it was freed: all stores before that are visible to it. */
#define PUBLISHED(i) (UNNAMED(L_BYTE + (i)) && UNNAMED(L_ISS) && UNNAMED(L_WORD))

/* ---- ends and beginnings of lives; by who may write as the owner ---- */

/* z: released. Counts, then what is left of the objects: l live. */
inline sum_life(t, z)
{
	d_step {
		mm_get(t, L_ISS, x);
		mm_get(t, L_FR, y);
		g = W_GEN(w); l = 0; o = 0;
		if
		:: g == 0 -> x = 0; y = 0; w = 0
		:: g != 0 && y == 0 && W_OBJ(w) == 0 -> l = x
		:: g != 0 && y != 0 && y == x && W_OBJ(w) == 0        /* its owner alone has freed all */
		:: else ->
			l = (mem[L_BYTE] == g) + (mem[L_BYTE + 1] == g);
			if
			:: y + W_OBJ(w) != x || l > 0 ->
				o = (mem[L_BYTE] == (g | MARK_OTHER)) + (mem[L_BYTE + 1] == (g | MARK_OTHER));
#ifndef MUTANT_MARKED_NOT_LIVE
				l = l + (o > W_OBJ(w) -> o - W_OBJ(w) : 0);
#endif
				o = 0
			:: else
			fi
		fi;
		/* o: freed twice */
		o = (y + W_OBJ(w) > x - l -> y + W_OBJ(w) - (x - l) : 0);
		if
		:: g != 0 ->
			assert(g == rgen);
			assert(x == was_issued && y == was_freed);
			assert(x - l + o == y + W_OBJ(w));
			assert(mess || l == was);
		:: else
		fi;
		assert((z) || l == 0);  /* nobody ends a life with a live object in it */
		was = 0; was_issued = 0; was_freed = 0;
		x = 0; y = 0; g = 0; l = 0; o = 0
	}
}

/* take_word; w: the word of the life that is over */
inline end_word(t)
{
#ifdef MUTANT_END_STORES
	w = mem[L_WORD];
#endif
	d_step {
		mm_drain(t);
#ifndef MUTANT_END_STORES
		w = mem[L_WORD];
#endif
		sleepers = sleepers + W_IN(w);
		if
		:: W_GEN(mem[L_WORD]) != 0 ->
			life++;
			was_issued = (st[0] != 0) + (st[1] != 0);
			was_freed = (by[0] & 1) + (by[1] & 1);
			assert(W_OBJ(w) == (by[0] >> 1) + (by[1] >> 1));        /* true <=> counted */
			was = (st[0] == 1) + (st[1] == 1);
			st[0] = 0; st[1] = 0; claimed[0] = 0; claimed[1] = 0; hit[0] = 0; hit[1] = 0; by[0] = 0; by[1] = 0
		:: else
		fi;
		mem[L_WORD] = WORD(rgen == GEN_LAST -> 0 : rgen + 1)
	}
#ifndef MUTANT_LATE_NOT_ADDED
	if
	:: W_IN(w) -> late = late + W_IN(w)
	:: else
	fi
#endif
}

/* tsi_region_end */
inline end_life(t, z)
{
	end_word(t);
	sum_life(t, z);
	w = 0
}

/* tsi_region_open, by the owner; ok = 0: not while a freer sleeps. */
inline open_life()
{
	d_step { g = W_GEN(mem[L_WORD]); ok = 1 }
	if
	:: g == 0 ->
#ifndef MUTANT_CLEARED_UNDER_SLEEPER
		d_step { assert(late == sleepers); ok = (late == 0) }
#endif
		if
		:: ok ->
			if
			:: rgen != 0 ->
				STORE(0, L_BYTE, 0);
				STORE(0, L_BYTE + 1, 0)
			:: else
			fi;
			g = 1;
#ifdef MUTANT_OPEN_RELAXED
			STORE(0, L_WORD, WORD(1))
#else
			STORE_REL(0, L_WORD, WORD(1))
#endif
		:: else
		fi
	:: else ->
#ifdef MUTANT_OPEN_OVERWRITES
		STORE_REL(0, L_WORD, WORD(g))
#endif
	fi;
	d_step {
		if
		:: ok -> rgen = g; lim = 2
		:: else -> lim = 0
		fi;
		g = 0
	}
}

/* tsi_region_is_empty; ok */
inline is_empty(t)
{
	LOAD(t, L_WORD, w);
	d_step { mm_get(t, L_ISS, x); mm_get(t, L_FR, y); ok = (W_GEN(w) == 0 || x == 0 || y + W_OBJ(w) >= x); y = 0 }
#ifndef MUTANT_EMPTY_BY_COUNTS
	if
	:: ok && W_GEN(w) != 0 && x != 0 ->
		d_step { mm_get(t, L_BYTE, y); ok = (y != W_GEN(w)) }
		d_step { mm_get(t, L_BYTE + 1, y); ok = ok & (x < 2 || y != W_GEN(w)); y = 0 }
	:: else
	fi;
#endif
	d_step { w = 0; x = 0 }
}

/* The tag is PURGING. hd: handles were issued. */
inline give_back(t, z, hd)
{
	end_life(t, z);
	d_step {
		mm_drain(t);
		assert(TST(tag) == PURGING);
		if
		:: hd -> mem[L_BASE] = mem[L_BASE] + 1
		:: else
		fi;
		tag = TAG(POOL, TSEQ(tag)); ok = 0
	}
}

/* Moves the tag from `state` to PURGING under the next seq; ok. tg: what it was. */
inline claim(state)
{
	d_step {
		tg = tag; ok = 0;
		if
		:: TST(tag) == state -> tag = TAG(PURGING, TSEQ(tag) + 1); ok = 1
		:: else
		fi
	}
}

/* The tag has been ORPHAN under q, and said so after the caller had counted: returns the slab if nothing in it is live. */
inline complete(t)
{
	is_empty(t);
	if
	:: ok ->
		d_step { tg = tag; ok = 0;
			if
			:: TST(tag) == ORPHAN && TSEQ(tag) == q -> tag = TAG(PURGING, q + 1); ok = 1
			:: else
			fi }
		if
		:: ok -> give_back(t, 0, tg & HANDLED)
		:: else
		fi
	:: else
	fi
}

/* ---- frees by compare-exchange ---- */

/* The slab was released meanwhile, or somebody was faster. */
#define MAY_FAIL (!first || mess || life != began || TSEQ(tag) != q || hit[i])

/* Object i, under q, or by a handle of generation hb (0: by pointer). began: the life in which the caller had what it frees.
 * first: it is the free of who may; else dead says whether it had been freed before. */
inline free_shared(t)
{
	d_step {        /* enter */
		mm_drain(t);
		g = W_GEN(mem[L_WORD]);
		if
#ifndef MUTANT_ENTER_ENDED
		:: g == 0
#endif
		:: else -> in = life; assert(W_IN(mem[L_WORD]) < 3); mem[L_WORD] = mem[L_WORD] + ENTERED
		fi
	}
	if
	:: in != 0 ->
#ifndef MUTANT_TAG_NOT_REREAD
		d_step { ok = (HOLDS(tag) && TSEQ(tag) == q) }
#else
		ok = 1;
#endif
#ifdef BASE_FIRST
		look_at_base(t);
#endif
		if
		:: ok -> d_step { mm_get(t, L_BYTE + i, x); ok = (x == g); x = 0 }
		:: else
		fi;
#ifndef BASE_FIRST
		look_at_base(t);
#endif
		if
		:: ok ->        /* who frees it */
			d_step {
				mm_drain(t);
				if
				:: mem[L_BYTE + i] == g ->
					assert(wrote[i] == in);
					mem[L_BYTE + i] = g | MARK_OTHER;
					if
					:: in == life -> hit[i] = 1
					:: else
					fi
				:: else -> ok = 0
				fi
			}
		:: else
		fi;
#ifdef MUTANT_TAG_BEFORE_COUNT
		tg = tag;
#endif
		d_step {        /* leave */
			mm_drain(t);
			gone = 0;
			if
#ifndef MUTANT_LEAVE_ANY_GENERATION
			:: W_GEN(mem[L_WORD]) != g -> assert(sleepers > 0); gone = 1; ok = 0
#endif
			:: else ->
				assert(W_IN(mem[L_WORD]) > 0);
				assert(in == life);
				mem[L_WORD] = mem[L_WORD] - ENTERED + (ok -> OBJECT : 0);
				if
				:: ok ->
					assert(q == seq_of);
					assert(hb == 0 || began == life);
					assert(!(dead && began == life));
					assert(st[i] != 0 && !(by[i] & 2));
					assert(mess || st[i] == 1);
					by[i] = by[i] | 2; st[i] = 2; claimed[i] = 0
				:: else
				fi
			fi;
			assert(ok || MAY_FAIL)
		}
		if
#ifndef MUTANT_STAYS_LATE
		:: gone -> d_step { late = late - 1; sleepers-- }
#endif
		:: else
		fi;
#ifndef MUTANT_TAG_BEFORE_COUNT
		tg = tag;
#endif
		if
		:: ok && TST(tg) == ORPHAN && TSEQ(tg) == q -> complete(t)
		:: else
		fi
	:: else -> assert(MAY_FAIL)
	fi;
	d_step { ok = 0; g = 0; in = 0; gone = 0; tg = 0; x = 0; y = 0; w = 0 }
}

#ifdef HANDLES
inline look_at_base(t)
{
#ifndef MUTANT_BASE_NOT_REREAD
	if
	:: hb != 0 -> d_step { mm_get(t, L_BASE, x); ok = ok & (x == hb); x = 0 }
	:: else
	fi
#else
	skip
#endif
}
#else
inline look_at_base(t) { skip }
#endif

#ifdef HANDLES
/* What the handle names, then free_shared */
inline free_by_handle(t)
{
	d_step { ok = (HOLDS(tag) && (tag & HANDLED)); q = (HOLDS(tag) -> TSEQ(tag) : 0) }
	if
	:: ok -> d_step { mm_get(t, L_BASE, x); ok = (x == hb); x = 0 }
	:: else
	fi;
	if
	:: ok -> ok = 0; free_shared(t)
	:: else -> assert(MAY_FAIL)
	fi
}

/* The last handle of object 0, whatever has become of that. */
#define PICK_HANDLE \
	i = 0; hb = h_base[0]; began = h_life[0]; dead = (began == life && st[0] == 2); \
	if \
	:: began == life && FIRST(0) -> first = 1; claimed[0] = 1 \
	:: else \
	fi
#endif

#define PICK(n) i = n; began = life; q = TSEQ(tag)

proctype other(byte me; byte n)
{
	byte i, q, hb, began, g, in, tg, w, x, y, l, o;
	bit ok, first, dead, gone;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { HOLDS(tag) && FIRST(0) && PUBLISHED(0) -> PICK(0); first = 1; claimed[0] = 1 }
		:: d_step { HOLDS(tag) && FIRST(1) && PUBLISHED(1) -> PICK(1); first = 1; claimed[1] = 1 }
#ifdef MISUSE
		:: d_step { HOLDS(tag) && st[0] != 0 && !FIRST(0) && PUBLISHED(0) -> PICK(0); dead = (st[0] == 2); mess = 1 }
		:: d_step { HOLDS(tag) && st[1] != 0 && !FIRST(1) && PUBLISHED(1) -> PICK(1); dead = (st[1] == 2); mess = 1 }
#endif
#ifdef STALE
		:: d_step { HOLDS(tag) && st[1] == 0 && seq_of > 1 -> PICK(1); mess = 1 }
#endif
#ifdef HANDLES
		:: d_step { h_base[0] && PUBLISHED(0) -> PICK_HANDLE }
#endif
		:: true -> break
		fi;
#ifdef HANDLES
		if
		:: hb != 0 -> free_by_handle(me)
		:: else -> free_shared(me)
		fi;
#else
		free_shared(me);
#endif
		d_step { i = 0; q = 0; hb = 0; began = 0; first = 0; dead = 0; ok = 0 }
	:: n == 0 -> break
	od
}

#ifdef ASKED
/* slab_handle_of by another thread, of an object that it holds */
proctype asker()
{
	byte q, hb, began, named, w;
	bit ok;
	if
	:: d_step { HOLDS(tag) && FIRST(0) && PUBLISHED(0) -> q = TSEQ(tag); began = life; claimed[0] = 1 }
		d_step {
			if
			:: HOLDS(tag) && TSEQ(tag) == q -> tag = tag | HANDLED; ok = 1
			:: else
			fi }
		if
		:: ok ->
			if
			:: plain -> plain = 0; mm_barrier_all()
			:: else
			fi;
			hb = mem[L_BASE];
			w = mem[L_WORD];
			d_step { ok = (W_GEN(w) != 0 && mem[L_BYTE] == W_GEN(w)); named = life }
			if
			:: ok -> ok = (mem[L_BASE] == hb)
			:: else
			fi;
			d_step {
				if
				:: ok && TSEQ(tag) == q -> h_base[0] = hb; h_life[0] = named
				:: else
				fi }
		:: else
		fi;
		d_step {
			if
			:: began == life -> claimed[0] = 0
			:: else
			fi }
	:: true
	fi
}
#endif

/* ---- the owner ---- */

#define IS_OWN  (TST(tag) == OWNED)
#define IN_CALL IS_OWN && !inbr -> inbr = 1

/* Uses the empty region again; ok. Nothing is issued any more before its life ends (tsi_region_renew). */
inline renew()
{
	is_empty(0);
	if
	:: ok ->
		d_step { mm_get(0, L_ISS, x); mm_get(0, L_FR, y) }
#ifdef HANDLES
		hd = ((tag & HANDLED) != 0);
#if !defined(MUTANT_BASE_AFTER_SWAP) && !defined(MUTANT_BASE_AFTER_OPEN)
		raise_base();
#endif
#endif
		STORE_REL(0, L_ISS, 0);
		STORE(0, L_FR, 0);
		end_word(0);
		d_step {
			if
			:: W_GEN(w) != 0 ->
				assert(x == was_issued && y == was_freed && y + W_OBJ(w) >= x);
				assert(mem[L_BYTE] != rgen && (x < 2 || mem[L_BYTE + 1] != rgen));      /* nothing is live */
				assert(mess || was == 0)
			:: else
			fi;
			was = 0; was_issued = 0; was_freed = 0; x = 0; y = 0; w = 0
		}
#if defined(HANDLES) && defined(MUTANT_BASE_AFTER_SWAP)
		raise_base();
#endif
		open_life()
	:: else
	fi
}

inline raise_base()
{
	if
	:: hd -> d_step { mm_drain(0); mem[L_BASE] = mem[L_BASE] + 1 }
	:: else
	fi
}

inline alloc()
{
	d_step { IN_CALL }
	LOAD(0, L_ISS, x);
	if
	:: x < lim -> ok = 1
	:: x > 0 || lim == 0 -> renew()
	fi;
	if
	:: ok ->
		d_step { ROOM(0) -> mm_get(0, L_ISS, x); assert(st[x] == 0); st[x] = 1; mm_put(0, L_BYTE + x, rgen, 0) }
		STORE_REL(0, L_ISS, x + 1);
#if defined(HANDLES) && defined(MUTANT_BASE_AFTER_OPEN)
		raise_base();
#endif
	:: else
	fi;
	d_step { inbr = 0; ok = 0; x = 0; hd = 0 }
}

/* tsi_bump_free, in the bracket */
inline free_plain()
{
	LOAD(0, L_BYTE + i, x);
	if
	:: x == rgen ->
		d_step { ROOM(0) ->
			mm_put(0, L_BYTE + i, rgen | MARK_OWN, 0);
			assert(!dead && st[i] != 0 && !(by[i] & 1));
			assert(mess || st[i] == 1);
			st[i] = 2; by[i] = by[i] | 1; claimed[i] = 0 }
		LOAD(0, L_FR, x);
		STORE_REL(0, L_FR, x + 1)
	:: else -> assert(!first || mess)
	fi;
	d_step { inbr = 0; i = 0; first = 0; dead = 0; x = 0 }
}

inline owner_free()
{
	if
	:: plain -> free_plain()
	:: else ->
		d_step { q = TSEQ(tag); began = life; inbr = 0 }
		free_shared(0);
		d_step { i = 0; q = 0; began = 0; first = 0; dead = 0 }
	fi
}

#ifdef OWNER_TOO
/* tsi_bump_handle_free, in the bracket: whether it found the region to be the thread's, by its tag. ok: freed. */
inline free_handled()
{
	d_step {
		ok = ((tag & HANDLED) != 0);
		mm_get(0, L_BASE, x);
#ifndef MUTANT_OWNER_ANY_BASE
		ok = ok & (x == hb);
#endif
		x = 0
	}
#ifdef MUTANT_OWNER_STORES
	if
	:: ok -> d_step { mm_get(0, L_BYTE + i, x); ok = (x == rgen); x = 0 }
	:: else
	fi;
#endif
	if
	:: ok ->        /* who frees it */
		d_step {
#ifdef MUTANT_OWNER_STORES
			ROOM(0) -> mm_put(0, L_BYTE + i, rgen | MARK_OWN, 0);
#else
			mm_drain(0);
			ok = (mem[L_BYTE + i] == rgen);
			if
			:: ok -> mem[L_BYTE + i] = rgen | MARK_OWN
			:: else
			fi;
#endif
			if
			:: ok ->
				assert(began == life && !dead && st[i] != 0 && !(by[i] & 1));
				assert(mess || st[i] == 1);
				hit[i] = 1; by[i] = by[i] | 1; st[i] = 2; claimed[i] = 0
			:: else
			fi
		}
	:: else
	fi;
	if
	:: ok ->
		LOAD(0, L_FR, x);
		STORE_REL(0, L_FR, x + 1);
		x = 0
	:: else
	fi
}

/* Object i by the last handle. What the bracket does not free is looked at as another thread's free. */
inline owner_free_handle()
{
	d_step {        /* enter */
		if
#ifdef MUTANT_OWNER_ANY_TAG
		:: !inbr -> inbr = 1; in = 1
#else
		:: IS_OWN && !inbr -> inbr = 1; in = 1
#endif
		:: else
		fi
	}
	if
	:: in -> free_handled();
		d_step { inbr = 0; in = 0 }
	:: else
	fi;
	if
	:: ok -> ok = 0
	:: else -> free_by_handle(0)
	fi;
	d_step { i = 0; q = 0; hb = 0; began = 0; first = 0; dead = 0 }
}
#endif

#ifdef GONE
/* tsi_chunk_release_metadata: all reads as 0 afterwards, but for what is in the chunk's floors. */
inline leave_chunk()
{
	d_step { seq_floor = TSEQ(tag); gen_floor = mem[L_BASE] }
#ifdef MUTANT_GONE_NO_LATE_LOOK
	ok = 1;
#else
	d_step { ok = (late == 0) }
#endif
#ifdef MUTANT_GONE_NO_EXCHANGE
	d_step { ok = (ok && W_IN(mem[L_WORD]) == 0) }
#else
	d_step {
		if
#ifndef MUTANT_GONE_BESIDE_FREER
		:: W_IN(mem[L_WORD]) != 0 -> ok = 0
#endif
		:: ok -> mem[L_WORD] = 0; life++
		:: else
		fi }
#endif
	if
	:: ok ->
		d_step { mem[L_BYTE] = 0; mem[L_BYTE + 1] = 0; mem[L_ISS] = 0; mem[L_FR] = 0; mem[L_WORD] = 0; mem[L_BASE] = 0;
			late = 0; rgen = 0; tag = TAG(POOL, 0) }
	:: else
	fi;
	ok = 0;
	/* the chunk is opened again: floors_apply */
#ifdef MUTANT_GONE_NO_FLOOR
	d_step {
		if
		:: TSEQ(tag) == 0 -> tag = TAG(POOL, 1)
		:: else
		fi }
#else
	d_step {
		if
		:: TSEQ(tag) < seq_floor -> tag = TAG(POOL, seq_floor)
		:: else
		fi }
#endif
#ifdef MUTANT_GONE_NO_GEN_FLOOR
	d_step {
		if
		:: mem[L_BASE] == 0 -> mem[L_BASE] = 1
		:: else
		fi }
#else
	d_step {
		if
		:: mem[L_BASE] < gen_floor -> mem[L_BASE] = gen_floor
		:: else
		fi }
#endif
}
#endif

/* slab_open of what is in the pool */
inline take()
{
#ifdef GONE
	if
	:: true -> leave_chunk()
	:: true
	fi;
#endif
#ifdef RECLASS
	if
	:: true ->      /* tsi_regions_prepare */
#ifdef MUTANT_PREPARE_NO_LOOK
		ok = 1;
#else
		d_step { ok = (late == 0) }
#endif
		passed = !ok;
		if
		:: ok ->
#ifdef MUTANT_PREPARE_STORES
			d_step { mem[L_WORD] = 0; life++ }
#else
			d_step { w = mem[L_WORD]; mem[L_WORD] = 0; sleepers = sleepers + W_IN(w); life++ }
			d_step { late = late + W_IN(w); w = 0 }
#endif
			d_step { mem[L_BYTE] = 0; mem[L_BYTE + 1] = 0; rgen = 0 }
			d_step { mem[L_BYTE] = 1; wrote[0] = life }     /* an object of the other class: its region has another record */
			d_step { mem[L_BYTE] = 0; life++ }
		:: else
		fi
	:: true -> ok = 1
	fi;
	if
	:: ok -> open_life()
	:: else
	fi;
#else
	open_life();
#endif
	d_step {
		mm_drain(0);
		if
		:: ok -> mem[L_ISS] = 0; mem[L_FR] = 0; plain = 1; seq_of = TSEQ(tag); tag = TAG(OWNED, TSEQ(tag))
#ifdef MUTANT_PASSED_FOR_GOOD
		:: !ok && passed -> tag = TAG(OUT, TSEQ(tag))
#else
		:: !ok && passed        /* the chunk stays as it is, and is passed over this time */
#endif
		:: !ok && !passed -> tag = TAG(RESTING, TSEQ(tag))      /* tsi_rest */
		fi;
		ok = 0; passed = 0
	}
}

/* tsi_rest_poll, by whoever takes a slab or trims. */
inline look_at_resting()
{
	d_step {
		if
		:: WAKES -> tag = TAG(POOL, TSEQ(tag))
		:: else
		fi
	}
}

proctype owner(byte n)
{
	byte i, q, hb, began, g, in, tg, w, x, y, l, o;
	bit ok, first, dead, gone, hd, passed;
	do
	:: n > 0 ->
		n--;
		if
		:: alloc()
		:: d_step { FIRST(0) && IN_CALL; first = 1; claimed[0] = 1 } owner_free()
		:: d_step { FIRST(1) && IN_CALL; first = 1; claimed[1] = 1; i = 1 } owner_free()
#ifdef MISUSE
		:: d_step { st[0] != 0 && !FIRST(0) && IN_CALL; dead = (st[0] == 2); mess = 1 } owner_free()
		:: d_step { st[1] != 0 && !FIRST(1) && IN_CALL; dead = (st[1] == 2); mess = 1; i = 1 } owner_free()
#endif
#ifdef HANDLES
		:: d_step { FIRST(0) && IN_CALL; mm_drain(0);
#ifdef MUTANT_HANDLED_BY_HEAP_AT
			if
			:: plain -> tag = tag | HANDLED
			:: else
			fi;
#else
			tag = tag | HANDLED;
#endif
#ifndef MUTANT_PLAIN_BESIDE_HANDLES
			plain = 0;
#endif
			h_base[0] = mem[L_BASE]; h_life[0] = life; inbr = 0 }
#endif
#ifdef OWNER_TOO
		:: d_step { h_base[0] -> PICK_HANDLE } owner_free_handle()
#endif
#ifndef S_LIVES
		:: TST(tag) == POOL -> take()
		:: TST(tag) == RESTING -> look_at_resting()
#endif
		:: n = 0
		fi
	:: n == 0 -> break
	od
}

/* ---- those who end the slab ---- */

#ifndef S_LIVES
proctype ender(byte n)
{
	byte q, g, tg, w, x, y, l, o;
	bit ok;
	do
	:: n > 0 && IS_OWN && !inbr ->
		n--;
#ifdef S_RELEASE
		/* One step: the heap is SEIZED, and the owner does not enter again. */
		d_step { IS_OWN && !inbr -> mm_drain(0); tg = tag; tag = TAG(PURGING, TSEQ(tag) + 1) }
		give_back(9, 1, tg & HANDLED);
#else
		d_step { IS_OWN && !inbr -> mm_drain(0); q = TSEQ(tag); inbr = 1 }      /* inbr: it has the heap */
		is_empty(9);
		if
		:: ok ->
			claim(OWNED);
			inbr = 0;
			assert(ok);
			give_back(9, 0, tg & HANDLED)
		:: else ->
#ifdef MUTANT_LOOK_BEFORE_TAG
			is_empty(9);
#endif
			d_step { tag = TAG(ORPHAN, q) | (tag & HANDLED); inbr = 0 }
#ifndef MUTANT_LOOK_BEFORE_TAG
			is_empty(9);
#endif
#ifdef MUTANT_DRAIN_BY_MAP
			d_step { ok = (mem[L_BYTE] != rgen && mem[L_BYTE + 1] != rgen && (mem[L_FR] || W_OBJ(mem[L_WORD]))) }
#endif
			if
			:: ok ->
				claim(ORPHAN);
				if
				:: ok -> give_back(9, 0, tg & HANDLED)
				:: else
				fi
			:: else
			fi;
#ifdef PAGES
			d_step { ok = 0;
				if
				:: TST(tag) == ORPHAN && TSEQ(tag) == q -> tag = TAG(PARTIAL, q) | (tag & HANDLED); ok = 1
				:: else
				fi }
			if
			:: ok ->
				d_step { tag = TAG(ORPHAN, q) | (tag & HANDLED); ok = 0 }
#ifndef MUTANT_PARTIAL_NO_RELOOK
				complete(9)
#endif
			:: else
			fi;
#endif
#ifdef RELEASED
			if
			:: true -> claim(ORPHAN);
				if
				:: ok -> give_back(9, 1, tg & HANDLED)
				:: else
				fi
			:: true
			fi;
#endif
			skip
		fi;
#endif
		d_step { ok = 0; q = 0; tg = 0 }
	:: true -> break
	od
}
#endif

init
{
	atomic {
		mem[L_WORD] = WORD(1);
		mem[L_BASE] = 1;
		run flusher(0);
		run owner(NOPS);
		run other(1, NREM);
#ifndef ONE
		run other(2, NREM);
#endif
#ifdef ASKED
		run asker();
#endif
#ifdef S_RELEASE
		run ender(NREL);
#endif
#ifdef S_DRAIN
		run ender(1);
#endif
	}
	/* everybody is through */
	d_step { _nr_pr == 2 && b_n[0] == 0 ->
		assert(W_IN(mem[L_WORD]) == 0 && late == 0 && sleepers == 0);
		assert(TST(tag) != OUT && (TST(tag) != RESTING || WAKES));       /* a trim finds it */
		assert(TST(tag) != PURGING && TST(tag) != PARTIAL);
		assert(!(TST(tag) == ORPHAN && st[0] != 1 && st[1] != 1));
		assert(!HOLDS(tag) || mem[L_FR] == (by[0] & 1) + (by[1] & 1));
		assert(!HOLDS(tag) || W_OBJ(mem[L_WORD]) == (by[0] >> 1) + (by[1] >> 1)) }
}
