/*
 * ready.pml - a heap that waits for a phase with its region (ready.h, ready.c), and who may have the region.
 *
 * Word     state, region. STANDBY(r) -> LIVE by the owner, STANDBY(r) -> STANDBY_EMPTY by who flushes, both by
 *          compare-exchange of the whole word; the owner stores STANDBY(r) when a phase ends, and frees the heap when
 *          it meets STANDBY_EMPTY: the record comes back to it, as another heap with another region.
 * Life     the owner ends one by an exchange of the region's word, then looks whether the slab's tag has the flag of
 *          handles, raises the base if so, and stores the next tag (buffered until its next exchange). Who asks for a
 *          handle sets the flag by compare-exchange of the tag, then looks at the word, then at the tag again.
 *
 * Checked: a region that was flushed is in no phase, and is given back once; a handle that was issued names a base
 * that no later life of the region has.
 *
 * Not covered: frees of others (region.pml), charges, the stripe, which makes an end one step for other ends.
 */
#ifndef NOPS
#define NOPS 4      /* phases of the owner */
#endif
#ifndef NASK
#define NASK 2      /* handles asked for, one after the other */
#endif

#define STANDBY_EMPTY  0
#define LIVE  1
#define STANDBY 2
#define WORD(s, r) ((s) | ((r) << 2))
#define ST(w)      ((w) & 3)
#define REG(w)     ((w) >> 2)
#define FLAG 1
#define TAG(q) ((q) << 1)

byte word = WORD(STANDBY, 0);
byte region_of = 0;     /* h->region */
byte owner_of[2];       /* ghost: 0 the system's, 1 a heap's that waits, 2 a phase's */
byte gen = 1;           /* of region 0, like all below */
byte tag = TAG(1);
byte base = 1;
byte buffered;          /* the owner's store of the tag; 0: none */
byte issued[4];         /* ghost: by base, the life in which a handle was issued; 0: none */
byte life = 1;
bit  lives;             /* ghost: region 0 has an object */
bit  done;

/* Region 0's life ends and the next begins. */
inline end_life()
{
	byte seen;
#ifdef MUTANT_FLAG_FIRST
	seen = tag;
	gen++;
#else
	gen++;                          /* the exchange */
	seen = tag;
#endif
	if
	:: seen & FLAG -> base++
	:: else
	fi;
	buffered = TAG((seen >> 1) + 1);
	life++
}

inline drain_buffer()
{
	atomic {
		if
		:: buffered -> tag = buffered; buffered = 0
		:: else
		fi
	}
}

proctype owner()
{
	byte n, w;
	do
	:: n < NOPS ->
		n++;
		atomic { /* STANDBY -> LIVE, or STANDBY_EMPTY: the heap is freed and born again with another region */
			w = word;
			if
			:: ST(w) == STANDBY && REG(w) == region_of -> word = WORD(LIVE, 0);
				assert(owner_of[region_of] == 1); owner_of[region_of] = 2
			:: else ->
				assert(ST(w) == STANDBY_EMPTY);
				word = WORD(LIVE, 0);
				if
				:: owner_of[0] == 0 -> region_of = 0
				:: owner_of[1] == 0 -> region_of = 1
				fi;
				owner_of[region_of] = 2
			fi;
			if
			:: buffered -> tag = buffered; buffered = 0
			:: else
			fi
		}
		if
		:: region_of == 0 -> lives = 1; lives = 0; end_life()
		:: else
		fi;
		drain_buffer();         /* released with the word, at the latest */
		atomic { owner_of[region_of] = 1; word = WORD(STANDBY, region_of) }
	:: else -> break
	od;
	done = 1
}

proctype flusher()
{
	byte w, r;
	do
	:: done -> break
	:: else ->
		w = word;
		if
		:: ST(w) == STANDBY ->
#ifdef MUTANT_REGION_READ_APART
			r = region_of;
			atomic {
				if
				:: ST(word) == STANDBY -> word = WORD(STANDBY_EMPTY, 0);
#else
			r = REG(w);
			atomic {
				if
				:: word == w -> word = WORD(STANDBY_EMPTY, 0);
#endif
					assert(owner_of[r] == 1); owner_of[r] = 0
				:: else
				fi
			}
		:: else
		fi
	od
}

/* Another thread that has an object of region 0's present life. */
proctype asker()
{
	byte n, t, g, b, l;
	do
	:: n < NASK ->
		n++;
		atomic {
			if
			:: lives -> g = gen; l = life
			:: done -> break
			fi
		}
		t = tag;
		if
		:: gen != g -> goto next
		:: else
		fi;
		atomic {
			if
			:: tag == t || tag == (t | FLAG) -> tag = t | FLAG
			:: else -> goto next
			fi
		}
		b = base;
#ifndef MUTANT_WORD_UNSEEN
		if
		:: gen != g -> goto next
		:: else
		fi;
#endif
		if
		:: (tag >> 1) != (t >> 1) -> goto next
		:: else
		fi;
		atomic {
			assert(b < 4 && (issued[b] == 0 || issued[b] == l));
			issued[b] = l
		}
next:		skip
	:: else -> break
	od
}

init {
	owner_of[0] = 1;
	atomic {
		run owner();
#ifdef S_FLUSH
		run flusher();
		run flusher()
#else
		run asker()
#endif
	}
}
