// Compiled once for a program; see pdp/core/separate_compilation.hpp.
#ifndef PDP_SEPARATE_COMPILATION
#define PDP_SEPARATE_COMPILATION
#endif

#include <pdp/launch/net/source/host_name.hpp>
#include <pdp/launch/process/source/cores.hpp>
#include <pdp/launch/process/source/job.hpp>
#include <pdp/launch/process/source/problem.hpp>
#include <pdp/launch/process/source/report.hpp>
#include <pdp/launch/process/source/stack.hpp>
#include <pdp/launch/process/source/start_time.hpp>
#include <pdp/launch/source/options.hpp>
#include <pdp/launch/source/program_flags.hpp>
#include <pdp/launch/source/stop_requests.hpp>
#include <pdp/launch/start/source/environment.hpp>
#include <pdp/launch/start/source/launcher_variables.hpp>
#include <pdp/launch/start/source/rendezvous_url.hpp>
#include <pdp/launch/start/source/slurm.hpp>
#include <pdp/launch/start/source/start.hpp>
#include <pdp/launch/start/source/starter.hpp>
#include <pdp/launch/store/source/in_process_store.hpp>
#include <pdp/launch/store/source/store_protocol.hpp>
