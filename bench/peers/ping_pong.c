/* Measures how long a flag takes from core to core and back: two threads, on the first two cores of this process, answer each other through
   two cache lines. Prints the median round trip in microseconds. It shows the regime of the machine, which may change at any time. In the
   regime with the longer round trip, small and medium transfers take twice as long, but large ones only a third of the time. So
   run_collectives compares only figures from the same regime. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { batches = 41, round_trips = 1000 };

struct flag {
  _Alignas(128) atomic_int count;
};

struct table {
  struct flag ping, pong;
};

static void pin(size_t index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Spins. Yields now and then, so that two threads on one core do not wait until each other's time slice ends. */
static void await(struct flag* flag, int count) {
  for (int spins = 0; atomic_load_explicit(&flag->count, memory_order_acquire) != count; ++spins)
    if (spins % 100000 == 99999) sched_yield();
}

static void* answer(void* argument) {
  struct table* table = argument;
  pin(1);
  for (int i = 1; i <= batches * round_trips; ++i) {
    await(&table->ping, i);
    atomic_store_explicit(&table->pong.count, i, memory_order_release);
  }
  return NULL;
}

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

int main(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  static struct table table;
  pthread_t other;
  if (pthread_create(&other, NULL, answer, &table) != 0) {
    fprintf(stderr, "ping_pong: cannot start a thread\n");
    return 1;
  }
  pin(0);
  double times[batches];
  for (int batch = 0, i = 1; batch < batches; ++batch) {
    const double begin = now_us();
    for (int trip = 0; trip < round_trips; ++trip, ++i) {
      atomic_store_explicit(&table.ping.count, i, memory_order_release);
      await(&table.pong, i);
    }
    times[batch] = (now_us() - begin) / round_trips;
  }
  pthread_join(other, NULL);
  qsort(times, batches, sizeof(double), ascending);
  printf("%.4f\n", times[batches / 2]);
  return 0;
}
