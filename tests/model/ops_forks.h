/*
 * ops_forks.h - a fork in the middle of a run: the child goes on with its own copy of the library and of the reference.
 *
 * The other threads wait for their turn meanwhile, so none is inside a call, and every figure of the child is exact. It
 * makes some operations, compares everything, and exits with its verdict; or it ends the whole run before. The parent
 * waits, and then goes on as if nothing had been.
 */
#ifndef MODEL_OPS_FORKS_H
#define MODEL_OPS_FORKS_H

#include "run.h"

#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 300 };

static bool is_child; /* children have none */

/* A domain that was another thread's alone is anybody's, and its phase has been released. A phase that drained goes on
 * to, and the domain lets go of it, so that the domain's end changes nothing. */
static inline void owner_vanished(struct world* w, struct dom* d) {
    if (d->inc->state != INC_CLOSED) {
        d->vanished = true;
        ref_disown(w, d);
        return;
    }
    d->inc->scopes -= d->refcount;
    d->refcount = 0;
    d->inc->releasing = false;
    REQUIRE_OR(epoch_domain_destroy(d->d), "destroy of a vanished thread's domain was refused, errno %d", errno);
    ref_dom_drop(w, d);
}

/* The child has one thread. Scopes of the others leave their domains without ending them. */
static inline void others_vanish(struct world* w) {
    for (int i = 0; i < w->threads; i++) {
        struct actor* t = &w->actors[i];
        if (t == w->actor) continue;
        for (; t->depth > 0; t->depth--) {
            struct dom* d = t->stack[t->depth - 1];
            d->refcount--;
            d->inc->scopes--;
        }
        if (!t->alive) continue;
        t->alive = false;
        add_samples(&w->sampled_gone, &t->sampled);
        actor_left(w, t);
    }
    for (unsigned i = w->n_doms; i-- > 0;)
        if (is_anothers_dom(w, w->doms[i])) owner_vanished(w, w->doms[i]);
}

static _Noreturn void child_goes_on(struct world* w, uint64_t n, bool to_the_end) {
    is_child = true;
    alarm(CHILD_SECONDS);
    others_vanish(w);
    check_everything(w);
    if (w->ops > w->op + n) w->ops = w->op + n;
    while (w->op < w->ops) one_op(w);
    check_everything(w);
    if (to_the_end) {
        struct actor* t = w->actor; /* it is the first one's part to end a run */
        for (unsigned i = 0; i < w->n_doms; i++) w->doms[i]->owner = w->doms[i]->inc->owner = w->doms[i]->owner != 0;
        w->actors[0] = *t, w->actors[0].slot = 0;
        if (t != &w->actors[0]) t->alive = false;
        w->actor = &w->actors[0];
        world_end(w);
    }
    fflush(NULL);
    _exit(0);
}

/* What is another thread's alone ends in the child, inside of fork. */
static inline void theirs_end(struct world* w, bool begins) {
    for (unsigned i = 0; i < w->n_doms; i++)
        if (is_anothers_dom(w, w->doms[i])) w->doms[i]->inc->releasing = begins;
}

static inline void op_fork(struct world* w) {
    uint64_t n = below(w, 60);
    bool to_the_end = chance(w, 30);
    if (is_child || CHECK_TSAN) return; /* the thread sanitizer does not follow a child of a threaded process */
    note(w, "fork: the child makes %llu operations%s", (unsigned long long)n, to_the_end ? " and ends the run" : "");
    fflush(NULL);
    theirs_end(w, true);
    pid_t child = fork();
    REQUIRE_OR(child >= 0, "fork failed with errno %d", errno);
    if (child == 0) child_goes_on(w, n, to_the_end);
    theirs_end(w, false);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    REQUIRE_OR(status == 0, "the child of a fork ended with status %#x", (unsigned)status);
}

#endif
