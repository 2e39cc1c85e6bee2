# shellcheck shell=bash
# uses.bash - the bad uses of uses.c that every tool must report, for the scripts beside it. `run_uses WORD...` is theirs: it
# runs ./uses with the words under the tool, what is said to ./said, and fails where the tool has reported something.

# Each way to make an object, and each way to end one: MAKE END.
pairs="malloc:end calloc:end aligned:end handle:end named:end id:end copy:end grown:end shrunk:end large:end large_calloc:end
malloc:end_ex malloc:exit malloc:reset malloc:close malloc:close_era malloc:drain malloc:other_thread malloc:other_frees malloc:free
malloc:sized handle:handle malloc:grow malloc:shrink malloc:destroy malloc:thread_exit malloc:fork large:free large:reset large:destroy
handle:free handle:drain grown:free ring:close ring:advance ring:free ring:destroy ring:other_thread"
# The same under options: OPTIONS MAKE END.
options="shared=1:malloc:end shared=1:handle:handle shared=1:ring:close bump=2:malloc:end bump=2:handle:end bump=3:ring:close
purge_policy=2:malloc:end segment=1:malloc:reset profile_bytes=512,sampling_period=16:malloc:end misuse_fatal=1:malloc:end"

# What nobody has written to at first, and what is written as it is made: for `fresh`. A grown object is all unset: so was what
# it grew from.
# shellcheck disable=SC2034  # of the scripts that read this
unset="malloc aligned handle named id grown large ring" zeroed="calloc large_calloc copy"

# report MAKE END USE PATTERN...: the tool reports, and says all of this.
report() {
    local words="$1 $2 $3" pattern
    shift 3
    # shellcheck disable=SC2086  # words are words
    if run_uses $words; then
        complain "$words: nothing is reported"
        return
    fi
    for pattern in "$@"; do
        grep -qE -e "$pattern" said || complain "$words: no '$pattern' in: $(head -n 60 said)"
    done
}
# quiet MAKE END USE: it does not.
quiet() { run_uses "$@" || complain "$*: $(head -n 60 said)"; }

# What a report of a use after the end names; a pair may have another function in the place of the end.
ends_in() { # END
    case $1 in
    thread_exit) echo . ;; # the library, as the thread exits
    other_frees) echo frees_it ;;
    other_thread) echo ends_it ;;
    *) echo object_is_ended ;;
    esac
}
