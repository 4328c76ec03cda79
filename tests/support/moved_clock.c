/* Preloaded into a process, it moves the time of day that the process reads by as many seconds
   as the file named by MOVED_CLOCK says at the moment. The monotonic clock stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int64_t shift(void) {
    static volatile int64_t *shared;
    if (shared == NULL) {
        int file = open(getenv("MOVED_CLOCK"), O_RDONLY);
        shared = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
    }
    return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) {
        real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) {
        now->tv_sec += shift();
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *into) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (into != NULL) {
        *into = exact.tv_sec;
    }
    return exact.tv_sec;
}
