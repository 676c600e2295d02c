// Suppressions of LeakSanitizer for memory that MPI libraries, and libraries that they load, leak or keep until the process ends. Without a
// sanitizer nothing calls these functions.

extern "C" {

const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libmpi\nleak:libopen-pal\nleak:libopen-rte\nleak:libpmix\nleak:libhwloc\nleak:libevent\n"
         "leak:libuc\nleak:libfabric\nleak:libpsm\nleak:libibverbs\n";
}
const char* __lsan_default_options() { return "print_suppressions=0"; }  // NOLINT(bugprone-reserved-identifier)

/// At exit, plug-ins of MPI are already unloaded, so their stack frames have no names. Only a complete stack also contains a library that
/// is still loaded, which a suppression can name.
const char* __asan_default_options() { return "fast_unwind_on_malloc=0"; }  // NOLINT(bugprone-reserved-identifier)

}  // extern "C"
