/*
 * grants.pml - a label's hard budget that threads are granted parts of (src/account/charge.h, C1 and C2).
 *
 * NTH threads charge the label with a unit or give one back, NOPS times. All that a thread does to the label takes one
 * unit in advance where the limit HARD is FAR units away.
 *
 * There are no store buffers: sums, grants and `exact` change by read-modify-writes, which act on the value that they
 * find, and the one store, of a grant that only its thread can fill, is seq_cst. What is merely loaded decides no more
 * than whether to grant in advance, or is read under the labels' lock (a refusal). Limits do not change here.
 *
 * Checked
 *   the label is charged with what phases have and what is granted, or more, and never with more than HARD; a thread
 *   that is refused while nobody else does anything has found it full; who begins after it has said that it is at the
 *   limit holds no grant as it is refused.
 */
#ifndef NTH
#define NTH 2
#endif
#ifndef NOPS
#define NOPS 4
#endif
#define HARD 3
#define FAR 2

byte committed, exact;
byte grant[NTH];
bit  labels_lock;
byte held;       /* ghosts: units that phases have */
byte inside;     /* threads in an operation */
bit  met[NTH];   /* somebody else was in one meanwhile */
bit  in[NTH], old[NTH * NTH];

#define SUM_OK assert(committed <= HARD && committed >= held + granted())
#if NTH == 2
#define granted() (grant[0] + grant[1])
#else
#define granted() (grant[0] + grant[1] + grant[2])
#endif

/* Moves a grant back: first it is nobody's, then the label has less. */
inline take_back(j)
{
#ifdef MUTANT_LABEL_FIRST
	got = grant[j];
	d_step { committed = committed - got; SUM_OK }
	d_step { if :: grant[j] < got -> got = grant[j] :: else fi; grant[j] = grant[j] - got }
#else
	d_step { got = grant[j]; grant[j] = 0 }
	d_step { committed = committed - got; SUM_OK }
#endif
}

inline all_back()
{
	d_step { labels_lock == 0 -> labels_lock = 1 }
	any = 0;
	k = 0;
	do
	:: k < NTH -> take_back(k); any = any || got != 0; k++
	:: else -> break
	od;
	skip;
	d_step { again = committed; labels_lock = 0 }
}

inline is_far(c)
{
	far = (c + FAR <= HARD);
#ifndef MUTANT_NOBODY_AT_THE_LIMIT
	far = far && exact == 0
#endif
}

inline charge()
{
	bool done = false;
	d_step { if :: grant[me] >= 1 -> grant[me]--; held++; done = true :: else fi }
	if
	:: done
	:: else ->
	   take_back(me);
	   c = committed;
	   at_limit = false;
	   do
	   :: c + 1 > HARD ->
	      if
	      :: !at_limit ->
	         d_step {
	            exact++;
	            k = 0;
	            do :: k < NTH -> old[me * NTH + k] = in[k]; k++ :: else -> break od
	         }
	         at_limit = true
	      :: else
	      fi;
	      any = 0;
	      again = c;
#ifndef MUTANT_KEEPS_OTHERS
	      all_back();
#endif
	      if
#ifdef MUTANT_LOOKS_AT_OWN_CATCH
	      :: any -> c = committed
#else
	      :: again < c -> c = again
#endif
	      :: else ->
	         d_step {
	            assert(again + 1 > HARD); /* by the label's sum after the look */
	            assert(met[me] || held + 1 > HARD);
	            k = 0;
	            do
	            :: k < NTH -> assert(k == me || old[me * NTH + k] || grant[k] == 0); k++
	            :: else -> break
	            od
	         }
	         break
	      fi
	   :: else ->
	      is_far(c + 1);
	      d_step {
	         if
	         :: committed == c -> committed = c + 1 + (far -> 1 : 0); held++; done = true
	         :: else -> c = committed
	         fi;
	         SUM_OK
	      }
	      if
	      :: done -> if :: far -> d_step { grant[me] = 1; SUM_OK } :: else fi; break
	      :: else
	      fi
	   od;
	   if :: at_limit -> exact-- :: else fi
	fi;
	if :: done -> mine++ :: else fi
}

inline give()
{
	is_far(committed);
	d_step {
		mine--;
		held--;
		if
		:: far && grant[me] == 0 -> grant[me] = 1
		:: else -> committed--
		fi;
		SUM_OK
	}
}

proctype thread(byte me)
{
	byte ops, mine, c, got, k, again;
	bool far, any, at_limit;
	do
	:: ops < NOPS ->
	   d_step {
	      in[me] = 1;
	      met[me] = inside != 0;
	      k = 0;
	      do :: k < NTH -> if :: in[k] && k != me -> met[k] = 1 :: else fi; k++ :: else -> break od;
	      inside++
	   }
	   if
	   :: charge()
	   :: mine != 0 -> give()
	   fi;
	   d_step { in[me] = 0; inside-- }
	   ops++
	:: else -> break
	od
}

init
{
	atomic {
		run thread(0);
		run thread(1);
#if NTH == 3
		run thread(2)
#endif
	}
}
