/* Measures how long a collective of MPI takes, with the values, barriers, statistic and output of bench/collectives. run_collectives
   compiles it once for each MPI library and starts it.

     mpirun -n RANKS mpi_collectives NAME OP CALLS BYTES...

   Prints NAME as the backend. Times at most CALLS calls of each size. */

#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { root = 0, warm_up = 3, barrier_from = 256 * 1024 };

enum op { all_reduce, reduce, broadcast, reduce_scatter, all_gather, gather, scatter, all_to_all, send_recv, barrier, op_count };
static const char* const op_names[op_count] = {"all_reduce", "reduce",  "broadcast",  "reduce_scatter", "all_gather",
                                               "gather",     "scatter", "all_to_all", "send_recv",      "barrier"};

/* One op and its buffers: `whole` and `part` are as in bench/collectives, their sizes in elements. */
struct trial {
  enum op op;
  int rank, ranks;
  size_t whole_size, part_size;
  float *whole, *part;
};

static float value(size_t element, int rank) { return (float)((element % 1000 + 1) * (size_t)(rank + 1)); }

static void* allocate(size_t bytes) {
  void* memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL) {
    fprintf(stderr, "mpi_collectives: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static struct trial make_trial(enum op op, int rank, int ranks, size_t bytes) {
  const size_t count = (size_t)ranks, elements = op == barrier ? 0 : bytes / sizeof(float);
  const int sharded = op == reduce_scatter || op == all_gather || op == gather || op == scatter || op == all_to_all;
  struct trial trial = {op, rank, ranks, elements, 0, NULL, NULL};
  if (sharded) trial.whole_size = elements < count ? count : elements / count * count;
  trial.part_size = op == all_to_all || op == send_recv ? trial.whole_size : trial.whole_size / count;
  trial.whole = allocate((trial.whole_size + trial.part_size) * sizeof(float));
  trial.part = trial.whole + trial.whole_size;
  return trial;
}

static void fill(const struct trial* trial) {
  for (size_t i = 0; i < trial->whole_size; ++i) trial->whole[i] = value(i, trial->rank);
  for (size_t i = 0; i < trial->part_size; ++i) trial->part[i] = value(i, trial->rank);
}

static void run(const struct trial* trial) {
  const MPI_Comm world = MPI_COMM_WORLD;
  float *const whole = trial->whole, *const part = trial->part;
  const int all = (int)trial->whole_size, shard = (int)trial->part_size, rank = trial->rank, ranks = trial->ranks;
  switch (trial->op) {
    case all_reduce:
      MPI_Allreduce(MPI_IN_PLACE, whole, all, MPI_FLOAT, MPI_SUM, world);
      break;
    case reduce:
      MPI_Reduce(rank == root ? MPI_IN_PLACE : whole, whole, all, MPI_FLOAT, MPI_SUM, root, world);
      break;
    case broadcast:
      MPI_Bcast(whole, all, MPI_FLOAT, root, world);
      break;
    case reduce_scatter:
      MPI_Reduce_scatter_block(whole, part, shard, MPI_FLOAT, MPI_SUM, world);
      break;
    case all_gather:
      MPI_Allgather(part, shard, MPI_FLOAT, whole, shard, MPI_FLOAT, world);
      break;
    case gather:
      MPI_Gather(part, shard, MPI_FLOAT, whole, shard, MPI_FLOAT, root, world);
      break;
    case scatter:
      MPI_Scatter(whole, shard, MPI_FLOAT, part, shard, MPI_FLOAT, root, world);
      break;
    case all_to_all:
      MPI_Alltoall(whole, all / ranks, MPI_FLOAT, part, all / ranks, MPI_FLOAT, world);
      break;
    case send_recv:
      MPI_Sendrecv(whole, all, MPI_FLOAT, (rank + 1) % ranks, 0, part, all, MPI_FLOAT, (rank + ranks - 1) % ranks, 0, world,
                   MPI_STATUS_IGNORE);
      break;
    case barrier:
      MPI_Barrier(world);
      break;
    case op_count:
      break;
  }
}

static void expect(const struct trial* trial, size_t element, float expected, float found) {
  if (found == expected) return;
  fprintf(stderr, "mpi_collectives: %s of %zu bytes on rank %d: element %zu should be %g, but it is %g\n", op_names[trial->op],
          trial->whole_size * sizeof(float), trial->rank, element, (double)expected, (double)found);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Checks the results after fill() and run(). */
static void check(const struct trial* trial) {
  const int rank = trial->rank, ranks = trial->ranks;
  const size_t shard = trial->part_size, begin = shard * (size_t)rank, cut = trial->whole_size / (size_t)ranks;
  const float sum = (float)(ranks * (ranks + 1) / 2);
  const enum op op = trial->op;
  if (op == all_reduce || (op == reduce && rank == root))
    for (size_t i = 0; i < trial->whole_size; ++i) expect(trial, i, value(i, 0) * sum, trial->whole[i]);
  if (op == broadcast)
    for (size_t i = 0; i < trial->whole_size; ++i) expect(trial, i, value(i, root), trial->whole[i]);
  if (op == all_gather || (op == gather && rank == root))
    for (size_t i = 0; i < trial->whole_size; ++i) expect(trial, i, value(i % shard, (int)(i / shard)), trial->whole[i]);
  for (size_t i = 0; i < shard; ++i) {
    if (op == reduce_scatter) expect(trial, i, value(begin + i, 0) * sum, trial->part[i]);
    if (op == scatter) expect(trial, i, value(begin + i, root), trial->part[i]);
    if (op == all_to_all) expect(trial, i, value(cut * (size_t)rank + i % cut, (int)(i / cut)), trial->part[i]);
    if (op == send_recv) expect(trial, i, value(i, (rank + ranks - 1) % ranks), trial->part[i]);
  }
}

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static int timed_calls(size_t bytes, int most) {
  size_t calls = ((size_t)64 << 20) / (bytes + 1);
  if (calls < 9) calls = 9;
  if (calls > 2000) calls = 2000;
  return calls < (size_t)most ? (int)calls : most;
}

static void measure(const char* name, struct trial trial, size_t bytes, int calls) {
  double* times = allocate((size_t)calls * sizeof(double));
  for (int i = -warm_up; i < calls; ++i) {
    fill(&trial);
    if (bytes >= barrier_from) MPI_Barrier(MPI_COMM_WORLD); /* smaller calls synchronise the ranks themselves */
    const double begin = MPI_Wtime();
    run(&trial);
    const double took = MPI_Wtime() - begin;
    if (i >= 0) times[i] = took * 1e6;
    if (i < 0 || i + 1 == calls) check(&trial);
  }
  qsort(times, (size_t)calls, sizeof(double), ascending);
  if (trial.rank == root) {
    printf("{\"backend\": \"%s\", \"op\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"allocated\": false, \"median_us\": %.3f}\n", name,
           op_names[trial.op], trial.ranks, trial.whole_size * sizeof(float), times[calls / 2]);
    fflush(stdout);
  }
  free(times);
  free(trial.whole);
}

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank that outlives its launcher would distort all later measurements */
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int op = 0;
  while (argc > 2 && op < op_count && strcmp(op_names[op], argv[2]) != 0) ++op;
  const int calls = argc > 3 ? atoi(argv[3]) : 0;
  if (argc < 5 || op == op_count || calls < 1) {
    if (rank == root) fprintf(stderr, "usage: mpirun -n RANKS mpi_collectives NAME OP CALLS BYTES...\n");
    MPI_Finalize();
    return 2;
  }
  for (int i = 4; i < argc; ++i) {
    const size_t bytes = (size_t)strtoull(argv[i], NULL, 10);
    measure(argv[1], make_trial((enum op)op, rank, ranks, bytes), bytes, timed_calls(bytes, calls));
  }
  MPI_Finalize();
  return 0;
}
