/*
 * calls.h - how often a process asks the kernel for membarrier and madvise, counted from outside of any allocator: a
 * filter reports both to a thread that counts them and lets them go on.
 *
 * A report takes microseconds, so nothing is timed any more once it is on; it stays on to the end of the process. It
 * covers the thread that sets it and those started later. Where the kernel has no such filter (before Linux 5.5, or in a
 * sandbox that forbids it) there are no counts.
 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static _Atomic uint64_t calls_membarrier, calls_madvise;

static void* calls_counter(void* arg) {
    int fd = *(int*)arg;
    for (;;) {
        struct seccomp_notif asked = {0};
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
            if (errno == EINTR || errno == ENOENT) continue;
            return NULL;
        }
        atomic_fetch_add(asked.data.nr == __NR_membarrier ? &calls_membarrier : &calls_madvise, 1);
        struct seccomp_notif_resp go_on = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
    }
}

struct calls_setup {
    pthread_barrier_t ready;
    int fd;
};

/* Began before the filter, so that it is not filtered itself. */
static void* calls_counter_begin(void* arg) {
    struct calls_setup* setup = arg;
    pthread_barrier_wait(&setup->ready);
    return setup->fd < 0 ? NULL : calls_counter(&setup->fd);
}

/* False when this kernel counts nothing. */
static inline bool calls_count(void) {
    static struct calls_setup setup;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_membarrier, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    pthread_t counter;
    pthread_barrier_init(&setup.ready, NULL, 2);
    if (pthread_create(&counter, NULL, calls_counter_begin, &setup) != 0) return false;
    setup.fd = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                   ? -1
                   : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    pthread_barrier_wait(&setup.ready);
    return setup.fd >= 0;
}

#endif
