// What the leak sanitizer is not to report: what MPI libraries, and those that they load, keep until the process ends or lose. Without a
// sanitizer nothing calls these.

extern "C" {

const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libmpi\nleak:libopen-pal\nleak:libopen-rte\nleak:libpmix\nleak:libhwloc\nleak:libevent\n"
         "leak:libuc\nleak:libfabric\nleak:libpsm\nleak:libibverbs\n";
}
const char* __lsan_default_options() { return "print_suppressions=0"; }  // NOLINT(bugprone-reserved-identifier)

/// Plug-ins are no longer loaded at the end, and have no names then: only whole stacks lead to a library that is.
const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }  // NOLINT(bugprone-reserved-identifier)

}  // extern "C"
